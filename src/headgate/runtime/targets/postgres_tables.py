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
from headgate.plan.target_definitions import SEQUENCE, TableDefinition, TableName
from headgate.runtime.targets.errors import (
    ColumnsIncompatible,
    ForeignColumnRequired,
    LinkKeepsRows,
    NotATable,
    TableForeign,
    TableHasKey,
    TableInUse,
    TableLacksKey,
    TableLocked,
    TableNotAllowed,
    TableSchemaMissing,
    TableTooWide,
    UnknownNativeType,
)
from headgate.runtime.targets.postgres_columns import TableChanges, column_definition, identifier

LINK = "headgate_parent"  # the foreign key of a child table
LOCK_TIMEOUT = "10s"  # readers wait behind an ALTER that waits for a lock, so it must not wait for long
MOST_COLUMNS = 1600  # of any table
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
_RELEASE = "UPDATE headgate.tables SET task = NULL WHERE task = %s RETURNING schema_name, table_name"
_STRICT_LINKS = """
SELECT k.conname::text FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
WHERE k.contype = 'f' AND k.confrelid = %s AND c.relname = ANY (%s) AND k.confdeltype <> 'c' ORDER BY 1
"""
_FORGET = "DELETE FROM headgate.tables WHERE schema_name = %s AND table_name = %s"


@dataclass(frozen=True, slots=True)
class Owner:
    """Who writes a table that Headgate knows. ``task`` is the uuid of a task, None if its materialization was dropped."""

    task: str | None
    adopted: bool


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


def hold(connection: Connection, table: TableName, uuid: str, name: str) -> None:
    """Keep the table the task's own until the transaction ends. Raises TableInUse if another task has taken it over."""
    found = connection.execute(f"{_OWNER} FOR SHARE", (table.schema, table.name)).fetchone()
    if found is not None and found[0] not in (None, uuid):
        raise TableInUse(str(table), name)


def check_table(connection: Connection, wanted: TableDefinition, *, new: bool) -> None:
    """Raise what would keep a task from writing the table and its child tables. Changes nothing. ``new`` is false if the task
    exists already."""
    for child in wanted.children:
        check_table(connection, child.definition(wanted), new=new)
    wanted = wanted.as_made
    if len(wanted.columns) > MOST_COLUMNS:
        raise TableTooWide(wanted.name, str(wanted.table))
    _check_types(connection, wanted)
    table = wanted.table
    _check_privileges(connection, table)
    existing = describe_table(connection, table.schema, table.name)
    if existing is None:
        return
    if new:
        _check_owner(wanted, existing, owner(connection, table), None)
    _check_columns(wanted, existing, foreign=_is_adopted(connection, wanted))
    _check_links(connection, wanted, existing)


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
    foreign = known is None or (known.adopted and not wanted.merges)
    if foreign and not wanted.adopt:
        raise TableForeign(table, wanted.name)
    if known is not None and known.task not in (None, uuid) and not wanted.adopt:
        raise TableInUse(table, wanted.name)


def _check_columns(wanted: TableDefinition, existing: ExistingTable, *, foreign: bool) -> None:
    """What no migration can repair: the key, and columns of a foreign table that must be given."""
    if wanted.merges and frozenset(wanted.key) not in existing.keys:
        raise TableLacksKey(wanted.name, str(wanted.table), wanted.key)
    unique = next((one for one in existing.keys if one <= frozenset(wanted.key)), None)
    if wanted.delta_updates and unique is not None:
        raise TableHasKey(wanted.name, str(wanted.table), tuple(sorted(unique)))
    names = {column.name for column in wanted.columns if not column.numbered}
    required = [c.name for c in existing.columns if not c.nullable and not c.filled and c.name not in names]
    if foreign and required:
        raise ForeignColumnRequired(str(wanted.table), tuple(required))


