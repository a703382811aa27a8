"""What the registry keeps, in one SQLite file: schemas, the versions of subjects, and settings.

An id is given once and never to another text. When the last version of a schema is removed permanently, its text is
deleted but its id and fingerprint stay, so that the same schema gets its old id when it is registered again. Every
change is one transaction, on disk before it is answered (WAL, synchronous=FULL): a process killed at any moment
leaves all of a change or nothing of it.
"""

from __future__ import annotations

import hashlib
import json
import queue
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from importlib.resources import files
from pathlib import Path
from typing import Any

from headgate.registry.errors import MalformedSchema, ReferenceCycle, UnknownReference
from headgate.registry.schemas import ParsedSchema, Reference, Schema, parse
from headgate.registry.server.errors import InvalidSchema, StoreFailed, StoreUnusable
from headgate.schema.written import SchemaFormat

LATEST = -1  # in place of a version's number


class Visibility(Enum):
    """Which versions a query sees. Softly deleted versions are kept until they are deleted permanently."""

    LIVE = "v.deleted = 0"
    DELETED = "v.deleted = 1"
    ALL = "1"


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version of a subject with its schema. `deleted` means softly deleted."""

    subject: str
    version: int
    schema_id: int
    schema: Schema
    deleted: bool


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Two schemas are the same if these are: of the text as written, and of the normalized text."""

    exact: str
    normalized: str


_VERSIONS = """
SELECT v.subject, v.version, v.id, v.deleted, s.text, s.type, s.refs
FROM versions v JOIN schemas s ON s.id = v.id
"""


