"""What all statements share: the base class, kinds of objects, names, slices of the text, and how these are printed;
and `rewrite`, which changes parts of a statement wherever they are.

All nodes of statements are frozen dataclasses. Two statements are equal if they mean the same: spans are kept for
errors but not compared.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable
from dataclasses import Field, dataclass, field
from typing import Any, ClassVar, TypeVar, get_args

from headgate.errors import Span
from headgate.schema.names import force_quotes, quote_literal
from headgate.schema.parse import read_type
from headgate.schema.types import Type
from headgate.sql.errors import ReplaceIfNotExists, TooFewNameParts, TooManyNameParts
from headgate.text.cursor import Cursor, Identifier
from headgate.text.lexer import shortened

NO_SPAN = Span(0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class ObjectName:
    """``[[database.]schema.]object``, or for a column the name of its object and its own.

    ``id`` is the object that a resolved name means. Resolved names are equal if their ids are, others if they are
    spelled alike.
    """

    parts: tuple[Identifier, ...]
    id: int | None = None
    span: Span = field(default=NO_SPAN, compare=False, kw_only=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectName) and self._meaning() == other._meaning()

    def __hash__(self) -> int:
        return hash(self._meaning())

    def _meaning(self) -> object:
        """What equality compares."""
        return self.parts if self.id is None else self.id

    def __str__(self) -> str:
        return ".".join(part.name for part in self.parts)


@dataclass(frozen=True, slots=True)
class Reference:
    """A name in the text of a query, from offset ``start`` to ``end``, and what it means.

    ``of`` is the offset of the name in FROM that this name repeats before a column; None for a name in FROM. ``called``
    is the relation's own name when the query was written. A relation of the system has no id, and ``name`` is then its
    full name.
    """

    start: int
    end: int
    name: ObjectName
    called: str
    of: int | None = None


@dataclass(frozen=True, slots=True)
class WrittenType:
    """A type in the text of a query that names types of the catalog: as it is written, and with their full names."""

    start: int
    end: int
    written: Type
    type: Type


@dataclass(frozen=True, slots=True)
class Query:
    """The body of a query: its text from the first to the last token. `headgate.sql.query` reads it later.

    A stored query has what the names in it mean: ``references`` to relations, and ``types``.
    """

    text: str
    references: tuple[Reference, ...] = ()
    types: tuple[WrittenType, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression, kept as text like a query."""

    text: str
    span: Span = field(default=NO_SPAN, compare=False, kw_only=True)


class Kind(enum.StrEnum):
    """The kinds of objects, for statements and for the catalog. The value is used in messages, ``words`` in
    statements."""

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
        """The keywords of the kind, such as ``MATERIALIZED VIEW``."""
        return self.value.upper()


# The kinds that have rows.
RELATIONS = (Kind.COLLECTION, Kind.MATERIALIZED_VIEW, Kind.SOURCE, Kind.STREAM, Kind.TABLE, Kind.VIEW)


def names(*kinds: Kind) -> dict[str, tuple[Kind, ...]]:
    """The metadata of a field that names another object, of one of these kinds."""
    return {"names": kinds}


def kinds_named(declared: Field[Any] | None) -> tuple[Kind, ...]:
    """The kinds that a name in the field may mean; none if it names no other object."""
    kinds: tuple[Kind, ...] = () if declared is None else declared.metadata.get("names", ())
    return kinds


@dataclass(frozen=True, slots=True)
class Statement:
    """The base of all statements. ``span`` is where it is in the script, without the semicolon."""

    span: Span = field(default=NO_SPAN, compare=False, kw_only=True)

    @property
    def words(self) -> str:
        """The words that name the statement in messages, plans and tags, such as CREATE SOURCE."""
        raise NotImplementedError

    def sql(self) -> str:
        """The statement in its normal form, without a semicolon. The parser reads it back as the same statement."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Create(Statement):
    """A statement that creates an object of the class's ``kind``."""

    kind: ClassVar[Kind]
    name: ObjectName
    if_not_exists: bool = field(default=False, kw_only=True)
    or_replace: bool = field(default=False, kw_only=True)

    @property
    def words(self) -> str:
        return f"CREATE {self.kind.words}"

    def head(self) -> str:
        """The statement up to the name."""
        create = "CREATE OR REPLACE" if self.or_replace else "CREATE"
        return words(create, self.kind.words, "IF NOT EXISTS" if self.if_not_exists else "", print_name(self.name))


@dataclass(frozen=True, slots=True)
class Alter(Statement):
    """A statement that changes an existing object."""

    kind: Kind
    name: ObjectName
    if_exists: bool = field(default=False, kw_only=True)

    @property
    def words(self) -> str:
        return f"ALTER {self.kind.words}"

    def head(self) -> str:
        """The statement up to the name."""
        return words("ALTER", self.kind.words, print_if_exists(self.if_exists), print_name(self.name))


def print_statement(statement: Statement) -> str:
    """The statement in its normal form, with a semicolon: keywords in upper case, one clause per line."""
    return statement.sql() + ";"


