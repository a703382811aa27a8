"""The time of a record as milliseconds since 1970, which Kafka counts in: as columns of Spark, and for rows of INSERT.

A text is read by Spark in both, so that one pattern means the same for tasks and for INSERT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession, functions as F

from headgate.plan.definitions import RecordTime
from headgate.runtime.failures import translated
from headgate.runtime.formats.given import values as v
from headgate.runtime.formats.given.values import Unwritable
from headgate.schema import types as t
from headgate.schema.names import ROOT, field_path
from headgate.schema.render import spark_identifier

NULL = "it is null, and the time of the record is taken from it"
NO_TIME = "it is not written as timestamp_format says"
TOO_EARLY = "it is not after 1970-01-01T00:00:00Z, which the time of a record must be"
"""Kafka has no negative times, and its client takes 0 as no time and writes the present one."""

ReadTimes: TypeAlias = Callable[[Sequence[str], str], Sequence[int | None]]
"""The times of texts by a pattern; None for a text that is not written so."""


def milliseconds(value: Column, time: RecordTime) -> Column:
    """NULL for a text that is not written as the format says. Parts of a millisecond are cut off."""
    match time.type:
        case t.Bigint():
            return value
        case t.Text():
            return F.unix_millis(F.try_to_timestamp(value, F.lit(time.format)))
        case _:
            return F.unix_millis(value.cast("timestamp"))


class TimeColumn:
    """The time of the records of a sink."""

    def __init__(self, time: RecordTime) -> None:
        self._time = time
        self._value = F.col(spark_identifier(time.column))

    def column(self) -> Column:
        """As Spark's reader calls it. Only of rows that are accepted."""
        return milliseconds(self._value, self._time)

    def accepts(self) -> Column:
        """TRUE or FALSE, never NULL."""
        return F.coalesce(self.column() > 0, F.lit(False))

    def path(self) -> str:
        return field_path(ROOT, self._time.column)

    def reason(self) -> Column:
        return (
            F.when(self._value.isNull(), NULL).when(self.column().isNull(), NO_TIME).otherwise(F.lit(TOO_EARLY))
        )  # fmt: skip


# INSERT


def times_of(values: Sequence[Any], time: RecordTime, read: ReadTimes) -> list[int]:
    """The times of rows by their values of the column. Raises Unwritable for the first one that is none."""
    path = field_path(ROOT, time.column)
    if any(value is None for value in values):
        raise Unwritable(path, NULL)
    found = _milliseconds(values, time, read)
    made = [one for one in found if one is not None]
    if len(made) < len(found):
        raise Unwritable(path, NO_TIME)
    if any(one <= 0 for one in made):
        raise Unwritable(path, TOO_EARLY)
    return made


def _milliseconds(values: Sequence[Any], time: RecordTime, read: ReadTimes) -> Sequence[int | None]:
    match time.type:
        case t.Bigint():
            return values
        case t.Text():
            assert time.format is not None
            return read(values, time.format)
        case _:
            return [v.microseconds(value, time.type) // 1000 for value in values]


# Spark


class SparkTimes:
    """Reads times by a pattern, as `milliseconds` does. No job is run."""

    def __init__(self, session: Callable[[], SparkSession]) -> None:
        self._session = session

    def __call__(self, texts: Sequence[str], format_: str) -> Sequence[int | None]:
        try:
            return self._read(texts, format_)
        except Exception as error:
            raise translated(error) from error

    def _read(self, texts: Sequence[str], format_: str) -> Sequence[int | None]:
        session = self._session()  # first: without a Spark that runs there are no columns
        found: list[int | None] = []
        time = RecordTime("", t.Text(), format_)
        for start in range(0, len(texts), 1000):
            given = F.array(*[F.lit(text) for text in texts[start : start + 1000]])
            read = F.transform(given, lambda text: milliseconds(text, time))
            (row,) = session.sql("VALUES (1)").select(read).collect()
            found += row[0]
        return found

    def is_pattern(self, format_: str) -> bool:
        """Whether Spark takes the pattern."""
        try:
            self._read(["1970-01-01 00:00:00"], format_)
        except PySparkException:
            return False
        except Exception as error:
            raise translated(error) from error
        return True
