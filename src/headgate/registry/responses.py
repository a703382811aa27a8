"""What a registry answers, as values, and the error that a refusal means.

An answer of another shape than the API's is a RegistryAnswerUnreadable, never a KeyError.
"""

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
from headgate.registry.schemas import Reference, Schema
from headgate.registry.transport import Answer, Json
from headgate.schema.written import SchemaFormat


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A version of a subject."""

    subject: str
    version: int
    schema_id: int
    schema: Schema


@dataclass(frozen=True, slots=True)
class SubjectVersion:
    """The number of a version, without its schema."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class CompatibilityResult:
    """`messages` are the registry's reasons if the schema is not compatible."""

    is_compatible: bool
    messages: tuple[str, ...] = ()


def schema(answer: Answer) -> Schema:
    return _schema(answer, answer.body, SchemaFormat.AVRO)


def registered(answer: Answer, unnamed: SchemaFormat = SchemaFormat.AVRO) -> RegisteredSchema:
    """`unnamed` is the format if the answer names none. In Confluent's API that is Avro; Apicurio leaves it out when
    a schema is looked up, so there it is the format of the request."""
    match answer.body:
        case {"subject": str(subject), "version": int(version), "id": int(schema_id)}:
            return RegisteredSchema(subject, version, schema_id, _schema(answer, answer.body, unnamed))
        case _:
            raise answer.unreadable("a version of a subject was asked for")


def compatibility_result(answer: Answer) -> CompatibilityResult:
    match answer.body:
        case {"is_compatible": bool(is_compatible), "messages": list(messages)}:
            return CompatibilityResult(is_compatible, tuple(str(message) for message in messages))
        case {"is_compatible": False, "reason": str(reason)}:  # Apicurio's spelling
            return CompatibilityResult(False, (reason,))
        case {"is_compatible": bool(is_compatible)}:
            return CompatibilityResult(is_compatible)
        case _:
            raise answer.unreadable("a compatibility verdict was asked for")


def number(answer: Answer, name: str | None = None) -> int:
    value = answer.body.get(name) if name is not None and isinstance(answer.body, dict) else answer.body
    if not isinstance(value, int) or isinstance(value, bool):
        raise answer.unreadable("a number was asked for")
    return value


def text(answer: Answer, *names: str) -> str:
    """The value of the first of these names that the answer has."""
    if isinstance(answer.body, dict):
        for name in names:
            if isinstance(value := answer.body.get(name), str):
                return value
    raise answer.unreadable(f'"{names[0]}" was asked for')


def numbers(answer: Answer) -> tuple[int, ...]:
    items = _items(answer)
    if not all(isinstance(item, int) for item in items):
        raise answer.unreadable("a list of numbers was asked for")
    return tuple(item for item in items if isinstance(item, int))


def texts(answer: Answer) -> tuple[str, ...]:
    items = _items(answer)
    if not all(isinstance(item, str) for item in items):
        raise answer.unreadable("a list of names was asked for")
    return tuple(item for item in items if isinstance(item, str))


def subject_versions(answer: Answer) -> tuple[SubjectVersion, ...]:
    return tuple(_subject_version(answer, item) for item in _items(answer))


def _subject_version(answer: Answer, item: Json) -> SubjectVersion:
    match item:
        case {"subject": str(subject), "version": int(version)}:
            return SubjectVersion(subject, version)
        case _:
            raise answer.unreadable("a list of versions was asked for")


def _items(answer: Answer) -> list[Json]:
    if not isinstance(answer.body, list):
        raise answer.unreadable("a list was asked for")
    return answer.body


def _schema(answer: Answer, body: Json, unnamed: SchemaFormat) -> Schema:
    if not isinstance(body, dict) or not isinstance(body.get("schema"), str):
        raise answer.unreadable("a schema was asked for")
    found = str(body.get("schemaType") or unnamed)
    if found not in list(SchemaFormat):
        raise answer.unreadable(f'"{found[:40]}" is no type of schema that Headgate reads')
    references = body.get("references")
    references = [] if references is None else references
    if not isinstance(references, list):
        raise answer.unreadable("references are not a list")
    return Schema(str(body["schema"]), SchemaFormat(found), tuple(_reference(answer, r) for r in references))


def _reference(answer: Answer, item: Json) -> Reference:
    match item:
        case {"name": str(name), "subject": str(subject), "version": int(version)}:
            return Reference(name, subject, version)
        case _:
            raise answer.unreadable("a reference has no name, subject or version")


NOT_FOUND = (SubjectNotFound, SubjectDeleted, VersionNotFound)


@dataclass(frozen=True, slots=True)
class Request:
    """What a call was about. `what` is a verb phrase for error messages."""

    what: str
    subject: str | None = None
    version: int | None = None
    schema_id: int | None = None


def error_for(answer: Answer, request: Request, subjects: Callable[[bool], tuple[str, ...]]) -> RegistryError:
    """The error that a refusal means, by its code and by the request.

    `subjects` lists the names of all subjects, with or without the deleted ones. If listing the subjects fails as
    well, that error is raised: it is more specific.
    """
    subject = request.subject or ""
    match answer.registry_code:
        case 40403 if request.schema_id is not None:
            return SchemaIdNotFound(request.schema_id)
        case 40402 if request.version is not None:
            return VersionNotFound(subject, request.version)
        case 40403:
            return SchemaNotFound(subject)
        case 40401 | 40402 | 40404 | 40408 | 40409:
            return _no_subject(subject, request, subjects)
        case 40406 if request.version is not None:
            return VersionNotFound(subject, request.version)
        case 40405 | 40407:
            return NotDeletedFirst(subject, request.version)
        case 42201:
            return SchemaRefused(subject, answer.reason)
        case 42206:
            return StillReferenced(subject, request.version)
        case 404:
            # This raises if the address is wrong. Otherwise the registry does not know the call.
            subjects(False)
            return RequestRefused(request.what, 404, answer.reason)
        case code:
            return RequestRefused(request.what, code, answer.reason)


def _no_subject(subject: str, request: Request, subjects: Callable[[bool], tuple[str, ...]]) -> RegistryError:
    """Distinguishes an unknown subject, a deleted subject, and a deleted version of a subject that exists."""
    try:
        live, every = subjects(False), subjects(True)
    except RegistryError:
        return SubjectNotFound(subject)
    if subject in live and request.version is not None:
        return VersionNotFound(subject, request.version)
    if subject in every:
        return SubjectDeleted(subject)
    return SubjectNotFound(subject, similar_names(subject, live))
