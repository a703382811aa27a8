"""Tables of materializations in PostgreSQL: whose they are, how they are made, and how they are widened.

The schema `headgate` of the database holds the ledgers of tasks and the list of tables that Headgate made. A table stays in the list
when its materialization is dropped, so that it can be written again without ADOPT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import psycopg
from psycopg import sql

from headgate.connectors.postgres import Connection, ExistingColumn, ExistingTable, describe_table
from headgate.plan.target_definitions import TableColumn, TableDefinition, TableName
from headgate.plan.widening import widening
from headgate.runtime.targets.table_errors import (
    ColumnsIncompatible,
    ForeignColumnRequired,
    NotATable,
    TableForeign,
    TableInUse,
    TableLacksKey,
    TableLocked,
    TableNotAllowed,
    TableSchemaMissing,
    TableTooWide,
    UnknownNativeType,
)

LINK = "headgate_parent"  # the foreign key of a child table
LOCK_TIMEOUT = "10s"  # readers wait behind an ALTER that waits for a lock, so it must not wait for long
_GUARD = 823_001_002  # of the advisory lock under which the schema `headgate` is made
_SETUP = """
CREATE SCHEMA IF NOT EXISTS headgate;
CREATE TABLE IF NOT EXISTS headgate.ledger (
  task text PRIMARY KEY, generation bigint NOT NULL, number bigint NOT NULL, epoch bigint NOT NULL, positions text,
  definition text NOT NULL);
CREATE TABLE IF NOT EXISTS headgate.tables (
  schema_name text, table_name text, task text, adopted boolean NOT NULL, PRIMARY KEY (schema_name, table_name));
