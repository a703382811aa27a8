"""A result as people read it: the shell prints it so, and `?` of a spec compares it.

    id  price   tags
    --  ------  ----------
     1     3.5  ["a", "b"]
     2  <null>  []

Numbers stand to the right. A value over several lines keeps them. Where there is a width to keep to, the longest values
go on in lines of their own. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap

from rich.cells import cell_len

from headgate.serve.protocol import Column, Row, Value

GAP = "  "
NARROWEST = 32  # of a column whose values are broken
NULL = "<null>"


def shown(value: Value) -> str:
    """One value, as in rows of specs but never quoted."""
    match value:
        case None:
            return NULL
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            return json.dumps(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def table_lines(columns: Sequence[Column], rows: Sequence[Row], within: int | None = None) -> list[str]:
    """Header, dashes, and the rows; without blanks at the ends of lines. Folded to a width if that can be done."""
    cells = [[shown(value).split("\n") for value in row] for row in rows]
    widths = _widths(columns, cells)
    if within is not None:
        _fold(cells, widths, within)
        widths = _widths(columns, cells)
    right = [_is_number(column.type) for column in columns]
    lines = [_line([column.name for column in columns], widths, [False] * len(columns))]
    lines.append(GAP.join("-" * width for width in widths))
    for row in cells:
        lines += [_line(parts, widths, right) for parts in zip_longest(*row, fillvalue="")]
    return lines


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[list[str]]]) -> list[int]:
    return [
        max(cell_len(column.name), *(cell_len(line) for row in cells for line in row[index]), 1)
        for index, column in enumerate(columns)
    ]


def _fold(cells: Sequence[list[list[str]]], widths: Sequence[int], within: int) -> None:
    """Break the lines of the widest columns, one after another, until all fit."""
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - within
    for index in sorted(range(len(widths)), key=lambda i: -widths[i]):
        if excess <= 0 or widths[index] <= NARROWEST:
            return
        width = max(NARROWEST, widths[index] - excess)
        excess -= widths[index] - width
        for row in cells:
            row[index] = [part for line in row[index] for part in _folded(line, width)]


def _folded(line: str, width: int) -> list[str]:
    if cell_len(line) <= width:
        return [line]
    return wrap(line, width, expand_tabs=False, replace_whitespace=False) or [""]


def _line(parts: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        (" " * (width - cell_len(part))) + part if to_right else part + " " * (width - cell_len(part))
        for part, width, to_right in zip(parts, widths, right, strict=True)
    ]
    return GAP.join(padded).rstrip()


def _is_number(type_: str) -> bool:
    return type_.partition("(")[0] in ("integer", "bigint", "real", "double", "decimal")
