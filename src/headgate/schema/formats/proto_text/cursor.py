"""A walk over the tokens: what comes next, what was expected, where a declaration lies and which comments it has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

from google.protobuf.descriptor_pb2 import SourceCodeInfo

from headgate.schema.formats.proto_text.comments import Comments, read_comments
from headgate.schema.formats.proto_text.errors import MalformedProto
from headgate.schema.formats.proto_text.lexer import Kind, Lines, Token, tokenize
from headgate.schema.formats.proto_text.literals import MAX_INT32, MAX_UINT64, integer, unquote

Path = tuple[int, ...]


@dataclass(slots=True)
class Place:
    """A declaration: its path in the descriptor, the offsets it covers, its comments."""

    path: Path
    start: int
    end: int = 0
    comments: Comments = field(default_factory=Comments)


class Cursor:
    """Over one text. `syntax` is proto2, proto3 or editions; `depth` counts the messages that are open."""

    def __init__(self, text: str) -> None:
        self.text = text.removeprefix("\ufeff")
        self.lines = Lines.of(self.text)
        self.tokens = tokenize(self.text)
        self.syntax = "proto2"
        self.edition = 0
        self.depth = 0
        self.places: list[Place] = []
        self._at = 0
        self._upcoming = read_comments(self.text[: self.peek.start], self.peek.text, first=True)

    @property
    def peek(self) -> Token:
        return self.tokens[self._at]

    def at(self, *texts: str) -> bool:
        return self.peek.text in texts and self.peek.kind is not Kind.STRING

    def next(self) -> Token:
        token = self.peek
        self._at = min(self._at + 1, len(self.tokens) - 1)
        return token

    def accept(self, text: str) -> bool:
        if self.at(text):
            self.next()
            return True
        return False

    def expect(self, text: str, meaning: str | None = None) -> Token:
        if not self.at(text):
            self.fail(meaning or f'"{text}"')
        return self.next()

    def fail(self, expected: str, token: Token | None = None) -> NoReturn:
        found = token or self.peek
        line, column = self.lines.position(found.start)
        raise MalformedProto(line + 1, column + 1, expected, found.text[:40])

    def identifier(self, expected: str) -> str:
        if self.peek.kind is not Kind.IDENTIFIER:
            self.fail(expected)
        return self.next().text

    def type_name(self) -> str:
        """A dotted name, absolute with a leading dot, as written."""
        name = self.next().text if self.at(".") else ""
        name += self.identifier("a type name")
        while self.accept("."):
            name += "." + self.identifier("an identifier")
        return name

    def number(self, expected: str, most: int = MAX_INT32) -> int:
        if self.peek.kind is not Kind.INTEGER:
            self.fail(expected)
        value = integer(self.peek.text)
        if value > most:
            self.fail(f"an integer of at most {most}")
        self.next()
        return value

    def signed_number(self, expected: str) -> int:
        if self.accept("-"):
            return -self.number(expected, MAX_INT32 + 1)
        return self.number(expected)

    def float_number(self, expected: str) -> float:
        """A number without sign; an integer beyond 64 bits is read as a float, but not an octal or hexadecimal one."""
        token = self.peek
        if token.kind is Kind.INTEGER and integer(token.text) <= MAX_UINT64:
            return float(integer(self.next().text))
        if token.kind is Kind.FLOAT or (token.kind is Kind.INTEGER and token.text[0] != "0"):
            return float(self.next().text)
        return float(self.next().text) if self.at("inf", "nan") else self.fail(expected)

    def string(self, expected: str) -> bytes:
        """A string; adjoining ones are joined."""
        if self.peek.kind is not Kind.STRING:
            self.fail(expected)
        data = b""
        while self.peek.kind is Kind.STRING:
            part = unquote(self.peek.text)
            if part is None:
                self.fail("a string with valid escape sequences")
            data += part
            self.next()
        return data

    def text_string(self, expected: str) -> str:
        token = self.peek
        try:
            return self.string(expected).decode()
        except UnicodeDecodeError:
            self.fail("a string of valid UTF-8", token)

    @contextmanager
    def place(self, path: Path, start: Token | None = None) -> Iterator[Place]:
        """Note where a declaration begins now (or at `start`) and, at the end, where it ended."""
        place = Place(path, (start or self.peek).start)
        self.places.append(place)
        yield place
        place.end = self.tokens[max(self._at - 1, 0)].end

    def accept_end(self, text: str, place: Place | None) -> bool:
        """Pass the `;`, `{` or `}` that ends a declaration, and give the declaration its comments."""
        if not self.at(text):
            return False
        end = self.next().end
        found = read_comments(self.text[end : self.peek.start], self.peek.text)
        before = self._upcoming
        if place is not None:
            place.comments = Comments(found.trailing, before.detached, before.leading)
        if place is not None or text == "}":
            before = Comments()
        self._upcoming = Comments("", before.detached + found.detached, found.leading)
        return True

    def expect_end(self, text: str, place: Place | None) -> None:
        if not self.accept_end(text, place):
            self.fail(f'"{text}"')

    def source_code_info(self) -> SourceCodeInfo:
        """Every declaration's path, span and comments. Spans count characters, from 0."""
        return SourceCodeInfo(location=[self._location(place) for place in self.places])

    def _location(self, place: Place) -> SourceCodeInfo.Location:
        (line, column), (end_line, end_column) = map(self.lines.position, (place.start, place.end))
        span = [line, column, end_column] if line == end_line else [line, column, end_line, end_column]
        comments = place.comments
        made = SourceCodeInfo.Location(
            path=place.path, span=span, leading_detached_comments=comments.detached
        )
        if comments.leading:
            made.leading_comments = comments.leading
        if comments.trailing:
            made.trailing_comments = comments.trailing
        return made
