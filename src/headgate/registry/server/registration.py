"""Registering a schema under a subject, looking it up, and saying whether it may follow the earlier versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from headgate.registry.compatibility import Incompatibility, levels
from headgate.registry.schemas import ParsedSchema, Schema
from headgate.registry.server import reading, settings
from headgate.registry.server.errors import (
    IdTaken,
    Incompatible,
    InvalidSchema,
    NotPermitted,
    SchemaNotInSubject,
    StoreFailed,
    UnknownSubject,
    UnknownVersion,
)
from headgate.registry.server.reading import ParsedVersions, PostedReading
from headgate.registry.server.rows import LATEST, StoredVersion, Tables, Visibility
from headgate.registry.server.settings import Mode
from headgate.registry.wire import MAX_ID
from headgate.schema.written import CompatibilityLevel


@dataclass(frozen=True, slots=True)
class PostedSchema:
    """A schema as posted; id and version are given only where schemas are imported from another registry."""

    schema: Schema
    schema_id: int | None = None
    version: int | None = None


class CompatibilityCheck(Protocol):
    """Says what keeps ``new`` from becoming the next version of a subject; nothing when it may.

    ``earlier`` are the versions to compare with, oldest first. One sentence per reason, each naming the place.
    """

    def __call__(
        self, subject: str, new: ParsedSchema, earlier: Sequence[ParsedSchema], level: CompatibilityLevel
    ) -> tuple[str, ...]: ...


def check_level(
    subject: str,  # noqa: ARG001  a check may go by the subject; this one goes by the schemas alone
    new: ParsedSchema,
    earlier: Sequence[ParsedSchema],
    level: CompatibilityLevel,
) -> tuple[str, ...]:
    """The check that every registry has: the compatibility level."""
    return tuple(_sentence(found) for found in levels.check(new, earlier, level))


def _sentence(found: Incompatibility) -> str:
    where = "" if found.path in found.message else f" at {found.path}"
    return f"{found.kind}{where}: {found.message}"


@dataclass(frozen=True, slots=True)
class Registration:
    """What registering needs beside the tables."""

    check: CompatibilityCheck
    parsed: ParsedVersions

    def register(
        self, tables: Tables, subject: str, request: PostedSchema, *, normalize: bool
    ) -> StoredVersion:
        """The new version, or the live one that is this schema already. Raises Incompatible, InvalidSchema, …"""
        mode = settings.mode_in_scope(tables, subject)
        _refuse_by_mode(tables, subject, request, mode)
        normalize = normalize or bool(settings.config_in_scope(tables, subject).normalize)
        read = reading.read_posted(tables, request.schema, normalize=normalize, visibility=Visibility.LIVE)
        if (found := _registered(tables, subject, request, read, normalize)) is not None:
            return found
        if mode is not Mode.IMPORT and (reasons := self.reasons(tables, subject, read)):
            raise Incompatible(subject, settings.level_in_scope(tables, subject), reasons)
        return _add(tables, subject, request, read, mode)

    def reasons(
        self,
        tables: Tables,
        subject: str,
        read: PostedReading,
        against: Sequence[StoredVersion] | None = None,
    ) -> tuple[str, ...]:
        """Why a schema may not follow those versions; by default those that the level asks for."""
        level = settings.level_in_scope(tables, subject)
        if level is CompatibilityLevel.NONE:
            return ()
        compared = _versions_to_compare(tables, subject, level) if against is None else against
        return self.check(subject, read.parsed, [self.parsed.get(tables, v) for v in compared], level)

    def verdict(
        self, tables: Tables, subject: str, schema: Schema, number: int | None, *, normalize: bool
    ) -> tuple[str, ...]:
        """As registering would decide (no number), or against one version only. No subject yet: nothing is against it."""
        normalize = normalize or bool(settings.config_in_scope(tables, subject).normalize)
        against = None if number is None else _version_to_compare(tables, subject, number)
        read = reading.read_posted(tables, schema, normalize=normalize, visibility=Visibility.LIVE)
        return self.reasons(tables, subject, read, against)


def look_up(
    tables: Tables, subject: str, schema: Schema, *, normalize: bool, visibility: Visibility
) -> StoredVersion:
    """The version of the subject that is this very schema."""
    normalize = normalize or bool(settings.config_in_scope(tables, subject).normalize)
    if tables.latest(subject, visibility) is None:
        raise UnknownSubject(subject)
    read = reading.read_posted(tables, schema, normalize=normalize, visibility=Visibility.ALL)
    found = tables.matching(subject, read.prints, normalize, visibility)
    if found is None:
        raise SchemaNotInSubject(subject)
    return found


def find_version(tables: Tables, subject: str, number: int, visibility: Visibility) -> StoredVersion:
    """A version by its number, or the latest."""
    found = (
        tables.latest(subject, visibility)
        if number == LATEST
        else tables.version(subject, number, visibility)
    )
    if found is not None:
        return found
    if tables.latest(subject, visibility) is None:
        raise UnknownSubject(subject)
    raise UnknownVersion(subject, number)


def _refuse_by_mode(tables: Tables, subject: str, request: PostedSchema, mode: Mode) -> None:
    settings.refuse_if_read_only(tables, subject)
    if request.schema_id is not None and mode is not Mode.IMPORT:
        raise NotPermitted(f'subject "{subject}" is not in import mode, so a schema cannot bring its own id')
    if request.schema_id is None and mode is Mode.IMPORT:
        raise NotPermitted(f'subject "{subject}" is in import mode, so a schema must bring its id')


def _registered(
    tables: Tables, subject: str, request: PostedSchema, read: PostedReading, normalize: bool
) -> StoredVersion | None:
    if request.version is not None:
        found = tables.version(subject, request.version, Visibility.LIVE)
        return (
            found if found is not None and tables.fingerprint(found.schema_id) == read.prints.exact else None
        )
    found = tables.matching(subject, read.prints, normalize, Visibility.LIVE)
    if found is not None and request.schema_id in (None, found.schema_id):
        return found
    return None


def _add(
    tables: Tables, subject: str, request: PostedSchema, read: PostedReading, mode: Mode
) -> StoredVersion:
    version = _new_version(tables, subject, request, mode)
    schema_id = tables.add_schema(read.kept, read.prints, _known_id(tables, request, read))
    for old in tables.versions_of_id(schema_id, Visibility.DELETED):
        # The schema comes back under a new number; its deleted version has done its duty, unless somebody uses it.
        if old.subject == subject and not tables.referring(subject, old.version, Visibility.ALL):
            tables.remove_version(subject, old.version)
    tables.add_version(subject, version, schema_id)
    return StoredVersion(subject, version, schema_id, read.kept, deleted=False)


def _new_version(tables: Tables, subject: str, request: PostedSchema, mode: Mode) -> int:
    """One more than the highest number in use, deleted versions included."""
    last = tables.latest(subject, Visibility.ALL)
    following = 1 if last is None else last.version + 1
    if request.version is None:
        return following
    if mode is not Mode.IMPORT and request.version != following:
        raise InvalidSchema(f"version {request.version} is not one more than the previous version")
    if tables.version(subject, request.version, Visibility.ALL) is not None:
        raise NotPermitted(f'version {request.version} of subject "{subject}" exists with another schema')
    return request.version


def _known_id(tables: Tables, request: PostedSchema, read: PostedReading) -> int | None:
    """The id that the schema brings, or has already; None asks for a new one."""
    if request.schema_id is not None:
        if tables.fingerprint(request.schema_id) not in (None, read.prints.exact):
            raise IdTaken(request.schema_id)
        return request.schema_id
    known = tables.id_of(read.prints.exact)
    if known is None and tables.highest_id() >= MAX_ID:
        raise StoreFailed("no schema ids are left")
    return known


def _versions_to_compare(tables: Tables, subject: str, level: CompatibilityLevel) -> Sequence[StoredVersion]:
    return (
        tables.versions(subject, Visibility.LIVE)
        if level.is_transitive
        else _version_to_compare(tables, subject, LATEST)
    )


def _version_to_compare(tables: Tables, subject: str, number: int) -> Sequence[StoredVersion]:
    if number == LATEST:
        latest = tables.latest(subject, Visibility.LIVE)
        return () if latest is None else (latest,)
    found = tables.version(subject, number, Visibility.LIVE)
    if found is None:
        raise UnknownVersion(subject, number)
    return (found,)
