"""Messages that mean a value of their own: dates and times in ISO form, wrappers as what they wrap, free JSON."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message

from headgate.testing.codecs import moments
from headgate.testing.errors import UnfitRecord
from headgate.testing.json_values import Json, read_json, write_json

_NANOS = 10**9

# Protobuf's own library knows their JSON, which is the notation of specs; 64-bit wrappers are numbers all the same.
_OF_THE_LIBRARY = ("Duration", "Struct", "Value", "ListValue", "FieldMask", "Any")
_WRAPPERS = (
    "DoubleValue",
    "FloatValue",
    "Int64Value",
    "UInt64Value",
    "Int32Value",
    "UInt32Value",
    "BoolValue",
    "StringValue",
)


def read(message: Message, value: Json, path: str) -> bool:
    """Set the message where it is one of these and the value has its notation; whether that was so."""
    if isinstance(value, dict) and not _is_of_the_library(message):
        return False
    found: Any = message
    try:
        match message.DESCRIPTOR.full_name:
            case "google.protobuf.Timestamp" if isinstance(value, str):
                found.seconds, found.nanos = divmod(moments.read_moment(value, _NANOS), _NANOS)
            case "google.type.Date" if isinstance(value, str):
                found.year, found.month, found.day = map(int, value.split("-"))
                moments.read_date(value)
            case "google.type.TimeOfDay" if isinstance(value, str):
                _set_time(found, moments.read_time(value, _NANOS))
            case "google.type.Decimal" if isinstance(value, str):
                found.value = value
            case name if _simple(name) in _WRAPPERS:
                found.value = (
                    bytes.fromhex(value) if name.endswith("BytesValue") and isinstance(value, str) else value
                )
                found.SetInParent()
            case "google.protobuf.BytesValue" if isinstance(value, str):
                found.value = bytes.fromhex(value)
            case _ if _is_of_the_library(message):
                json_format.ParseDict(json.loads(write_json(value)), message, descriptor_pool=_pool(message))
            case _:
                return False
    except (ValueError, TypeError, json_format.ParseError) as wrong:
        raise UnfitRecord(path, f"a value for {message.DESCRIPTOR.full_name} is wanted") from wrong
    return True


def write(message: Message) -> tuple[Json] | None:
    """The value in its notation; None for messages that have none of their own."""
    found: Any = message
    match message.DESCRIPTOR.full_name:
        case "google.protobuf.Timestamp":
            return (moments.write_moment(found.seconds * _NANOS + found.nanos, _NANOS, "Z"),)
        case "google.type.Date" if found.year and found.month and found.day:
            return (f"{found.year:04}-{found.month:02}-{found.day:02}",)
        case "google.type.TimeOfDay":
            seconds = found.hours * 3600 + found.minutes * 60 + found.seconds
            return (moments.write_time(seconds * _NANOS + found.nanos, _NANOS),)
        case "google.type.Decimal":
            return (str(found.value),)
        case "google.protobuf.BytesValue":
            return (bytes(found.value).hex(),)
        case name if _simple(name) in _WRAPPERS:
            return (found.value,)
        case _ if _is_of_the_library(message):
            told = json_format.MessageToDict(message, descriptor_pool=_pool(message))
            return (read_json(json.dumps(told)),)
        case _:
            return None


def _simple(name: str) -> str:
    return name.removeprefix("google.protobuf.") if name.startswith("google.protobuf.") else ""


def _is_of_the_library(message: Message) -> bool:
    return _simple(message.DESCRIPTOR.full_name) in _OF_THE_LIBRARY


def _pool(message: Message) -> Any:
    """Where an Any finds its message. Annotated loosely: the library has two classes of pools."""
    return message.DESCRIPTOR.file.pool


def _set_time(message: Any, nanos: int) -> None:
    seconds, message.nanos = divmod(nanos, _NANOS)
    message.hours, message.minutes, message.seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
