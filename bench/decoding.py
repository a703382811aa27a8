"""Decoding records that lie ready in memory, format by format: Protobuf and JSON Schema in Python workers, beside Avro on
the JVM and beside Spark's own `from_json` with guards.

The same orders in every format, cached as bytes in the registry's frame, decoded to the same columns; what is taken is
the CPU time of Python and the JVM until all columns are there. Guards: `from_json` passes trailing text, takes the last of two members and
gives NULL for what does not fit, so a job that may not lose anything has it fail, and looks at the required members.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro, to_avro
from pyspark.sql.pandas.functions import arrow_udf

from bench.figures import Report, Row, Size
from bench.processes import cpu_seconds
from headgate.embedded.jars import fetch
from headgate.embedded.java import find_java
from headgate.plan.sides import SchemaSide, TextSide, WrittenSchema, fields_of
from headgate.plan.source import METADATA, Origin, SourceColumn, SourcePlan
from headgate.registry.protobuf_files import find_message, load_files, read_files
from headgate.runtime.decode import Decoder
from headgate.runtime.formats.readers import side_reader
from headgate.runtime.formats.side import Writers
from headgate.runtime.session import open_session
from headgate.schema.types import Text
from headgate.sql.ast.formats import RegistryKind

JSON_RATIO, AVRO_RATIO, BY_ID_RATIO = 0.9, 0.3, 0.91  # promises; the last is a cost of at most 10 %
MANY, WIDENED = 20, 10  # schemas, and the first of them in which a number is wider
ID = 7
FRAME = b"\x00" + ID.to_bytes(4, "big")

FIELDS = ("id", "item", "price", "pieces", "paid", "tags", "address")
AVRO = json.dumps(
    {
        "type": "record", "name": "order", "fields": [
            {"name": "id", "type": "long"}, {"name": "item", "type": "string"}, {"name": "price", "type": "double"},
            {"name": "pieces", "type": ["null", "int"]}, {"name": "paid", "type": "boolean"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "address", "type": {"type": "record", "name": "address", "fields": [
                {"name": "city", "type": "string"}, {"name": "number", "type": "int"}]}},
        ],
    }
)  # fmt: skip
INT = {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}
JSON_SCHEMA = json.dumps(
    {
        "type": "object", "additionalProperties": False,
        "required": ["id", "item", "price", "paid", "tags", "address"],
        "properties": {
            "id": {"type": "integer"}, "item": {"type": "string"}, "price": {"type": "number"},
            "pieces": {**INT, "type": ["integer", "null"]}, "paid": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "address": {"type": "object", "required": ["city", "number"], "additionalProperties": False,
                        "properties": {"city": {"type": "string"}, "number": INT}},
        },
    }
)  # fmt: skip
PROTO = """syntax = "proto3";
message Order {
  int64 id = 1; string item = 2; double price = 3; optional int32 pieces = 4; bool paid = 5; repeated string tags = 6;
  message Address { string city = 1; int32 number = 2; }
  Address address = 7;
}"""
DDL = (
    "id BIGINT, item STRING, price DOUBLE, pieces INT, paid BOOLEAN, tags ARRAY<STRING>, "
    "address STRUCT<city: STRING, number: INT>"
)


def run(size: Size) -> Report:
    records, rounds = (200_000, 1) if size == "small" else (1_000_000, 3)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        session = open_session(
            fetch("spark"), master="local[2]", java=find_java().path, warehouse=Path(folder)
        )
        try:
            rows = _rows(session, records, rounds)
        finally:
            session.stop()
    notes = (
        f"{records:,} orders of {len(FIELDS)} fields in memory; CPU time of Python and the JVM, the best of {rounds} rounds, in turn.",
        "from_json with guards: FAILFAST, and every required member tested for NULL.",
    )
    return Report("Decoding", tuple(rows), notes)


def _rows(session: SparkSession, records: int, rounds: int) -> list[Row]:
    orders = session.range(records, numPartitions=4).select(*_order())
    works = {
        **{f"by id, {ids}": _by_id(_raw(orders, ids), ids) for ids in (1, MANY)},
        **{f"fixed, {ids}": _fixed(_raw(orders, ids, only_last=True), ids) for ids in (1, MANY)},
        "avro": _decoded("AVRO", AVRO, _framed(orders, to_avro(F.struct(*FIELDS), AVRO))),
        "from_json": _guarded(_framed(orders, _json())),
        "json": _decoded("JSON SCHEMA", JSON_SCHEMA, _framed(orders, _json())),
        "protobuf": _decoded("PROTOBUF", PROTO, _messages(session, records)),
    }
    best = dict.fromkeys(works, float("inf"))
    wall = dict(best)
    for turn in range(rounds + 1):
        for name, work in works.items():
            began, at = cpu_seconds(), time.monotonic()
            work()
            if turn:  # the first one warms up
                best[name] = min(best[name], cpu_seconds() - began)
                wall[name] = min(wall[name], time.monotonic() - at)
    rate = {name: records / seconds for name, seconds in best.items()}
    by_clock = {name: records / seconds for name, seconds in wall.items()}
    return [
        *_by_id_rows(rate, "a CPU second"),
        *_by_id_rows(by_clock, "a second"),
        _row("JSON Schema", rate["json"], rate["from_json"], "from_json with guards", JSON_RATIO),
        _row("JSON Schema", rate["json"], rate["avro"], "Avro", AVRO_RATIO),
        _row("Protobuf", rate["protobuf"], rate["from_json"], "from_json with guards", JSON_RATIO),
        _row("Protobuf", rate["protobuf"], rate["avro"], "Avro", AVRO_RATIO),
    ]


def _by_id_rows(rate: dict[str, float], unit: str) -> list[Row]:
    return [
        _row(
            f"Avro with keys and metadata, {ids} schema id{'s' if ids > 1 else ''}",
            rate[f"by id, {ids}"],
            rate[f"fixed, {ids}"],
            "from_avro, one schema",
            BY_ID_RATIO,
            unit,
        )
        for ids in (1, MANY)
    ]


def _row(what: str, ours: float, peer: float, name: str, promise: float, unit: str = "a CPU second") -> Row:
    ratio = ours / peer
    return Row(
        what,
        f"{ours:,.0f} {unit}",
        f"{peer:,.0f} {name}",
        ratio,
        f"at least {promise}",
        ratio >= promise,
    )


# the same orders in each format


def _order() -> list[Column]:
    number = F.col("id")
    return [
        number,
        F.concat(F.lit("item number "), number).alias("item"),
        (number % 1000 * 1.25).alias("price"),
        F.when(number % 3 != 0, (number % 50).cast("int")).alias("pieces"),
        (number % 2 == 0).alias("paid"),
        F.array(F.lit("red"), F.concat(F.lit("t"), number % 7)).alias("tags"),
        F.struct(F.lit("Graz").alias("city"), (number % 200).cast("int").alias("number")).alias("address"),
    ]


def _json() -> Column:
    return F.to_json(F.struct(*FIELDS)).cast("binary")


def _framed(orders: DataFrame, body: Column) -> DataFrame:
    return _cached(orders.select(F.concat(F.lit(FRAME), body).alias("data")))


def _messages(session: SparkSession, records: int) -> DataFrame:
    def written(ids: pa.Array) -> pa.Array:
        order: Any = GetMessageClass(find_message(load_files(read_files(PROTO)), None))
        made = []
        for n in ids.to_pylist():
            one = order(
                id=n,
                item=f"item number {n}",
                price=n % 1000 * 1.25,
                paid=n % 2 == 0,
                tags=["red", f"t{n % 7}"],
            )
            if n % 3:
                one.pieces = n % 50
            one.address.city, one.address.number = "Graz", n % 200
            made.append(FRAME + b"\x00" + one.SerializeToString())
        return pa.array(made, pa.binary())

    ids = session.range(records, numPartitions=4)
    return _cached(ids.select(arrow_udf(written, "binary")(F.col("id")).alias("data")))  # type: ignore[call-overload]


def _cached(frame: DataFrame) -> DataFrame:
    cached = frame.cache()
    cached.count()
    return cached


# by the id that each record names


def _versions(ids: int) -> list[str]:
    """So many schemas of the orders, no two alike. Each has a field less at its end than the next, up to five of them;
    `pieces` was an int, then a long; and docs and defaults come and go."""
    versions = []
    for n in range(ids):
        schema = json.loads(AVRO)
        schema["doc"] = f"version {n}"
        if n >= WIDENED:
            schema["fields"][3]["type"] = ["null", "long"]
        for number in range(min(n // 4, 5)):
            schema["fields"].append({"name": f"note{number}", "type": ["null", "string"], "default": None})
        schema["fields"][1]["default"] = f"item of version {n}"
        versions.append(json.dumps(schema))
    return versions


def _raw(orders: DataFrame, ids: int, *, only_last: bool = False) -> DataFrame:
    """As Spark's Kafka reader gives them, with so many schema ids, each record written with the schema of its id."""
    bodies, number = F.lit(None).cast("binary"), F.lit(ids - 1) if only_last else F.col("id") % ids
    for n, version in enumerate(_versions(ids)):
        names = [field["name"] for field in json.loads(version)["fields"]]
        fields = [_written_as(name, n).alias(name) for name in names]
        bodies = F.when(number == n, to_avro(F.struct(*fields), version)).otherwise(bodies)
    frame = F.concat(F.lit(b"\x00\x00\x00\x00"), F.unhex(F.lpad(F.hex(F.lit(ID) + number), 2, "0")))
    columns = [
        F.col("id").cast("string").cast("binary").alias("key"),
        F.concat(frame, bodies).alias("value"),
        F.lit("orders").alias("topic"),
        F.lit(0).alias("partition"),
        F.col("id").alias("offset"),
        F.current_timestamp().alias("timestamp"),
    ]
    return _cached(orders.select(*columns))


