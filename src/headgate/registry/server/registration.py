"""Registering a schema under a subject, looking it up, and saying whether it may follow the earlier versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from headgate.registry.compatibility import Incompatibility, levels
from headgate.registry.schemas import ParsedSchema, Schema
from headgate.registry.server import rules as settings
from headgate.registry.server import store as reading
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
from headgate.registry.server.rules import Mode
from headgate.registry.server.store import (
    LATEST,
    ParsedVersions,
    PostedReading,
    StoredVersion,
    Tables,
    Visibility,
)
from headgate.registry.wire import MAX_ID
from headgate.schema.written import CompatibilityLevel


@dataclass(frozen=True, slots=True)
class Request:
    """A schema as posted; id and version are given only where schemas are imported from another registry."""

    schema: Schema
    schema_id: int | None = None
    version: int | None = None


class Judge(Protocol):
    """Says what keeps ``new`` from becoming the next version of a subject; nothing when it may.

    ``earlier`` are the versions to compare with, oldest first. One sentence per reason, each naming the place.
    """

    def __call__(
        self, subject: str, new: ParsedSchema, earlier: Sequence[ParsedSchema], level: CompatibilityLevel
    ) -> tuple[str, ...]: ...


def by_level(
    subject: str,  # noqa: ARG001  a judge may go by the subject; this one goes by the schemas alone
    new: ParsedSchema,
    earlier: Sequence[ParsedSchema],
    level: CompatibilityLevel,
) -> tuple[str, ...]:
    """The judge that every registry has: the compatibility level."""
    return tuple(_sentence(found) for found in levels.check(new, earlier, level))


def _sentence(found: Incompatibility) -> str:
    where = "" if found.path in found.message else f" at {found.path}"
    return f"{found.kind}{where}: {found.message}"


@dataclass(frozen=True, slots=True)
class Registrar:
    """What registering needs beside the rows."""

    judge: Judge
    parsed: ParsedVersions

    def register(self, rows: Tables, subject: str, request: Request, *, normalize: bool) -> StoredVersion:
        """The new version, or the live one that is this schema already. Raises Incompatible, InvalidSchema, …"""
        mode = settings.mode_in_scope(rows, subject)
        _refuse_by_mode(rows, subject, request, mode)
        normalize = normalize or bool(settings.config_in_scope(rows, subject).normalize)
        read = reading.read(rows, request.schema, normalize=normalize, show=Visibility.LIVE)
        if (found := _registered(rows, subject, request, read, normalize)) is not None:
            return found
        if mode is not Mode.IMPORT and (reasons := self.reasons(rows, subject, read)):
            raise Incompatible(subject, settings.level_in_scope(rows, subject), reasons)
        return _add(rows, subject, request, read, mode)

    def reasons(
        self, rows: Tables, subject: str, read: PostedReading, against: Sequence[StoredVersion] | None = None
    ) -> tuple[str, ...]:
        """Why a schema may not follow those versions; by default those that the level asks for."""
        level = settings.level_in_scope(rows, subject)
        if level is CompatibilityLevel.NONE:
            return ()
        compared = _versions_to_compare(rows, subject, level) if against is None else against
        return self.judge(subject, read.parsed, [self.parsed.get(rows, v) for v in compared], level)

    def verdict(
        self, rows: Tables, subject: str, schema: Schema, number: int | None, *, normalize: bool
    ) -> tuple[str, ...]:
        """As registering would decide (no number), or against one version only. No subject yet: nothing is against it."""
        normalize = normalize or bool(settings.config_in_scope(rows, subject).normalize)
        against = None if number is None else _version_to_compare(rows, subject, number)
        read = reading.read(rows, schema, normalize=normalize, show=Visibility.LIVE)
        return self.reasons(rows, subject, read, against)


def look_up(
    rows: Tables, subject: str, schema: Schema, *, normalize: bool, show: Visibility
) -> StoredVersion:
    """The version of the subject that is this very schema."""
    normalize = normalize or bool(settings.config_in_scope(rows, subject).normalize)
    if rows.latest(subject, show) is None:
        raise UnknownSubject(subject)
    read = reading.read(rows, schema, normalize=normalize, show=Visibility.ALL)
    found = rows.matching(subject, read.prints, normalize, show)
    if found is None:
        raise SchemaNotInSubject(subject)
    return found


def find(rows: Tables, subject: str, number: int, show: Visibility) -> StoredVersion:
    """A version by its number, or the latest."""
    found = rows.latest(subject, show) if number == LATEST else rows.version(subject, number, show)
    if found is not None:
        return found
    if rows.latest(subject, show) is None:
        raise UnknownSubject(subject)
    raise UnknownVersion(subject, number)


def _refuse_by_mode(rows: Tables, subject: str, request: Request, mode: Mode) -> None:
    settings.refuse_if_read_only(rows, subject)
    if request.schema_id is not None and mode is not Mode.IMPORT:
        raise NotPermitted(f'subject "{subject}" is not in import mode, so a schema cannot bring its own id')
    if request.schema_id is None and mode is Mode.IMPORT:
        raise NotPermitted(f'subject "{subject}" is in import mode, so a schema must bring its id')


def _registered(
    rows: Tables, subject: str, request: Request, read: PostedReading, normalize: bool
) -> StoredVersion | None:
    if request.version is not None:
        found = rows.version(subject, request.version, Visibility.LIVE)
        return found if found is not None and rows.fingerprint(found.schema_id) == read.prints.exact else None
    found = rows.matching(subject, read.prints, normalize, Visibility.LIVE)
    if found is not None and request.schema_id in (None, found.schema_id):
        return found
    return None


def _add(rows: Tables, subject: str, request: Request, read: PostedReading, mode: Mode) -> StoredVersion:
    version = _new_version(rows, subject, request, mode)
    schema_id = rows.add_schema(read.kept, read.prints, _known_id(rows, request, read))
    for old in rows.versions_of_id(schema_id, Visibility.DELETED):
        # The schema comes back under a new number; its deleted version has done its duty, unless somebody uses it.
        if old.subject == subject and not rows.referring(subject, old.version, Visibility.ALL):
            rows.remove_version(subject, old.version)
    rows.add_version(subject, version, schema_id)
    return StoredVersion(subject, version, schema_id, read.kept, deleted=False)


def _new_version(rows: Tables, subject: str, request: Request, mode: Mode) -> int:
    """One more than the highest number in use, deleted versions included."""
    last = rows.latest(subject, Visibility.ALL)
    following = 1 if last is None else last.version + 1
    if request.version is None:
        return following
    if mode is not Mode.IMPORT and request.version != following:
        raise InvalidSchema(f"version {request.version} is not one more than the previous version")
    if rows.version(subject, request.version, Visibility.ALL) is not None:
        raise NotPermitted(f'version {request.version} of subject "{subject}" exists with another schema')
    return request.version


def _known_id(rows: Tables, request: Request, read: PostedReading) -> int | None:
    """The id that the schema brings, or has already; None asks for a new one."""
    if request.schema_id is not None:
        if rows.fingerprint(request.schema_id) not in (None, read.prints.exact):
            raise IdTaken(request.schema_id)
        return request.schema_id
    known = rows.id_of(read.prints.exact)
    if known is None and rows.highest_id() >= MAX_ID:
        raise StoreFailed("no schema ids are left")
    return known


def _versions_to_compare(rows: Tables, subject: str, level: CompatibilityLevel) -> Sequence[StoredVersion]:
    return (
        rows.versions(subject, Visibility.LIVE)
        if level.is_transitive
        else _version_to_compare(rows, subject, LATEST)
    )


def _version_to_compare(rows: Tables, subject: str, number: int) -> Sequence[StoredVersion]:
    if number == LATEST:
        latest = rows.latest(subject, Visibility.LIVE)
        return () if latest is None else (latest,)
    found = rows.version(subject, number, Visibility.LIVE)
    if found is None:
        raise UnknownVersion(subject, number)
    return (found,)
