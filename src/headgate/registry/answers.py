"""What a registry answers, as values. A shape that is not the API's is an unreadable answer, never a KeyError."""

from __future__ import annotations

from dataclasses import dataclass

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
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a schema may follow; ``messages`` are the registry's reasons when it may not."""

    is_compatible: bool
    messages: tuple[str, ...] = ()


def schema(answer: Answer) -> Schema:
    return _schema(answer, answer.body, SchemaFormat.AVRO)


def registered(answer: Answer, unnamed: SchemaFormat = SchemaFormat.AVRO) -> RegisteredSchema:
    """``unnamed`` is the type where the answer names none: Avro, and for Apicurio's look-ups the type asked for."""
    match answer.body:
        case {"subject": str(subject), "version": int(version), "id": int(schema_id)}:
            return RegisteredSchema(subject, version, schema_id, _schema(answer, answer.body, unnamed))
        case _:
            raise answer.unreadable("a version of a subject was asked for")


def verdict(answer: Answer) -> Verdict:
    match answer.body:
        case {"is_compatible": bool(is_compatible), "messages": list(messages)}:
            return Verdict(is_compatible, tuple(str(message) for message in messages))
        case {"is_compatible": False, "reason": str(reason)}:  # Apicurio's spelling
            return Verdict(False, (reason,))
        case {"is_compatible": bool(is_compatible)}:
            return Verdict(is_compatible)
        case _:
            raise answer.unreadable("a compatibility verdict was asked for")


def number(answer: Answer, name: str | None = None) -> int:
    value = answer.body.get(name) if name is not None and isinstance(answer.body, dict) else answer.body
    if not isinstance(value, int) or isinstance(value, bool):
        raise answer.unreadable("a number was asked for")
    return value


def text(answer: Answer, *names: str) -> str:
    """The first of these names that the answer has."""
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