COMMENT ON SCHEMA headgate IS 'Progress of the tasks of Headgate, and the tables that they write';
"""
_OWNER = "SELECT task, adopted FROM headgate.tables WHERE schema_name = %s AND table_name = %s"
_CLAIM = """
INSERT INTO headgate.tables VALUES (%s, %s, %s, %s) ON CONFLICT (schema_name, table_name) DO UPDATE SET task = excluded.task
"""
_RELEASE = """
UPDATE headgate.tables t SET task = NULL FROM headgate.tables o WHERE o.schema_name = t.schema_name
AND o.table_name = t.table_name AND t.schema_name = %s AND t.table_name = %s RETURNING o.task
"""

_RELEASE_CHILDREN = "UPDATE headgate.tables SET task = NULL WHERE task = %s RETURNING schema_name, table_name"
_FORGET = "DELETE FROM headgate.tables WHERE schema_name = %s AND table_name = %s"


@dataclass(frozen=True, slots=True)
class Owner:
    """Who writes a table that Headgate knows. ``task`` is the uuid of a task, None if its materialization was dropped."""

    task: str | None
    adopted: bool


def identifier(table: TableName) -> sql.Identifier:
    return sql.Identifier(table.schema, table.name)


def application(uuid: str) -> str:
    """The name under which a task connects."""
    return f"headgate:{uuid}"


def prepare(connection: Connection) -> None:
    """Make the schema `headgate`, if it is not there. Raises TableNotAllowed with the statement that an owner must run."""
    if _has_schema(connection):
        return
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_GUARD,))
            connection.execute(_SETUP)
    except psycopg.errors.InsufficientPrivilege as error:
        grant = sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(
            sql.Identifier(connection.info.dbname), sql.Identifier(connection.info.user)
        )
        raise TableNotAllowed(
            'create the schema "headgate", which holds the progress of tasks', grant.as_string(connection)
        ) from error


def _has_schema(connection: Connection) -> bool:
    found = connection.execute("SELECT to_regclass('headgate.ledger'), to_regclass('headgate.tables')").fetchone()
    return found is not None and None not in found


def owner(connection: Connection, table: TableName) -> Owner | None:
    """Who writes the table; None if Headgate does not know it."""
    found = connection.execute(_OWNER, (table.schema, table.name)).fetchone() if _has_schema(connection) else None
    return None if found is None else Owner(*found)


def check_table(connection: Connection, wanted: TableDefinition, *, new: bool) -> None:
    """Raise what would keep a task from writing the table and its child tables. Changes nothing. ``new`` is false if the task
    exists already."""
    for child in wanted.children:
        check_table(connection, child.definition(wanted), new=new)
    _check_types(connection, wanted)
    table = wanted.table
    _check_privileges(connection, table)
    existing = describe_table(connection, table.schema, table.name)
    if existing is None:
        return
    if new:
        _check_owner(wanted, existing, owner(connection, table), None)
    _check_columns(wanted, existing, foreign=_is_adopted(connection, wanted))


def _is_adopted(connection: Connection, wanted: TableDefinition) -> bool:
    known = owner(connection, wanted.table)
    return known is None or known.adopted


def _check_privileges(connection: Connection, table: TableName) -> None:
    found = connection.execute(
        "SELECT has_schema_privilege(oid, 'CREATE') AND has_schema_privilege(oid, 'USAGE') FROM pg_catalog.pg_namespace WHERE nspname = %s",
        (table.schema,),
    ).fetchone()
    if found is None:
        raise TableSchemaMissing(table.schema)
    if not found[0]:
        grant = sql.SQL("GRANT CREATE, USAGE ON SCHEMA {} TO {}").format(
            sql.Identifier(table.schema), sql.Identifier(connection.info.user)
        )
        raise TableNotAllowed(f'create tables in schema "{table.schema}"', grant.as_string(connection))
    if not _has_schema(connection):
        may = connection.execute("SELECT has_database_privilege(current_database(), 'CREATE')").fetchone()
        if may is not None and not may[0]:
            prepare(connection)  # raises with the statement to run


def _check_types(connection: Connection, wanted: TableDefinition) -> None:
    """Every native type must be known to the database. Its own names are compared later."""
    for column in wanted.columns:
        if column.field.native is None:
            continue
        try:
            found = connection.execute("SELECT to_regtype(%s)", (column.postgres,)).fetchone()
        except psycopg.Error:
            found = None
        if found is None or found[0] is None:
            raise UnknownNativeType(wanted.name, column.name, column.postgres)


def _check_owner(wanted: TableDefinition, existing: ExistingTable, known: Owner | None, uuid: str | None) -> None:
    table = str(wanted.table)
    if not existing.is_table:
        raise NotATable(table)
    # Without a key nobody knows which rows of an adopted table an earlier task wrote, and all would be written again.
    foreign = known is None or (known.adopted and not wanted.key)
    if foreign and not wanted.adopt:
        raise TableForeign(table, wanted.name)
    if known is not None and known.task not in (None, uuid) and not wanted.adopt:
        raise TableInUse(table, wanted.name)


def _check_columns(wanted: TableDefinition, existing: ExistingTable, *, foreign: bool) -> None:
    """What no migration can repair: the key, and columns of a foreign table that must be given."""
    if wanted.key and frozenset(wanted.key) not in existing.keys:
        raise TableLacksKey(wanted.name, str(wanted.table), wanted.key)
    names = {column.name for column in wanted.columns}
    required = [c.name for c in existing.columns if not c.nullable and not c.filled and c.name not in names]
    if foreign and required:
        raise ForeignColumnRequired(str(wanted.table), tuple(required))


# Making and changing a table


@dataclass(frozen=True, slots=True)
class Provisioned:
    """What `provision` found and did. ``columns`` are the types that the columns have, which may be wider than wanted. ``known`` says
    whether the table existed and was made by Headgate, so that it may hold rows of an earlier task. ``adopted`` says that it may
    hold rows of somebody else. ``children`` are the types of the columns of the child tables."""

    columns: dict[str, str]
    known: bool
    adopted: bool
    children: tuple[dict[str, str], ...] = ()


def provision(
    connection: Connection, wanted: TableDefinition, uuid: str, on_notice: Callable[[str], None] = lambda _: None
) -> Provisioned:
    """Make the table and its child tables as they are wanted, or change those that exist, in a transaction of its own."""
    prepare(connection)
    with _locking(wanted.table), connection.transaction():
        connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(LOCK_TIMEOUT))
        children = [child.definition(wanted) for child in wanted.children]
        _unlink(connection, wanted, children)
        made = _provision(connection, wanted, uuid, on_notice)
        held = [_provision(connection, child, uuid, on_notice, child=True).columns for child in children]
        for child in children:
            _link(connection, wanted, child)
    return replace(made, children=tuple(held))


def _provision(
    connection: Connection, wanted: TableDefinition, uuid: str, on_notice: Callable[[str], None], *, child: bool = False
) -> Provisioned:
    types = _database_types(connection, wanted)
    existing = describe_table(connection, wanted.table.schema, wanted.table.name)
    known = owner(connection, wanted.table)
    rebuilt: tuple[str, ...] = ()
    if existing is None:
        _create(connection, wanted)
        adopted = False
        on_notice(f"Table {wanted.table} was created with {len(wanted.columns)} columns.")
    else:
        _check_owner(wanted, existing, known, uuid)
        adopted = known is None or known.adopted
        rebuilt = _migrate(connection, wanted, existing, types, adopted, on_notice)
    # A table that lacks rows: the task must not go on as if it had them. A child table that is new has none of old rows.
    if rebuilt or (existing is None and not (child and known is None)):
        connection.execute("UPDATE headgate.ledger SET positions = NULL WHERE task = %s", (uuid,))
    connection.execute(_CLAIM, (wanted.table.schema, wanted.table.name, uuid, adopted))
    now = describe_table(connection, wanted.table.schema, wanted.table.name)
    assert now is not None
    held = {column.name: column.type for column in now.columns}
    return Provisioned(held, existing is not None and not adopted, adopted)


def _unlink(connection: Connection, wanted: TableDefinition, children: Sequence[TableDefinition]) -> None:
    """Take the foreign keys away while the type of a key column changes: both sides must change."""
    existing = describe_table(connection, wanted.table.schema, wanted.table.name) if children else None
    if existing is None:
        return
    types = _database_types(connection, wanted)
    if all(
        types.get(column.name, column.type) == column.type for column in existing.columns if column.name in wanted.key
    ):
        return
    for child in children:
        query = sql.SQL("ALTER TABLE IF EXISTS {} DROP CONSTRAINT IF EXISTS {}")
        connection.execute(query.format(identifier(child.table), sql.Identifier(LINK)))


def _link(connection: Connection, wanted: TableDefinition, child: TableDefinition) -> None:
    """Let the rows of a child table point to their parents. They go with them."""
    found = connection.execute(
        "SELECT FROM pg_catalog.pg_constraint WHERE conname = %s AND conrelid = to_regclass(%s)",
        (LINK, identifier(child.table).as_string(connection)),
    ).fetchone()
    if found is None:
        query = sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({}) ON DELETE CASCADE")
        key = _names(wanted.key)
        connection.execute(
            query.format(identifier(child.table), sql.Identifier(LINK), key, identifier(wanted.table), key)
        )


@contextmanager
def _locking(table: TableName) -> Iterator[None]:
    try:
        yield
    except psycopg.errors.LockNotAvailable as error:
        raise TableLocked(str(table)) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise TableNotAllowed(
            f'change table "{table}"', f"ALTER TABLE {table} OWNER TO the user of the connection"
        ) from error


def _database_types(connection: Connection, wanted: TableDefinition) -> dict[str, str]:
    """The types of the wanted columns as the database prints them. A temporary table is the only way to ask that knows every type."""
    probe = sql.Identifier("pg_temp", "hg_probe")
    columns = sql.SQL(", ").join(_definition(c, nullable=True) for c in wanted.columns)
    try:
        connection.execute(
            sql.SQL("CREATE TEMP TABLE {} ({}) ON COMMIT DROP").format(sql.Identifier("hg_probe"), columns)
        )
    except psycopg.errors.TooManyColumns as error:
        raise TableTooWide(wanted.name, str(wanted.table)) from error
    found = connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute "
        "WHERE attrelid = 'pg_temp.hg_probe'::regclass AND attnum > 0"
    ).fetchall()
    connection.execute(sql.SQL("DROP TABLE {}").format(probe))
    return dict(found)


def _definition(column: TableColumn, *, nullable: bool) -> sql.Composable:
    """A column in DDL. Its type was checked by the planner, so that it can be nothing but a type."""
    type_ = sql.SQL(column.postgres)
    return sql.SQL("{} {}{}").format(sql.Identifier(column.name), type_, sql.SQL("" if nullable else " NOT NULL"))


def _create(connection: Connection, wanted: TableDefinition) -> None:
    parts = [_definition(column, nullable=column.nullable) for column in wanted.columns]
    if wanted.key:
        parts.append(sql.SQL("PRIMARY KEY ({})").format(_names(wanted.key)))
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(identifier(wanted.table), sql.SQL(", ").join(parts)))
    _comment(connection, wanted, ())
    if wanted.doc is not None:
        _comment_on_table(connection, wanted)


def _names(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _comment(connection: Connection, wanted: TableDefinition, existing: Sequence[ExistingColumn]) -> None:
    """Give columns the docs of their fields. A comment that somebody wrote stays if the field has no doc."""
    known = {column.name: column.doc for column in existing}
    for column in wanted.columns:
        if column.doc is not None and known.get(column.name) != column.doc:
            connection.execute(
                sql.SQL("COMMENT ON COLUMN {}.{} IS {}").format(
                    identifier(wanted.table), sql.Identifier(column.name), sql.Literal(column.doc.replace("\0", ""))
                )
            )


def _comment_on_table(connection: Connection, wanted: TableDefinition) -> None:
    text = sql.Literal((wanted.doc or "").replace("\0", ""))
    connection.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(identifier(wanted.table), text))


def _migrate(
    connection: Connection,
    wanted: TableDefinition,
    existing: ExistingTable,
    types: dict[str, str],
    adopted: bool,
    on_notice: Callable[[str], None],
) -> tuple[str, ...]:
    """Change a table where it stands, by one ALTER. Returns the columns that had to be made anew."""
    _check_columns(wanted, existing, foreign=adopted)
    has_rows = _has_rows(connection, wanted.table)
    changes = _Changes(connection, wanted, types, has_rows, adopted)
    actions = list(changes.actions({column.name: column for column in existing.columns}))
    if changes.impossible:
        disables = wanted.on_incompatible in ("DISABLE TASK", "DISABLE BINDING")
        raise ColumnsIncompatible(wanted.name, str(wanted.table), tuple(changes.impossible), disables)
    if actions:
        connection.execute(sql.SQL("ALTER TABLE {} {}").format(identifier(wanted.table), sql.SQL(", ").join(actions)))
        on_notice(f"Table {wanted.table} was changed: {'; '.join(changes.said)}.")
    _comment(connection, wanted, existing.columns)
    if wanted.doc is not None and wanted.doc != existing.doc and not adopted:
        _comment_on_table(connection, wanted)
    return tuple(changes.rebuilt)


def _has_rows(connection: Connection, table: TableName) -> bool:
    found = connection.execute(sql.SQL("SELECT EXISTS (SELECT FROM {})").format(identifier(table))).fetchone()
    return found is not None and bool(found[0])


class _Changes:
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
        return sql.SQL("ADD COLUMN {}").format(_definition(column, nullable=column.nullable or self._has_rows))

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
            yield sql.SQL("ADD COLUMN {}").format(_definition(column, nullable=True))
        else:
            self.impossible.append(f'"{column.name}" is {has.type} and would have to be {new}')

    @property
    def _may_rebuild(self) -> bool:
        """Whether a column may be made anew. The statement that narrows a field has asked for it, or is refused by the planner."""
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


# Giving a table up


def release(connection: Connection, table: TableName, *, drop: bool) -> None:
    """Give up a table: its task is ended, its ledger forgotten, and the table dropped if ``drop`` says so and Headgate made it."""
    if not _has_schema(connection):
        return
    with _locking(table), connection.transaction():
        connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(LOCK_TIMEOUT))
        known = owner(connection, table)
        released = connection.execute(_RELEASE, (table.schema, table.name)).fetchone()
        children: list[TableName] = []
        if released is not None and released[0] is not None:
            terminate_others(connection, released[0])
            connection.execute("DELETE FROM headgate.ledger WHERE task = %s", (released[0],))
            children = [TableName(*row) for row in connection.execute(_RELEASE_CHILDREN, (released[0],)).fetchall()]
        if drop and known is not None:
            for each in (*children, table):
                connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(identifier(each)))
                connection.execute(_FORGET, (each.schema, each.name))


def terminate_others(connection: Connection, uuid: str) -> None:
    """End the other connections of a task. One of an engine that was stopped may hold the lock of the ledger's row."""
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity "
        "WHERE application_name = %s AND pid <> pg_backend_pid() AND usename = current_user",
        (application(uuid),),
    )