class Tables:
    """The tables within one transaction. It reads and writes; the rules are elsewhere. A subject of None means the
    whole registry."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _one(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        """The first row. Its types depend on the SQL statement."""
        row: tuple[Any, ...] | None = self._connection.execute(sql, values).fetchone()
        return row

    def _versions(
        self, where: str, visibility: Visibility, *values: object, order: str = "v.subject, v.version"
    ) -> tuple[StoredVersion, ...]:
        sql = f"{_VERSIONS} WHERE {where} AND {visibility.value} ORDER BY {order}"
        return tuple(_version(*row) for row in self._connection.execute(sql, values))

    # --- schemas

    def schema(self, schema_id: int) -> Schema | None:
        row = self._one("SELECT text, type, refs FROM schemas WHERE id = ? AND text IS NOT NULL", schema_id)
        return None if row is None else _schema(*row)

    def fingerprint(self, schema_id: int) -> str | None:
        """Known also for a schema whose text is deleted, because its id is still taken."""
        row = self._one("SELECT fingerprint FROM schemas WHERE id = ?", schema_id)
        return None if row is None else str(row[0])

    def id_of(self, fingerprint: str) -> int | None:
        row = self._one("SELECT min(id) FROM schemas WHERE fingerprint = ?", fingerprint)
        return None if row is None or row[0] is None else int(row[0])

    def highest_id(self) -> int:
        """The highest id that was ever given, 0 before the first."""
        row = self._one("SELECT seq FROM sqlite_sequence WHERE name = 'schemas'")
        return 0 if row is None else int(row[0])

    def add_schema(self, schema: Schema, prints: Fingerprints, schema_id: int | None) -> int:
        """Store a schema under the given id, or under a new one."""
        row = self._one(
            "INSERT INTO schemas (id, type, text, refs, fingerprint, normalized) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET text = excluded.text, refs = excluded.refs WHERE text IS NULL"
            " RETURNING id",
            *(schema_id, schema.type, schema.text, json.dumps(_as_lists(schema.references))),
            *(prints.exact, prints.normalized),
        )
        given = int(row[0]) if row is not None else schema_id
        assert given is not None, "an insert without an id always gives one"
        self._connection.executemany(
            "INSERT OR IGNORE INTO uses (id, subject, version) VALUES (?, ?, ?)",
            [(given, reference.subject, reference.version) for reference in schema.references],
        )
        return given

    def drop_unreferenced(self, schema_ids: set[int]) -> None:
        """Delete the text of those schemas that no version has any more. Their ids stay taken."""
        for schema_id in schema_ids:
            if self._one("SELECT 1 FROM versions WHERE id = ?", schema_id) is None:
                self._connection.execute("UPDATE schemas SET text = NULL, refs = '[]' WHERE id = ?", (schema_id,))
                self._connection.execute("DELETE FROM uses WHERE id = ?", (schema_id,))

    # --- versions

    def version(self, subject: str, version: int, visibility: Visibility) -> StoredVersion | None:
        found = self._versions("v.subject = ? AND v.version = ?", visibility, subject, version)
        return next(iter(found), None)

    def latest(self, subject: str, visibility: Visibility) -> StoredVersion | None:
        found = self._versions("v.subject = ?", visibility, subject, order="v.version DESC LIMIT 1")
        return next(iter(found), None)

    def versions(self, subject: str, visibility: Visibility) -> tuple[StoredVersion, ...]:
        """Oldest first."""
        return self._versions("v.subject = ?", visibility, subject)

    def versions_of_id(self, schema_id: int, visibility: Visibility) -> tuple[StoredVersion, ...]:
        return self._versions("v.id = ?", visibility, schema_id)

    def all_versions(self, prefix: str, visibility: Visibility) -> tuple[StoredVersion, ...]:
        """The versions of all subjects that start with the prefix, by subject, oldest first."""
        return self._versions("substr(v.subject, 1, length(?)) = ?", visibility, prefix, prefix)

    def matching(
        self, subject: str, prints: Fingerprints, normalize: bool, visibility: Visibility
    ) -> StoredVersion | None:
        """The newest version of a subject with this schema. With `normalize`, it may be formatted differently."""
        same = "(s.fingerprint = ? OR s.normalized = ?)" if normalize else "s.fingerprint = ?"
        values = (subject, prints.exact, prints.normalized) if normalize else (subject, prints.exact)
        found = self._versions(f"v.subject = ? AND {same}", visibility, *values, order="v.version DESC LIMIT 1")
        return next(iter(found), None)

    def subjects(self, prefix: str, visibility: Visibility) -> tuple[str, ...]:
        """A subject is deleted if all of its versions are."""
        sql = (
            "SELECT subject FROM (SELECT subject, min(deleted) AS deleted FROM versions GROUP BY subject) v"
            f" WHERE substr(subject, 1, length(?)) = ? AND {visibility.value} ORDER BY subject"
        )
        return tuple(row[0] for row in self._connection.execute(sql, (prefix, prefix)))

    def add_version(self, subject: str, version: int, schema_id: int) -> None:
        values = (subject, version, schema_id)
        self._connection.execute("INSERT INTO versions (subject, version, id) VALUES (?, ?, ?)", values)

    def mark_deleted(self, subject: str, version: int) -> None:
        values = (subject, version)
        self._connection.execute("UPDATE versions SET deleted = 1 WHERE subject = ? AND version = ?", values)

    def remove_version(self, subject: str, version: int) -> None:
        self._connection.execute("DELETE FROM versions WHERE subject = ? AND version = ?", (subject, version))

    def referring(self, subject: str, version: int, visibility: Visibility) -> tuple[StoredVersion, ...]:
        """The versions, of any subject, that refer to this version."""
        where = "v.id IN (SELECT id FROM uses WHERE subject = ? AND version = ?)"
        return self._versions(where, visibility, subject, version, order="v.id, v.subject, v.version")

    # --- settings

    def config(self, subject: str | None) -> tuple[str | None, bool | None] | None:
        """Compatibility level and whether to normalize. None for what is not set."""
        row = self._one("SELECT level, normalize FROM configs WHERE subject = ?", subject or "")
        return None if row is None else (row[0], None if row[1] is None else bool(row[1]))

    def put_config(self, subject: str | None, level: str | None, normalize: bool | None) -> None:
        self._connection.execute("REPLACE INTO configs VALUES (?, ?, ?)", (subject or "", level, normalize))

    def drop_config(self, subject: str | None) -> None:
        self._connection.execute("DELETE FROM configs WHERE subject = ?", (subject or "",))

    def mode(self, subject: str | None) -> str | None:
        row = self._one("SELECT mode FROM modes WHERE subject = ?", subject or "")
        return None if row is None else str(row[0])

    def put_mode(self, subject: str | None, mode: str) -> None:
        self._connection.execute("REPLACE INTO modes VALUES (?, ?)", (subject or "", mode))

    def drop_mode(self, subject: str | None) -> None:
        self._connection.execute("DELETE FROM modes WHERE subject = ?", (subject or "",))


def _schema(text: str, schema_type: str, refs: str) -> Schema:
    references = tuple(Reference(name, subject, version) for name, subject, version in json.loads(refs))
    return Schema(text, SchemaFormat(schema_type), references)


def _version(
    subject: str, version: int, schema_id: int, deleted: int, text: str, schema_type: str, refs: str
) -> StoredVersion:
    return StoredVersion(subject, version, schema_id, _schema(text, schema_type, refs), bool(deleted))


def _as_lists(references: tuple[Reference, ...]) -> list[list[object]]:
    return [[reference.name, reference.subject, reference.version] for reference in references]


FILE_NAME = "registry.sqlite"
FORMAT = 1


class Store:
    """A folder with the registry's file. Safe to use from several threads and from several processes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._idle: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        self._write_lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._writer = self._connect()
        except OSError as failure:
            raise StoreUnusable(str(folder), failure.strerror or str(failure)) from failure
        except sqlite3.DatabaseError as failure:
            raise StoreUnusable(str(self._path), str(failure)) from failure
        try:
            self._prepare()
        except BaseException:
            self._writer.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[Tables]:
        """A consistent snapshot of the tables."""
        connection = self._take()
        try:
            with _transaction(connection, "BEGIN"):
                yield Tables(connection)
        finally:
            self._idle.put(connection)

    @contextmanager
    def writing(self) -> Iterator[Tables]:
        """One transaction: on disk when the block ends, rolled back if the block raises."""
        with self._write_lock, _transaction(self._writer, "BEGIN IMMEDIATE"):
            yield Tables(self._writer)

    def close(self) -> None:
        self._writer.close()
        while not self._idle.empty():
            self._idle.get_nowait().close()

    def _take(self) -> sqlite3.Connection:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        """A connection that waits up to 30 seconds for a lock of another process."""
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=30)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except sqlite3.DatabaseError:
            connection.close()
            raise
        return connection

    def _prepare(self) -> None:
        """Create the tables in a new file. Raises StoreUnusable for a file of another format."""
        with _transaction(self._writer, "BEGIN IMMEDIATE"):
            (found,) = self._writer.execute("PRAGMA user_version").fetchone()
            if found == 0:
                for statement in (files("headgate.registry.server") / "tables.sql").read_text("utf-8").split(";\n"):
                    self._writer.execute(statement)
                self._writer.execute(f"PRAGMA user_version = {FORMAT}")
            elif found != FORMAT:
                raise StoreUnusable(str(self._path), f"it has format {found}, this version writes format {FORMAT}")


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    """Commit at the end of the block, roll back if it raises."""
    try:
        connection.execute(begin)
        try:
            yield
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
    except sqlite3.OperationalError as failure:  # a full disk, or a lock that is held for too long
        raise StoreFailed(str(failure)) from failure


