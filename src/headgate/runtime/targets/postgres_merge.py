"""One batch into one table, inside a transaction: staged by a binary COPY, merged by key, and without the rows that the database refuses.

A row that a cast or a constraint refuses would fail the whole statement. So the merge runs behind a savepoint. If it fails, the bad rows are
found, by `pg_input_is_valid` for texts that are cast and otherwise by halving, marked in the staging table, and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
import pyarrow as pa
from pgpq import ArrowToPostgresBinaryEncoder
from psycopg import sql

from headgate.connectors.postgres import Connection, condition
from headgate.plan.target_definitions import DELETED, NESTED
from headgate.runtime.targets.kafka import BAD_ROW
from headgate.runtime.targets.postgres_children import STAGE, ChildRows
from headgate.runtime.targets.postgres_columns import identifier
from headgate.runtime.targets.table_rows import BAD, CHANGED, DELETE, HASH, OP, ROW, WRITE, StagedColumn, TableRows
from headgate.schema.names import ROOT, field_path

_LOOSELY_EQUAL = ("real", "double precision", "jsonb")
_VALUE_CLASSES = ("22", "23")  # of SQLSTATEs: data exceptions and violated constraints


class BadRow(Exception):
    """A row does not fit, and the write must not go on without it."""

    def __init__(self) -> None:
        super().__init__(BAD_ROW)


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that the database did not take: the hash of what was staged of it, the column as far as it is known, and the reason."""

    hash: int
    path: str
    expected: str
    reason: str


