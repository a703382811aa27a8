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

from headgate.plan.sides import SchemaSide, WrittenSchema
from headgate.runtime.formats.avro_reshape import differs, reshape
from headgate.runtime.formats.side import MAGIC, MALFORMED, Writers, framed_id, is_framed, wrong_frame
from headgate.schema.formats.avro.read import from_avro as avro_type

# Five bytes as an Avro int: a chance of 1 in 2^31 that left-over bytes look like it. Negative, because a record that ends
# before a text or an array takes it for a length: of a positive one Avro makes room for 1.5 GB before it reads on.
END = -1_554_098_975
END_FIELD, WHOLE_FIELD = "headgate_end", "headgate_whole"
_END_BYTES = bytes((0xBD, 0xAC, 0x8D, 0xCA, 0x0B))


class AvroReader:
    """``inner`` is a struct of the fields and the number read behind them, NULL for ids that are not known."""

    def __init__(self, side: SchemaSide, writers: Writers) -> None:
        self._side = side
        self._writers = writers
        self._schema = json.loads(_json(side.first.text))
        self._flat = _is_record(self._schema)

    def costly(self, data: Column) -> Column:
        reader = ended(self._side.first, flat=self._flat)
        if not self._side.framed:  # every record is a body written with the reader's own schema
            return from_avro(F.concat(data, F.lit(_END_BYTES)), reader, {"mode": "PERMISSIVE"})
        # Frames are compared as bytes, so that no number is made of them unless a record is bad.
        frame = F.substring(data, 1, 5)
        body = F.concat(F.substring(data, 6, 2**31 - 1), F.lit(_END_BYTES))
        plain = from_avro(body, reader, {"mode": "PERMISSIVE"})
        if (
            self._side.first.id is None
        ):  # the statement has the schema, and no registry: whatever id a frame names
            return F.when(is_framed(data), plain)
        case = F.when(F.lit(False), plain)
        for id_, writer in self._writers.known.items():
            options = {"mode": "PERMISSIVE", "avroSchema": reader}
            decoded = from_avro(body, ended(writer, flat=self._flat), options)
            case = case.when(frame == F.lit(b"\x00" + id_.to_bytes(4, "big")), decoded)
        return case

    def fits(self, data: Column, inner: Column) -> Column:
        """An id that is not known yet raises here already: where bad records are left out, nobody asks for the reason."""
        good = inner[END_FIELD] == F.lit(END)
        return F.when(good, F.lit(True)).otherwise(self.reason(data, inner).isNull())

    def reason(self, data: Column, inner: Column) -> Column:
        malformed = F.lit(MALFORMED)
        if not self._side.framed:
            return malformed
        if self._side.first.id is None:
            return F.when(~is_framed(data), F.lit(MAGIC)).otherwise(malformed)
        return wrong_frame(data, self._writers, malformed)

    def value(self, data: Column, inner: Column) -> Column:
        whole = inner.dropFields(END_FIELD) if self._flat else inner[WHOLE_FIELD]
        if not differs(self._schema):
            return whole
        # Again a barrier, where there is something to be computed: each use of a field would do it anew.
        type_ = avro_type(self._side.first.text, texts(self._side.first))
        return F.explode(F.array(reshape(whole, self._schema, type_)))

    def schema_id(self, data: Column) -> Column:
        return framed_id(data) if self._side.framed else F.lit(None).cast("int")


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