def _check_links(connection: Connection, wanted: TableDefinition, existing: ExistingTable) -> None:
    """Rows of a child table go with their parents, so that a foreign key of somebody else must allow it."""
    found = connection.execute(_STRICT_LINKS, (existing.oid, [one.table.name for one in wanted.children])).fetchall()
    if found:
        raise LinkKeepsRows(str(wanted.table), tuple(name for (name,) in found))


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
    connection: Connection,
    wanted: TableDefinition,
    uuid: str,
    on_notice: Callable[[str], None] = lambda _: None,
    *,
    anew: bool = False,
) -> Provisioned:
    """Make the table and its child tables as they are wanted, or change those that exist, in a transaction of its own. ``anew`` says
    that a statement has asked for all rows to be written again, whatever ON INCOMPATIBLE SCHEMA CHANGE says."""
    prepare(connection)
    wanted = replace(wanted.as_made, on_incompatible="BACKFILL" if anew else wanted.on_incompatible)
    with _locking(wanted.table), connection.transaction():
        connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(LOCK_TIMEOUT))
        children = [child.definition(wanted) for child in wanted.children]
        _unlink(connection, wanted, children)
        made = _provision(connection, wanted, uuid, on_notice)
        nested = [_provision(connection, child, uuid, on_notice, child=True) for child in children]
        for child, held in zip(children, nested, strict=True):
            _link(connection, wanted, child, adopted=held.adopted)
    return replace(made, children=tuple(held.columns for held in nested))


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
        _check_links(connection, wanted, existing)
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


def _link(connection: Connection, wanted: TableDefinition, child: TableDefinition, *, adopted: bool) -> None:
    """Let the rows of a child table point to their parents. They go with them. Rows that an adopted table has already may have no
    parent."""
    found = connection.execute(
        "SELECT FROM pg_catalog.pg_constraint WHERE conname = %s AND conrelid = to_regclass(%s)",
        (LINK, identifier(child.table).as_string(connection)),
    ).fetchone()
    if found is None:
        query = sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({}) ON DELETE CASCADE{}")
        key, unchecked = _names(wanted.key), sql.SQL(" NOT VALID" if adopted else "")
        connection.execute(
            query.format(identifier(child.table), sql.Identifier(LINK), key, identifier(wanted.table), key, unchecked)
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
    columns = sql.SQL(", ").join(column_definition(c, nullable=True) for c in wanted.columns)
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


def _create(connection: Connection, wanted: TableDefinition) -> None:
    parts = [column_definition(column, nullable=column.nullable) for column in wanted.columns]
    if wanted.key:  # of a table of changes, their order: readers go on from the last one that they have seen
        parts.append(sql.SQL("PRIMARY KEY ({})").format(_names(wanted.key if wanted.merges else (SEQUENCE,))))
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
    changes = TableChanges(connection, wanted, types, has_rows, adopted)
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


# Giving a table up


def release(connection: Connection, table: TableName, uuid: str, *, drop: bool) -> None:
    """Give up a table and its child tables: the task is ended, its ledger forgotten, and the tables dropped if ``drop`` says so. Does
    nothing to a table that another task has taken over."""
    if not _has_schema(connection):
        return
    with _locking(table), connection.transaction():
        connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(LOCK_TIMEOUT))
        known = owner(connection, table)
        if known is None or known.task not in (None, uuid):
            return
        terminate_others(connection, uuid)
        connection.execute("DELETE FROM headgate.ledger WHERE task = %s", (uuid,))
        found = connection.execute(_RELEASE, (uuid,)).fetchall()
        for each in [name for name in (TableName(*row) for row in found) if name != table] + [table] if drop else []:
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(identifier(each)))
            connection.execute(_FORGET, (each.schema, each.name))


def terminate_others(connection: Connection, uuid: str) -> None:
    """End the other connections of a task. One of an engine that was stopped may hold the lock of the ledger's row."""
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity "
        "WHERE application_name = %s AND pid <> pg_backend_pid() AND usename = current_user",
        (application(uuid),),
    )
