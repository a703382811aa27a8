"""A client of any schema registry that speaks Confluent's REST API.

    with RegistryClient(["https://registry:8081"], credentials=Credentials("reader", "…")) as registry:
        registry.latest("orders-value").schema

Every call is synchronous and may be made from several threads. A schema by id and the target of a reference never
change, so they are fetched once. Errors are those of `headgate.registry.errors`; none of them contains a secret. An
answer of another shape than the API's is a RegistryAnswerUnreadable, never a KeyError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

from headgate.errors import similar_names
from headgate.registry import errors
from headgate.registry.schemas import ParsedSchema, Reference, Schema, SchemaCache, parse
from headgate.registry.transport import Answer, Credentials, Json, Request, Retries, Tls, Transport
from headgate.schema.formats.protobuf import message_in, read_files
from headgate.schema.written import CompatibilityLevel, SchemaFormat, WrittenSchema

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A version of a subject."""

    subject: str
    version: int
    schema_id: int
    schema: Schema


@dataclass(frozen=True, slots=True)
class CompatibilityResult:
    """`messages` are the registry's reasons if the schema is not compatible."""

    is_compatible: bool
    messages: tuple[str, ...] = ()


class RegistryClient:
    """A registry. Methods raise RegistryUnreachable or RegistryFailed after all retries, whatever else they raise."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        credentials: Credentials | None = None,
        tls: Tls | None = None,
        timeout: float = 10.0,
        retries: Retries | None = None,
    ) -> None:
        """`urls` are several addresses of one registry, tried in turn. `timeout` is in seconds, per attempt."""
        self._transport = Transport(urls, credentials, tls, timeout, retries)
        self._by_id: SchemaCache[int, Schema] = SchemaCache()
        self._by_reference: SchemaCache[tuple[str, int], Schema] = SchemaCache()

    def __enter__(self) -> RegistryClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RegistryClient({', '.join(self._transport.urls)})"

    def close(self) -> None:
        self._transport.close()

    # --- schemas by id

    def schema_by_id(self, schema_id: int) -> Schema:
        """Raises SchemaIdNotFound."""
        request = Request("GET", f"/schemas/ids/{schema_id}", f"read schema {schema_id}", schema_id=schema_id)
        return self._by_id.get(schema_id, lambda: _schema(self._send(request), SchemaFormat.AVRO))

    def types(self) -> tuple[str, ...]:
        """The types of schemas that the registry accepts. These may be more than Headgate can read."""
        return _list(self._send(Request("GET", "/schemas/types", "read the types of schemas")), str, "names")

    # --- subjects

    def subjects(self, *, deleted: bool = False) -> tuple[str, ...]:
        """The subjects in alphabetical order. With `deleted`, softly deleted ones are included."""
        request = Request("GET", "/subjects", "list subjects", _flags(deleted=deleted))
        answer = self._transport.send(request)
        # Every registry has the list of subjects, so a 404 means that the base path of the URL is wrong.
        if answer.registry_code == 404:
            raise answer.unreadable("there are no subjects at this path")
        return tuple(sorted(_list(self._accepted(answer, request), str, "names")))

    def versions(self, subject: str) -> tuple[int, ...]:
        """Oldest first. Raises SubjectNotFound or SubjectDeleted."""
        what = f'list the versions of subject "{subject}"'
        answer = self._send(Request("GET", f"{_subject(subject)}/versions", what, subject=subject))
        return tuple(sorted(_list(answer, int, "numbers")))

    def version(self, subject: str, version: int, *, deleted: bool = False) -> RegisteredSchema:
        """Raises SubjectNotFound, SubjectDeleted or VersionNotFound."""
        path, what = f"{_subject(subject)}/versions/{version}", f'read version {version} of subject "{subject}"'
        request = Request("GET", path, what, _flags(deleted=deleted), subject=subject, version=version)
        return _registered(self._send(request))

    def latest(self, subject: str) -> RegisteredSchema:
        """The latest version. It is never cached, because a new version may be registered at any time."""
        path, what = f"{_subject(subject)}/versions/latest", f'read the latest version of subject "{subject}"'
        return _registered(self._send(Request("GET", path, what, subject=subject)))

    def register(self, subject: str, schema: Schema, *, schema_id: int | None = None) -> int:
        """Return the schema's id. Registering the same schema again changes nothing.

        `schema_id` is allowed only for a subject in IMPORT mode. Raises IncompatibleSchema, SchemaRefused or
        RequestRefused.
        """
        body = _body(schema) if schema_id is None else {**_body(schema), "id": schema_id}
        path, what = f"{_subject(subject)}/versions", f'register a schema for subject "{subject}"'
        request = Request("POST", path, what, body=body, subject=subject)
        answer = self._transport.send(request)
        # A 409 has one text at best. The compatibility resource lists all reasons.
        if answer.status == 409:
            raise errors.IncompatibleSchema(subject, self._reasons(subject, schema) or (answer.reason,))
        return _number(self._accepted(answer, request), "id")

    def look_up(self, subject: str, schema: Schema) -> RegisteredSchema:
        """The version of the subject that has exactly this schema. Raises SubjectNotFound or SchemaNotFound."""
        what = f'look up a schema in subject "{subject}"'
        answer = self._send(Request("POST", _subject(subject), what, body=_body(schema), subject=subject))
        return _registered(answer, unnamed=schema.type)

    def version_of(self, subject: str, schema: Schema) -> int | None:
        """The version of the subject that has exactly this schema; None if it has none."""
        try:
            return self.look_up(subject, schema).version
        except (errors.SubjectNotFound, errors.SubjectDeleted, errors.SchemaNotFound):
            return None

    def delete_version(self, subject: str, version: int) -> int:
        """Delete a version softly. Raises StillReferenced if another schema refers to it."""
        path, what = f"{_subject(subject)}/versions/{version}", f'delete version {version} of subject "{subject}"'
        return _number(self._send(Request("DELETE", path, what, subject=subject, version=version)))

    def delete_subject(self, subject: str, *, permanent: bool = False) -> tuple[int, ...]:
        """Delete all versions softly or, after that, permanently. Returns the numbers of the deleted versions.

        Raises NotDeletedFirst if they were not deleted softly before, StillReferenced if another schema refers to one.
        """
        what = f'delete subject "{subject}"'
        request = Request("DELETE", _subject(subject), what, _flags(permanent=permanent), subject=subject)
        return _list(self._send(request), int, "numbers")

    # --- compatibility, levels, modes: a subject of None means the whole registry

    def compatibility(self, subject: str, schema: Schema) -> CompatibilityResult:
        """Whether the schema could be registered."""
        path, what = f"/compatibility{_subject(subject)}/versions", f'test a schema against subject "{subject}"'
        request = Request("POST", path, what, _flags(verbose=True), _body(schema), subject)
        return _compatibility_result(self._send(request))

    def level(self, subject: str | None = None) -> CompatibilityLevel:
        """The level in effect: the subject's own, otherwise the registry's."""
        request = _setting("GET", "config", subject, "read the compatibility level", _flags(defaultToGlobal=True))
        return _level(self._send(request))

    def own_level(self, subject: str) -> CompatibilityLevel | None:
        """The level that was set for the subject itself, None if it has the registry's."""
        request = _setting("GET", "config", subject, "read the compatibility level")
        answer = self._transport.send(request)
        return None if answer.status == 404 else _level(self._accepted(answer, request))

    def set_level(self, level: CompatibilityLevel | None, subject: str | None = None) -> None:
        """Set the level. None removes the subject's own level, so that the registry's applies."""
        body: Json = None if level is None else {"compatibility": level.value}
        self._send(_setting("PUT" if body else "DELETE", "config", subject, "set the compatibility level", body=body))

    def set_mode(self, mode: str | None, subject: str | None = None, *, force: bool = False) -> None:
        """Set the mode. None removes the subject's own mode. IMPORT over existing versions needs `force`."""
        body: Json = None if mode is None else {"mode": mode}
        self._send(_setting("PUT" if body else "DELETE", "mode", subject, "set the mode", _flags(force=force), body))

    # --- references

    def resolved(self, schema: Schema) -> ParsedSchema:
        """Parse the schema with everything it refers to. Raises MalformedSchema, UnknownReference or ReferenceCycle.

        References are fetched before parsing. Otherwise `parse` would report a registry that cannot be reached as a
        missing reference.
        """
        found: dict[tuple[str, int], Schema | None] = {}
        waiting = [*schema.references]
        while waiting:
            reference = waiting.pop()
            target = (reference.subject, reference.version)
            if target not in found:
                found[target] = self._referred(reference)
                waiting.extend(() if (known := found[target]) is None else known.references)
        return parse(schema, lambda reference: found.get((reference.subject, reference.version)))

    def written(self, schema: Schema, schema_id: int) -> WrittenSchema:
        """The schema with the texts of everything it refers to. Raises what `resolved` raises."""
        references = tuple((other.name, other.schema.text) for other in self.resolved(schema).dependencies)
        return WrittenSchema(schema.text, references, schema_id, schema.type)

    def with_message(self, schema_id: int, message: str) -> WrittenSchema | None:
        """The Protobuf schema in which a message stands: the one with the id, or one that it imports, with the id which that one has.
        None if the message is in none of them. The frame of a record names messages of one schema alone. In an imported schema the
        message is looked for by its full name."""
        whole = self.schema_by_id(schema_id)
        found = self.written(whole, schema_id)
        if _message_in(found, message) is not None:
            return found
        waiting = list(dict.fromkeys(whole.references))
        for reference in waiting:  # grows by what the references refer to
            version = self.version(reference.subject, reference.version, deleted=True)
            imported = self.written(version.schema, version.schema_id)
            if _message_in(imported, message) == message.removeprefix("."):
                return imported
            waiting += [other for other in version.schema.references if other not in waiting]
        return None

    def _referred(self, reference: Reference) -> Schema | None:
        """None if there is no such version. Deleted versions count, because schemas that refer to them may be in
        use."""
        subject, version = reference.subject, reference.version
        try:
            return self._by_reference.get(
                (subject, version), lambda: self.version(subject, version, deleted=True).schema
            )
        except (errors.SubjectNotFound, errors.SubjectDeleted, errors.VersionNotFound):
            return None

    # --- sending

    def _send(self, request: Request) -> Answer:
        return self._accepted(self._transport.send(request), request)

    def _accepted(self, answer: Answer, request: Request) -> Answer:
        """The answer. Raises the error that a refusal means."""
        if answer.is_refusal:
            raise _error_for(answer, request, lambda deleted: self.subjects(deleted=deleted))
        return answer

    def _reasons(self, subject: str, schema: Schema) -> tuple[str, ...]:
        """The messages behind a 409, which itself has at best one text. Empty if they cannot be fetched."""
        try:
            return self.compatibility(subject, schema).messages
        except errors.RegistryError:
            return ()


