"""Writers of one side of a record: what they accept, the path and reason of what they do not, and the bytes."""

from __future__ import annotations

import io
import json
import threading
from datetime import time

import fastavro
import pytest
from pyspark.sql import SparkSession

from headgate.plan.definitions import RecordEncoding
from headgate.runtime.formats.writers import MISSING, NO_SYMBOL, RecordWriter, row_of
from headgate.runtime.ports import SideWriter
from headgate.schema.types import Array, Bigint, Enum, Field, Map, Record, Text, Time

pytestmark = pytest.mark.spark

SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "state", "type": {"type": "enum", "name": "e", "symbols": ["on", "off"]}},
        {
            "name": "inner",
            "type": ["null", {"type": "record", "name": "i", "fields": [{"name": "a", "type": "string"}]}],
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "sums", "type": {"type": "map", "values": "long"}},
    ],
}
COLUMNS = Record(
    (
        Field("id", Bigint(), nullable=False),
        Field("state", Enum(("on", "off")), nullable=False),
        Field("inner", Record((Field("a", Text(), nullable=False),))),
        Field("tags", Array(Text(), element_nullable=False), nullable=False),
        Field("sums", Map(Bigint(), value_nullable=False), nullable=False),
    )
)
AVRO = RecordEncoding("AVRO", tuple(f.name for f in COLUMNS.fields), COLUMNS, json.dumps(SCHEMA), 7)
TYPES = "id bigint, state string, inner struct<a: string>, tags array<string>, sums map<string, bigint>"
GOOD = (1, "on", ("x",), ["t"], {"k": 2})


def outcome(session: SparkSession, side: RecordEncoding, row: tuple[object, ...]) -> tuple[object, ...]:
    """Whether the row is accepted, path and reason if it is not, and its bytes if it is."""
    writer: SideWriter = RecordWriter(side)
    columns = row_of(side)
    frame = session.createDataFrame([row], TYPES)
    checked = frame.select(writer.accepts(columns).alias("ok"), writer.error(columns).alias("error")).first()
    assert checked is not None
    if not checked["ok"]:
        return checked["error"]["path"], checked["error"]["reason"]
    assert checked["error"] is None
    written = frame.select(writer.encode(columns).alias("bytes")).first()
    assert written is not None
    return (bytes(written["bytes"]),)


@pytest.mark.parametrize("inner", [("x",), None])
def test_a_row_that_fits_is_written_behind_the_frame(session: SparkSession, inner: object) -> None:
    (written,) = outcome(session, AVRO, (1, "on", inner, ["t"], {"k": 2}))
    assert isinstance(written, bytes)
    assert written[:5] == b"\0\0\0\0\7"
    read = fastavro.schemaless_reader(io.BytesIO(written[5:]), fastavro.parse_schema(SCHEMA), None)
    assert read == {
        "id": 1, "state": "on", "inner": {"a": "x"} if inner else None, "tags": ["t"], "sums": {"k": 2},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("place", "value", "path", "reason"),
    [
        (0, None, "$.id", MISSING),
        (1, "broken", "$.state", NO_SYMBOL),
        (2, (None,), "$.inner.a", MISSING),
        (3, ["t", None], "$.tags[]", MISSING),
        (3, None, "$.tags", MISSING),
        (4, {"k": None}, "$.sums{}", MISSING),
    ],
)
def test_a_row_that_does_not_fit_has_a_path_and_a_reason(
    session: SparkSession, place: int, value: object, path: str, reason: str
) -> None:
    row = (*GOOD[:place], value, *GOOD[place + 1 :])
    assert outcome(session, AVRO, row) == (path, reason)


def test_json_and_text_take_every_row(session: SparkSession) -> None:
    row = (None, "on", None, None, None)
    as_json = RecordEncoding("JSON", ("id", "state"), Record(COLUMNS.fields[:2]))
    assert outcome(session, as_json, row) == (b'{"id":null,"state":"on"}',)
    as_text = RecordEncoding("TEXT", ("state",), Record(COLUMNS.fields[1:2]))
    assert outcome(session, as_text, row) == (b"on",)


def test_fields_that_are_left_out_are_taken_from_records_in_arrays_and_maps(session: SparkSession) -> None:
    kept = {"type": "record", "name": "kept", "fields": [{"name": "a", "type": ["null", "string"]}]}
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "one", "type": ["null", kept]},
            {"name": "many", "type": {"type": "array", "items": ["null", "kept"]}},
            {"name": "named", "type": {"type": "map", "values": ["null", "kept"]}},
        ],
    }
    inner = Record((Field("a", Text()),))
    columns = (
        Field("one", inner),
        Field("many", Array(inner), nullable=False),
        Field("named", Map(inner), nullable=False),
    )
    left_out = tuple((name, "b") for name in ("one", "many", "named"))
    side = RecordEncoding("AVRO", ("one", "many", "named"), Record(columns), json.dumps(schema), 7, left_out=left_out)
    types = "one struct<a: string, b: int>, many array<struct<a: string, b: int>>, named map<string, struct<b: int, a: string>>"
    frame = session.createDataFrame([(None, [("x", 1), None], {"k": (2, "y")})], types)
    row = frame.select(RecordWriter(side).encode(row_of(side)).alias("bytes")).first()
    assert row is not None
    read = fastavro.schemaless_reader(io.BytesIO(bytes(row["bytes"])[5:]), fastavro.parse_schema(schema), None)
    assert read == {"one": None, "many": [{"a": "x"}, None], "named": {"k": {"a": "y"}}}


def test_a_record_whose_fields_have_other_names_in_the_schema_is_written_from_any_thread(session: SparkSession) -> None:
    """A thread of its own, as a task has, knows no session. Spark then has only its first settings, and the type of times is one."""
    inner = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a_b", "type": {"type": "long", "logicalType": "time-micros"}}],
    }
    schema = {"type": "record", "name": "row", "fields": [{"name": "one", "type": inner}]}
    columns = Record((Field("one", Record((Field("a-b", Time(), nullable=False),)), nullable=False),))
    renames = ((("one", "a-b"), "a_b"),)
    side = RecordEncoding("AVRO", ("one",), columns, json.dumps(schema), 7, renames)
    frame = session.sql("SELECT named_struct('a-b', TIME '00:00:01') AS one")
    found: list[bytes] = []

    def write() -> None:
        row = frame.select(RecordWriter(side).encode(row_of(side)).alias("bytes")).first()
        found.append(bytes(row["bytes"]) if row is not None else b"")

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    read = fastavro.schemaless_reader(io.BytesIO(found[0][5:]), fastavro.parse_schema(schema), None)
    assert read == {"one": {"a_b": time(0, 0, 1)}}
