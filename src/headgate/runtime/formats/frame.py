"""The frame of a schema registry, as columns of Spark: a zero byte and the id of the schema before the body.

`headgate.registry.wire` defines the layout and reads and writes single records. Here the same five bytes are compared and
taken apart in a query.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, functions as F

from headgate.registry.wire import HEADER_LENGTH, MAGIC, header
from headgate.runtime.formats.side import WriterSchemas

UNKNOWN_ID = "headgate-unknown-schema-id:"  # prefix of the error that carries an unknown id to the driver
WRONG_MAGIC = "its first byte is not the 0 of a registry's frame"
TOO_SHORT = "it is too short for a registry's frame"


def framed(schema_id: int, body: Column) -> Column:
    """The body with the frame of a schema before it."""
    return F.concat(F.lit(header(schema_id)), body)


def is_framed(data: Column) -> Column:
    return (F.length(data) >= HEADER_LENGTH) & (F.substring(data, 1, 1) == F.lit(bytes((MAGIC,))))


def header_of(data: Column) -> Column:
    """The first five bytes."""
    return F.substring(data, 1, HEADER_LENGTH)


def body_of(data: Column) -> Column:
    """What stands behind the frame."""
    return F.substring(data, HEADER_LENGTH + 1, 2**31 - 1)


def schema_id(data: Column) -> Column:
    """The id in the frame, NULL where there is no frame."""
    return F.when(is_framed(data), _number(data))


def has_schema_id(data: Column, ids: Iterable[int]) -> Column:
    """Whether the frame has one of the ids. Comparing bytes is cheaper than making a number of them."""
    return header_of(data).isin([header(id_) for id_ in sorted(ids)])


def raise_if_unknown_id(data: Column, writers: WriterSchemas) -> Column:
    """False for a record that is not accepted. An id that nobody has asked for yet raises, so that it is learned."""
    answered = has_schema_id(data, {*writers.known, *writers.unknown_ids})
    raised = _raise_unknown(data).cast("boolean")
    return F.when(is_framed(data) & ~answered, raised).otherwise(F.lit(False))


def frame_error(data: Column, writers: WriterSchemas, otherwise: Column, *, checked: bool = False) -> Column:
    """What is wrong with the frame of a record that is not accepted; ``otherwise`` if the frame is good.

    With ``checked`` an id that nobody has asked for has raised before.
    """
    refused = F.concat(F.lit("schema id "), _number(data), F.lit(" is not known to the registry"))
    error = F.when(F.length(data) < HEADER_LENGTH, F.lit(TOO_SHORT)).when(~is_framed(data), F.lit(WRONG_MAGIC))
    if writers.unknown_ids:
        error = error.when(has_schema_id(data, writers.unknown_ids), refused)
    if checked:
        return error.otherwise(otherwise)
    known = has_schema_id(data, writers.known)
    return error.when(~known, _raise_unknown(data).cast("string")).otherwise(otherwise)


def _number(data: Column) -> Column:
    """Four bytes without a sign. In bytes that are not a frame the number may be more than an int holds."""
    return F.conv(F.hex(F.substring(data, 2, HEADER_LENGTH - 1)), 16, 10).cast("bigint")


def _raise_unknown(data: Column) -> Column:
    return F.raise_error(F.concat(F.lit(UNKNOWN_ID), _number(data)))
