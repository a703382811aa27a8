"""A PostgreSQL database: how to connect to it, whether it can be used, and what a table looks like.

Writing belongs to `runtime.targets.postgres`. Every name goes into SQL as an identifier (`psycopg.sql`), never as text.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import psycopg
from psycopg import conninfo

from headgate.connectors import errors
from headgate.connectors.options import ConnectionOptions, pem_text

TIMEOUT = 10  # seconds to wait for a connection
OLDEST = 160000  # PostgreSQL 16: `pg_input_is_valid` finds the rows that a type refuses
# A connection whose peer is gone must not block a task: it is given up after 10 + 3 x 5 seconds.
KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 25_000}

Connection: TypeAlias = psycopg.Connection[Any]

_FILES = (("sslcert", "SSL CERTIFICATE"), ("sslkey", "SSL KEY"), ("sslrootcert", "SSL CERTIFICATE AUTHORITY"))
_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef OR a.attidentity <> '',
  col_description(a.attrelid, a.attnum)
FROM pg_catalog.pg_attribute a WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_TYPES = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped
"""
_KEYS = """
SELECT array_agg(a.attname::text ORDER BY a.attname) FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
WHERE i.indrelid = %s AND i.indisunique AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL GROUP BY i.indexrelid
"""
_FIND = """
SELECT c.oid, c.relkind::text, obj_description(c.oid, 'pg_class') FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
"""


@dataclass(frozen=True, slots=True)
class ExistingColumn:
    """A column of a table. ``type`` is the text of `format_type`; ``filled`` says whether it has a default."""

    name: str
    type: str
    nullable: bool
    filled: bool
    doc: str | None


@dataclass(frozen=True, slots=True)
class ExistingTable:
    """A table, view or the like of the database. ``keys`` are the sets of columns that are unique."""

    oid: int
    is_table: bool
    columns: tuple[ExistingColumn, ...]
    keys: tuple[frozenset[str], ...]
    doc: str | None


class PostgresDatabase:
    """One database. Holds no connection. Safe to share between threads.

    Methods raise PostgresUnreachable if the server does not answer, and PostgresRefusedLogin if it refuses the login.
    """

    def __init__(self, options: ConnectionOptions) -> None:
        self._options = options
        self.address = _address(options)

    def __repr__(self) -> str:
        return f"PostgresDatabase({self.address})"

    def connect(self, application: str = "headgate") -> Connection:
        """A new connection in autocommit, with UTC as its time zone. ``application`` is shown in pg_stat_activity."""
        with tempfile.TemporaryDirectory(prefix="headgate-") as folder:  # with mode 0700
            try:
                return psycopg.connect(
                    self._conninfo(Path(folder)),
                    application_name=application,
                    autocommit=True,
                    connect_timeout=TIMEOUT,
                    options="-c timezone=UTC -c datestyle=ISO -c intervalstyle=postgres -c extra_float_digits=1",
                    **KEEPALIVE,  # type: ignore[arg-type]
                )
            except psycopg.OperationalError as error:
                raise self._unreachable(error) from error
            except psycopg.ProgrammingError as error:  # the URL cannot be read, and may hold a password
                raise errors.InvalidOption("URL", self._options.connection, "is not a PostgreSQL URL") from error

    @contextmanager
    def connected(self, application: str = "headgate") -> Iterator[Connection]:
        """A connection for some statements. What the server says against one of them is raised as PostgresFailed."""
        with self.connect(application) as connection:
            try:
                yield connection
            except psycopg.Error as error:
                raise self.failure(error) from error

    def check(self) -> None:
        """Check that the server answers, accepts the login and is new enough."""
        with self.connect() as connection:
            version = connection.info.server_version
        if version < OLDEST:
            raise errors.PostgresTooOld(self.address, f"{version // 10_000}", f"{OLDEST // 10_000}")

    def failure(self, error: psycopg.Error) -> errors.ConnectorError:
        """The error to show for what a statement raised. The server's words may hold values, so only its code is shown."""
        if error.sqlstate is None or error.sqlstate[:2] in ("08", "57", "53"):
            return errors.PostgresUnreachable(self.address, condition(error))
        return errors.PostgresFailed(self.address, condition(error), error.sqlstate)

    def _unreachable(self, error: psycopg.OperationalError) -> errors.ConnectorError:
        text = str(error).strip()
        first = text.splitlines()[0] if text else type(error).__name__
        refused = any(
            word in text for word in ("authentication failed", "no pg_hba.conf", "does not exist", "no password")
        )
        reason = _without_password(first, self._options.get("PASSWORD"))
        if refused:
            return errors.PostgresRefusedLogin(self.address, reason)
        return errors.PostgresUnreachable(self.address, reason)

    def _conninfo(self, folder: Path) -> str:
        options = self._options
        url = options.get("URL")
        if url is not None and options.get("HOST") is not None:
            raise errors.ConflictingOptions("URL", "HOST", options.connection)
        given = {
            "host": options.get("HOST") if url is not None else options.need("HOST"),
            "port": options.get("PORT"),
            "dbname": options.get("DATABASE"),
            "user": options.get("USER"),
            "password": options.get("PASSWORD"),
            "sslmode": options.get("SSL MODE"),
        }
        for name, option in _FILES:
            text = pem_text(options, option)
            if text is not None:
                file = folder / f"{name}.pem"
                file.touch(0o600)  # libpq refuses a key that others may read
                file.write_text(text)
                given[name] = str(file)
        return conninfo.make_conninfo(url or "", **{name: value for name, value in given.items() if value is not None})


def describe_table(connection: Connection, schema: str, name: str) -> ExistingTable | None:
    """The table of this name, None if there is none."""
    found = connection.execute(_FIND, (schema, name)).fetchone()
    if found is None:
        return None
    oid, kind, doc = found
    columns = connection.execute(_COLUMNS, (oid,)).fetchall()
    keys = connection.execute(_KEYS, (oid,)).fetchall()
    return ExistingTable(
        oid,
        kind in ("r", "p"),
        tuple(ExistingColumn(n, type_, not not_null, filled, said) for n, type_, not_null, filled, said in columns),
        tuple(frozenset(names) for (names,) in keys),
        doc,
    )


def column_types(connection: Connection, schema: str, name: str) -> dict[str, str]:
    """The types of a table's columns, as `format_type` prints them."""
    return dict(connection.execute(_TYPES, (schema, name)).fetchall())


def condition(error: psycopg.Error) -> str:
    """What PostgreSQL calls the error, in words that hold nothing of a row."""
    name = type(error).__name__ if error.sqlstate is None else psycopg.errors.lookup(error.sqlstate).__name__
    return "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()


def _address(options: ConnectionOptions) -> str:
    """Host, port and database, without a login."""
    try:
        parts = conninfo.conninfo_to_dict(options.get("URL") or "")
    except psycopg.ProgrammingError:
        return options.connection
    host = options.get("HOST") or parts.get("host") or "localhost"
    port = options.get("PORT") or parts.get("port") or 5432
    return f"{host}:{port}/{options.get('DATABASE') or parts.get('dbname') or ''}"


def _without_password(text: str, password: str | None) -> str:
    return text.replace(password, "***") if password else text