def _written_as(name: str, version: int) -> Column:
    if name.startswith("note"):
        return F.concat(F.lit("note "), F.col("id") % 9)
    return F.col(name).cast("bigint") if name == "pieces" and version >= WIDENED else F.col(name)


def _by_id(raw: DataFrame, ids: int) -> Callable[[], None]:
    """Every id has a schema of its own; all but the first are newer than the source's, which followed them all."""
    known = {ID + n: WrittenSchema(text, (), ID + n) for n, text in enumerate(_versions(ids))}
    side = SchemaSide("AVRO", tuple(known.values()))
    fields = [
        SourceColumn(f.name, f.type, f.nullable, Origin("value", f.name)) for f in fields_of(side) or ()
    ]
    columns = (
        SourceColumn("key", Text(), True, Origin("key")),
        *fields,
        *(
            SourceColumn(w.lower(), METADATA[w].type, False, Origin("metadata", w))
            for w in ("PARTITION", "OFFSET")
        ),
    )
    plan = SourcePlan("orders", columns, side, TextSide(), "NONE", "HALT", "FOLLOW")
    decoder = Decoder(plan, value=Writers(known, own=frozenset(list(known)[1:])))

    def work() -> None:
        _finish(decoder.columns(decoder.good(decoder.decode(raw))))

    return work


