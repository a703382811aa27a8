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
from headgate.runtime.reshape import reshape
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
    value_side = _side(F.col("value"), plan.value, value)
    key_side = _side(F.col("key"), plan.key, key) if plan.key is not None else F.lit(None)
    # The barrier: what stands in it is computed once per record.
    decoded = present.withColumn(
        "hg", F.explode(F.array(F.struct(key_side.alias("k"), value_side.alias("v"))))
    )
    decoded = decoded.withColumn("hg_problem", _problem(plan))
    keyed = plan.key is not None
    return decoded.withColumn("hg_key", F.col("hg.k.v") if keyed else F.lit(None)).withColumn(
        "hg_value", F.col("hg.v.v")
    )


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


def _problem(plan: SourcePlan) -> Column:
    """The first thing that is wrong with a record, the key's before the value's."""

    def found(side: str, reason: Column, schema_id: Column) -> Column:
        return F.struct(
            F.lit(side).alias("side"), reason.alias("reason"), schema_id.cast("int").alias("schema_id")
        )

    problem = F.when(F.lit(False), found("key", F.lit(""), F.lit(0)))
    if plan.key is not None:
        if plan.envelope == "UPSERT" and any(c.key and c.origin.part == "key" for c in plan.columns):
            problem = problem.when(F.col("key").isNull(), found("key", F.lit(NO_KEY), F.lit(None)))
        bad_key = F.col("key").isNotNull() & F.col("hg.k.problem").isNotNull()
        problem = problem.when(bad_key, found("key", F.col("hg.k.problem"), F.col("hg.k.id")))
    if plan.envelope == "NONE":
        problem = problem.when(F.col("value").isNull(), found("value", F.lit(NO_VALUE), F.lit(None)))
    bad_value = F.col("value").isNotNull() & F.col("hg.v.problem").isNotNull()
    return problem.when(bad_value, found("value", F.col("hg.v.problem"), F.col("hg.v.id")))


# sides: each a struct of v (the decoded value), problem (NULL if there is none) and id (of the writer's schema)


def _side(data: Column, side: SidePlan, writers: Writers) -> Column:
    match side:
        case BytesSide():
            return _struct(data, F.lit(None))
        case TextSide():
            text = data.cast("string")
            return _struct(text, F.when(~F.is_valid_utf8(text), F.lit(NOT_UTF8)))
        case JsonSide():
            text = data.cast("string")
            problem = F.when(~F.is_valid_utf8(text), F.lit(NOT_UTF8)).otherwise(json_problem(data))
            return _struct(text, problem)
        case AvroSide(framed=False):
            return _avro(data, F.lit(None), side, None)
        case AvroSide():
            return _framed_avro(data, side, writers)


def _struct(value: Column, problem: Column, schema_id: Column | None = None) -> Column:
    id_ = F.lit(None) if schema_id is None else schema_id
    return F.struct(value.alias("v"), problem.cast("string").alias("problem"), id_.cast("int").alias("id"))


def _framed_avro(data: Column, side: AvroSide, writers: Writers) -> Column:
    schema_id = F.conv(F.hex(F.substring(data, 2, 4)), 16, 10).cast("bigint").cast("int")
    body = F.substring(data, 6, 2**31 - 1)
    framed = (F.length(data) >= 5) & (F.substring(data, 1, 1) == F.lit(b"\x00"))
    decoded = _avro(body, F.when(framed, schema_id), side, writers.known)
    unknown = F.concat(F.lit("schema id "), schema_id, F.lit(" is not known to the registry"))
    known = [*writers.known, *writers.refused]
    problem = (
        F.when(F.length(data) < 5, F.lit(SHORT))
        .when(~framed, F.lit(MAGIC))
        .when(schema_id.isin(list(writers.refused)) if writers.refused else F.lit(False), unknown)
        .when(~schema_id.isin(known), F.raise_error(F.concat(F.lit(UNKNOWN_ID), schema_id)).cast("string"))
        .when(decoded["end"].isNull() | (decoded["end"] != END), F.lit(MALFORMED))
    )
    return _struct(decoded["v"], problem, F.when(framed, schema_id))


def _avro(
    body: Column, schema_id: Column, side: AvroSide, known: Mapping[int, tuple[str, tuple[str, ...]]] | None
) -> Column:
    """A struct of the value and the number read behind it: NULL for ids that are not known. Without ``known``, every
    body was written with the reader's own schema."""
    ended = F.concat(body, F.lit(_END_BYTES))
    reader = wrapped(side.reader, side.references)
    type_ = avro_type(side.reader, side.references)
    by_reader = from_avro(ended, reader, {"mode": "PERMISSIVE"})
    case = by_reader if known is None else F.when(F.lit(False), by_reader)
    for id_, (writer, references) in (known or {}).items():
        options = {"mode": "PERMISSIVE", "avroSchema": reader}
        case = case.when(schema_id == F.lit(id_), from_avro(ended, wrapped(writer, references), options))
    return F.struct(
        reshape(case.getField("v"), json.loads(_json(side.reader)), type_).alias("v"),
        case.getField("end").alias("end"),
    )


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
