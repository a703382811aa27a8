"""A result as a table of text, as the shell prints it and as specs compare it.

    id  price   tags
    --  ------  ----------
     1     3.5  ["a", "b"]
     2  <null>  []

Numbers are aligned to the right. A value of several lines keeps its lines. If the table must fit a width, the values of
the widest columns are folded. Does no I/O.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap

from rich.cells import cell_len

from headgate.serve.protocol import Column, Row, Value

GAP = "  "
MIN_FOLDED_WIDTH = 32  # a column is not folded to less
NULL = "<null>"


def value_text(value: Value) -> str:
    """One value as text, without quotes."""
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


def table_lines(columns: Sequence[Column], rows: Sequence[Row], max_width: int | None = None) -> list[str]:
    """The header, a line of dashes, and the rows, without trailing blanks. Folded to ``max_width`` as far as possible."""
    cells = [[value_text(value).split("\n") for value in row] for row in rows]
    widths = _widths(columns, cells)
    if max_width is not None:
        _fold(cells, widths, max_width)
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


def _fold(cells: Sequence[list[list[str]]], widths: Sequence[int], max_width: int) -> None:
    """Fold the values of the widest columns, one column after another, until the table fits. Changes ``cells``."""
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - max_width
    for index in sorted(range(len(widths)), key=lambda i: -widths[i]):
        if excess <= 0 or widths[index] <= MIN_FOLDED_WIDTH:
            return
        width = max(MIN_FOLDED_WIDTH, widths[index] - excess)
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
