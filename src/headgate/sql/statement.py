"""What all statements share: their base class, names, slices of the text, and how these are printed."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field

from headgate.errors import Span
from headgate.schema.names import force_quotes, quote_literal
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


_LINE = 80  # a list that is longer gets a line for each item


def print_identifier(node: Identifier) -> str:
    # A sink called policy must not be read as a sink policy.
    return force_quotes(node.name) if node.quoted or node.name.upper() == "POLICY" else node.name


def print_name(node: ObjectName) -> str:
    return ".".join([print_identifier(part) for part in node.parts])


def print_identifiers(nodes: Iterable[Identifier]) -> str:
    return "(" + ", ".join([print_identifier(node) for node in nodes]) + ")"


def print_string(text: str) -> str:
    return quote_literal(text)


def print_strings(texts: Iterable[str]) -> str:
    return "(" + ", ".join([print_string(text) for text in texts]) + ")"


def block(items: Iterable[str]) -> str:
    """Items in parentheses: on one line if they fit, otherwise each on its own."""
    listed = list(items)
    line = ", ".join(listed)
    if len(line) <= _LINE and "\n" not in line:
        return f"({line})"
    indented = ",\n".join([f"    {item}" for item in listed])
    return f"(\n{indented}\n)"


def clauses(*lines: str) -> str:
    """The clauses of a statement, one per line; those that are empty are left out."""
    return "\n".join([line for line in lines if line])


def words(*parts: str) -> str:
    """The words of one clause; those that are empty are left out."""
    return " ".join([part for part in parts if part])


def print_if_not_exists(flag: bool) -> str:
    return "IF NOT EXISTS" if flag else ""


def print_if_exists(flag: bool) -> str:
    return "IF EXISTS" if flag else ""


class Kind(enum.StrEnum):
    """The kinds of objects. The value is how texts name a kind, ``words`` how a statement does."""

    DATABASE = "database"
    SCHEMA = "schema"
    SECRET = "secret"
    CONNECTION = "connection"
    SOURCE = "source"
    TYPE = "type"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized view"
    SINK = "sink"
    SINK_POLICY = "sink policy"
    STREAM = "stream"
    TABLE = "table"
    COLLECTION = "collection"
    CAPTURE = "capture"
    MATERIALIZATION = "materialization"

    @property
    def words(self) -> str:
        """The keywords: ``MATERIALIZED VIEW``."""
        return self.value.upper()


@dataclass(frozen=True, slots=True)
class Statement:
    """The base of all statements. ``span`` is the statement in its script, without the semicolon."""

    span: Span = field(default=NO_SPAN, compare=False, kw_only=True)

    def sql(self) -> str:
        """The statement in its normal form, without a semicolon. The parser reads it back as the same statement."""
        raise NotImplementedError


def print_statement(statement: Statement) -> str:
    """The statement in its normal form, with a semicolon: keywords in upper case, one clause per line."""
    return statement.sql() + ";"
