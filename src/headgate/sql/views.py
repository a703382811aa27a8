"""CREATE VIEW and CREATE MATERIALIZED VIEW."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.errors import Span
from headgate.sql.options import (
    CHANGE_OPTIONS,
    CONFIRM,
    ON_ERROR,
    Option,
    OptionTable,
    items,
    one_option,
    print_option,
    print_with_options,
    unique,
    with_options,
)
from headgate.sql.queries import read_query, take_emit_changes
from headgate.sql.statement import (
    ObjectName,
    Query,
    Statement,
    block,
    clauses,
    if_not_exists,
    object_name,
    optional_columns,
    print_identifier,
    print_identifiers,
    print_if_not_exists,
    print_name,
    words,
)
from headgate.text.cursor import Cursor, Identifier


@dataclass(frozen=True, slots=True)
class CreateView(Statement):
    name: ObjectName
    query: Query
    columns: tuple[Identifier, ...] = ()
    with_options: tuple[Option, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False

    def sql(self) -> str:
        create = "CREATE OR REPLACE VIEW" if self.or_replace else "CREATE VIEW"
        columns = print_identifiers(self.columns) if self.columns else ""
        head = words(create, print_if_not_exists(self.if_not_exists), print_name(self.name), columns)
        return clauses(words(head, print_with_options(self.with_options), "AS"), self.query.text)


@dataclass(frozen=True, slots=True)
class CreateMaterializedView(Statement):
    name: ObjectName
    query: Query
    columns: tuple[Identifier, ...] = ()
    assert_not_null: tuple[Identifier, ...] = ()
    with_options: tuple[Option, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False

    def sql(self) -> str:
        create = "CREATE OR REPLACE MATERIALIZED VIEW" if self.or_replace else "CREATE MATERIALIZED VIEW"
        columns = print_identifiers(self.columns) if self.columns else ""
        head = words(create, print_if_not_exists(self.if_not_exists), print_name(self.name), columns)
        given = [f"ASSERT NOT NULL {print_identifier(column)}" for column in self.assert_not_null]
        given += [print_option(item) for item in self.with_options]
        if not given:
            return clauses(f"{head} AS", self.query.text)
        return clauses(head, f"WITH {block(given)} AS", self.query.text)


VIEW_OPTIONS = OptionTable("the materialized view", (ON_ERROR, CONFIRM), also=("ASSERT NOT NULL",))

TABLES = {"plain view option": VIEW_OPTIONS}
RULES = {"view option": "{ASSERT NOT NULL <column> | <plain view option>}"}
SYNOPSES = {
    "CREATE VIEW": (
        "CREATE {VIEW [IF NOT EXISTS] | OR REPLACE VIEW} <name> [(<column> [, ...])] [WITH (<change option>)]"
        " AS <query> [EMIT CHANGES]"
    ),
    "CREATE MATERIALIZED VIEW": (
        "CREATE {MATERIALIZED VIEW [IF NOT EXISTS] | OR REPLACE MATERIALIZED VIEW} <name> [(<column> [, ...])]"
        " [WITH (<view option> [, ...])] AS <query> [EMIT CHANGES]"
    ),
    "ALTER VIEW": "ALTER VIEW [IF EXISTS] <name> RENAME TO <new name>",
    "ALTER MATERIALIZED VIEW": "ALTER MATERIALIZED VIEW [IF EXISTS] <name> {<task state> | RENAME TO <new name>}",
}


def create_view(cursor: Cursor, or_replace: bool) -> CreateView:
    exists = if_not_exists(cursor, or_replace)
    name = object_name(cursor)
    columns = optional_columns(cursor)
    options = with_options(cursor, CHANGE_OPTIONS)
    cursor.expect("AS")
    query = read_query(cursor)
    take_emit_changes(cursor)
    return CreateView(name, query, columns, options, or_replace, exists)


def create_materialized_view(cursor: Cursor, or_replace: bool) -> CreateMaterializedView:
    exists = if_not_exists(cursor, or_replace)
    name = object_name(cursor)
    columns = optional_columns(cursor)
    asserted, options = _view_options(cursor) if cursor.take("WITH") else ((), ())
    cursor.expect("AS")
    query = read_query(cursor)
    take_emit_changes(cursor)
    return CreateMaterializedView(name, query, columns, asserted, options, or_replace, exists)


def _view_options(cursor: Cursor) -> tuple[tuple[Identifier, ...], tuple[Option, ...]]:
    """Read ``ASSERT NOT NULL c`` any number of times. After the first, further column names may follow without the words."""
    asserted: list[Identifier] = []
    found: list[tuple[Span, Option]] = []
    for _ in items(cursor):
        start = cursor.token.span
        if cursor.take("ASSERT NOT NULL"):
            asserted.extend(cursor.identifiers() if cursor.at("(") else (cursor.identifier(),))
        elif asserted and not found and _at_lone_column(cursor):
            asserted.append(cursor.identifier())
        else:
            found.append((start, one_option(cursor, VIEW_OPTIONS)))
    return tuple(asserted), unique(VIEW_OPTIONS, found)


def _at_lone_column(cursor: Cursor) -> bool:
    is_option = VIEW_OPTIONS.rule((cursor.token.word,)) is not None
    return cursor.at_name() and not is_option and cursor.tokens[cursor.index + 1].word in (",", ")")