def _fixed(raw: DataFrame, ids: int) -> Callable[[], None]:
    """What one writes by hand for one schema, the last: of the same number of records, all written with it."""
    last = _versions(ids)[-1]

    def work() -> None:
        decoded = raw.select(
            F.col("key").cast("string").alias("key"),
            from_avro(F.expr("substring(value, 6)"), last, {"mode": "FAILFAST"}).alias("o"),
            "partition",
            "offset",
        )
        _finish(decoded.select("key", "o.*", "partition", "offset"))

    return work


# ways to decode them


def _decoded(kind: RegistryKind, schema: str, records: DataFrame) -> Callable[[], None]:
    known = WrittenSchema(schema, (), ID)
    reader = side_reader(SchemaSide(kind, (known,)), Writers({ID: known}))

    def work() -> None:
        data, inner = F.col("data"), F.col("inner")
        barred = records.withColumn("inner", F.explode(F.array(F.struct(reader.costly(data).alias("i")))))
        barred = barred.select("data", F.col("inner.i").alias("inner"))
        good = barred.where(F.coalesce(reader.fits(data, inner), F.raise_error(F.lit("bad")).cast("boolean")))
        _finish(good.select(reader.value(data, inner).alias("v")).select("v.*"))

    return work


def _guarded(records: DataFrame) -> Callable[[], None]:
    def work() -> None:
        body = F.substring("data", 6, 2**31 - 1).cast("string")
        read = records.select(F.explode(F.array(F.from_json(body, DDL, {"mode": "FAILFAST"}))).alias("v"))
        required = [F.col(f"v.{name}").isNotNull() for name in FIELDS if name != "pieces"]
        whole = F.when(F.forall(F.array(*required), lambda there: there), F.lit(True))
        _finish(read.where(F.coalesce(whole, F.raise_error(F.lit("bad")).cast("boolean"))).select("v.*"))

    return work


def _finish(decoded: DataFrame) -> None:
    """Every column is needed."""
    decoded.write.format("noop").mode("overwrite").save()
