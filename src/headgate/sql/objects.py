"""Statements for objects of every kind: COMMENT, RENAME, PAUSE, RESUME and DROP; and CREATE DATABASE, SCHEMA and
TYPE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.schema.render import print_type
from headgate.schema.types import Text, Type
from headgate.sql import statement as s
from headgate.sql.errors import MapKeyNotText
from headgate.sql.options import Options, option, with_options
from headgate.text.cursor import Cursor, Identifier


@dataclass(frozen=True, slots=True)
class RenameObject(s.Alter):
    """ALTER … RENAME TO. The object stays in its schema."""

    new_name: Identifier

    def sql(self) -> str:
        return f"{self.head()} RENAME TO {s.print_identifier(self.new_name)}"


@dataclass(frozen=True, slots=True)
class ChangeTaskState(s.Alter):
    """PAUSE (also written DISABLE) or RESUME (ENABLE) of a task, or of one stream of a capture."""

    action: Literal["PAUSE", "RESUME"]
    binding: str | None = None

    def sql(self) -> str:
        binding = f"BINDING {s.print_string(self.binding)}" if self.binding is not None else ""
        return s.words(self.head(), self.action, binding)


@dataclass(frozen=True, slots=True)
class CommentOn(s.Statement):
    """Set the comment of an object or, without a kind, of a column or of a field of a record in it.

    A comment of None (``IS NULL``) removes the comment and suppresses an imported one.
    """

    words = "COMMENT"
    kind: s.Kind | None
    name: s.ObjectName
    comment: str | None
    fields: tuple[Identifier, ...] = ()

    def target(self) -> str:
        """The statement up to IS."""
        name = s.print_column(self.name, self.fields)
        return f"COMMENT ON {self.kind.words if self.kind else 'COLUMN'} {name}"

    def sql(self) -> str:
        comment = "NULL" if self.comment is None else s.print_string(self.comment)
        return f"{self.target()} IS {comment}"


@dataclass(frozen=True, slots=True)
class CreateDatabase(s.Create):
    """CREATE DATABASE."""

    kind = s.Kind.DATABASE

    def sql(self) -> str:
        return self.head()


@dataclass(frozen=True, slots=True)
class CreateSchema(s.Create):
    """CREATE SCHEMA."""

    kind = s.Kind.SCHEMA

    def sql(self) -> str:
        return self.head()


@dataclass(frozen=True, slots=True)
class TypeField:
    """A field of a record type."""

    name: Identifier
    type: Type
    nullable: bool = True

    def sql(self) -> str:
        return s.words(s.print_identifier(self.name), print_full_type(self.type), "" if self.nullable else "NOT NULL")


@dataclass(frozen=True, slots=True)
class RecordBody:
    """A record."""

    fields: tuple[TypeField, ...]

    def sql(self) -> str:
        return s.block([field.sql() for field in self.fields])


@dataclass(frozen=True, slots=True)
class ListBody:
    """A list."""

    element: Type

    def sql(self) -> str:
        return f"LIST (ELEMENT TYPE = {print_full_type(self.element)})"


@dataclass(frozen=True, slots=True)
class MapBody:
    """A map. Its keys are always text."""

    value: Type

    def sql(self) -> str:
        return f"MAP (VALUE TYPE = {print_full_type(self.value)})"


@dataclass(frozen=True, slots=True)
class OtherBody:
    """Another name for a type that is written out: an enum, a decimal, an array."""

    type: Type

    def sql(self) -> str:
        return print_full_type(self.type)


TypeBody: TypeAlias = RecordBody | ListBody | MapBody | OtherBody


@dataclass(frozen=True, slots=True)
class CreateType(s.Create):
    """CREATE TYPE … AS body."""

    kind = s.Kind.TYPE
    body: TypeBody

    def sql(self) -> str:
        return s.words(self.head(), "AS", self.body.sql())


@dataclass(frozen=True, slots=True)
class DropOptions(Options, owner="the statement"):
    """WITH (DROP TARGET) also drops the table or index of a materialization."""

    drop_target: bool = option(False)


@dataclass(frozen=True, slots=True)
class DropObject(s.Statement):
    """``delete_topic`` is for streams and tables, ``drop_target`` for materializations."""

    kind: s.Kind
    name: s.ObjectName
    if_exists: bool = False
    cascade: bool = False
    delete_topic: bool = False
    drop_target: bool = False

    @property
    def words(self) -> str:
        return f"DROP {self.kind.words}"

    def sql(self) -> str:
        return s.words(
            self.words,
            s.print_if_exists(self.if_exists),
            s.print_name(self.name),
            "DELETE TOPIC" if self.delete_topic else "",
            "CASCADE" if self.cascade else "",
            "WITH (DROP TARGET = TRUE)" if self.drop_target else "",
        )


def longest_first(words: tuple[str, ...]) -> tuple[str, ...]:
    """Sort SINK POLICY before SINK, because a phrase must be tried before its own beginning."""
    return tuple(sorted(words, key=lambda phrase: -phrase.count(" ")))


# By its keywords.
_KINDS = {kind.words: kind for kind in s.Kind}
_KIND_PHRASES = longest_first(tuple(_KINDS))


def kind(cursor: Cursor) -> s.Kind:
    """Read the kind that must come next. In ``SINK policy`` without another name, policy is the name of the sink."""
    if cursor.at("SINK", "POLICY") and not cursor.at_name(2):
        cursor.step()
        return s.Kind.SINK
    found = cursor.choose(*_KIND_PHRASES)
    if found is None:
        raise cursor.unexpected()
    return _KINDS[found]


def kind_before_name(cursor: Cursor) -> s.Kind | None:
    """Read a kind if a name follows it. Otherwise the word is itself a name, as in ``DESCRIBE source``."""
    for phrase in _KIND_PHRASES:
        words = phrase.split(" ")
        if cursor.at(*words) and cursor.at_name(len(words)):
            cursor.index += len(words)
            return _KINDS[phrase]
    return None


@dataclass(frozen=True, slots=True)
class Target:
    """The object that an ALTER statement changes."""

    kind: s.Kind
    name: s.ObjectName
    if_exists: bool


# Reads one action of ALTER. Returns None if another action comes next.
Action = Callable[[Cursor, Target], s.Statement | None]

# DISABLE and ENABLE mean the same as PAUSE and RESUME.
_STATES: dict[str, Literal["PAUSE", "RESUME"]] = {
    "PAUSE": "PAUSE",
    "DISABLE": "PAUSE",
    "RESUME": "RESUME",
    "ENABLE": "RESUME",
}


def alter(cursor: Cursor, kind: s.Kind, actions: tuple[Action, ...]) -> s.Statement:
    """Read what follows ``ALTER <kind>``: the name and one of the actions."""
    exists = cursor.take("IF EXISTS")
    target = Target(kind, s.object_name(cursor), exists)
    for action in actions:
        found = action(cursor, target)
        if found is not None:
            return found
    raise cursor.unexpected()


def rename(cursor: Cursor, target: Target) -> RenameObject | None:
    """Read RENAME TO and the new name."""
    if not cursor.take("RENAME TO"):
        return None
    return RenameObject(target.kind, target.name, cursor.identifier(), if_exists=target.if_exists)


def change_state(cursor: Cursor, target: Target) -> ChangeTaskState | None:
    """Read PAUSE or RESUME. Only a capture has bindings, which can be paused one by one."""
    word = cursor.choose(*_STATES)
    if word is None:
        return None
    binding = cursor.string() if target.kind is s.Kind.CAPTURE and cursor.take("BINDING") else None
    return ChangeTaskState(target.kind, target.name, _STATES[word], binding, if_exists=target.if_exists)


def comment_on(cursor: Cursor) -> CommentOn:
    """Read COMMENT ON. A column has no kind, because its relation may be of any."""
    cursor.expect("COMMENT ON")
    if cursor.take("COLUMN"):
        column, fields = s.column_path(cursor)
        return CommentOn(None, column, _comment(cursor), fields)
    kind_ = kind(cursor)
    name = s.object_name(cursor)
    return CommentOn(kind_, name, _comment(cursor))


def _comment(cursor: Cursor) -> str | None:
    """Read the text; None for NULL."""
    cursor.expect("IS")
    return None if cursor.take("NULL") else cursor.string()


def create_database(cursor: Cursor) -> CreateDatabase:
    exists = s.if_not_exists(cursor)
    return CreateDatabase(s.object_name(cursor, most=1), if_not_exists=exists)


def create_schema(cursor: Cursor) -> CreateSchema:
    exists = s.if_not_exists(cursor)
    return CreateSchema(s.object_name(cursor, most=2), if_not_exists=exists)


def drop(cursor: Cursor) -> DropObject:
    """Read DROP. DELETE TOPIC and CASCADE may come in either order."""
    cursor.expect("DROP")
    kind_ = kind(cursor)
    exists = cursor.take("IF EXISTS")
    name = s.object_name(cursor)
    owns_topic = kind_ in (s.Kind.STREAM, s.Kind.TABLE)
    delete_topic = owns_topic and cursor.take("DELETE TOPIC")
    cascade = cursor.take("CASCADE")
    delete_topic = delete_topic or (owns_topic and cursor.take("DELETE TOPIC"))
    options = with_options(cursor, DropOptions) if kind_ is s.Kind.MATERIALIZATION else DropOptions()
    return DropObject(kind_, name, exists, cascade, delete_topic, options.drop_target)


def create_type(cursor: Cursor) -> CreateType:
    exists = s.if_not_exists(cursor)
    name = s.object_name(cursor)
    cursor.expect("AS")
    return CreateType(name, _type_body(cursor), if_not_exists=exists)


def _type_body(cursor: Cursor) -> TypeBody:
    """Read a record, a list, a map or any type that is written out."""
    if cursor.at("("):
        return RecordBody(cursor.in_parentheses(_type_field))
    cursor.expecting("(")
    if cursor.at("LIST", "("):
        cursor.expect("LIST (")
        element = _named_type(cursor, "ELEMENT TYPE")
        cursor.expect(")")
        return ListBody(element)
    if cursor.at("MAP", "("):
        cursor.expect("MAP (")
        return _type_map(cursor)
    return OtherBody(s.column_type(cursor))


def _type_field(cursor: Cursor) -> TypeField:
    name = cursor.identifier()
    type_ = s.column_type(cursor)
    return TypeField(name, type_, not cursor.take("NOT NULL"))


def _type_map(cursor: Cursor) -> MapBody:
    """Read what follows ``MAP (``. The type of the keys may be written, but it must be text."""
    if cursor.at("KEY", "TYPE"):
        start = cursor.token.start
        if _named_type(cursor, "KEY TYPE") != Text():
            raise MapKeyNotText().at(cursor.span_from(start))
        cursor.expect(",")
    value = _named_type(cursor, "VALUE TYPE")
    cursor.expect(")")
    return MapBody(value)


def _named_type(cursor: Cursor, name: str) -> Type:
    cursor.expect(name)
    cursor.take("=")
    return s.column_type(cursor)


def print_full_type(node: Type) -> str:
    """Print a type with its names and docs, so that reading it gives the same type."""
    return print_type(node, full=True)
