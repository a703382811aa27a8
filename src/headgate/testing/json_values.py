"""JSON with exact numbers: reading several values from a line, what equal means, and writing."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from headgate.testing.errors import MalformedSpec

Json: TypeAlias = "bool | int | float | Decimal | str | list[Json] | dict[str, Json] | Branch | None"


@dataclass(frozen=True, slots=True)
class Branch:
    """A value of an Avro union: equal to itself, and to `{"branch": value}`."""

    names: tuple[str, ...]  # full name first, then the simple one where it differs
    value: Json
    is_needed: bool = True  # whether the plain value would be taken for another branch, too


_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=lambda name: _refuse(name))


def read_json(text: str) -> Json:
    """The one value of a text. Raises MalformedSpec."""
    found = read_values(text)
    if len(found) != 1:
        raise MalformedSpec(f'"{_short(text)}" is not one JSON value', "Write one JSON value there.")
    return found[0]


def read_values(text: str) -> list[Json]:
    """The JSON values of a text, which blanks separate. Raises MalformedSpec."""
    return [written.value for written in read_written(text)]


@dataclass(frozen=True, slots=True)
class Written:
    """A value, and the very text that it was written as."""

    value: Json
    text: str


def read_written(text: str) -> list[Written]:
    values: list[Written] = []
    position = _skip(text, 0)
    while position < len(text):
        try:
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError) as wrong:
            raise MalformedSpec(
                f'"{_short(text[position:])}" is no JSON value', "Text is written in double quotes."
            ) from wrong
        if end < len(text) and not text[end].isspace():
            raise MalformedSpec(f'"{_short(text[position:])}" is no JSON value', "Blanks separate values.")
        values.append(Written(value, text[position:end]))
        position = _skip(text, end)
    return values


def equal(expected: Json, actual: Json) -> bool:
    """Numbers by value, objects without regard to the order of members."""
    if isinstance(actual, Branch):
        if equal(expected, actual.value):
            return True
        named = isinstance(expected, dict) and len(expected) == 1 and next(iter(expected)) in actual.names
        return named and isinstance(expected, dict) and equal(next(iter(expected.values())), actual.value)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(equal(expected[key], actual[key]) for key in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(equal, expected, actual))
    return canonical(expected) == canonical(actual)


def canonical(value: Json) -> Hashable:
    """The same for values that are equal, and only for these; a branch counts as its value."""
    match value:
        case Branch():
            return canonical(value.value)
        case None | bool():
            return ("constant", value)
        case float() if not math.isfinite(value):
            return ("text", special(value))
        case float():
            return ("number", Decimal(repr(value)))
        case int() | Decimal():
            return ("number", Decimal(value))
        case str():
            return ("text", value)
        case list():
            return ("array", tuple(map(canonical, value)))
        case _:
            return ("object", frozenset((key, canonical(member)) for key, member in value.items()))


def is_part(expected: Json, actual: Json) -> bool:
    """Whether all that is expected is there: objects may have more members, arrays not more elements."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            key in actual and is_part(value, actual[key]) for key, value in expected.items()
        )
    if isinstance(expected, list):
        return (
            isinstance(actual, list) and len(expected) == len(actual) and all(map(is_part, expected, actual))
        )
    return equal(expected, actual)


def without_nulls(value: Json) -> Json:
    """The same without members that are null, at any depth."""
    match value:
        case dict():
            return {key: without_nulls(member) for key, member in value.items() if member is not None}
        case list():
            return [without_nulls(member) for member in value]
        case _:
            return value


def write_json(value: Json) -> str:
    """One line; a branch under its name where it needs one, numbers exactly as they are."""
    match value:
        case Branch():
            return write_json({value.names[0]: value.value} if value.is_needed else value.value)
        case Decimal():
            return str(value)
        case float() if not math.isfinite(value):
            return f'"{special(value)}"'
        case dict():
            return (
                "{" + ", ".join(f"{_text(key)}: {write_json(member)}" for key, member in value.items()) + "}"
            )
        case list():
            return "[" + ", ".join(map(write_json, value)) + "]"
        case _:
            return _text(value)


def special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _text(value: bool | int | float | str | None) -> str:
    return json.dumps(value, ensure_ascii=False)


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _refuse(name: str) -> Json:
    raise ValueError(f"{name} is no JSON number")
