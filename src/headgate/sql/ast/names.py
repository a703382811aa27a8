"""Names, and the parts of a statement that are kept as exact slices of its text."""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.errors import Span

NO_SPAN = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Identifier:
    """One name, in the case it was written in; in quotes it matches exactly, without them whatever the case."""

    name: str
    quoted: bool = False


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
