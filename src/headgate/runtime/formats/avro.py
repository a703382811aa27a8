"""Avro, on the JVM: one CASE over the schema ids that a batch can hold, each branch `from_avro(body, writer, reader)`.

Writer and reader get one more field at their end, an int whose bytes we append: a malformed record gives a null there,
and one with bytes left over gives another number. What is not a record becomes the first field of one. (A record put
into another costs a tenth of all CPU time: Spark makes the inner row anew each time, asking its settings per field.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from headgate.plan.sides import SchemaSide, WrittenSchema, place_of
from headgate.runtime.formats.avro_reshape import differs, reshape
from headgate.runtime.formats.avro_texts import wrong_text
from headgate.runtime.formats.conform import conform
from headgate.runtime.formats.side import (
    MAGIC,
    MALFORMED,
    Writers,
    framed_id,
    has_id,
    is_framed,
    wrong_frame,
)
from headgate.schema.formats.avro.read import from_avro as avro_type
from headgate.schema.formats.spark import to_spark

# Five bytes as an Avro int: a chance of 1 in 2^31 that left-over bytes look like it. Negative, because a record that ends
# before a text or an array takes it for a length: of a positive one Avro makes room for 1.5 GB before it reads on.
END = -1_554_098_975
FROZEN = "frozen"
PERMISSIVE = {"mode": "PERMISSIVE"}
END_FIELD, WHOLE_FIELD = "headgate_end", "headgate_whole"
_END_BYTES = bytes((0xBD, 0xAC, 0x8D, 0xCA, 0x0B))


class AvroReader:
    """``inner`` has a struct for the frozen schema, and one for each that is read on its own terms: the fields and the
    number read behind them. All are NULL for ids that are not known."""

    def __init__(self, side: SchemaSide, writers: Writers) -> None:
        self._side = side
        self._writers = writers
        self._frozen = _Written(FROZEN, side.first, [])
        own, self._resolved = _by_shape(writers, own=True), _by_shape(writers, own=False)
        self._frozen.ids += own.pop(self._frozen.shape, []) + self._resolved.pop(self._frozen.shape, [])
        self._own = [_Written(f"own{ids[0]}", writers.known[ids[0]], ids) for ids in own.values()]

    def costly(self, data: Column) -> Column:
        if not self._side.framed:  # every record is a body written with the reader's own schema
            plain = from_avro(F.concat(data, F.lit(_END_BYTES)), self._frozen.ended, PERMISSIVE)
            return F.struct(plain.alias(FROZEN))
        body = F.concat(F.substring(data, 6, 2**31 - 1), F.lit(_END_BYTES))
        frozen = self._by_frozen(data, body).alias(FROZEN)
        own = [
            F.when(has_id(data, w.ids), from_avro(body, w.ended, PERMISSIVE)).alias(w.name) for w in self._own
        ]
        return F.struct(frozen, *own)

    def _by_frozen(self, data: Column, body: Column) -> Column:
        plain = from_avro(body, self._frozen.ended, PERMISSIVE)
        if (
            self._side.first.id is None
        ):  # the statement has the schema, and no registry: whatever id a frame names
            return F.when(is_framed(data), plain)
        case = F.when(has_id(data, self._frozen.ids) if self._frozen.ids else F.lit(False), plain)
        for ids in self._resolved.values():
            options = {**PERMISSIVE, "avroSchema": self._frozen.ended}
            writer = ended(self._writers.known[ids[0]], flat=self._frozen.flat)
            case = case.when(has_id(data, ids), from_avro(body, writer, options))
        return case

    def fits(self, data: Column, inner: Column) -> Column:
        """An id that is not known yet raises here already: where bad records are left out, nobody asks for the reason."""
        ends = [inner[w.name][END_FIELD] for w in (self._frozen, *self._own)]
        good = (F.coalesce(*ends) if self._own else ends[0]) == F.lit(END)
        if (wrong := self._wrong_text(inner)) is not None:
            good = good & wrong.isNull()
        return F.when(good, F.lit(True)).otherwise(self.reason(data, inner).isNull())

    def reason(self, data: Column, inner: Column) -> Column:
        malformed: Column = F.lit(MALFORMED)
        if (wrong := self._wrong_text(inner)) is not None:
            malformed = F.coalesce(wrong, malformed)
        if not self._side.framed:
            return malformed
        if self._side.first.id is None:
            return F.when(~is_framed(data), F.lit(MAGIC)).otherwise(malformed)
        return wrong_frame(data, self._writers, malformed)

    def _wrong_text(self, inner: Column) -> Column | None:
        """Why a text within is not what its schema says, of bodies that are well-formed."""
        written = (self._frozen, *self._own)
        found = [reason for w in written if (reason := wrong_text(w.value(inner), w.type)) is not None]
        return F.coalesce(*found) if found else None

    def value(self, data: Column, inner: Column) -> Column:
        target = place_of(self._side).type
        frozen = self._frozen.value(inner)
        if not self._own and to_spark(self._frozen.type) == to_spark(target):
            # Again a barrier, where there is something to be computed: each use of a field would do it anew.
            return F.explode(F.array(frozen)) if self._frozen.reshaped else frozen
        value = F.when(inner[FROZEN][END_FIELD] == F.lit(END), conform(frozen, self._frozen.type, target))
        for own in self._own:
            found = conform(own.value(inner), own.type, target)
            value = value.when(inner[own.name][END_FIELD] == F.lit(END), found)
        return F.explode(F.array(value))

    def schema_id(self, data: Column) -> Column:
        return framed_id(data) if self._side.framed else F.lit(None).cast("int")


class _Written:
    """A schema that values are read with: as Spark's reader takes it, and what comes of it."""

    def __init__(self, name: str, schema: WrittenSchema, ids: list[int]) -> None:
        self.name = name
        self.ids = ids
        self.shape = _shape(schema)
        self._schema = json.loads(_json(schema.text))
        self.flat = _is_record(self._schema)
        self.ended = ended(schema, flat=self.flat)
        self.type = avro_type(schema.text, texts(schema))
        self.reshaped = differs(self._schema)

    def value(self, inner: Column) -> Column:
        read = inner[self.name]
        whole = read.dropFields(END_FIELD) if self.flat else read[WHOLE_FIELD]
        return reshape(whole, self._schema, self.type) if self.reshaped else whole


