"""Spark's types: every type goes there and comes back, or its loss is declared."""

from __future__ import annotations

import pytest
from hypothesis import given
from pyspark.sql import types as spark

from headgate.schema.errors import UnresolvedType, UnsupportedType
from headgate.schema.formats.spark import from_spark, to_spark
from headgate.schema.parse import parse_type
from headgate.schema.render import print_type
from headgate.schema.types import Decimal, Type
from tests.laws import examples
from tests.schema import strategies as s
from tests.schema.round_trip import EVERY_KIND, Lost, declared, lost

pytestmark = pytest.mark.unit


@examples(30)
@given(s.types())
def test_what_comes_back_is_the_type_or_a_declared_loss(type_: Type) -> None:
    assert lost(type_, from_spark(to_spark(type_))) <= declared("spark")


@examples(30)
@given(s.types())
def test_a_second_round_trip_loses_nothing_more(type_: Type) -> None:
    once = from_spark(to_spark(type_))
    assert from_spark(to_spark(once)) == once


def test_every_declared_loss_happens() -> None:
    seen: Lost = set()
    for type_ in EVERY_KIND:
        seen |= lost(type_, from_spark(to_spark(type_)))
    assert seen == declared("spark")


DDL = {
    "boolean": "boolean", "integer": "int", "bigint": "bigint", "real": "float", "double": "double",
    "decimal(10,2)": "decimal(10,2)", "text": "string", "bytes": "binary", "date": "date", "time": "time(6)",
    "timestamp": "timestamp_ntz", "timestamptz": "timestamp", "uuid": "string", "json": "string",
    "enum('a')": "string", "array<date>": "array<date>", "map<text, bigint>": "map<string,bigint>",
    "record(a integer, b text)": "struct<a:int,b:string>",
}  # fmt: skip


@pytest.mark.parametrize(("type_", "ddl"), DDL.items())
def test_the_spark_type_is(type_: str, ddl: str) -> None:
    assert to_spark(parse_type(type_)).simpleString() == ddl


def test_nullability_and_docs_of_fields_travel() -> None:
    record = parse_type("record(a integer not null comment 'how many', b array<text not null>)")
    struct = to_spark(record)
    assert isinstance(struct, spark.StructType)
    assert (struct["a"].nullable, struct["a"].metadata) == (False, {"comment": "how many"})
    assert from_spark(struct) == record


READ = {
    spark.ByteType(): "integer", spark.ShortType(): "integer", spark.VarcharType(5): "text", spark.CharType(3): "text",
    spark.VariantType(): "json", spark.TimeType(0): "time",
}  # fmt: skip


@pytest.mark.parametrize(("type_", "text"), READ.items(), ids=str)
def test_spark_s_own_types_are_read_as(type_: spark.DataType, text: str) -> None:
    assert print_type(from_spark(type_)) == text


@pytest.mark.parametrize(
    "type_",
    [spark.NullType(), spark.CalendarIntervalType(), spark.DayTimeIntervalType(), spark.MapType(spark.IntegerType(), spark.DateType())],
    ids=str,
)  # fmt: skip
def test_what_has_no_counterpart_is_refused_with_its_path(type_: spark.DataType) -> None:
    with pytest.raises(UnsupportedType) as raised:
        from_spark(spark.StructType().add("a", spark.ArrayType(type_)))
    assert raised.value.path == "$.a[]"


def test_a_type_of_the_catalog_must_be_resolved_first() -> None:
    with pytest.raises(UnresolvedType) as raised:
        to_spark(parse_type("record(p public.point)"))
    assert (raised.value.path, raised.value.name) == ("$.p", "public.point")


def test_a_decimal_of_more_than_38_digits_is_refused() -> None:
    with pytest.raises(UnsupportedType):
        to_spark(Decimal(39, 2))