@dataclass(frozen=True, slots=True)
class PostedReading:
    """A posted schema: parsed, in the form to store, and with its fingerprints."""

    parsed: ParsedSchema
    kept: Schema
    prints: Fingerprints


def read_posted(tables: Tables, posted: Schema, *, normalize: bool, visibility: Visibility) -> PostedReading:
    """Raises InvalidSchema. `visibility` says whether a reference may point to a deleted version."""
    schema = _with_numbered_references(tables, posted, visibility)
    # Both forms are parsed, because a later request may look the schema up with or without `normalize`.
    normal = _parse_with_references(tables, schema, visibility, normalize=True)
    if normalize:
        schema = replace(schema, text=normal.canonical, references=tuple(sorted(schema.references)))
    parsed = _parse_with_references(tables, schema, visibility)
    kept = replace(schema, text=parsed.canonical) if _is_descriptor(schema) else schema
    exact = fingerprint(schema.type, parsed.canonical, schema.references)
    normalized = fingerprint(schema.type, normal.canonical, tuple(sorted(schema.references)))
    return PostedReading(parsed, kept, Fingerprints(exact, normalized))


def fingerprint(schema_type: SchemaFormat, canonical: str, references: tuple[Reference, ...]) -> str:
    text = json.dumps([schema_type, canonical, _as_lists(references)])
    return hashlib.sha256(text.encode()).hexdigest()


def parse_stored(tables: Tables, schema: Schema) -> ParsedSchema:
    """Parse a stored schema. The versions that it refers to may be deleted by now."""
    return _parse_with_references(tables, schema, Visibility.ALL)


def _parse_with_references(
    tables: Tables, schema: Schema, visibility: Visibility, *, normalize: bool = False
) -> ParsedSchema:
    """Parse a schema with the versions it refers to. Every fault becomes an InvalidSchema, which clients know."""

    def resolve(reference: Reference) -> Schema:
        found = tables.version(reference.subject, reference.version, visibility)
        if found is None:
            raise UnknownReference(reference.name, reference.subject, reference.version)
        return found.schema

    try:
        return parse(schema, resolve, normalize=normalize)
    except MalformedSchema as failure:
        raise InvalidSchema("; ".join(filter(None, (failure.message(), failure.detail())))) from failure
    except (UnknownReference, ReferenceCycle) as failure:
        raise InvalidSchema(failure.message()) from failure
    except RecursionError as failure:
        raise InvalidSchema("the schema is nested too deeply") from failure


def _with_numbered_references(tables: Tables, schema: Schema, visibility: Visibility) -> Schema:
    """Replace "latest" in references by the number of the version that is the latest now."""

    def numbered(reference: Reference) -> Reference:
        if reference.version != LATEST:
            return reference
        found = tables.latest(reference.subject, visibility)
        if found is None:
            raise InvalidSchema(UnknownReference(reference.name, reference.subject, LATEST).message())
        return replace(reference, version=found.version)

    return replace(schema, references=tuple(map(numbered, schema.references)))


def _is_descriptor(schema: Schema) -> bool:
    """Confluent's Protobuf serialisers send a file descriptor in base64. It is stored as text, so that people can
    read it."""
    return schema.type is SchemaFormat.PROTOBUF and not any(sign in schema.text for sign in ";{}")
