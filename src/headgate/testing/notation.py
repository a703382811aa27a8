"""How specs write values: JSON with exact numbers, dates and times in ISO form. Reading, writing, and what equal means."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import TypeAlias

from headgate.testing.errors import MalformedSpec

EXACT = Context(prec=1000)  # digits; enough for every decimal that a format can hold

_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})?")
_TIME = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


Json: TypeAlias = "bool | int | float | Decimal | str | list[Json] | dict[str, Json] | Branch | None"


def read_date(text: str) -> int:
    """Days since the epoch. Raises ValueError."""
    return (date.fromisoformat(text) - _EPOCH.date()).days


def write_date(days: int) -> str:
    """Raises OverflowError beyond the years 1 to 9999."""
    return (_EPOCH.date() + timedelta(days=days)).isoformat()


def read_time(text: str, per_second: int) -> int:
    """Units since midnight. Raises ValueError, also if the text is finer than the unit."""
    found = _TIME.fullmatch(text)
    if found is None or int(found[1]) > 23 or int(found[2]) > 59 or int(found[3] or 0) > 59:
        raise ValueError(f"{text!r} is no time")
    seconds = int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3] or 0)
    return seconds * per_second + _units(found[4], per_second)


def write_time(units: int, per_second: int) -> str:
    seconds, rest = divmod(units, per_second)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return clock + _fraction(rest, per_second)


def read_moment(text: str, per_second: int) -> int:
    """Units since the epoch, in UTC. Raises ValueError."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no timestamp")
    zone = found[4] or "Z"
    moment = datetime.fromisoformat(f"{found[1]}T{found[2]}{'+00:00' if zone == 'Z' else zone}")
    return (moment - _EPOCH) // timedelta(seconds=1) * per_second + _units(found[3], per_second)


def write_moment(units: int, per_second: int, zone: str) -> str:
    """``zone`` is "Z" or nothing. Raises OverflowError beyond the years 1 to 9999."""
    seconds, rest = divmod(units, per_second)
    moment = _EPOCH + timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S").zfill(19) + _fraction(rest, per_second) + zone


def shortest_float(value: float) -> float:
    """The double with the fewest digits that is the same number in 32 bits."""
    for digits in range(6, 10):
        short = float(f"{value:.{digits}g}")
        if struct.pack("f", short) == struct.pack("f", value):
            return short
    return value


def _units(fraction: str | None, per_second: int) -> int:
    digits = len(str(per_second)) - 1
    written = (fraction or "").rstrip("0")
    if len(written) > digits:
        raise ValueError(f"a fraction of {len(written)} digits does not fit")
    return int(written.ljust(digits, "0") or 0)


def _fraction(rest: int, per_second: int) -> str:
    digits = f"{rest:0{len(str(per_second)) - 1}}".rstrip("0")
    return f".{digits}" if rest else ""


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
    """A value and its exact text."""

    value: Json
    text: str


def read_written(text: str) -> list[Written]:
    """The JSON values of a text with the exact text of each. Raises MalformedSpec."""
    values: list[Written] = []
    position = skip_blanks(text, 0)
    while position < len(text):
        try:
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            problem = f'"{_short(text[position:])}" is no JSON value'
            raise MalformedSpec(problem, "Text is written in double quotes.") from error
        if end < len(text) and not text[end].isspace():
            raise MalformedSpec(f'"{_short(text[position:])}" is no JSON value', "Blanks separate values.")
        values.append(Written(value, text[position:end]))
        position = skip_blanks(text, end)
    return values


def equal(expected: Json, actual: Json) -> bool:
    """Whether two values are equal. Numbers compare by value, and the order of members does not count."""
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
    """A key that is the same for equal values and only for them. A branch counts as its value."""
    match value:
        case Branch():
            return canonical(value.value)
        case None | bool():
            return ("constant", value)
        case float() if not math.isfinite(value):
            return ("text", _text(value))  # NaN, Infinity or -Infinity
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
    """Whether ``actual`` has everything that is expected. Objects may have more members, arrays no more elements."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            key in actual and is_part(value, actual[key]) for key, value in expected.items()
        )
    if isinstance(expected, list):
        return isinstance(actual, list) and len(expected) == len(actual) and all(map(is_part, expected, actual))
    return equal(expected, actual)


def without_nulls(value: Json) -> Json:
    """The value without members that are null, at any depth."""
    match value:
        case dict():
            return {key: without_nulls(member) for key, member in value.items() if member is not None}
        case list():
            return [without_nulls(member) for member in value]
        case _:
            return value


def write_json(value: Json) -> str:
    """One line of JSON with exact numbers. A branch has its name if it needs one."""
    match value:
        case Branch():
            return write_json({value.names[0]: value.value} if value.is_needed else value.value)
        case Decimal():
            return str(value)
        case float() if not math.isfinite(value):
            return f'"{_text(value)}"'
        case dict():
            return "{" + ", ".join(f"{_text(key)}: {write_json(member)}" for key, member in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(write_json, value)) + "]"
        case _:
            return _text(value)


def _text(value: bool | int | float | str | None) -> str:
    return json.dumps(value, ensure_ascii=False)


def skip_blanks(text: str, position: int) -> int:
    """The position of the next character that is no blank."""
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _refuse(name: str) -> Json:
    raise ValueError(f"{name} is no JSON number")