# --- requests


def _subject(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def _setting(
    method: str, name: str, subject: str | None, what: str, query: dict[str, str] | None = None, body: Json = None
) -> Request:
    path = f"/{name}" if subject is None else f"/{name}/{quote(subject, safe='')}"
    return Request(method, path, what, query or {}, body, subject)


def _flags(**flags: bool) -> dict[str, str]:
    """The query parameters of the flags that are set. A registry takes a missing flag as false."""
    return {name: "true" for name, is_set in flags.items() if is_set}


def _body(schema: Schema) -> dict[str, Json]:
    """A schema as the API takes it. The type AVRO is left out, because old registries do not know the name."""
    body: dict[str, Json] = {"schema": schema.text}
    if schema.type is not SchemaFormat.AVRO:
        body["schemaType"] = schema.type.value
    if schema.references:
        body["references"] = [{"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references]
    return body


# --- answers


def _registered(answer: Answer, unnamed: SchemaFormat = SchemaFormat.AVRO) -> RegisteredSchema:
    """`unnamed` is the format if the answer names none. In Confluent's API that is Avro; Apicurio leaves it out when
    a schema is looked up, so there it is the format of the request."""
    match answer.body:
        case {"subject": str(subject), "version": int(version), "id": int(schema_id)}:
            return RegisteredSchema(subject, version, schema_id, _schema(answer, unnamed))
        case _:
            raise answer.unreadable("a version of a subject was asked for")


def _schema(answer: Answer, unnamed: SchemaFormat) -> Schema:
    """The schema of an answer. `unnamed` is the format if the answer names none."""
    match answer.body:
        case {"schema": str(text), **others}:
            found, references = str(others.get("schemaType") or unnamed), others.get("references")
        case _:
            raise answer.unreadable("a schema was asked for")
    if found not in list(SchemaFormat):
        raise answer.unreadable(f'"{found[:40]}" is no type of schema that Headgate reads')
    if references is not None and not isinstance(references, list):
        raise answer.unreadable("references are not a list")
    return Schema(text, SchemaFormat(found), tuple(_reference(answer, item) for item in references or ()))


def _reference(answer: Answer, item: Json) -> Reference:
    match item:
        case {"name": str(name), "subject": str(subject), "version": int(version)}:
            return Reference(name, subject, version)
        case _:
            raise answer.unreadable("a reference has no name, subject or version")


def _compatibility_result(answer: Answer) -> CompatibilityResult:
    """Registries differ in how they give their reasons, and some give none."""
    match answer.body:
        case {"is_compatible": bool(is_compatible), "messages": list(messages)}:
            return CompatibilityResult(is_compatible, tuple(str(message) for message in messages))
        case {"is_compatible": False, "reason": str(reason)}:  # Apicurio's spelling
            return CompatibilityResult(False, (reason,))
        case {"is_compatible": bool(is_compatible)}:
            return CompatibilityResult(is_compatible)
        case _:
            raise answer.unreadable("a compatibility verdict was asked for")


def _level(answer: Answer) -> CompatibilityLevel:
    """Registries call it "compatibilityLevel" in the answer to a question, and "compatibility" elsewhere."""
    match answer.body:
        case {"compatibilityLevel": str(found)} | {"compatibility": str(found)}:
            if found not in list(CompatibilityLevel):
                raise answer.unreadable(f'"{found[:40]}" is no compatibility level')
            return CompatibilityLevel(found)
        case _:
            raise answer.unreadable('"compatibilityLevel" was asked for')


def _number(answer: Answer, name: str | None = None) -> int:
    value = answer.body.get(name) if name is not None and isinstance(answer.body, dict) else answer.body
    if not isinstance(value, int) or isinstance(value, bool):
        raise answer.unreadable("a number was asked for")
    return value


def _list(answer: Answer, kind: type[T], what: str) -> tuple[T, ...]:
    """A list whose items are all of one kind; `what` names them in the error."""
    if not isinstance(answer.body, list):
        raise answer.unreadable("a list was asked for")
    items = tuple(item for item in answer.body if isinstance(item, kind))
    if len(items) < len(answer.body):
        raise answer.unreadable(f"a list of {what} was asked for")
    return items


# --- refusals


def _error_for(answer: Answer, request: Request, subjects: Callable[[bool], tuple[str, ...]]) -> errors.RegistryError:
    """The error that a refusal means, by its code and by the request.

    `subjects` lists the names of all subjects, with or without the deleted ones. If listing the subjects fails as
    well, that error is raised: it is more specific.
    """
    subject = request.subject or ""
    match answer.registry_code:
        case 40403 if request.schema_id is not None:
            return errors.SchemaIdNotFound(request.schema_id)
        case 40403:
            return errors.SchemaNotFound(subject)
        case 40402 | 40406 if request.version is not None:
            return errors.VersionNotFound(subject, request.version)
        case 40401 | 40402 | 40404 | 40408 | 40409:
            return _no_subject(subject, request, subjects)
        case 40405 | 40407:
            return errors.NotDeletedFirst(subject, request.version)
        case 42201:
            return errors.SchemaRefused(subject, answer.reason)
        case 42206:
            return errors.StillReferenced(subject, request.version)
        case 404:
            # This raises if the address is wrong. Otherwise the registry does not know the call.
            subjects(False)
            return errors.RequestRefused(request.what, 404, answer.reason)
        case code:
            return errors.RequestRefused(request.what, code, answer.reason)


def _no_subject(subject: str, request: Request, subjects: Callable[[bool], tuple[str, ...]]) -> errors.RegistryError:
    """Distinguishes an unknown subject, a deleted subject, and a deleted version of a subject that exists."""
    try:
        live, every = subjects(False), subjects(True)
    except errors.RegistryError:
        return errors.SubjectNotFound(subject)
    if subject in live and request.version is not None:
        return errors.VersionNotFound(subject, request.version)
    if subject in every:
        return errors.SubjectDeleted(subject)
    return errors.SubjectNotFound(subject, similar_names(subject, live))


def _message_in(schema: WrittenSchema, message: str) -> str | None:
    return message_in(read_files(schema.text, schema.references), message)
