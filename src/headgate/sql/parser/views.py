"""CREATE VIEW and CREATE MATERIALIZED VIEW."""

from __future__ import annotations

from headgate.errors import Span
from headgate.sql.ast.names import object_name
from headgate.sql.ast.values import Option
from headgate.sql.ast.views import CreateMaterializedView, CreateView
from headgate.sql.parser import body
from headgate.sql.parser.clauses import CHANGE_OPTIONS, CONFIRM, ON_ERROR, if_not_exists, optional_columns
from headgate.sql.parser.options import OptionTable, items, unique
from headgate.sql.parser.values import one_option, with_options
from headgate.text.cursor import Cursor, Identifier

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
    query = body.query(cursor)
    body.take_emit_changes(cursor)
    return CreateView(name, query, columns, options, or_replace, exists)


def create_materialized_view(cursor: Cursor, or_replace: bool) -> CreateMaterializedView:
    exists = if_not_exists(cursor, or_replace)
    name = object_name(cursor)
    columns = optional_columns(cursor)
    asserted, options = _view_options(cursor) if cursor.take("WITH") else ((), ())
    cursor.expect("AS")
    query = body.query(cursor)
    body.take_emit_changes(cursor)
    return CreateMaterializedView(name, query, columns, asserted, options, or_replace, exists)


def _view_options(cursor: Cursor) -> tuple[tuple[Identifier, ...], tuple[Option, ...]]:
    """``ASSERT NOT NULL c`` as often as needed; once said, the names of further columns may follow by themselves."""
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
