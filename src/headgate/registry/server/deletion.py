"""Deleting in two steps: softly, which hides a version and keeps its id readable, then permanently."""

from __future__ import annotations

from headgate.registry.server.errors import (
    ReferencedElsewhere,
    SubjectAlreadyDeleted,
    SubjectNotDeleted,
    UnknownSubject,
    UnknownVersion,
    VersionAlreadyDeleted,
    VersionNotDeleted,
)
from headgate.registry.server.store import LATEST, StoredVersion, Tables, Visibility


def delete_version(rows: Tables, subject: str, number: int, *, permanent: bool) -> int:
    """Gives the number of the version that was deleted."""
    version = _find(rows, subject, number, permanent=permanent)
    if not permanent and version.deleted:
        raise VersionAlreadyDeleted(subject, version.version)
    refuse_if_referenced(rows, version, Visibility.ALL if permanent else Visibility.LIVE)
    if not permanent:
        rows.mark_deleted(subject, version.version)
        return version.version
    if not version.deleted:
        raise VersionNotDeleted(subject, version.version)
    _remove(rows, (version,))
    return version.version


def delete_subject(rows: Tables, subject: str, *, permanent: bool) -> tuple[int, ...]:
    """Gives the numbers of the versions that were deleted."""
    every = rows.versions(subject, Visibility.ALL)
    live = tuple(version for version in every if not version.deleted)
    if not every:
        raise UnknownSubject(subject)
    if not permanent and not live:
        raise SubjectAlreadyDeleted(subject)
    concerned = every if permanent else live
    for version in concerned:
        refuse_if_referenced(rows, version, Visibility.ALL if permanent else Visibility.LIVE, but_by=subject)
    if permanent and live:
        raise SubjectNotDeleted(subject)
    if permanent:
        _remove(rows, concerned)
    else:
        for version in concerned:
            rows.mark_deleted(subject, version.version)
    return tuple(version.version for version in concerned)


def remove_all(rows: Tables, subject: str) -> None:
    """Remove what is left of a subject for good, all of whose versions are deleted."""
    versions = rows.versions(subject, Visibility.ALL)
    for version in versions:
        refuse_if_referenced(rows, version, Visibility.ALL, but_by=subject)
    _remove(rows, versions)


def refuse_if_referenced(
    rows: Tables, version: StoredVersion, show: Visibility, *, but_by: str | None = None
) -> None:
    """A version that others refer to stays; references from within a subject do not hold the whole subject."""
    referring = rows.referring(version.subject, version.version, show)
    ids = sorted({other.schema_id for other in referring if other.subject != but_by})
    if ids:
        raise ReferencedElsewhere(version.subject, version.version, tuple(ids))


def _find(rows: Tables, subject: str, number: int, *, permanent: bool) -> StoredVersion:
    if number == LATEST:
        found = rows.latest(subject, Visibility.ALL if permanent else Visibility.LIVE)
    else:
        found = rows.version(subject, number, Visibility.ALL)
    if found is not None:
        return found
    if rows.latest(subject, Visibility.ALL) is None:
        raise UnknownSubject(subject)
    raise UnknownVersion(subject, number)


def _remove(rows: Tables, versions: tuple[StoredVersion, ...]) -> None:
    for version in versions:
        rows.remove_version(version.subject, version.version)
    rows.forget_unused({version.schema_id for version in versions})
    for subject in {version.subject for version in versions}:
        if rows.latest(subject, Visibility.ALL) is None:
            rows.settings.drop_config(subject)
            rows.settings.drop_mode(subject)
