"""Which error an answer of a registry means, by its error code and by what was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headgate.errors import similar_names
from headgate.registry.errors import (
    NotDeletedFirst,
    RegistryError,
    RequestRefused,
    SchemaIdNotFound,
    SchemaNotFound,
    SchemaRefused,
    StillReferenced,
    SubjectDeleted,
    SubjectNotFound,
    VersionNotFound,
)
from headgate.registry.transport import Answer

NOT_FOUND = (SubjectNotFound, SubjectDeleted, VersionNotFound)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a call was about. ``what`` is a verb phrase."""

    what: str
    subject: str | None = None
    version: int | None = None
    schema_id: int | None = None


def error(answer: Answer, asked: Asked, subjects: Callable[[bool], tuple[str, ...]]) -> RegistryError:
    """``subjects`` lists the names that there are, with or without the deleted ones.

    When it fails too, that failure is raised where it says more than the answer does.
    """
    subject = asked.subject or ""
    match answer.registry_code:
        case 40403 if asked.schema_id is not None:
            return SchemaIdNotFound(asked.schema_id)
        case 40402 if asked.version is not None:
            return VersionNotFound(subject, asked.version)
        case 40403:
            return SchemaNotFound(subject)
        case 40401 | 40402 | 40404 | 40408 | 40409:
            return _no_subject(subject, asked, subjects)
        case 40406 if asked.version is not None:
            return VersionNotFound(subject, asked.version)
        case 40405 | 40407:
            return NotDeletedFirst(subject, asked.version)
        case 42201:
            return SchemaRefused(subject, answer.reason)
        case 42206:
            return StillReferenced(subject, asked.version)
        case 404:
            subjects(
                False
            )  # raises when the path is wrong; otherwise the registry is right, and has no such call
            return RequestRefused(asked.what, 404, answer.reason)
        case code:
            return RequestRefused(asked.what, code, answer.reason)


def _no_subject(subject: str, asked: Asked, subjects: Callable[[bool], tuple[str, ...]]) -> RegistryError:
    """A deleted subject is told from one that never was; and a version that is deleted from a subject that is."""
    try:
        live, every = subjects(False), subjects(True)
    except RegistryError:
        return SubjectNotFound(subject)
    if subject in live and asked.version is not None:
        return VersionNotFound(subject, asked.version)
    if subject in every:
        return SubjectDeleted(subject)
    return SubjectNotFound(subject, similar_names(subject, live))
