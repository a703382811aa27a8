"""Rows as a spec writes them: reading, writing, and whether they are the expected ones.

    1 3.5 "a b" <null> {"k": [1, 2]}

A value is read without knowing its type; the type of its column tells later how it compares.
"""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TypeAlias, TypeVar

from headgate.serve.protocol import Column, Row, Value, value_text
from headgate.testing.errors import MalformedSpec, Mismatch
from headgate.testing.notation import canonical, read_json, skip_blanks
from headgate.testing.parse import end_of_brackets, read_quoted

NULL = "<null>"
EMPTY = "<empty>"

_DASHES = re.compile(r"\s*-{3,}(\s+-{2,})*\s*")

Item = TypeVar("Item")
_TEMPORAL = ("time", "timestamp", "timestamptz")
_EXACT = ("integer", "bigint", "decimal")


@dataclass(frozen=True, slots=True)
class Cell:
    """A value as written, without quotes. ``text`` is None for NULL."""

    text: str | None


RowText: TypeAlias = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class ExpectedRows:
    """``header`` is None if column names are not checked, ``rows`` if rows are not. ``lines`` are the rows as written."""

    header: tuple[str, ...] | None
    rows: tuple[RowText, ...] | None
    lines: tuple[str, ...] = ()


def read_rows(lines: Sequence[str]) -> ExpectedRows:
    """Raises MalformedSpec."""
    header: tuple[str, ...] | None = None
    if len(lines) > 1 and _DASHES.fullmatch(lines[1]):
        header = tuple(cell.text or "" for cell in read_row(lines[0]))
        lines = lines[2:]
    if [line.strip() for line in lines] == [EMPTY]:
        return ExpectedRows(header, ())
    if not lines:
        return ExpectedRows(header, None)
    return ExpectedRows(header, tuple(map(read_row, lines)), tuple(line.strip() for line in lines))


def read_row(line: str) -> RowText:
    """The cells of a line. Raises MalformedSpec."""
    cells: list[Cell] = []
    position, line = 0, line.strip()
    while position < len(line):
        cell, position = _cell(line, position)
        cells.append(cell)
        position = skip_blanks(line, position)
    return tuple(cells)


def write_row(row: Sequence[Value]) -> str:
    return " ".join(map(write_cell, row))


def write_cell(value: Value) -> str:
    """The shortest text that reads as the value again."""
    if value is None:
        return NULL
    text = value_text(value)
    return text if not isinstance(value, str) or _stands_bare(text) else quoted(text)


def _stands_bare(text: str) -> bool:
    if not text or text in (NULL, EMPTY) or "\n" in text or text[0] == '"' or _DASHES.fullmatch(text):
        return False
    if text[0] in "{[":
        return _is_json(text) and end_of_brackets(text, 0) == len(text)
    return not any(character.isspace() for character in text)


def _cell(line: str, start: int) -> tuple[Cell, int]:
    if line[start] == '"':
        text, end = read_quoted(line, start)
        return Cell(text), end
    end = start
    if line[start] in "{[":
        end = end_of_brackets(line, start) or start
    while end < len(line) and not line[end].isspace():
        end += 1
    text = line[start:end]
    return Cell(None if text == NULL else text), end


def quoted(text: str) -> str:
    """The text in double quotes, which ``parse.read_quoted`` reads."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a query."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def lines(self) -> tuple[str, ...]:
        return tuple(map(write_row, self.rows)) or (EMPTY,)


def check_rows(expected: ExpectedRows, actual: Result, ordered: bool) -> None:
    """Raises Mismatch."""
    names = tuple(column.name for column in actual.columns)
    if expected.header is not None and expected.header != names:
        rows = actual.lines() if expected.rows is not None else ()
        actual_lines = (write_row(names), "----", *rows)
        wanted = (write_row(expected.header), "----", *_expected_lines(expected))
        raise Mismatch("the columns are not the expected ones", wanted, actual_lines, actual_lines)
    if expected.rows is None:
        return
    types = [_type(column, [row[index] for row in actual.rows]) for index, column in enumerate(actual.columns)]
    wanted_keys = [_row_of_cells(row, types) for row in expected.rows]
    found_keys = [_row_of_values(row, types) for row in actual.rows]
    if wanted_keys == found_keys or (not ordered and Counter(wanted_keys) == Counter(found_keys)):
        return
    known = dict(zip(wanted_keys, expected.lines, strict=True))
    found = [known.get(key) or write_row(row) for key, row in zip(found_keys, actual.rows, strict=True)]
    if not ordered:
        found = align(expected.lines, found)
    rewritten = actual.lines() if ordered else tuple(sorted(actual.lines()))
    head = (write_row(names), "----") if expected.header is not None else ()
    what, wanted = "the rows are not the expected ones", _expected_lines(expected)
    raise Mismatch(what, wanted, tuple(found) or (EMPTY,), (*head, *rewritten))


def align(expected: Sequence[Item], found: Sequence[Item]) -> list[Item]:
    """What was found, in the order of what was expected and the rest behind it. A diff then shows only differences."""
    left = list(found)
    ordered: list[Item] = []
    for one in expected:
        if one in left:
            left.remove(one)
            ordered.append(one)
    return ordered + left


def as_written(
    expected: Sequence[Item], actual: Sequence[Item], same: Callable[[Item, Item], bool], line: Callable[[Item], str]
) -> list[str]:
    """The lines of what was found. What was expected is shown as the spec writes it, so that a diff leaves it out."""
    left, lines = list(expected), []
    for one in actual:
        place = next((index for index, other in enumerate(left[:1000]) if same(other, one)), None)
        lines.append(line(one if place is None else left.pop(place)))
    return lines


def differences(
    expected: Sequence[Item],
    actual: Sequence[Item],
    key: Callable[[Item], Hashable],
    same: Callable[[Item, Item], bool],
) -> tuple[list[Item], list[Item]]:
    """What is left of both when pairs of equal items are removed.

    ``key`` finds most equal pairs quickly. Equal items may still have different keys; ``same`` finds those."""
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
    """Compare every item with every other, unless that would take too long."""
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
    return tuple(None if cell.text is None else _key(cell.text, type_) for cell, type_ in zip(row, types, strict=True))


def _row_of_values(row: Row, types: Sequence[str]) -> Hashable:
    return tuple(
        None if value is None else _key(value_text(value), type_) for value, type_ in zip(row, types, strict=True)
    )


def _type(column: Column, values: Sequence[Value]) -> str:
    """The type to compare by. Numbers compare by value, whatever their type is called."""
    kind = _kind(column.type)
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return "decimal" if numbers and kind not in (*_EXACT, "real", "double") else column.type


def _kind(type_: str) -> str:
    return type_.partition("(")[0].partition("<")[0].strip().lower()


def _key(text: str, type_: str) -> Hashable:
    """A key that is the same for all texts of one value of the type."""
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
    """The text without zeros at the end of its fraction."""
    whole, dot, rest = text.partition(".")
    if not dot:
        return text
    digits = rest.rstrip("Z")
    fraction = digits.rstrip("0")
    return f"{whole}{'.' if fraction else ''}{fraction}{'Z' if rest.endswith('Z') else ''}"


def _maybe_json(text: str, is_json: bool) -> Hashable:
    """Objects and arrays compare as JSON, whatever their type. Other values do so only if the type is json."""
    if not is_json and text[:1] not in ("{", "["):
        return text
    try:
        return canonical(read_json(text))
    except MalformedSpec:
        return text
