"""Rows as a spec writes them: reading, and writing what was there.

    1 3.5 "a b" <null> {"k": [1, 2]}

A value is read without knowing its type; ``comparison`` gives it one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from headgate.serve.protocol import Value
from headgate.serve.result_table import shown
from headgate.testing.words import end_of_brackets, read_quoted

NULL = "<null>"
EMPTY = "<empty>"

_DASHES = re.compile(r"\s*-{3,}(\s+-{2,})*\s*")


@dataclass(frozen=True, slots=True)
class Cell:
    """A value as written, quotes taken off; ``text`` is None for NULL."""

    text: str | None


RowText: TypeAlias = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class ExpectedRows:
    """``header`` is None where column names are not checked, ``rows`` None where rows are not looked at. ``lines`` are
    the rows as they were written, one for each."""

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
    cells: list[Cell] = []
    position, line = 0, line.strip()
    while position < len(line):
        cell, position = _cell(line, position)
        cells.append(cell)
        while position < len(line) and line[position].isspace():
            position += 1
    return tuple(cells)


def write_row(row: Sequence[Value]) -> str:
    return " ".join(map(write_cell, row))


def write_cell(value: Value) -> str:
    """As short as can be, so that reading it gives the value again."""
    if value is None:
        return NULL
    text = shown(value)
    return text if isinstance(value, str) is False or _stands_bare(text) else _quoted(text)


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


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