def object_name(cursor: Cursor, most: int = 3) -> ObjectName:
    """Read a name of at most ``most`` parts."""
    start = cursor.token.start
    parts = [cursor.identifier()]
    while cursor.at("."):
        cursor.index += 1
        parts.append(cursor.identifier())
    name = ObjectName(tuple(parts), span=cursor.span_from(start))
    # The whole name is read first, so that the error shows all of it.
    if len(parts) > most:
        raise TooManyNameParts(shortened(str(name)), most).at(name.span)
    return name


def column_name(cursor: Cursor) -> ObjectName:
    """Read ``[[database.]schema.]object.column``."""
    name = object_name(cursor, most=4)
    if len(name.parts) < 2:
        raise TooFewNameParts(shortened(str(name))).at(name.span)
    return name


def column_path(cursor: Cursor) -> tuple[ObjectName, tuple[Identifier, ...]]:
    """Read ``object.column``, or ``(object.column).field`` for a field of a record in the column, to any depth."""
    if not cursor.at("("):
        cursor.expecting("(")
        return column_name(cursor), ()
    cursor.expect("(")
    name, fields = column_path(cursor)
    cursor.expect(")")
    cursor.expect(".")
    inner = [cursor.identifier()]
    while cursor.at("."):
        cursor.index += 1
        inner.append(cursor.identifier())
    return name, (*fields, *inner)


def if_not_exists(cursor: Cursor, or_replace: bool = False) -> bool:
    """Read IF NOT EXISTS. It contradicts OR REPLACE."""
    start = cursor.token.start
    found = cursor.take("IF NOT EXISTS")
    if found and or_replace:
        raise ReplaceIfNotExists().at(cursor.span_from(start))
    return found


def optional_columns(cursor: Cursor) -> tuple[Identifier, ...]:
    """``[(column, …)]``."""
    if cursor.at("("):
        return cursor.identifiers()
    cursor.expecting("(")
    return ()


def strings(cursor: Cursor) -> tuple[str, ...]:
    """Read strings in parentheses."""
    return cursor.in_parentheses(Cursor.string)


def column_type(cursor: Cursor) -> Type:
    """Read a type. Something that cannot be one is an error of the statement, which lists what else may stand here."""
    if not cursor.at_name():
        cursor.expecting("a type")
        raise cursor.unexpected()
    return read_type(cursor)


_LINE = 80  # characters; a longer list is printed with one item per line


def print_identifier(node: Identifier) -> str:
    """The name as SQL. A name that was written in quotes keeps them."""
    # Without quotes, DROP SINK policy … would be read as a sink policy.
    return force_quotes(node.name) if node.quoted or node.name.upper() == "POLICY" else node.name


def print_name(node: ObjectName) -> str:
    return ".".join([print_identifier(part) for part in node.parts])


def print_column(name: ObjectName, fields: Iterable[Identifier]) -> str:
    """A column, or a field of a record in it, as `column_path` reads it."""
    inner = [print_identifier(field) for field in fields]
    return f"({print_name(name)}).{'.'.join(inner)}" if inner else print_name(name)


def print_identifiers(nodes: Iterable[Identifier]) -> str:
    return "(" + ", ".join([print_identifier(node) for node in nodes]) + ")"


def print_string(text: str) -> str:
    return quote_literal(text)


def print_strings(texts: Iterable[str]) -> str:
    return "(" + ", ".join([print_string(text) for text in texts]) + ")"


def block(items: Iterable[str]) -> str:
    """Print items in parentheses: on one line if they fit, otherwise one per line."""
    listed = list(items)
    line = ", ".join(listed)
    if len(line) <= _LINE and "\n" not in line:
        return f"({line})"
    indented = ",\n".join([f"    {item}" for item in listed])
    return f"(\n{indented}\n)"


def clauses(*lines: str) -> str:
    """Print the clauses of a statement, one per line, without the empty ones."""
    return "\n".join([line for line in lines if line])


def words(*parts: str) -> str:
    """Join the words of one clause, without the empty ones."""
    return " ".join([part for part in parts if part])


def print_if_exists(flag: bool) -> str:
    return "IF EXISTS" if flag else ""


Part = TypeVar("Part")
DataField = Field[Any]
Rewriting = Callable[[Any, DataField | None], Any]

TYPES = get_args(Type)


def rewrite(node: Part, change: Rewriting) -> Part:
    """A copy of the tree in which values are replaced by what ``change`` returns for them.

    ``change`` gets each value and the field that holds it. What it replaces is not searched further. A part in which
    nothing changes is the same object as before. Spans are not visited.
    """
    changed: Part = _rewritten_fields(node, change)
    return changed


def _rewritten_fields(node: Any, change: Rewriting) -> Any:
    """The node with the fields that ``change`` replaces; the same object if there are none."""
    new: dict[str, Any] = {}
    for declared in dataclasses.fields(node):
        if declared.compare and declared.init:
            value = getattr(node, declared.name)
            found = _rewritten_value(value, declared, change)
            if found is not value:
                new[declared.name] = found
    return dataclasses.replace(node, **new) if new else node


def _rewritten_value(value: Any, field: DataField | None, change: Rewriting) -> Any:
    """What ``change`` makes of a value, or of the values inside it."""
    found = change(value, field)
    if found is not value or isinstance(value, TYPES):
        return found
    if isinstance(value, tuple):
        items = tuple(_rewritten_value(item, field, change) for item in value)
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    if dataclasses.is_dataclass(value):
        return _rewritten_fields(value, change)
    return value
