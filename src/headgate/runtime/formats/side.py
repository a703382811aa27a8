"""What every format answers of one side of a record, as columns of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate.schema.encodings import FieldPath
from headgate.schema.written import WrittenSchema

UNKNOWN_ID = "headgate-unknown-schema-id:"
MAGIC = "its first byte is not the 0 of a registry's frame"
SHORT = "it is too short for a registry's frame"
MALFORMED = "the bytes are not a record of their schema"
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
class Writers:
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


NO_WRITERS = Writers({})


def first_of(reasons: Iterable[Column | None]) -> Column | None:
    """The first reason that is not NULL, of those that there are; None if there is none at all."""
    found = [reason for reason in reasons if reason is not None]
    return F.coalesce(*found) if found else None


def first_within(values: Column, look: Callable[[Column], Column | None]) -> Column | None:
    """What ``look`` tells of the first value of an array of which it tells anything; None if it never does."""
    if look(F.lit(None)) is None:
        return None

    def told(value: Column) -> Column:
        reason = look(value)
        assert reason is not None
        return reason

    return F.get(F.array_compact(F.transform(values, told)), 0)


def is_framed(data: Column) -> Column:
    return (F.length(data) >= 5) & (F.substring(data, 1, 1) == F.lit(b"\x00"))


def framed_id(data: Column) -> Column:
    """The id of the frame, NULL where there is no frame."""
    return F.when(is_framed(data), _number(data))


def _number(data: Column) -> Column:
    """Four bytes without a sign: in bytes that are no frame after all it may be more than an int holds."""
    return F.conv(F.hex(F.substring(data, 2, 4)), 16, 10).cast("bigint")


def id_bytes(id_: int) -> bytes:
    """How a frame with this id begins."""
    return b"\x00" + id_.to_bytes(4, "big")


def has_id(data: Column, ids: Iterable[int]) -> Column:
    """Whether the bytes name one of the ids; compared as bytes, which is cheaper than to make a number of them."""
    return F.substring(data, 1, 5).isin([id_bytes(id_) for id_ in sorted(ids)])


def known_frame(data: Column, writers: Writers) -> Column:
    """False for a record that does not fit; an id that nobody knows yet raises, so that it is learned."""
    told = has_id(data, {*writers.known, *writers.refused})
    raised = _unknown(data).cast("boolean")
    return F.when(is_framed(data) & ~told, raised).otherwise(F.lit(False))


def _unknown(data: Column) -> Column:
    return F.raise_error(F.concat(F.lit(UNKNOWN_ID), _number(data)))


def wrong_frame(data: Column, writers: Writers, otherwise: Column, *, checked: bool = False) -> Column:
    """What is wrong with the frame of a record that does not fit; ``otherwise`` if its frame is good. ``checked``: an id
    that nobody knows has raised already."""
    refused = F.concat(F.lit("schema id "), _number(data), F.lit(" is not known to the registry"))
    reason = F.when(F.length(data) < 5, F.lit(SHORT)).when(~is_framed(data), F.lit(MAGIC))
    if writers.refused:
        reason = reason.when(has_id(data, writers.refused), refused)
    if checked:
        return reason.otherwise(otherwise)
    known = has_id(data, writers.known)
    return reason.when(~known, _unknown(data).cast("string")).otherwise(otherwise)
