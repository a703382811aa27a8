"""Casts of typed values on Spark: what fits becomes exactly what it was, and nothing else passes."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession, functions as F
from pyspark.sql.types import StructField, StructType

from headgate.plan.materialized_fields import refused_cast
from headgate.runtime.checked_casts import checked_cast
from headgate.schema import types as t
from headgate.schema.formats.spark import to_spark
from tests.schema.records import record_type

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

BAD = object()
LINE = record_type("record(sku text, n double, at record(x bigint))")
WANTED = record_type("record(n bigint, at record(x text not null))")
MOMENT = dt.datetime(2026, 11, 15, 12, 30, 0, 5)
CASES: list[tuple[t.Type, t.Type, list[tuple[Any, Any]]]] = [
    (t.Integer(), t.Bigint(), [(2**31 - 1, 2**31 - 1)]),
    (t.Bigint(), t.Integer(), [(2**31 - 1, 2**31 - 1), (2**31, BAD), (-(2**31) - 1, BAD)]),
    (
        t.Double(), t.Bigint(),
        [(1.0, 1), (-0.0, 0), (1.5, BAD), (2.0**63, BAD), (-(2.0**63), -(2**63)), (math.nan, BAD), (math.inf, BAD)],
    ),
    (t.Double(), t.Integer(), [(2147483647.0, 2147483647), (2147483648.0, BAD)]),
    (t.Real(), t.Bigint(), [(3.0, 3), (0.5, BAD)]),
    (t.Decimal(20, 2), t.Bigint(), [(Decimal("7.00"), 7), (Decimal("7.01"), BAD), (Decimal("999999999999999999.00"), 999999999999999999)]),
    (t.Decimal(38, 0), t.Bigint(), [(Decimal(2**63), BAD), (Decimal(2**63 - 1), 2**63 - 1)]),
    (t.Bigint(), t.Double(), [(2**53, 2.0**53), (2**53 + 1, BAD), (2**63 - 1, BAD), (-(2**63), -(2.0**63))]),
    (t.Integer(), t.Double(), [(7, 7.0)]),
    (t.Real(), t.Double(), [(0.5, 0.5)]),
    (t.Decimal(10, 2), t.Double(), [(Decimal("0.10"), 0.1)]),
    (t.Double(), t.Decimal(10, 2), [(0.1, Decimal("0.10")), (0.125, BAD), (1e9, BAD), (math.nan, BAD), (1e-30, BAD)]),
    (t.Bigint(), t.Decimal(10, 2), [(99999999, Decimal("99999999.00")), (100000000, BAD)]),
    (t.Decimal(38, 18), t.Decimal(10, 2), [(Decimal("1.5"), Decimal("1.50")), (Decimal("1.005"), BAD), (Decimal("1e9"), BAD)]),
    (t.Text(), t.Text(), [("", ""), ("ä", "ä"), ("a\0b", BAD)]),
    (t.Bigint(), t.Text(), [(-7, "-7")]),
    (t.Double(), t.Text(), [(0.1, "0.1")]),
    (t.Decimal(10, 2), t.Text(), [(Decimal("1.10"), "1.10")]),
    (t.Boolean(), t.Text(), [(True, "true")]),
    (t.Date(), t.Text(), [(dt.date(2026, 11, 15), "2026-11-15")]),
    (t.Timestamp(), t.Text(), [(MOMENT, "2026-11-15T12:30:00.000005")]),
    (t.Text(), t.Enum(("x", "y")), [("x", "x"), ("z", BAD)]),
    (t.Array(t.Double()), t.Array(t.Bigint()), [([1.0, None], [1, None]), ([1.0, 1.5], BAD), ([], [])]),
    (t.Array(t.Text()), t.Array(t.Text()), [(["a"], ["a"]), (["a\0"], BAD)]),
    (t.Map(t.Bigint()), t.Map(t.Integer()), [({"a": 1}, {"a": 1}), ({"a": 2**40}, BAD)]),
    (t.Array(t.Text()), t.Array(t.Text(), False), [(["a"], ["a"]), (["a", None], BAD), ([], [])]),
    (t.Map(t.Bigint()), t.Map(t.Bigint(), False), [({"a": 1}, {"a": 1}), ({"a": None}, BAD)]),
    (
        t.Array(LINE), t.Array(WANTED),
        [
            ([Row(sku="a", n=7.0, at=Row(x=1))], [Row(n=7, at=Row(x="1"))]),
            ([None, Row(sku=None, n=None, at=None)], [None, Row(n=None, at=None)]),
            ([Row(sku="a", n=7.5, at=None)], BAD),
            ([Row(sku="a", n=7.0, at=Row(x=None))], BAD),
            ([], []),
        ],
    ),
    (t.Double(), t.Json(), [(0.5, "0.5")]),
    (t.Array(t.Bigint()), t.Json(), [([1], "[1]")]),
    (t.Double(), t.Double(), [(0.1, 0.1)]),
]  # fmt: skip


def test_every_value_fits_exactly_or_not_at_all(session: SparkSession) -> None:
    """One job for all casts: each case is a row of its own column."""
    wrong = []
    for source, type_, values in CASES:
        assert refused_cast(source, type_) is None
        schema = StructType([StructField("v", to_spark(source))])
        rows = session.createDataFrame([(given,) for given, _ in values] + [(None,)], schema).coalesce(1)
        cast = checked_cast(F.col("v"), source, type_)
        fits = F.lit(True) if cast.fits is None else F.col("v").isNull() | F.coalesce(cast.fits, F.lit(False))
        found = rows.select(fits.alias("fits"), F.when(fits, cast.value).alias("value")).collect()
        expected = [(False, None) if wanted is BAD else (True, wanted) for _, wanted in values] + [(True, None)]
        if [(row["fits"], row["value"]) for row in found] != expected:
            wrong.append((source, type_, found, expected))
    assert wrong == []


def test_text_that_is_not_utf8_does_not_fit(session: SparkSession) -> None:
    rows = session.createDataFrame([(b"\xff",), (b"a",)], "b binary").select(F.col("b").cast("string").alias("v"))
    fits = checked_cast(F.col("v"), t.Text(), t.Text()).fits
    assert fits is not None
    assert [row[0] for row in rows.coalesce(1).select(fits).collect()] == [False, True]
