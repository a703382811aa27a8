"""Statements for objects of every kind: COMMENT, RENAME, PAUSE, RESUME and DROP; and CREATE DATABASE and SCHEMA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from headgate.sql.options import Options, option, with_options
from headgate.sql.statement import (
    Alter,
    Create,
    Kind,
    ObjectName,
    Statement,
    column_name,
    if_not_exists,
    object_name,
    print_identifier,
    print_if_exists,
    print_name,
    print_string,
    words,
)
from headgate.text.cursor import Cursor, Identifier


@dataclass(frozen=True, slots=True)
class RenameObject(Alter):
    new_name: Identifier

    def sql(self) -> str:
        return f"{self.head()} RENAME TO {print_identifier(self.new_name)}"


@dataclass(frozen=True, slots=True)
class ChangeTaskState(Alter):
    """PAUSE (also written DISABLE) or RESUME (ENABLE) of a task, or of one stream of a capture."""

    action: Literal["PAUSE", "RESUME"]
    binding: str | None = None

    def sql(self) -> str:
        binding = f"BINDING {print_string(self.binding)}" if self.binding is not None else ""
        return words(self.head(), self.action, binding)


@dataclass(frozen=True, slots=True)
class CommentOn(Statement):
    """Set the comment of an object or, without a kind, of a column.

    A comment of None (``IS NULL``) removes the comment and suppresses an imported one.
    """

    words = "COMMENT"
    kind: Kind | None
    name: ObjectName
    comment: str | None

    def sql(self) -> str:
        comment = "NULL" if self.comment is None else print_string(self.comment)
        return f"COMMENT ON {self.kind.words if self.kind else 'COLUMN'} {print_name(self.name)} IS {comment}"


@dataclass(frozen=True, slots=True)
class CreateDatabase(Create):
    kind = Kind.DATABASE

    def sql(self) -> str:
        return self.head()


@dataclass(frozen=True, slots=True)
class CreateSchema(Create):
    kind = Kind.SCHEMA

    def sql(self) -> str:
        return self.head()


@dataclass(frozen=True, slots=True)
class DropObject(Statement):
    """``delete_topic`` is for streams and tables, ``drop_target`` for materializations."""

    kind: Kind
    name: ObjectName
    if_exists: bool = False
    cascade: bool = False
    delete_topic: bool = False
    drop_target: bool = False

    @property
    def words(self) -> str:
        return f"DROP {self.kind.words}"

    def sql(self) -> str:
        return words(
            self.words,
            print_if_exists(self.if_exists),
            print_name(self.name),
            "DELETE TOPIC" if self.delete_topic else "",
            "CASCADE" if self.cascade else "",
            "WITH (DROP TARGET = TRUE)" if self.drop_target else "",
        )


def longest_first(words: tuple[str, ...]) -> tuple[str, ...]:
    """Sort SINK POLICY before SINK, because a phrase must be tried before its own beginning."""
    return tuple(sorted(words, key=lambda phrase: -phrase.count(" ")))


_KINDS = {kind.words: kind for kind in Kind}
_KIND_PHRASES = longest_first(tuple(_KINDS))

RULES = {
    "kind": "{" + " | ".join(_KINDS) + "}",
    "task state": "{PAUSE | RESUME | DISABLE | ENABLE}",
}


def kind(cursor: Cursor) -> Kind:
    """Read the kind that must come next. In ``SINK policy`` without another name, policy is the name of the sink."""
    if cursor.at("SINK", "POLICY") and not cursor.at_name(2):
        cursor.step()
        return Kind.SINK
    found = cursor.choose(*_KIND_PHRASES)
    if found is None:
        raise cursor.unexpected()
    return _KINDS[found]


def kind_before_name(cursor: Cursor) -> Kind | None:
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

    kind: Kind
    name: ObjectName
    if_exists: bool


# Reads one action of ALTER. Returns None if another action comes next.
Action = Callable[[Cursor, Target], Statement | None]

_STATES: dict[str, Literal["PAUSE", "RESUME"]] = {
    "PAUSE": "PAUSE",
    "DISABLE": "PAUSE",
    "RESUME": "RESUME",
    "ENABLE": "RESUME",
}


def alter(cursor: Cursor, kind: Kind, actions: tuple[Action, ...]) -> Statement:
    """Read what follows ``ALTER <kind>``: the name and one of the actions."""
    exists = cursor.take("IF EXISTS")
    target = Target(kind, object_name(cursor), exists)
    for action in actions:
        found = action(cursor, target)
        if found is not None:
            return found
    raise cursor.unexpected()


def rename(cursor: Cursor, target: Target) -> RenameObject | None:
    if not cursor.take("RENAME TO"):
        return None
    return RenameObject(target.kind, target.name, cursor.identifier(), if_exists=target.if_exists)


def change_state(cursor: Cursor, target: Target) -> ChangeTaskState | None:
    word = cursor.choose(*_STATES)
    if word is None:
        return None
    binding = cursor.string() if target.kind is Kind.CAPTURE and cursor.take("BINDING") else None
    return ChangeTaskState(target.kind, target.name, _STATES[word], binding, if_exists=target.if_exists)


SYNOPSES = {
    "CREATE DATABASE": "CREATE DATABASE [IF NOT EXISTS] <database>",
    "CREATE SCHEMA": "CREATE SCHEMA [IF NOT EXISTS] <schema>",
    "ALTER DATABASE": "ALTER DATABASE [IF EXISTS] <database> RENAME TO <new name>",
    "ALTER SCHEMA": "ALTER SCHEMA [IF EXISTS] <schema> RENAME TO <new name>",
    "COMMENT ON": "COMMENT ON {COLUMN <name>.<column> | <kind> <name>} IS {<string> | NULL}",
    "DROP": (
        "DROP {<kind> [IF EXISTS] <name> [CASCADE] | {STREAM | TABLE} [IF EXISTS] <name> [DELETE TOPIC] [CASCADE]"
        " | MATERIALIZATION [IF EXISTS] <name> [CASCADE] [WITH (<drop option>)]}"
    ),
}


def comment_on(cursor: Cursor) -> CommentOn:
    cursor.expect("COMMENT ON")
    if cursor.take("COLUMN"):
        column = column_name(cursor)
        return CommentOn(None, column, _comment(cursor))
    kind_ = kind(cursor)
    name = object_name(cursor)
    return CommentOn(kind_, name, _comment(cursor))


def _comment(cursor: Cursor) -> str | None:
    cursor.expect("IS")
    return None if cursor.take("NULL") else cursor.string()


def create_database(cursor: Cursor) -> CreateDatabase:
    exists = if_not_exists(cursor)
    return CreateDatabase(object_name(cursor, most=1), if_not_exists=exists)


def create_schema(cursor: Cursor) -> CreateSchema:
    exists = if_not_exists(cursor)
    return CreateSchema(object_name(cursor, most=2), if_not_exists=exists)


@dataclass(frozen=True, slots=True)
class DropOptions(Options):
    owner: ClassVar[str] = "the statement"
    drop_target: bool = option(False)


OPTION_LISTS: dict[str, type[Options]] = {"drop option": DropOptions}


def drop(cursor: Cursor) -> DropObject:
    cursor.expect("DROP")
    kind_ = kind(cursor)
    exists = cursor.take("IF EXISTS")
    name = object_name(cursor)
    owns_topic = kind_ in (Kind.STREAM, Kind.TABLE)
    delete_topic = owns_topic and cursor.take("DELETE TOPIC")
    cascade = cursor.take("CASCADE")
    delete_topic = delete_topic or (owns_topic and cursor.take("DELETE TOPIC"))
    options = with_options(cursor, DropOptions) if kind_ is Kind.MATERIALIZATION else DropOptions()
    return DropObject(kind_, name, exists, cascade, delete_topic, options.drop_target)
