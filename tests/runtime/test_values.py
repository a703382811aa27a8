"""Values as Spark gives them -> JSON."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, types as spark

from headgate.runtime.values import json_rows, json_values, with_text_times


@pytest.mark.unit
@pytest.mark.parametrize(
    ("given", "precision", "scale", "text"),
    [
        ("-1.00E-10", 10, 10, "-0.0000000001"),
        ("1E+2", 5, 2, "100.00"),
        ("0", 38, 38, "0." + "0" * 38),
        ("9" * 38, 38, 0, "9" * 38),
    ],
)
def test_a_decimal_has_the_digits_of_its_type(given: str, precision: int, scale: int, text: str) -> None:
    array = pa.array([Decimal(given), None], pa.decimal128(precision, scale))
    assert json_values(array, spark.DecimalType(precision, scale)) == [text, None]


@pytest.mark.unit
def test_a_slice_of_nested_values_has_its_own_values_only() -> None:
    lists = pa.array([["a"], None, [], ["b", None]], pa.list_(pa.string()))
    maps = pa.array([[("a", 1)], [("b", 2), ("c", None)]], pa.map_(pa.string(), pa.int32()))
    strings, numbers = (
        spark.ArrayType(spark.StringType()),
        spark.MapType(spark.StringType(), spark.IntegerType()),
    )
    assert json_values(lists.slice(1, 3), strings) == [None, [], ["b", None]]
    assert json_values(maps.slice(1), numbers) == [{"b": 2, "c": None}]


@pytest.mark.unit
def test_a_record_that_is_null_is_not_a_record_of_nulls() -> None:
    type_ = spark.StructType([spark.StructField("n", spark.IntegerType())])
    array = pa.array([{"n": 1}, None, {"n": None}], pa.struct([("n", pa.int32())]))
    assert json_values(array, type_) == [{"n": 1}, None, {"n": None}]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("timestamp'2020-01-02 03:04:05.6'", "2020-01-02T03:04:05.6Z"),
        ("array(date'-0044-03-15', NULL)", ["-0044-03-15", None]),
        ("named_struct('a', 1, 'a', timestamp_ntz'2020-01-02 03:04:05')", {"a": "2020-01-02T03:04:05"}),
        ("map(date'2020-01-02', X'0aff')", {"2020-01-02": "0aff"}),
        ("parse_json('{\"a\":1.10}')", '{"a":1.10}'),
        ("time'12:34:56.120'", "12:34:56.12"),
        ("cast(X'ff41' AS string)", "\ufffdA"),
        ("cast('NaN' AS double)", "NaN"),
        ("array(cast('-Infinity' AS float))", ["-Infinity"]),
        ("named_struct('t', cast(NULL AS date), 'd', 1.10)", {"t": None, "d": "1.10"}),
        ("NULL", None),
    ],
)
def test_values_of_spark_have_one_form(session: SparkSession, sql: str, value: object) -> None:
    frame = session.sql(f"SELECT {sql} AS v, 1 AS v")
    types = [field.dataType for field in frame.schema.fields]
    table = with_text_times(frame).toArrow()
    assert [row for batch in table.to_batches() for row in json_rows(batch, types)] == [(value, 1)]
