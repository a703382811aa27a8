"""Names, and the parts of a statement that are kept as exact slices of its text."""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.errors import Span
from headgate.sql.errors import TooFewNameParts, TooManyNameParts
from headgate.text.cursor import Cursor, Identifier
from headgate.text.lexer import shortened

NO_SPAN = Span(0, 0)


@dataclass(frozen=True, slots=True)
class ObjectName:
    """``[[database.]schema.]object``; for a column, the object's name and then the column's."""

    parts: tuple[Identifier, ...]
    span: Span = field(default=NO_SPAN, compare=False, kw_only=True)

    def __str__(self) -> str:
        return ".".join(part.name for part in self.parts)


@dataclass(frozen=True, slots=True)
class Query:
    """The body of a query: the text from its first to its last token, not yet read."""

    text: str
    span: Span = field(default=NO_SPAN, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression, kept like a query."""

    text: str
    span: Span = field(default=NO_SPAN, compare=False, kw_only=True)


def object_name(cursor: Cursor, most: int = 3) -> ObjectName:
    """Read a name of at most so many parts."""
    start = cursor.token.start
    parts = [cursor.identifier()]
    while cursor.at("."):
        cursor.index += 1
        parts.append(cursor.identifier())
    name = ObjectName(tuple(parts), span=cursor.span_from(start))
    if len(parts) > most:
        raise TooManyNameParts(shortened(str(name)), most).at(name.span)
    return name


def column_name(cursor: Cursor) -> ObjectName:
    """Read ``[[database.]schema.]object.column``."""
    name = object_name(cursor, most=4)
    if len(name.parts) < 2:
        raise TooFewNameParts(shortened(str(name))).at(name.span)
    return name
