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
from headgate.registry.server.rows import LATEST, StoredVersion, Tables, Visibility


def delete_version(tables: Tables, subject: str, number: int, *, permanent: bool) -> int:
    """Gives the number of the version that was deleted."""
    version = _find_to_delete(tables, subject, number, permanent=permanent)
    if not permanent and version.deleted:
        raise VersionAlreadyDeleted(subject, version.version)
    refuse_if_referenced(tables, version, Visibility.ALL if permanent else Visibility.LIVE)
    if not permanent:
        tables.mark_deleted(subject, version.version)
        return version.version
    if not version.deleted:
        raise VersionNotDeleted(subject, version.version)
    _remove_versions(tables, (version,))
    return version.version


def delete_subject(tables: Tables, subject: str, *, permanent: bool) -> tuple[int, ...]:
    """Gives the numbers of the versions that were deleted."""
    every = tables.versions(subject, Visibility.ALL)
    live = tuple(version for version in every if not version.deleted)
    if not every:
        raise UnknownSubject(subject)
    if not permanent and not live:
        raise SubjectAlreadyDeleted(subject)
    concerned = every if permanent else live
    for version in concerned:
        refuse_if_referenced(
            tables, version, Visibility.ALL if permanent else Visibility.LIVE, but_by=subject
        )
    if permanent and live:
        raise SubjectNotDeleted(subject)
    if permanent:
        _remove_versions(tables, concerned)
    else:
        for version in concerned:
            tables.mark_deleted(subject, version.version)
    return tuple(version.version for version in concerned)


def remove_all(tables: Tables, subject: str) -> None:
    """Remove what is left of a subject for good, all of whose versions are deleted."""
    versions = tables.versions(subject, Visibility.ALL)
    for version in versions:
        refuse_if_referenced(tables, version, Visibility.ALL, but_by=subject)
    _remove_versions(tables, versions)


def refuse_if_referenced(
    tables: Tables, version: StoredVersion, visibility: Visibility, *, but_by: str | None = None
) -> None:
    """A version that others refer to stays; references from within a subject do not hold the whole subject."""
    referring = tables.referring(version.subject, version.version, visibility)
    ids = sorted({other.schema_id for other in referring if other.subject != but_by})
    if ids:
        raise ReferencedElsewhere(version.subject, version.version, tuple(ids))


def _find_to_delete(tables: Tables, subject: str, number: int, *, permanent: bool) -> StoredVersion:
    if number == LATEST:
        found = tables.latest(subject, Visibility.ALL if permanent else Visibility.LIVE)
    else:
        found = tables.version(subject, number, Visibility.ALL)
    if found is not None:
        return found
    if tables.latest(subject, Visibility.ALL) is None:
        raise UnknownSubject(subject)
    raise UnknownVersion(subject, number)


def _remove_versions(tables: Tables, versions: tuple[StoredVersion, ...]) -> None:
    for version in versions:
        tables.remove_version(version.subject, version.version)
    tables.drop_unreferenced({version.schema_id for version in versions})
    for subject in {version.subject for version in versions}:
        if tables.latest(subject, Visibility.ALL) is None:
            tables.settings.drop_config(subject)
            tables.settings.drop_mode(subject)
