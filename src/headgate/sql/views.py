"""Relations that are defined in SQL: CREATE VIEW and MATERIALIZED VIEW."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from headgate.sql import options as o, statement as s
from headgate.sql.queries import read_query, take_emit_changes
from headgate.text.cursor import Cursor, Identifier


@dataclass(frozen=True, slots=True)
class MaterializedViewOptions(o.Options, owner="the materialized view"):
    """Options of CREATE MATERIALIZED VIEW. CONFIRM is for a replacement that rewrites data."""

    also: ClassVar[tuple[str, ...]] = ("ASSERT NOT NULL",)
    on_error: o.OnError = o.option("HALT", aliases=("ON INVALID",))
    confirm: bool = o.option(False)


@dataclass(frozen=True, slots=True)
class CreateView(s.Create):
    """CREATE VIEW … AS query."""

    kind = s.Kind.VIEW
    query: s.Query
    columns: tuple[Identifier, ...] = ()
    with_options: o.ChangeOptions = o.ChangeOptions()

    def sql(self) -> str:
        columns = s.print_identifiers(self.columns) if self.columns else ""
        return s.clauses(s.words(self.head(), columns, o.print_with_options(self.with_options), "AS"), self.query.text)


@dataclass(frozen=True, slots=True)
class CreateMaterializedView(s.Create):
    """CREATE MATERIALIZED VIEW … AS query. ``assert_not_null`` are columns in which NULL is an error."""

    kind = s.Kind.MATERIALIZED_VIEW
    query: s.Query
    columns: tuple[Identifier, ...] = ()
    assert_not_null: tuple[Identifier, ...] = ()
    with_options: MaterializedViewOptions = MaterializedViewOptions()

    def sql(self) -> str:
        head = s.words(self.head(), s.print_identifiers(self.columns) if self.columns else "")
        given = [f"ASSERT NOT NULL {s.print_identifier(column)}" for column in self.assert_not_null]
        given += o.print_each_option(self.with_options)
        if not given:
            return s.clauses(f"{head} AS", self.query.text)
        return s.clauses(head, f"WITH {s.block(given)} AS", self.query.text)


def create_view(cursor: Cursor, or_replace: bool) -> CreateView:
    exists = s.if_not_exists(cursor, or_replace)
    name = s.object_name(cursor)
    columns = s.optional_columns(cursor)
    options = o.with_options(cursor, o.ChangeOptions)
    cursor.expect("AS")
    query = read_query(cursor)
    take_emit_changes(cursor)
    return CreateView(name, query, columns, options, or_replace=or_replace, if_not_exists=exists)


def create_materialized_view(cursor: Cursor, or_replace: bool) -> CreateMaterializedView:
    exists = s.if_not_exists(cursor, or_replace)
    name = s.object_name(cursor)
    columns = s.optional_columns(cursor)
    asserted, options = _view_options(cursor) if cursor.take("WITH") else ((), MaterializedViewOptions())
    cursor.expect("AS")
    query = read_query(cursor)
    take_emit_changes(cursor)
    return CreateMaterializedView(name, query, columns, asserted, options, or_replace=or_replace, if_not_exists=exists)


def _view_options(cursor: Cursor) -> tuple[tuple[Identifier, ...], MaterializedViewOptions]:
    """Read ``ASSERT NOT NULL c`` any number of times. After the first, further column names may follow without the
    words."""
    asserted: list[Identifier] = []
    found: dict[str, Any] = {}
    for _ in cursor.items():
        if cursor.take("ASSERT NOT NULL"):
            asserted.extend(cursor.identifiers() if cursor.at("(") else (cursor.identifier(),))
        elif asserted and not found and _at_lone_column(cursor):
            asserted.append(cursor.identifier())
        else:
            o.take_option(cursor, MaterializedViewOptions, found)
    return tuple(asserted), MaterializedViewOptions(**found)


def _at_lone_column(cursor: Cursor) -> bool:
    """Whether a name stands here that is no option and is followed by a comma or a parenthesis."""
    is_option = o.find_rule(MaterializedViewOptions, cursor.token.word) is not None
    return cursor.at_name() and not is_option and cursor.tokens[cursor.index + 1].word in (",", ")")
