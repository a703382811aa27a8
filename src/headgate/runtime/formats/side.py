"""The port of all formats: what a reader of one side of a record (key or value) answers, as columns of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import Column, functions as F

from headgate.schema.encodings import FieldPath
from headgate.schema.written import WrittenSchema

MALFORMED = "the bytes are not a record of their schema"
NOT_UTF8 = "it is not valid UTF-8"


class SideReader(Protocol):
    """Reads one side of records that have it. ``data`` is the binary column; ``decoded`` is the result of `decode`.

    `decode` is computed once per record, and so is `value` if the reader ``converts`` what it read from one type to
    another. The other columns may be used any number of times.
    """

    converts: bool

    def decode(self, data: Column) -> Column:
        """The costly part of reading."""

    def accepts(self, data: Column, decoded: Column) -> Column:
        """Whether nothing is wrong with the bytes. For a good record nothing else is computed. May be NULL for a bad one.
        A schema id that is not known yet raises, so that it is learned."""

    def error(self, data: Column, decoded: Column) -> Column:
        """Why the bytes are not accepted, in words that quote none of them."""

    def value(self, data: Column, decoded: Column) -> Column:
        """The value, of the Spark type of the side's type, for bytes that are accepted."""

    def fields(self, data: Column, decoded: Column) -> Column:
        """A struct with at least the fields of `value`, if that is a record. Of use to those who need single fields."""

    def schema_id(self, data: Column) -> Column:
        """The schema id in the bytes, or NULL."""


@dataclass(frozen=True, slots=True)
class WriterSchemas:
    """The schemas that records may be written with, by id.

    ``unknown_ids``: ids that the registry does not know.
    ``newer``: ids after the frozen schema. Their records are read as they were written and then converted to the side's
    type. All other records are resolved to the frozen schema by the rules of the format.
    ``unreadable_fields``: the fields that an id changed in a way that cannot be followed.
    ``halting``: ids whose records stop every task that reads them.
    """

    known: Mapping[int, WrittenSchema]
    unknown_ids: frozenset[int] = frozenset()
    newer: frozenset[int] = frozenset()
    unreadable_fields: Mapping[int, tuple[FieldPath, ...]] = field(default_factory=dict)
    halting: frozenset[int] = frozenset()


NO_WRITERS = WriterSchemas({})


def first_error(errors: Iterable[Column | None]) -> Column | None:
    """The first error that is not NULL; None if there is no check at all."""
    found = [error for error in errors if error is not None]
    return F.coalesce(*found) if found else None


def first_element_error(values: Column, check: Callable[[Column], Column | None]) -> Column | None:
    """The error of the first element of an array that has one; None if ``check`` has nothing to look at."""
    if check(F.lit(None)) is None:
        return None

    def checked(value: Column) -> Column:
        error = check(value)
        assert error is not None
        return error

    return F.get(F.array_compact(F.transform(values, checked)), 0)
