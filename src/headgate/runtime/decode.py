"""Records of a topic -> the columns of a source, on the JVM, with every record that does not fit told apart.

Avro: one CASE over the schema ids that the batch can hold, each branch `from_avro(body, writer, reader)`, behind a
barrier (`explode(array(..))`), because Spark otherwise decodes once per use of a field (RUNTIME: 160 times for 40
ids). Writer and reader are wrapped in a record of two fields, the schema itself and an int that we append to the
bytes: a record of any schema then decodes alike, a malformed one gives a null there, and one with bytes left over
gives another number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from headgate.plan.source import AvroSide, BytesSide, JsonSide, SidePlan, SourceColumn, SourcePlan, TextSide
from headgate.runtime.json_check import json_problem
from headgate.runtime.reshape import differs, reshape
from headgate.schema.formats.avro.read import from_avro as avro_type

BAD = "headgate-bad-record:"  # before the JSON by which a bad record is told to the driver
UNKNOWN_ID = "headgate-unknown-schema-id:"
END = 1_554_098_974  # five bytes as an Avro int: a chance of 1 in 2^31 that left-over bytes look like it
_END_BYTES = bytes((0xBC, 0xAC, 0x8D, 0xCA, 0x0B))

MAGIC = "its first byte is not the 0 of a registry's frame"
SHORT = "it is too short for a registry's frame"
MALFORMED = "it is not what its schema says"
NOT_UTF8 = "it is not valid UTF-8"
NO_VALUE = "the record has no value"
NO_KEY = "the record has no key"


@dataclass(frozen=True, slots=True)
class Writers:
    """The schemas that records may be written with, by id: text and the texts it refers to. ``refused`` ids are those
    that the registry does not know."""

    known: Mapping[int, tuple[str, tuple[str, ...]]]
    refused: frozenset[int] = frozenset()


NO_WRITERS = Writers({})


def decode(
    raw: DataFrame, plan: SourcePlan, key: Writers = NO_WRITERS, value: Writers = NO_WRITERS
) -> DataFrame:
    """Raw records of Spark's Kafka reader -> columns `hg_key`, `hg_value`, `hg_problem` and the record's place.

    ``hg_problem`` is NULL for a good record and else a struct of side, reason and schema id. Records with neither
    key nor value are left out.
    """
    present = raw.where("key IS NOT NULL OR value IS NOT NULL")
    # The barrier: what stands in it is computed once per record. Only what is costly does; what is said of it comes
    # after, because within the barrier every mention is computed for itself (from_avro stood in the plan 3 times, now
    # once; decoding alone took 8.8-10.2 CPU seconds for a million small records, now 5.4, on a busy machine).
    costly = F.struct(
        _costly(F.col("key"), plan.key, key).alias("k"), _costly(F.col("value"), plan.value, value).alias("v")
    )
    barred = present.withColumn("hg_in", F.explode(F.array(costly)))
    decoded = barred.withColumn("hg_problem", _problem(plan, key, value))
    for side, name in ((plan.key, "key"), (plan.value, "value")):
        decoded = decoded.withColumn(f"hg_{name}", _value(F.col(name), F.col(f"hg_in.{name[0]}"), side))
    return decoded


def columns(plan: SourcePlan) -> list[Column]:
    """The source's columns over decoded records, by name."""
    return [_column(column).alias(column.name) for column in plan.columns]


def refuse_bad(decoded: DataFrame) -> DataFrame:
    """The good records; the first bad one fails the job with its place (policy HALT)."""
    place = F.to_json(F.struct("topic", "partition", "offset", F.col("hg_problem.*")))
    bad = F.raise_error(F.concat(F.lit(BAD), place)).cast("boolean")
    return decoded.where(F.when(F.col("hg_problem").isNotNull(), bad).otherwise(F.lit(True)))


def _column(column: SourceColumn) -> Column:
    origin = column.origin
    match origin.part:
        case "key" | "value":
            whole = F.col(f"hg_{origin.part}")
            return whole if origin.name is None else whole.getField(origin.name)
        case "metadata":
            name = (origin.name or "").lower()
            return F.coalesce(F.col("headers"), F.array()) if name == "headers" else F.col(name)
        case "header":
            last = F.element_at(F.filter(F.col("headers"), lambda h: h["key"] == F.lit(origin.name)), -1)
            value = F.when(
                F.size(F.filter("headers", lambda h: h["key"] == F.lit(origin.name))) > 0, last["value"]
            )
            return value if origin.as_bytes else value.cast("string")


def _problem(plan: SourcePlan, key: Writers, value: Writers) -> Column:
    """The first thing that is wrong with a record, the key's before the value's."""

    def found(side: str, reason: Column, schema_id: Column) -> Column:
        return F.struct(
            F.lit(side).alias("side"), reason.alias("reason"), schema_id.cast("int").alias("schema_id")
        )

    problem = F.when(F.lit(False), found("key", F.lit(""), F.lit(0)))
    for name, side, writers in (("key", plan.key, key), ("value", plan.value, value)):
        data, inner = F.col(name), F.col(f"hg_in.{name[0]}")
        if name == "key" and side is not None and plan.envelope == "UPSERT" and _keyed_by_key(plan):
            problem = problem.when(data.isNull(), found("key", F.lit(NO_KEY), F.lit(None)))
        if name == "value" and plan.envelope == "NONE":
            problem = problem.when(data.isNull(), found("value", F.lit(NO_VALUE), F.lit(None)))
        if side is None or isinstance(side, BytesSide):
            continue
        schema_id = F.when(_framed(data), _schema_id(data)) if _is_framed(side) else F.lit(None)
        bad = data.isNotNull() & ~F.coalesce(_fits(data, inner, side), F.lit(False))
        problem = problem.when(bad, found(name, _reason(data, inner, side, writers), schema_id))
    return problem


