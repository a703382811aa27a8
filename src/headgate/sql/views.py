"""CREATE VIEW and CREATE MATERIALIZED VIEW."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from headgate.sql.options import (
    ChangeOptions,
    OnError,
    Options,
    find_rule,
    items,
    option,
    print_each_option,
    print_with_options,
    take_option,
    with_options,
)
from headgate.sql.queries import read_query, take_emit_changes
from headgate.sql.statement import (
    Create,
    Kind,
    Query,
    block,
    clauses,
    if_not_exists,
    object_name,
    optional_columns,
    print_identifier,
    print_identifiers,
    words,
)
from headgate.text.cursor import Cursor, Identifier


@dataclass(frozen=True, slots=True)
class MaterializedViewOptions(Options):
    owner: ClassVar[str] = "the materialized view"
    also: ClassVar[tuple[str, ...]] = ("ASSERT NOT NULL",)
    on_error: OnError = option("HALT", aliases=("ON INVALID",))
    confirm: bool = option(False)


@dataclass(frozen=True, slots=True)
class CreateView(Create):
    kind = Kind.VIEW
    query: Query
    columns: tuple[Identifier, ...] = ()
    with_options: ChangeOptions = ChangeOptions()

    def sql(self) -> str:
        columns = print_identifiers(self.columns) if self.columns else ""
        return clauses(words(self.head(), columns, print_with_options(self.with_options), "AS"), self.query.text)


@dataclass(frozen=True, slots=True)
class CreateMaterializedView(Create):
    kind = Kind.MATERIALIZED_VIEW
    query: Query
    columns: tuple[Identifier, ...] = ()
    assert_not_null: tuple[Identifier, ...] = ()
    with_options: MaterializedViewOptions = MaterializedViewOptions()

    def sql(self) -> str:
        head = words(self.head(), print_identifiers(self.columns) if self.columns else "")
        given = [f"ASSERT NOT NULL {print_identifier(column)}" for column in self.assert_not_null]
        given += print_each_option(self.with_options)
        if not given:
            return clauses(f"{head} AS", self.query.text)
        return clauses(head, f"WITH {block(given)} AS", self.query.text)


OPTION_LISTS: dict[str, type[Options]] = {"plain view option": MaterializedViewOptions}
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
    options = with_options(cursor, ChangeOptions)
    cursor.expect("AS")
    query = read_query(cursor)
    take_emit_changes(cursor)
    return CreateView(name, query, columns, options, or_replace=or_replace, if_not_exists=exists)


def create_materialized_view(cursor: Cursor, or_replace: bool) -> CreateMaterializedView:
    exists = if_not_exists(cursor, or_replace)
    name = object_name(cursor)
    columns = optional_columns(cursor)
    asserted, options = _view_options(cursor) if cursor.take("WITH") else ((), MaterializedViewOptions())
    cursor.expect("AS")
    query = read_query(cursor)
    take_emit_changes(cursor)
    return CreateMaterializedView(name, query, columns, asserted, options, or_replace=or_replace, if_not_exists=exists)


def _view_options(cursor: Cursor) -> tuple[tuple[Identifier, ...], MaterializedViewOptions]:
    """Read ``ASSERT NOT NULL c`` any number of times. After the first, further column names may follow without the words."""
    asserted: list[Identifier] = []
    found: dict[str, Any] = {}
    for _ in items(cursor):
        if cursor.take("ASSERT NOT NULL"):
            asserted.extend(cursor.identifiers() if cursor.at("(") else (cursor.identifier(),))
        elif asserted and not found and _at_lone_column(cursor):
            asserted.append(cursor.identifier())
        else:
            take_option(cursor, MaterializedViewOptions, found)
    return tuple(asserted), MaterializedViewOptions(**found)


def _at_lone_column(cursor: Cursor) -> bool:
    is_option = find_rule(MaterializedViewOptions, cursor.token.word) is not None
    return cursor.at_name() and not is_option and cursor.tokens[cursor.index + 1].word in (",", ")")
