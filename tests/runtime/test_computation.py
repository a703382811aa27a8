"""The record that cannot be computed is found by halving, and the expression by what Spark says of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from headgate.catalog.positions import KafkaPosition
from headgate.plan.definitions import ExpressionText, QueryDefinition
from headgate.runtime.computation import ComputedQuery, Rerun, located
from headgate.runtime.errors import BadRecord, ComputationFailed

pytestmark = pytest.mark.unit

FAILED = ComputationFailed("divide by zero")
SQL = "SELECT `a` AS `a`, 1 + `a` / `b` AS `r` FROM `rel_1` WHERE `a` / `b` > 0"
QUERY = ComputedQuery(
    QueryDefinition(
        SQL,
        (("a", None), ("r", None)),
        expressions=(
            ExpressionText(SQL.index("1 +"), SQL.index(" AS `r`"), "1 + a / b", 1),
            ExpressionText(SQL.index("`a` / `b`"), SQL.index(" AS `r`"), "a / b", 1),
            ExpressionText(SQL.rindex("`a` / `b`"), len(SQL), "a / b > 0"),
        ),
    ),
    ("a", "ratio"),
    "ratios",
)
Record = tuple[int, int]  # partition and offset


class Context:
    def __init__(self, start: int, fragment: str) -> None:
        self._start, self._fragment = start, fragment

    def startIndex(self) -> int:  # noqa: N802 - Spark's name
        return self._start

    def stopIndex(self) -> int:  # noqa: N802 - Spark's name
        return self._start + len(self._fragment) - 1

    def fragment(self) -> str:
        return self._fragment


class SparkError(PySparkException):
    def __init__(self, *contexts: Context) -> None:
        super().__init__("divide by zero")
        self._of = contexts

    def getQueryContext(self) -> Any:  # noqa: N802 - Spark's name
        return list(self._of)


class Rows:
    """Stands for a frame whose computation fails or not."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error

    @property
    def write(self) -> Any:
        return self

    def format(self, _: str) -> Any:
        return self

    def mode(self, _: str) -> Any:
        return self

    def save(self) -> None:
        if self.error is not None:
            raise self.error


def rerun(sizes: list[int], bad: Iterable[Record], keys: dict[Record, int] | None = None) -> Rerun:
    """Over a topic with so many records in each partition. With ``keys``, only the last record of each key counts."""
    wrong = set(bad)

    def rows(_: ComputedQuery, start: KafkaPosition, end: KafkaPosition) -> DataFrame:
        read = [(p, o) for p, last in enumerate(end.offsets) for o in range(start.by_partition[p], last)]
        counted = read if keys is None else {keys[record]: record for record in read}.values()
        return cast(DataFrame, Rows(FAILED if wrong & set(counted) else None))

    def at(offsets: list[int]) -> KafkaPosition:
        return KafkaPosition("t", "id", tuple(offsets))

    return Rerun(at([0] * len(sizes)), at(sizes), keys is not None, rows)


def found(search: Rerun, seconds: float = 60.0) -> Record | None:
    failed = located(FAILED, SparkError(Context(SQL.index("1 +"), "1 +")), [QUERY], search, seconds)
    return None if failed.partition is None or failed.offset is None else (failed.partition, failed.offset)


@st.composite
def topics(draw: st.DrawFn) -> tuple[list[int], set[Record]]:
    sizes = draw(st.lists(st.integers(0, 40), min_size=1, max_size=4))
    records = [(p, o) for p, size in enumerate(sizes) for o in range(size)]
    return sizes, set(draw(st.lists(st.sampled_from(records), unique=True))) if records else set()


@given(topics())
def test_the_first_record_that_fails_is_found(topic: tuple[list[int], set[Record]]) -> None:
    sizes, bad = topic
    assert found(rerun(sizes, bad)) == (min(bad) if bad else None)


@given(topics(), st.data())
def test_of_a_keyed_source_the_record_found_is_the_last_of_its_key(
    topic: tuple[list[int], set[Record]], data: st.DataObject
) -> None:
    sizes, bad = topic
    keys = {(p, o): p * 100 + data.draw(st.integers(0, 3)) for p, size in enumerate(sizes) for o in range(size)}
    last = set({key: record for record, key in keys.items()}.values())
    assert found(rerun(sizes, bad, keys)) == (max(bad & last) if bad & last else None)


def test_without_time_the_error_goes_without_the_record() -> None:
    assert found(rerun([9], {(0, 4)}), seconds=-1.0) is None


def test_another_failure_ends_the_search() -> None:
    def rows(*_: object) -> DataFrame:
        return cast(DataFrame, Rows(BadRecord("s", "t", 0, 1, "value", "It is bad")))

    search = rerun([9], ())
    assert found(Rerun(search.start, search.end, False, rows)) is None


@pytest.mark.parametrize(
    ("start", "piece", "expression", "column"),
    [
        (SQL.index("`a` / `b`"), "`a` / `b`", "a / b", "ratio"),
        (SQL.index("1 +"), "1 + `a` / `b`", "1 + a / b", "ratio"),
        (SQL.rindex("`a` / `b`"), "`a` / `b`", "a / b > 0", None),
        (7, "`a` / `b`", None, None),
    ],
)
def test_the_smallest_expression_around_what_spark_names_is_told(
    start: int, piece: str, expression: str | None, column: str | None
) -> None:
    failed = located(FAILED, SparkError(Context(start, piece)), [QUERY], None, 1.0)
    assert (failed.expression, failed.column) == (expression, column)
    assert failed.view == (None if expression is None else "ratios")


def test_the_detail_names_expression_column_view_and_record() -> None:
    failed = ComputationFailed("divide by zero", "a / b", "r", "v", "t", 0, 7)
    assert failed.detail() == (
        'The expression is a / b, in column "r" of view "v". The record is at topic "t" partition 0 offset 7.'
    )
    assert ComputationFailed("x", "a / b", "r").detail() == 'The expression is a / b, in column "r".'
    assert ComputationFailed("x", "a / b > 1", None, "v").detail() == 'The expression is a / b > 1, in view "v".'
    assert ComputationFailed("x", None, "r", "v").detail() == 'It belongs to column "r" of view "v".'
    assert FAILED.detail() is None
