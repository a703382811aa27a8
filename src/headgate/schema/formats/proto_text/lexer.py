"""Text to tokens. Comments and blanks are no tokens: they are the text between two of them (see `comments`)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from headgate.schema.formats.proto_text.errors import MalformedProto


class Kind(Enum):
    IDENTIFIER = auto()
    INTEGER = auto()
    FLOAT = auto()
    STRING = auto()
    SYMBOL = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A word of the text; `start` and `end` are character offsets."""

    kind: Kind
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Lines:
    """Where each line of a text begins."""

    starts: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Lines:
        return cls((0, *(found.end() for found in re.finditer("\n", text))))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 0 and in characters."""
        line = bisect_right(self.starts, offset) - 1
        return line, offset - self.starts[line]


_BLANK = re.compile(r"[ \t\r\n\v\f]+|//[^\n]*|/\*")
_WORD = re.compile(
    r"""(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<FLOAT>\.[0-9]+(?:[eE][+-]?[0-9]+)? | [0-9]+(?:\.[0-9]*(?:[eE][+-]?[0-9]+)? | [eE][+-]?[0-9]+))
      | (?P<INTEGER>0[xX][0-9A-Fa-f]+ | [0-9]+)
      | (?P<STRING>"(?:[^"\\\n\0]|\\[^\n])*" | '(?:[^'\\\n\0]|\\[^\n])*')
      | (?P<SYMBOL>[!-~])""",
    re.VERBOSE,
)
_BAD_OCTAL = re.compile(r"0[0-9]*[.89eE]")


def tokenize(text: str) -> list[Token]:
    """All words of the text, the last one of kind END. A word that no .proto file can hold is `MalformedProto`."""
    return list(_words(text))


def _words(text: str) -> Iterator[Token]:
    at = skip_blank(text, 0)
    while at < len(text):
        found = _WORD.match(text, at)
        if found is None or found.lastgroup is None:
            raise malformed(text, at, "a printable ASCII character")
        token = Token(Kind[found.lastgroup], found.group(), at, found.end())
        _check(text, token)
        yield token
        at = skip_blank(text, token.end)
    yield Token(Kind.END, "", len(text), len(text))


def skip_blank(text: str, at: int) -> int:
    """The offset of the next word at or after `at`."""
    while found := _BLANK.match(text, at):
        at = found.end()
        if found.group() == "/*":
            at = _end_of_block(text, at)
    return at


def _end_of_block(text: str, at: int) -> int:
    end = text.find("*/", at)
    if end < 0:
        raise malformed(text, at - 2, 'the comment to be closed with "*/"')
    inner = text.find("/*", at, end + 1)
    if inner >= 0:
        raise malformed(text, inner, 'no "/*" inside a block comment')
    return end + 2


def _check(text: str, token: Token) -> None:
    after = text[token.end : token.end + 1]
    match token.kind:
        case Kind.INTEGER | Kind.FLOAT:
            if (
                len(token.text) > 1
                and token.text[0] == "0"
                and token.text[1].isdigit()
                and _BAD_OCTAL.match(token.text)
            ):
                raise malformed(text, token.start, "an octal number after the leading zero")
            if after == "." or after == "_" or (after.isascii() and after.isalnum()):
                raise malformed(text, token.end, "a space after the number")
            if token.text[0] == "." and token.start and _is_word(text[token.start - 1]):
                raise malformed(text, token.start, "a space before the decimal point")
        case Kind.SYMBOL if token.text in "\"'":
            raise malformed(text, token.start, "the string to be closed on its line")
        case _:
            pass


def _is_word(character: str) -> bool:
    return character == "_" or (character.isascii() and character.isalpha())


def malformed(text: str, offset: int, expected: str) -> MalformedProto:
    """The error for the word at an offset."""
    line, column = Lines.of(text).position(offset)
    found = _WORD.match(text, offset)
    word = found.group() if found else text[offset : offset + 1]
    return MalformedProto(line + 1, column + 1, expected, word[:40])
