"""`--rewrite`: actual results in place of expected ones, the rest of the file as it is."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.testing.stage import Edit


def rewritten(text: str, edits: Sequence[Edit]) -> str:
    """A block that was edited in several runs, one for each format, takes the lines of the first."""
    lines = text.split("\n")
    first: dict[int, Edit] = {}
    for edit in edits:
        first.setdefault(edit.block.line, edit)
    for number in sorted(first, reverse=True):
        edit = first[number]
        start = number - 1
        lines[start : start + len(edit.block.lines)] = edit.lines
    return "\n".join(lines)
