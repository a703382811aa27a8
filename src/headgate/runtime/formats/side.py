"""What every format answers of one side of a record, as columns of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate.plan.sides import FieldPath
from headgate.schema.written import WrittenSchema

MALFORMED = "it is not what its schema says"
NOT_UTF8 = "it is not valid UTF-8"


class SideReader(Protocol):
    """Of a side whose bytes are there. ``data`` are the bytes; ``inner`` is what `costly` gave for them.

    `costly` is computed once per record, and so is `value` if it ``brings_over`` what was read from one type to another;
    the others may be mentioned any number of times.
    """

    brings_over: bool

    def costly(self, data: Column) -> Column: ...

    def fits(self, data: Column, inner: Column) -> Column:
        """Whether there is nothing wrong with it: all that is computed for a good record."""

    def reason(self, data: Column, inner: Column) -> Column:
        """Why it does not fit, in words without any of it. An id that is not known yet raises, so that it is learned."""

    def value(self, data: Column, inner: Column) -> Column:
        """The value, of the Spark type of the side's type, for bytes that fit."""

    def schema_id(self, data: Column) -> Column:
        """The id that the bytes name, or NULL."""


@dataclass(frozen=True, slots=True)
class WriterSchemas:
    """The schemas that records may be written with, by id. ``refused`` ids are those that the registry does not know.

    ``own`` ids are newer than the frozen schema: their records are read as they were written and then brought to the
    side's type, where all others are resolved to the frozen schema by the format's own rules. ``broken`` are the fields
    that an id changed so that nobody can follow by himself. A record with a ``halting`` id stops whoever reads it.
    """

    known: Mapping[int, WrittenSchema]
    refused: frozenset[int] = frozenset()
    own: frozenset[int] = frozenset()
    broken: Mapping[int, tuple[FieldPath, ...]] = field(default_factory=dict)
    halting: frozenset[int] = frozenset()


NO_WRITERS = WriterSchemas({})


def first_error(reasons: Iterable[Column | None]) -> Column | None:
    """The first reason that is not NULL, of those that there are; None if there is none at all."""
    found = [reason for reason in reasons if reason is not None]
    return F.coalesce(*found) if found else None


def first_element_error(values: Column, look: Callable[[Column], Column | None]) -> Column | None:
    """What ``look`` tells of the first value of an array of which it tells anything; None if it never does."""
    if look(F.lit(None)) is None:
        return None

    def told(value: Column) -> Column:
        reason = look(value)
        assert reason is not None
        return reason

    return F.get(F.array_compact(F.transform(values, told)), 0)