def _keyed_by_key(plan: SourcePlan) -> bool:
    return any(c.key and c.origin.part == "key" for c in plan.columns)


# A side of a record, in four questions. The first is asked within the barrier, the others of its answer.


def _costly(data: Column, side: SidePlan | None, writers: Writers) -> Column:
    """Avro: a struct of the value and the number read behind it, NULL for ids that are not known. JSON: why it is
    none."""
    match side:
        case JsonSide():
            return json_problem(data)
        case AvroSide():
            return _avro(data, side, writers.known if side.framed else None)
        case _:
            return F.lit(None).cast("string")


def _value(data: Column, inner: Column, side: SidePlan | None) -> Column:
    match side:
        case None:
            return F.lit(None)
        case BytesSide():
            return data
        case TextSide() | JsonSide():
            return data.cast("string")
        case AvroSide():
            type_ = avro_type(side.reader, side.references)
            reshaped = reshape(inner["v"], json.loads(_json(side.reader)), type_)
            # Again a barrier, where there is something to be computed: each use of a field would do it anew.
            return F.explode(F.array(reshaped)) if differs(json.loads(_json(side.reader))) else reshaped


def _fits(data: Column, inner: Column, side: SidePlan) -> Column:
    """Whether there is nothing wrong with it: the one thing that is computed for a good record."""
    match side:
        case BytesSide():
            return F.lit(True)
        case TextSide():
            return F.is_valid_utf8(data.cast("string"))
        case JsonSide():
            return F.is_valid_utf8(data.cast("string")) & inner.isNull()
        case AvroSide():
            return inner["end"] == F.lit(END)


def _reason(data: Column, inner: Column, side: SidePlan, writers: Writers) -> Column:
    """Why it does not fit. An id that is not known yet raises, so that it is learned."""
    match side:
        case BytesSide() | TextSide():
            return F.lit(NOT_UTF8)
        case JsonSide():
            return F.when(~F.is_valid_utf8(data.cast("string")), F.lit(NOT_UTF8)).otherwise(inner)
        case AvroSide(framed=False):
            return F.lit(MALFORMED)
        case AvroSide():
            return _reason_of_framed(data, writers)


def _reason_of_framed(data: Column, writers: Writers) -> Column:
    schema_id = _schema_id(data)
    refused = F.concat(F.lit("schema id "), schema_id, F.lit(" is not known to the registry"))
    unknown = F.raise_error(F.concat(F.lit(UNKNOWN_ID), schema_id)).cast("string")
    reason = F.when(F.length(data) < 5, F.lit(SHORT)).when(~_framed(data), F.lit(MAGIC))
    if writers.refused:
        reason = reason.when(schema_id.isin(list(writers.refused)), refused)
    known = schema_id.isin(list(writers.known)) if writers.known else F.lit(False)
    return reason.when(~known, unknown).otherwise(F.lit(MALFORMED))


def _is_framed(side: SidePlan) -> bool:
    return isinstance(side, AvroSide) and side.framed


def _framed(data: Column) -> Column:
    return (F.length(data) >= 5) & (F.substring(data, 1, 1) == F.lit(b"\x00"))


def _schema_id(data: Column) -> Column:
    return F.conv(F.hex(F.substring(data, 2, 4)), 16, 10).cast("bigint").cast("int")


def _avro(data: Column, side: AvroSide, known: Mapping[int, tuple[str, tuple[str, ...]]] | None) -> Column:
    """Without ``known``, every record is a body written with the reader's own schema."""
    reader = wrapped(side.reader, side.references)
    if known is None:
        return from_avro(F.concat(data, F.lit(_END_BYTES)), reader, {"mode": "PERMISSIVE"})
    # Frames are compared as bytes, so that no number is made of them unless a record is bad.
    frame = F.substring(data, 1, 5)
    ended = F.concat(F.substring(data, 6, 2**31 - 1), F.lit(_END_BYTES))
    case = F.when(F.lit(False), from_avro(ended, reader, {"mode": "PERMISSIVE"}))
    for id_, (writer, references) in known.items():
        options = {"mode": "PERMISSIVE", "avroSchema": reader}
        decoded = from_avro(ended, wrapped(writer, references), options)
        case = case.when(frame == F.lit(b"\x00" + id_.to_bytes(4, "big")), decoded)
    return case


def wrapped(schema: str, references: Sequence[str] = ()) -> str:
    """The schema as the first field of a record whose second is an int. References come before it, so that it may
    use their names; they take no bytes."""
    parsed = json.loads(_json(schema))
    fields: list[object] = [
        {"name": "v", "type": inlined(parsed, references)},
        {"name": "end", "type": "int"},
    ]
    return json.dumps({"type": "record", "name": "headgate_wrapped", "fields": fields})


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
