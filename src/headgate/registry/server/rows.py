"""The registry's rows within one transaction: reading and writing them, and nothing decided."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from enum import Enum
from typing import Any

from headgate.registry.schemas import Reference, Schema
from headgate.schema.written import SchemaFormat


class Show(Enum):
    """Which versions a look-up sees: softly deleted ones are kept until they are deleted permanently."""

    LIVE = "v.deleted = 0"
    DELETED = "v.deleted = 1"
    ALL = "1"


@dataclass(frozen=True, slots=True)
class StoredVersion:
    subject: str
    version: int
    schema_id: int
    schema: Schema
    deleted: bool


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """What makes two schemas the same: as written, and when normalized."""

    exact: str
    normalized: str


_VERSIONS = """
SELECT v.subject, v.version, v.id, v.deleted, s.text, s.type, s.refs
FROM versions v JOIN schemas s ON s.id = v.id
"""


class Rows:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.settings = SettingRows(connection)

    # --- schemas

    def schema(self, schema_id: int) -> Schema | None:
        row = _one(
            self._connection,
            "SELECT text, type, refs FROM schemas WHERE id = ? AND text IS NOT NULL",
            schema_id,
        )
        return None if row is None else _schema(*row)

    def fingerprint(self, schema_id: int) -> str | None:
        """Also of a schema whose text is forgotten: its id is still taken."""
        row = _one(self._connection, "SELECT fingerprint FROM schemas WHERE id = ?", schema_id)
        return None if row is None else str(row[0])

    def id_of(self, fingerprint: str) -> int | None:
        row = _one(self._connection, "SELECT min(id) FROM schemas WHERE fingerprint = ?", fingerprint)
        return None if row is None or row[0] is None else int(row[0])

    def highest_id(self) -> int:
        """The highest id ever given; 0 before the first."""
        row = _one(self._connection, "SELECT seq FROM sqlite_sequence WHERE name = 'schemas'")
        return 0 if row is None else int(row[0])

    def add_schema(self, schema: Schema, prints: Fingerprints, schema_id: int | None) -> int:
        """Keep a schema under the given id, or under one that was never given before."""
        refs = _refs_text(schema.references)
        cursor = self._connection.execute(
            "INSERT INTO schemas (id, type, text, refs, fingerprint, normalized) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET text = excluded.text, refs = excluded.refs WHERE text IS NULL"
            " RETURNING id",
            (schema_id, schema.type, schema.text, refs, prints.exact, prints.normalized),
        )
        row = cursor.fetchone()
        given = int(row[0]) if row is not None else schema_id
        assert given is not None, "an insert without an id always gives one"
        self._connection.executemany(
            "INSERT OR IGNORE INTO uses (id, subject, version) VALUES (?, ?, ?)",
            [(given, reference.subject, reference.version) for reference in schema.references],
        )
        return given

    def forget_unused(self, schema_ids: set[int]) -> None:
        """Drop the text of those schemas that no version has any more; their ids stay taken."""
        for schema_id in schema_ids:
            if _one(self._connection, "SELECT 1 FROM versions WHERE id = ?", schema_id) is None:
                self._connection.execute(
                    "UPDATE schemas SET text = NULL, refs = '[]' WHERE id = ?", (schema_id,)
                )
                self._connection.execute("DELETE FROM uses WHERE id = ?", (schema_id,))

    # --- versions

    def version(self, subject: str, version: int, show: Show) -> StoredVersion | None:
        sql = f"{_VERSIONS} WHERE v.subject = ? AND v.version = ? AND {show.value}"
        row = _one(self._connection, sql, subject, version)
        return None if row is None else _version(*row)

    def latest(self, subject: str, show: Show) -> StoredVersion | None:
        sql = f"{_VERSIONS} WHERE v.subject = ? AND {show.value} ORDER BY v.version DESC LIMIT 1"
        row = _one(self._connection, sql, subject)
        return None if row is None else _version(*row)

    def versions(self, subject: str, show: Show) -> tuple[StoredVersion, ...]:
        """Oldest first."""
        sql = f"{_VERSIONS} WHERE v.subject = ? AND {show.value} ORDER BY v.version"
        return tuple(_version(*row) for row in self._connection.execute(sql, (subject,)))

    def versions_of_id(self, schema_id: int, show: Show) -> tuple[StoredVersion, ...]:
        sql = f"{_VERSIONS} WHERE v.id = ? AND {show.value} ORDER BY v.subject, v.version"
        return tuple(_version(*row) for row in self._connection.execute(sql, (schema_id,)))

    def all_versions(self, prefix: str, show: Show) -> tuple[StoredVersion, ...]:
        """Of every subject that starts with the prefix, by subject, oldest first."""
        sql = f"{_VERSIONS} WHERE substr(v.subject, 1, length(?)) = ? AND {show.value} ORDER BY v.subject, v.version"
        return tuple(_version(*row) for row in self._connection.execute(sql, (prefix, prefix)))

    def matching(
        self, subject: str, prints: Fingerprints, normalize: bool, show: Show
    ) -> StoredVersion | None:
        """The newest version of a subject that is this very schema; with normalize, also one written differently."""
        same = "(s.fingerprint = ? OR s.normalized = ?)" if normalize else "s.fingerprint = ?"
        values = (prints.exact, prints.normalized) if normalize else (prints.exact,)
        sql = f"{_VERSIONS} WHERE v.subject = ? AND {same} AND {show.value} ORDER BY v.version DESC LIMIT 1"
        row = _one(self._connection, sql, subject, *values)
        return None if row is None else _version(*row)

    def subjects(self, prefix: str, show: Show) -> tuple[str, ...]:
        """A subject is deleted when all of its versions are."""
        having = {Show.LIVE: "min(deleted) = 0", Show.DELETED: "min(deleted) = 1", Show.ALL: "1"}[show]
        sql = (
            "SELECT subject FROM versions WHERE substr(subject, 1, length(?)) = ?"
            f" GROUP BY subject HAVING {having} ORDER BY subject"
        )
        return tuple(row[0] for row in self._connection.execute(sql, (prefix, prefix)))

    def add_version(self, subject: str, version: int, schema_id: int) -> None:
        self._connection.execute(
            "INSERT INTO versions (subject, version, id) VALUES (?, ?, ?)", (subject, version, schema_id)
        )

    def mark_deleted(self, subject: str, version: int) -> None:
        self._connection.execute(
            "UPDATE versions SET deleted = 1 WHERE subject = ? AND version = ?", (subject, version)
        )

    def remove_version(self, subject: str, version: int) -> None:
        self._connection.execute("DELETE FROM versions WHERE subject = ? AND version = ?", (subject, version))

    def referring(self, subject: str, version: int, show: Show) -> tuple[StoredVersion, ...]:
        """The versions, of any subject, that refer to this version."""
        sql = (
            f"{_VERSIONS} WHERE v.id IN (SELECT id FROM uses WHERE subject = ? AND version = ?)"
            f" AND {show.value} ORDER BY v.id, v.subject, v.version"
        )
        return tuple(_version(*row) for row in self._connection.execute(sql, (subject, version)))


class SettingRows:
    """Levels and modes. A subject of None means the whole registry."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def config(self, subject: str | None) -> tuple[str | None, bool | None] | None:
        """Compatibility level and whether to normalize, as far as they were set."""
        row = _one(self._connection, "SELECT level, normalize FROM configs WHERE subject = ?", subject or "")
        return None if row is None else (row[0], None if row[1] is None else bool(row[1]))

    def put_config(self, subject: str | None, level: str | None, normalize: bool | None) -> None:
        self._connection.execute("REPLACE INTO configs VALUES (?, ?, ?)", (subject or "", level, normalize))

    def mode(self, subject: str | None) -> str | None:
        row = _one(self._connection, "SELECT mode FROM modes WHERE subject = ?", subject or "")
        return None if row is None else str(row[0])

    def put_mode(self, subject: str | None, mode: str) -> None:
        self._connection.execute("REPLACE INTO modes VALUES (?, ?)", (subject or "", mode))

    def drop_config(self, subject: str | None) -> None:
        self._connection.execute("DELETE FROM configs WHERE subject = ?", (subject or "",))

    def drop_mode(self, subject: str | None) -> None:
        self._connection.execute("DELETE FROM modes WHERE subject = ?", (subject or "",))


def _one(connection: sqlite3.Connection, sql: str, *values: object) -> tuple[Any, ...] | None:
    """The first row; what its columns hold, only the statement knows."""
    row: tuple[Any, ...] | None = connection.execute(sql, values).fetchone()
    return row


def _schema(text: str, schema_type: str, refs: str) -> Schema:
    references = tuple(Reference(name, subject, version) for name, subject, version in json.loads(refs))
    return Schema(text, SchemaFormat(schema_type), references)


def _version(
    subject: str, version: int, schema_id: int, deleted: int, text: str, schema_type: str, refs: str
) -> StoredVersion:
    return StoredVersion(subject, version, schema_id, _schema(text, schema_type, refs), bool(deleted))


def _refs_text(references: tuple[Reference, ...]) -> str:
    return json.dumps([[reference.name, reference.subject, reference.version] for reference in references])
