"""Columns of a table in PostgreSQL: how they are written in DDL, and the ALTER TABLE that brings a table to its wanted columns."""

from __future__ import annotations

from collections.abc import Iterator

from psycopg import sql

from headgate.connectors.postgres import Connection, ExistingColumn
from headgate.plan.target_definitions import TableColumn, TableDefinition, TableName
from headgate.plan.widening import widening


def identifier(table: TableName) -> sql.Identifier:
    return sql.Identifier(table.schema, table.name)


def column_definition(column: TableColumn, *, nullable: bool) -> sql.Composable:
    """A column in DDL. Its type was checked by the planner, so that it can be nothing but a type."""
    type_ = sql.SQL(column.postgres + (" GENERATED ALWAYS AS IDENTITY" if column.numbered else ""))
    return sql.SQL("{} {}{}").format(sql.Identifier(column.name), type_, sql.SQL("" if nullable else " NOT NULL"))


class TableChanges:
    """The actions of ALTER TABLE that bring a table to its wanted columns. ``said`` describes them."""

    def __init__(
        self, connection: Connection, wanted: TableDefinition, types: dict[str, str], has_rows: bool, adopted: bool
    ) -> None:
        self._connection = connection
        self._wanted = wanted
        self._types = types
        self._has_rows = has_rows
        self._adopted = adopted
        self.impossible: list[str] = []
        self.rebuilt: list[str] = []
        self.said: list[str] = []

    def actions(self, known: dict[str, ExistingColumn]) -> Iterator[sql.Composable]:
        for column in self._wanted.columns:
            has = known.get(column.name)
            if has is None:
                yield self._add(column)
                continue
            yield from self._retype(column, has)
            kept = column.name not in self._wanted.key and column.name not in self.rebuilt
            if column.nullable and not has.nullable and kept:
                self.said.append(f"{column.name} may be null")
                yield sql.SQL("ALTER COLUMN {} DROP NOT NULL").format(sql.Identifier(column.name))
        names = {column.name for column in self._wanted.columns}
        for has in known.values():
            if has.name not in names and not has.nullable and not self._adopted:
                self.said.append(f"{has.name} is not written any more and may be null")
                yield sql.SQL("ALTER COLUMN {} DROP NOT NULL").format(sql.Identifier(has.name))

    def _add(self, column: TableColumn) -> sql.Composable:
        """A new column of a table with rows is nullable: nobody knows what its value in old rows is."""
        self.said.append(f"{column.name} {self._types[column.name]} was added")
        return sql.SQL("ADD COLUMN {}").format(column_definition(column, nullable=column.nullable or self._has_rows))

    def _retype(self, column: TableColumn, has: ExistingColumn) -> Iterator[sql.Composable]:
        new, name = self._types[column.name], sql.Identifier(column.name)
        if has.type == new or holds(has.type, new):
            return
        using = widening(has.type, new)
        if using is None and (has.type, new) == ("bigint", "double precision"):
            new, using = ("double precision", "{column}") if self._is_exact(column) else ("numeric", "{column}")
        if using is not None:
            self.said.append(f"{column.name} from {has.type} to {new}")
            expression = sql.SQL(using).format(column=name)
            yield sql.SQL("ALTER COLUMN {} TYPE {} USING {}").format(name, sql.SQL(new), expression)
        elif self._may_rebuild and column.name not in self._wanted.key:
            self.rebuilt.append(column.name)
            self.said.append(f"{column.name} from {has.type} to {new}, made anew")
            yield sql.SQL("DROP COLUMN {}").format(name)
            yield sql.SQL("ADD COLUMN {}").format(column_definition(column, nullable=True))
        else:
            self.impossible.append(f'"{column.name}" is {has.type} and would have to be {new}')

    @property
    def _may_rebuild(self) -> bool:
        """Whether a column may be made anew: a statement has asked for it, or ON INCOMPATIBLE SCHEMA CHANGE allows it."""
        return self._wanted.on_incompatible in (None, "BACKFILL") and not self._adopted

    def _is_exact(self, column: TableColumn) -> bool:
        """Whether every value of a bigint column is exact in a double. Otherwise the column becomes numeric. A double is compared
        by its text, because a cast to numeric keeps 15 digits."""
        query = sql.SQL("SELECT bool_and({0}::float8::text::numeric = {0}) FROM {1}")
        found = self._connection.execute(
            query.format(sql.Identifier(column.name), identifier(self._wanted.table))
        ).fetchone()
        return found is None or found[0] is not False


def holds(column: str, written: str) -> bool:
    """Whether a column of one type takes values of another one as they are: it was widened before, or is wider in a foreign table."""
    if (column, written) == ("numeric", "double precision"):
        return True
    return column not in ("jsonb", "text", "character varying") and widening(written, column) is not None
