"""Which comment belongs to which declaration, by protoc's rules.

Between the end of one declaration and the next word lie blanks and comments. A comment on the same line, or right
below and followed by a blank line, trails the declaration before; the last one, with no blank line after it, leads
the declaration that follows; the others stand alone. Line comments on adjoining lines are one comment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_SPACE = re.compile(r"[ \t\r\v\f]*")
_BLOCK_MARGIN = re.compile(r"\n[ \t\r\v\f]*\*?")


@dataclass(slots=True)
class Comments:
    trailing: str = ""
    detached: list[str] = field(default_factory=list)
    leading: str = ""


def read_comments(gap: str, next_word: str, *, first: bool = False) -> Comments:
    """The comments in the text between two words; `next_word` is empty at the end of the file."""
    reader = _Reader(gap, next_word)
    if first:
        reader.may_trail, reader.previous_line = False, -1
    elif not reader.read_same_line():
        return reader.found
    reader.read_lines()
    return reader.found


class _Reader:
    def __init__(self, gap: str, next_word: str) -> None:
        self.gap, self.next_word, self.at = gap, next_word, 0
        self.found = Comments()
        self.buffer: str | None = None
        self.of_lines = False
        self.may_trail = True
        self.has_trailing = False  # also when it is an empty comment
        self.kept = 0
        self.previous_line = 0  # of the gap; -1 if nothing came before
        self.trailing_end: int | None = None  # line of the gap on which a same-line comment ended

    def read_same_line(self) -> bool:
        """A comment on the line of the previous word trails it. False if there is nothing more to read."""
        self._skip_space()
        if self.gap.startswith("//", self.at):
            self.trailing_end = self._line()
            self._read_line_comment()
            self._flush()
        elif self.gap.startswith("/*", self.at):
            self._read_block_comment()
            self.trailing_end = self._line()
            self._skip_space()
            self._flush()
        elif self.gap.startswith("\n", self.at):
            self.at += 1
        else:
            return False
        return True

    def read_lines(self) -> None:
        while True:
            self._skip_space()
            if self.gap.startswith("//", self.at):
                self._read_line_comment()
            elif self.gap.startswith("/*", self.at):
                self._read_block_comment()
                self._skip_space()
                self._skip_newline()
            elif self._skip_newline():
                self._flush()
                self.may_trail = False
            else:
                return self._finish()

    def _finish(self) -> None:
        if self.next_word in ("", "}", "]", ")"):
            self._flush()
        if self.next_word and self._line() in (self.previous_line, self.trailing_end):
            self._detach_the_only_one()
        if self.buffer is not None:
            self.found.leading = self.buffer

    def _detach_the_only_one(self) -> None:
        """Between two words of one line, it is unclear to which a single comment belongs."""
        if self.kept + (self.buffer is not None) != 1:
            return
        if self.has_trailing:
            self.found.detached.insert(0, self.found.trailing)
            self.found.trailing = ""
        self._flush()

    def _read_line_comment(self) -> None:
        end = self.gap.find("\n", self.at)
        end = len(self.gap) if end < 0 else end + 1
        if not self.of_lines:
            self._flush()
        self.buffer = (self.buffer or "") + self.gap[self.at + 2 : end]
        self.of_lines, self.at = True, end

    def _read_block_comment(self) -> None:
        end = self.gap.index("*/", self.at + 2)
        self._flush()
        self.buffer = _BLOCK_MARGIN.sub("\n", self.gap[self.at + 2 : end])
        self.of_lines, self.at = False, end + 2

    def _flush(self) -> None:
        if self.buffer is None:
            return
        if self.may_trail:
            self.found.trailing = self.buffer
            self.may_trail, self.has_trailing = False, True
        else:
            self.found.detached.append(self.buffer)
        self.buffer = None
        self.kept += 1

    def _skip_space(self) -> None:
        found = _SPACE.match(self.gap, self.at)
        self.at = found.end() if found else self.at

    def _skip_newline(self) -> bool:
        if self.gap.startswith("\n", self.at):
            self.at += 1
            return True
        return False

    def _line(self) -> int:
        return self.gap.count("\n", 0, self.at)