class Merge:
    """Stages rows and merges them. ``columns`` are the types that the table has; ``halts`` says that a refused row ends the batch.
    ``children`` write the tables of its records, whose rows are replaced with each row of the table."""

    def __init__(
        self,
        connection: Connection,
        rows: TableRows,
        columns: dict[str, str],
        *,
        halts: bool,
        children: Sequence[ChildRows] = (),
    ) -> None:
        self._connection = connection
        self._rows = rows
        self._columns = columns
        self._children = children
        self._halts = halts
        self._staged = 0
        self.refused: list[Refused] = []
        self._create_stage()

    @property
    def _table(self) -> sql.Identifier:
        return identifier(self._rows.table.table)

    @property
    def _key(self) -> tuple[str, ...]:
        return self._rows.table.key

    # Staging

    def _create_stage(self) -> None:
        columns = [sql.SQL("{} {}").format(sql.Identifier(s.name), sql.SQL(s.type)) for s in self._rows.every]
        own = sql.SQL("{} integer, {} bigint, {} bigint").format(*map(sql.Identifier, (OP, HASH, ROW)))
        self._connection.execute(
            sql.SQL("CREATE TEMP TABLE {} ({}) ON COMMIT DROP").format(
                sql.Identifier("hg_stage"), sql.SQL(", ").join([*columns, own])
            )
        )

    def stage(self, part: pa.Table) -> None:
        """Copy rows into the staging table. Those that do not fit stay behind, but for their keys."""
        if part.num_rows == 0:
            return
        rows = pa.array(range(self._staged, self._staged + part.num_rows), pa.int64())
        part = part.append_column(ROW, rows)
        self._staged += part.num_rows
        names = sql.SQL(", ").join(map(sql.Identifier, part.column_names))
        copy = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(STAGE, names)
        encoder = ArrowToPostgresBinaryEncoder(part.schema)
        with self._connection.cursor() as cursor, cursor.copy(copy) as stream:
            stream.write(encoder.write_header())
            for batch in part.to_batches(max_chunksize=10_000):
                stream.write(encoder.write_batch(batch))
            stream.write(encoder.finish())

    # Merging

    def run(self) -> int:
        """Merge what is staged. Returns how many rows were inserted or changed."""
        if self._staged == 0:
            return 0
        written = self._write_all()
        if self._rows.table.delta_updates:
            return written + self._append_deletions()
        if self._key:
            self._delete()
        return written

    def _write_all(self) -> int:
        try:
            return self._insert(sql.SQL("TRUE"))
        except psycopg.Error as error:
            if not _blames_a_row(error):
                raise
            self._set_aside(error)
        return self._insert(sql.SQL("TRUE"))

    def _insert(self, condition_: sql.Composable) -> int:
        """Insert or update the rows of the staging table that meet a condition, behind a savepoint. Sorted by key: an update of 100,000 rows
        takes half the time."""
        values = {s.name: s.merged(self._columns.get(s.name, "")) for s in self._rows.staged}
        if self._rows.table.delta_updates:
            values[DELETED] = sql.SQL("FALSE")
        query = sql.SQL("INSERT INTO {} AS hg ({}) SELECT {} FROM {} AS s WHERE {} = {} AND ({}){}{}").format(
            self._table,
            sql.SQL(", ").join(map(sql.Identifier, values)),
            sql.SQL(", ").join(values.values()),
            STAGE,
            sql.Identifier("s", OP),
            sql.Literal(WRITE),
            condition_,
            self._order(),
            self._on_conflict(),
        )
        with self._connection.transaction():
            written = self._connection.execute(query).rowcount
            for child in self._children:
                child.replace_rows(self._connection, self._key_values("s"), condition_)
            return written

    def _key_values(self, stage: str) -> dict[str, sql.Composable]:
        by_name = {s.name: s for s in self._rows.staged}
        return {name: by_name[name].merged(self._columns.get(name, ""), stage) for name in self._key}

    def _order(self) -> sql.Composable:
        if not self._key:
            return sql.SQL(" ORDER BY {}").format(sql.Identifier("s", ROW))
        return sql.SQL(" ORDER BY {}").format(sql.SQL(", ").join(sql.Identifier("s", name) for name in self._key))

    def _on_conflict(self) -> sql.Composable:
        """A row that is there as it is is not written: it would cost a new version of the row."""
        if not self._rows.table.merges:
            return sql.SQL("")
        key = sql.SQL(", ").join(map(sql.Identifier, self._key))
        others = [s for s in self._rows.staged if s.name not in self._key]
        if not others:
            return sql.SQL(" ON CONFLICT ({}) DO NOTHING").format(key)
        sets = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(sql.Identifier(s.name)) for s in others)
        differs = sql.SQL(" OR ").join(_differs(s) for s in others)
        return sql.SQL(" ON CONFLICT ({}) DO UPDATE SET {} WHERE {}").format(key, sets, differs)

    def _delete(self) -> None:
        """Delete the keys that are gone."""
        query = sql.SQL("DELETE FROM {} AS hg USING {} AS s WHERE {} AND {}")
        self._connection.execute(query.format(self._table, STAGE, self._same_key("s", "hg"), self._is_gone()))

    def _append_deletions(self) -> int:
        """Write a change for each key that is gone, with nothing but the key. Returns how many."""
        values = self._key_values("s")
        query = sql.SQL("INSERT INTO {} ({}) SELECT {}, TRUE FROM {} AS s WHERE {}{}").format(
            self._table,
            sql.SQL(", ").join(map(sql.Identifier, (*values, DELETED))),
            sql.SQL(", ").join(values.values()),
            STAGE,
            self._is_gone(),
            self._order(),
        )
        return self._connection.execute(query).rowcount

    def _is_gone(self) -> sql.Composable:
        """Whether a staged row `s` says that its key is gone: it says so, or its key was changed and has no row among those that were
        staged."""
        gone = sql.SQL("{} = {}").format(sql.Identifier("s", OP), sql.Literal(DELETE))
        left = sql.SQL("{} = {} AND NOT EXISTS (SELECT FROM {} AS r WHERE {} IN ({}, {}) AND {})").format(
            sql.Identifier("s", OP), sql.Literal(CHANGED), STAGE, sql.Identifier("r", OP), sql.Literal(WRITE),
            sql.Literal(BAD), self._same_staged_key(),
        )  # fmt: skip
        return sql.SQL("({} OR ({}))").format(gone, left)

    def _same_key(self, stage: str, table: str) -> sql.Composable:
        return sql.SQL(" AND ").join(
            sql.SQL("{} = {}").format(sql.Identifier(table, name), value)
            for name, value in self._key_values(stage).items()
        )

    def _same_staged_key(self) -> sql.Composable:
        pairs = [(sql.Identifier("r", name), sql.Identifier("s", name)) for name in self._key]
        return sql.SQL(" AND ").join(sql.SQL("{} = {}").format(*pair) for pair in pairs)

    # Steps that bring a table in step

    def delete_all(self) -> None:
        self._connection.execute(sql.SQL("DELETE FROM {}").format(self._table))

    def delete_unstaged(self) -> int:
        """Delete the keys of the table that are not staged at all. Returns how many."""
        query = sql.SQL("DELETE FROM {} AS hg WHERE NOT EXISTS (SELECT FROM {} AS s WHERE {})")
        return self._connection.execute(query.format(self._table, STAGE, self._same_key("s", "hg"))).rowcount

    def count_unstaged(self) -> int:
        query = sql.SQL("SELECT count(*) FROM {} AS hg WHERE NOT EXISTS (SELECT FROM {} AS s WHERE {})")
        found = self._connection.execute(query.format(self._table, STAGE, self._same_key("s", "hg"))).fetchone()
        return 0 if found is None else int(found[0])

    # Rows that the database refuses

    def _set_aside(self, error: psycopg.Error) -> None:
        """Mark the rows that the database refuses. Under HALT the first of them is enough."""
        for one in self._rows.every:
            if one.is_checked_text:
                self._mark_invalid(one)
        if self._halts and self.refused:
            raise BadRow from error
        self._bisect(0, self._staged)
        if not self.refused:  # together they fail, and none of them alone
            raise error
        if self._halts:
            raise BadRow from error

    def _mark_invalid(self, one: StagedColumn) -> None:
        """Mark the rows whose text is not one of the column's type."""
        name = sql.Identifier(one.name)
        query = sql.SQL(
            "UPDATE {} SET {} = {} WHERE {} = {} AND NOT pg_input_is_valid({}, {}) RETURNING {}"
        ).format(
            STAGE, sql.Identifier(OP), sql.Literal(BAD), sql.Identifier(OP), sql.Literal(WRITE), name,
            sql.Literal(one.column.postgres), sql.Identifier(HASH),
        )  # fmt: skip
        for (hash_,) in self._connection.execute(query).fetchall():
            reason = "PostgreSQL does not take it as a value of this type"
            self.refused.append(Refused(hash_, field_path(ROOT, _shown(one)), one.column.postgres, reason))

    def _bisect(self, low: int, high: int) -> None:
        """Find the rows of a range that fail, by inserting halves of it and taking them back. A row that fails takes about twice the
        logarithm of the number of rows, so that each must be found without reading all of them."""
        self._connection.execute(sql.SQL("CREATE INDEX ON {} ({})").format(STAGE, sql.Identifier(ROW)))
        self._connection.execute(sql.SQL("ANALYZE {}").format(STAGE))
        waiting = [(low, high)]
        while waiting:
            start, end = waiting.pop()
            error = self._failure(start, end)
            if error is None:
                continue
            if end - start > 1:
                middle = (start + end) // 2
                waiting += [(middle, end), (start, middle)]
                continue
            self._mark(start, error)
            if self._halts:
                return

    def _failure(self, start: int, end: int) -> psycopg.Error | None:
        """What inserting a range of rows raises. Nothing of it stays."""
        row = sql.Identifier("s", ROW)
        range_ = sql.SQL("{} >= {} AND {} < {}").format(row, sql.Literal(start), row, sql.Literal(end))
        try:
            with self._connection.transaction(force_rollback=True):
                self._insert(range_)
        except psycopg.Error as error:
            if not _blames_a_row(error):
                raise
            return error
        return None

    def _mark(self, row: int, error: psycopg.Error) -> None:
        query = sql.SQL("UPDATE {} SET {} = {} WHERE {} = {} RETURNING {}").format(
            STAGE, sql.Identifier(OP), sql.Literal(BAD), sql.Identifier(ROW), sql.Literal(row), sql.Identifier(HASH)
        )
        found = self._connection.execute(query).fetchone()
        assert found is not None
        self.refused.append(Refused(found[0], *_told(error, self._rows.staged)))


