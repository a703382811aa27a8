"""What the writers of all formats share: the error of a row, and dates and times as numbers."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

from headgate.schema import types as t
from headgate.schema.values import DAY

MISSING = "it is null, and its schema has no null there"
NO_COLUMN = "its schema requires it, and there is no column for it"
NO_SYMBOL = "it is none of the symbols of its schema"
TOO_FINE = "it is finer than its schema can hold"
TOO_MANY_DIGITS = "it has more digits than its schema says"
OTHER_LENGTH = "it has another length than its schema says"
OUT_OF_RANGE = "it is out of the range of its schema"
NOT_UUID = "it is not a uuid"
NOT_FINITE = "JSON has no number that is not finite"
NOT_JSON = "it is not valid JSON"
NO_VALIDATOR = "its schema is not a valid JSON Schema"
NULL_ELEMENT = "a list or map of Protobuf cannot hold a null"
TWO_BRANCHES = "it has values of two branches of a union"

_EPOCH = dt.date(1970, 1, 1)
_EPOCH_TIME = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)


class Unwritable(Exception):
    """A row cannot be written: where, and why. The value is not in it."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason


def microseconds(value: Any, type_: t.Type) -> int:
    """A date, time or timestamp in microseconds since the epoch, or since midnight."""
    match value:
        case dt.datetime():
            moment = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
            return (moment - _EPOCH_TIME) // _MICROSECOND
        case dt.date():
            return (value - _EPOCH).days * DAY
        case dt.time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        case dt.timedelta():
            return value // _MICROSECOND
        case _:
            raise TypeError(f"no moment of type {type(type_).__name__}")


def in_steps(value: Any, type_: t.Type, step: int, path: str) -> int:
    """The same in steps of several microseconds. Raises Unwritable if it is between two of them."""
    number, rest = divmod(microseconds(value, type_), step)
    if rest:
        raise Unwritable(path, TOO_FINE)
    return number


def scaled(value: decimal.Decimal, precision: int, scale: int, path: str) -> int:
    """The digits of a decimal as a whole number. Never rounds."""
    unscaled = value.scaleb(scale, decimal.Context(prec=100))
    whole = int(unscaled)
    if whole != unscaled or abs(whole) >= 10**precision:
        raise Unwritable(path, TOO_MANY_DIGITS)
    return whole


def as_uuid(value: object, path: str) -> uuid.UUID:
    if isinstance(value, uuid.UUID):
        return value
    try:
        return uuid.UUID(str(value))
    except ValueError:
        raise Unwritable(path, NOT_UUID) from None
