"""Whether rows are the expected ones: each value compared as its column's type has it."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TypeVar

from headgate.serve.protocol import Column, Row, Value
from headgate.serve.result_table import shown
from headgate.testing.errors import MalformedSpec, Mismatch
from headgate.testing.json_values import canonical, read_json
from headgate.testing.rows import EMPTY, ExpectedRows, RowText, write_row

Item = TypeVar("Item")

_TEMPORAL = ("time", "timestamp", "timestamptz")
_EXACT = ("integer", "bigint", "decimal")


@dataclass(frozen=True, slots=True)
class Result:
    """What a query gave."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def lines(self) -> tuple[str, ...]:
        return tuple(map(write_row, self.rows)) or (EMPTY,)


def check_rows(expected: ExpectedRows, actual: Result, ordered: bool) -> None:
    """Raises Mismatch."""
    names = tuple(column.name for column in actual.columns)
    if expected.header is not None and expected.header != names:
        rows = actual.lines() if expected.rows is not None else ()
        told = (write_row(names), "----", *rows)
        wanted = (write_row(expected.header), "----", *_expected_lines(expected))
        raise Mismatch("the columns are not the expected ones", wanted, told, told)
    if expected.rows is None:
        return
    types = [
        _type(column, [row[index] for row in actual.rows]) for index, column in enumerate(actual.columns)
    ]
    wanted_keys = [_row_of_cells(row, types) for row in expected.rows]
    found_keys = [_row_of_values(row, types) for row in actual.rows]
    if wanted_keys == found_keys or (not ordered and Counter(wanted_keys) == Counter(found_keys)):
        return
    known = dict(zip(wanted_keys, expected.lines, strict=True))
    found = [known.get(key) or write_row(row) for key, row in zip(found_keys, actual.rows, strict=True)]
    if not ordered:
        found = like(expected.lines, found)
    rewritten = actual.lines() if ordered else tuple(sorted(actual.lines()))
    head = (write_row(names), "----") if expected.header is not None else ()
    raise Mismatch(
        "the rows are not the expected ones",
        _expected_lines(expected),
        tuple(found) or (EMPTY,),
        (*head, *rewritten),
    )


def like(expected: Sequence[Item], found: Sequence[Item]) -> list[Item]:
    """What was found, in the order of what was expected, so that a diff shows only what differs; the rest at the end."""
    left = list(found)
    ordered: list[Item] = []
    for one in expected:
        if one in left:
            left.remove(one)
            ordered.append(one)
    return ordered + left


def unmatched(
    expected: Sequence[Item],
    actual: Sequence[Item],
    key: Callable[[Item], Hashable],
    same: Callable[[Item, Item], bool],
) -> tuple[list[Item], list[Item]]:
    """What is left of both when equal ones are taken away in pairs. ``key`` finds most pairs at once; ``same``
    decides about the few that are equal under different keys."""
    waiting: dict[Hashable, list[Item]] = {}
    for one in actual:
        waiting.setdefault(key(one), []).append(one)
    missing = []
    for one in expected:
        found = waiting.get(key(one))
        if found:
            found.pop()
        else:
            missing.append(one)
    extra = [one for left in waiting.values() for one in left]
    return _pair_slowly(missing, extra, same)


def _pair_slowly(
    missing: list[Item], extra: list[Item], same: Callable[[Item, Item], bool]
) -> tuple[list[Item], list[Item]]:
    if len(missing) * len(extra) > 1_000_000:
        return missing, extra
    still = []
    for one in missing:
        place = next((index for index, other in enumerate(extra) if same(one, other)), None)
        if place is None:
            still.append(one)
        else:
            del extra[place]
    return still, extra


def _expected_lines(expected: ExpectedRows) -> tuple[str, ...]:
    return expected.lines or ((EMPTY,) if expected.rows is not None else ())


def _row_of_cells(row: RowText, types: Sequence[str]) -> Hashable:
    if len(row) != len(types):
        return ("of another width", len(row), tuple(cell.text for cell in row))
    return tuple(
        None if cell.text is None else _key(cell.text, type_) for cell, type_ in zip(row, types, strict=True)
    )


def _row_of_values(row: Row, types: Sequence[str]) -> Hashable:
    return tuple(
        None if value is None else _key(shown(value), type_) for value, type_ in zip(row, types, strict=True)
    )


def _type(column: Column, values: Sequence[Value]) -> str:
    """A type that has a name of its own is judged by its values: numbers compare by value under any name."""
    kind = _kind(column.type)
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return "decimal" if numbers and kind not in (*_EXACT, "real", "double") else column.type


def _kind(type_: str) -> str:
    return type_.partition("(")[0].partition("<")[0].strip().lower()


def _key(text: str, type_: str) -> Hashable:
    """The same for texts that mean the same value of the type."""
    kind = _kind(type_)
    try:
        if kind in _EXACT:
            return Decimal(text)
        if kind == "real":
            return struct.pack("f", _no_negative_zero(text))
        if kind == "double":
            return struct.pack("d", _no_negative_zero(text))
    except (InvalidOperation, ValueError, OverflowError):
        return text
    if kind in _TEMPORAL:
        return _normal_time(text)
    return _maybe_json(text, kind == "json")


def _no_negative_zero(text: str) -> float:
    return float(text) + 0.0


def _normal_time(text: str) -> str:
    """Zeros at the end of a fraction mean nothing."""
    whole, dot, rest = text.partition(".")
    if not dot:
        return text
    digits = rest.rstrip("Z")
    fraction = digits.rstrip("0")
    return f"{whole}{'.' if fraction else ''}{fraction}{'Z' if rest.endswith('Z') else ''}"


def _maybe_json(text: str, is_json: bool) -> Hashable:
    """An object or an array compares as JSON, whatever its type; other JSON only where the type says that it is JSON."""
    if not is_json and text[:1] not in ("{", "["):
        return text
    try:
        return canonical(read_json(text))
    except MalformedSpec:
        return text