def _shown(one: StagedColumn) -> str:
    """The name of a column, or of the record that is staged under a name of our own."""
    return one.column.field.name if one.name.startswith(NESTED) else one.name


def _blames_a_row(error: psycopg.Error) -> bool:
    return error.sqlstate is not None and error.sqlstate[:2] in _VALUE_CLASSES


def _told(error: psycopg.Error, staged: Sequence[StagedColumn]) -> tuple[str, str, str]:
    """Path, expected type and reason, without the words of the server, which may hold the value."""
    types = {one.name: one.column.postgres for one in staged}
    column, constraint = error.diag.column_name, error.diag.constraint_name
    path = ROOT if column is None else field_path(ROOT, column)
    expected = types.get(column or "", "a row of the table")
    if constraint is not None:
        return path, f"constraint {constraint}", f"it violates the constraint {constraint}"
    return path, expected, f"PostgreSQL refuses it: {condition(error)}"


def _differs(one: StagedColumn) -> sql.Composable:
    """Whether the value changes. Some native types have no equality, so they are compared as text; so are types in which values that are
    written differently are equal, as 0.0 and -0.0, or 1.10 and 1.1 in json."""
    by_text = one.column.field.native is not None or one.column.postgres.removesuffix("[]") in _LOOSELY_EQUAL
    cast = sql.SQL("::text" if by_text else "")
    name = sql.Identifier(one.name)
    return sql.SQL("hg.{0}{1} IS DISTINCT FROM excluded.{0}{1}").format(name, cast)
