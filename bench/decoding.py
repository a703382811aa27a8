"""Decoding the records of a topic, format by format: Protobuf and JSON Schema in Python workers, beside Avro on the JVM
and beside Spark's own `from_json` with guards.

The same orders in every format, in the registry's frame, each read from a topic and decoded to the same columns; what is
taken is the CPU time of Python and the JVM until all columns are there. Guards: `from_json` passes trailing text, takes the
last of two members and gives NULL for what does not fit, so a job that may not lose anything has it fail, and looks at the
required members.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import Column, DataFrame, SparkSession, functions as F
from pyspark.sql.avro.functions import to_avro
from pyspark.sql.pandas.functions import arrow_udf

from bench.figures import Report, Row, Size
from bench.processes import cpu_seconds
from bench.topics import PARTITIONS, Topics, open_topics
from headgate.plan.definitions import Origin, SourceColumn
from headgate.plan.source import SourcePlan
from headgate.runtime.decode import Decoder
from headgate.runtime.formats.side import WriterSchemas
from headgate.schema.encodings import SchemaEncoding, fields_of
from headgate.schema.formats.protobuf.protoc import read_files
from headgate.schema.formats.protobuf.read import find_message, link
from headgate.schema.written import SchemaFormat, WrittenSchema

JSON_RATIO, AVRO_RATIO = 0.9, 0.3  # promises
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
    with open_topics() as topics:
        rows = _rows(topics, records, rounds)
    notes = (
        f"{records:,} orders of {len(FIELDS)} fields in a topic; CPU time of Python and the JVM, the best of {rounds} rounds, in turn.",
        "from_json with guards: FAILFAST, and every required member tested for NULL.",
    )
    return Report("Decoding", tuple(rows), notes)


def _rows(topics: Topics, records: int, rounds: int) -> list[Row]:
    orders = topics.session.range(records, numPartitions=PARTITIONS).select(*order())
    topics.fill("avro", _framed(orders, to_avro(F.struct(*FIELDS), AVRO)))
    topics.fill("json", _framed(orders, F.to_json(F.struct(*FIELDS)).cast("binary")))
    topics.fill("protobuf", _messages(topics.session, records))
    avro, texts, messages = (topics.read(name) for name in ("avro", "json", "protobuf"))
    works = {
        "avro": _decoded(SchemaFormat.AVRO, AVRO, avro),
        "from_json": _guarded(texts),
        "json": _decoded(SchemaFormat.JSON, JSON_SCHEMA, texts),
        "protobuf": _decoded(SchemaFormat.PROTOBUF, PROTO, messages),
    }
    best = dict.fromkeys(works, float("inf"))
    for turn in range(rounds + 1):
        for name, work in works.items():
            began = cpu_seconds()
            work()
            if turn:  # the first one warms up
                best[name] = min(best[name], cpu_seconds() - began)
    rate = {name: records / seconds for name, seconds in best.items()}
    return [
        _row("JSON Schema", rate["json"], rate["from_json"], "from_json with guards", JSON_RATIO),
        _row("JSON Schema", rate["json"], rate["avro"], "Avro", AVRO_RATIO),
        _row("Protobuf", rate["protobuf"], rate["from_json"], "from_json with guards", JSON_RATIO),
        _row("Protobuf", rate["protobuf"], rate["avro"], "Avro", AVRO_RATIO),
    ]


def _row(what: str, ours: float, peer: float, name: str, promise: float) -> Row:
    ratio = ours / peer
    return Row(
        what,
        f"{ours:,.0f} a CPU second",
        f"{peer:,.0f} {name}",
        ratio,
        f"at least {promise}",
        ratio >= promise,
    )


# the same orders in each format


def order() -> list[Column]:
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


def key() -> Column:
    return F.col("id").cast("string").cast("binary").alias("key")


def _framed(orders: DataFrame, body: Column) -> DataFrame:
    return orders.select(key(), F.concat(F.lit(FRAME), body).alias("value"))


def _messages(session: SparkSession, records: int) -> DataFrame:
    def written(ids: pa.Array) -> pa.Array:
        order: Any = GetMessageClass(find_message(link(read_files(PROTO)), None))
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

    ids = session.range(records, numPartitions=PARTITIONS)
    return ids.select(key(), arrow_udf(written, "binary")(F.col("id")).alias("value"))  # type: ignore[call-overload]


# ways to decode them


def _decoded(format_: SchemaFormat, schema: str, raw: DataFrame) -> Callable[[], None]:
    known = WrittenSchema(schema, (), ID)
    side = SchemaEncoding(format_, (known,))
    fields = fields_of(side) or ()
    columns = tuple(SourceColumn(f.name, f.type, f.nullable, Origin("value", f.name)) for f in fields)
    plan = SourcePlan("orders", columns, side, None, "NONE", "HALT", "PIN")
    decoder = Decoder(plan, value=WriterSchemas({ID: known}))
    return lambda: finish(decoder.columns(decoder.accepted(decoder.decode(raw))))


def _guarded(records: DataFrame) -> Callable[[], None]:
    def work() -> None:
        body = F.substring("value", 6, 2**31 - 1).cast("string")
        read = records.select(F.explode(F.array(F.from_json(body, DDL, {"mode": "FAILFAST"}))).alias("v"))
        required = [F.col(f"v.{name}").isNotNull() for name in FIELDS if name != "pieces"]
        whole = F.when(F.forall(F.array(*required), lambda there: there), F.lit(True))
        finish(read.where(F.coalesce(whole, F.raise_error(F.lit("bad")).cast("boolean"))).select("v.*"))

    return work


def finish(decoded: DataFrame) -> None:
    """Every column is needed."""
    decoded.write.format("noop").mode("overwrite").save()