def _by_shape(writers: Writers, *, own: bool) -> dict[str, list[int]]:
    """The ids that are read on their own terms, or those that are resolved; together where their bytes are alike."""
    found: dict[str, list[int]] = {}
    for id_, schema in sorted(writers.known.items()):
        if (id_ in writers.own) is own:
            found.setdefault(_shape(schema), []).append(id_)
    return found


def _shape(schema: WrittenSchema) -> str:
    """The schema without what does not show in the bytes: its docs."""

    def bare(node: object) -> object:
        match node:
            case dict():
                return {key: bare(value) for key, value in node.items() if key != "doc"}
            case list():
                return [bare(item) for item in node]
            case _:
                return node

    return json.dumps(
        [bare(json.loads(_json(text))) for text in (schema.text, *texts(schema))], sort_keys=True
    )


def texts(schema: WrittenSchema) -> tuple[str, ...]:
    return tuple(text for _, text in schema.references)


def ended(schema: WrittenSchema, *, flat: bool) -> str:
    """The schema with the field of the end: as the last one of a record, or else behind the whole. References are put
    where they are first used."""
    whole = inlined(json.loads(_json(schema.text)), texts(schema))
    end = {"name": END_FIELD, "type": "int"}
    if flat and isinstance(whole, dict) and _is_record(whole):
        return json.dumps({**whole, "fields": [*whole["fields"], end]})
    fields = [{"name": WHOLE_FIELD, "type": whole}, end]
    return json.dumps({"type": "record", "name": "headgate_wrapped", "fields": fields})


def _is_record(schema: object) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "record"


def _json(schema: str) -> str:
    return schema if schema.lstrip()[:1] in ("{", "[", '"') else json.dumps(schema)


def inlined(schema: object, references: Sequence[str]) -> object:
    """The schema with every name that a reference defines replaced by its definition where it is first used."""
    defined = {
        _full_name(d): d for d in (json.loads(_json(text)) for text in references) if isinstance(d, dict)
    }
    return _inline(schema, defined, set(), None)


def _full_name(definition: Mapping[str, object]) -> str:
    name, namespace = str(definition.get("name", "")), definition.get("namespace")
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _inline(
    node: object, defined: dict[str, dict[str, object]], used: set[str], namespace: str | None
) -> object:
    match node:
        case str():
            full = node if "." in node or not namespace else f"{namespace}.{node}"
            name = full if full in defined else node
            if name in defined and name not in used:
                used.add(name)
                return _inline(defined[name], defined, used, None)
            return node
        case list():
            return [_inline(branch, defined, used, namespace) for branch in node]
        case dict():
            inner = _namespace(node, namespace)
            made = dict(node)
            for key in ("type", "items", "values"):
                if key in made:
                    made[key] = _inline(made[key], defined, used, inner)
            if isinstance(made.get("fields"), list):
                made["fields"] = [_inline(field, defined, used, inner) for field in made["fields"]]
            return made
        case _:
            return node


def _namespace(node: Mapping[str, object], enclosing: str | None) -> str | None:
    name = str(node.get("name", ""))
    if "type" in node and node["type"] in ("record", "enum", "fixed", "error"):
        if "." in name:
            return name.rpartition(".")[0]
        return str(node["namespace"]) if node.get("namespace") else enclosing
    return enclosing
