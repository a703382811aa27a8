"""The columns of a frame, beside the functions that read and write single records."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession, functions as F

from headgate.registry import wire
from headgate.registry.errors import RegistryError
from headgate.runtime.formats import frame

pytestmark = pytest.mark.spark

RECORDS = [
    wire.encode(0, b""),
    wire.encode(7, b"body"),
    wire.encode(wire.MAX_ID, b"\x00"),
    wire.header(2**32 - 1) + b"x",
    b"",
    b"\x00\x00\x00\x01",
    b"\x01\x00\x00\x00\x07body",
]


def schema_id(record: bytes) -> int | None:
    try:
        return wire.decode(record).schema_id
    except RegistryError:
        return None


def test_columns_and_functions_read_the_same_frame(session: SparkSession) -> None:
    data = F.col("data")
    rows = session.createDataFrame([(record,) for record in RECORDS], "data binary").select(
        data,
        frame.is_framed(data).alias("framed"),
        frame.schema_id(data).alias("id"),
        frame.has_schema_id(data, [7, 2**32 - 1]).alias("listed"),
        frame.body_of(data).alias("body"),
        frame.framed(7, data).alias("written"),
    )
    for row in rows.collect():
        record = bytes(row["data"])
        assert row["id"] == schema_id(record)
        assert row["framed"] is (schema_id(record) is not None)
        assert row["listed"] is (schema_id(record) in (7, 2**32 - 1))
        assert bytes(row["body"]) == record[wire.HEADER_LENGTH :]
        assert bytes(row["written"]) == wire.encode(7, record)
