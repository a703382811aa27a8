"""A client of any schema registry that speaks Confluent's REST API.

    with RegistryClient(["https://registry:8081"], credentials=Basic("reader", "…")) as registry:
        registry.latest("orders-value").schema

Every call is synchronous and may be made from several threads. A schema by id and the target of a reference never
change, so they are fetched once. Errors are those of `headgate.registry.errors`; none of them contains a secret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from urllib.parse import quote

from headgate.registry import responses
from headgate.registry.errors import IncompatibleSchema, RegistryError
from headgate.registry.responses import CompatibilityResult, RegisteredSchema, Request, SubjectVersion
from headgate.registry.schemas import ParsedSchema, Reference, Schema, SchemaCache, parse
from headgate.registry.transport import Answer, Credentials, Json, Retries, Tls, Transport
from headgate.schema.written import CompatibilityLevel, SchemaFormat, WrittenSchema


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

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RegistryClient({', '.join(self._transport.urls)})"

    def close(self) -> None:
        self._transport.close()

    # --- schemas by id

    def schema_by_id(self, schema_id: int) -> Schema:
        """Raises SchemaIdNotFound."""
        request = Request(f"read schema {schema_id}", schema_id=schema_id)
        return self._by_id.get(
            schema_id, lambda: responses.schema(self._send("GET", f"/schemas/ids/{schema_id}", request))
        )

    def versions_of_id(self, schema_id: int) -> tuple[SubjectVersion, ...]:
        """All versions of all subjects that have the id."""
        request = Request(f"read the versions of schema {schema_id}", schema_id=schema_id)
        return responses.subject_versions(self._send("GET", f"/schemas/ids/{schema_id}/versions", request))

    def types(self) -> tuple[str, ...]:
        """The types of schemas that the registry accepts. These may be more than Headgate can read."""
        return responses.texts(self._send("GET", "/schemas/types", Request("read the types of schemas")))

    # --- subjects

    def subjects(self, prefix: str = "", *, deleted: bool = False) -> tuple[str, ...]:
        """The subjects in alphabetical order. With `deleted`, softly deleted ones are included."""
        query = {"deleted": "true"} if deleted else {}
        if prefix:
            query["subjectPrefix"] = prefix
        request = Request("list subjects")
        answer = self._transport.send("GET", "/subjects", request.what, query=query)
        if answer.registry_code == 404:
            raise answer.unreadable("there are no subjects at this path")
        found = responses.texts(self._accepted(answer, request))
        # Not every registry knows the parameter subjectPrefix.
        return tuple(sorted(name for name in found if name.startswith(prefix)))

    def versions(self, subject: str, *, deleted: bool = False) -> tuple[int, ...]:
        """Oldest first. Raises SubjectNotFound or SubjectDeleted."""
        request = Request(f'list the versions of subject "{subject}"', subject)
        query = {"deleted": "true"} if deleted else {}
        return tuple(sorted(responses.numbers(self._send("GET", f"{_subject(subject)}/versions", request, query))))

    def version(self, subject: str, version: int, *, deleted: bool = False) -> RegisteredSchema:
        """Raises SubjectNotFound, SubjectDeleted or VersionNotFound."""
        request = Request(f'read version {version} of subject "{subject}"', subject, version)
        query = {"deleted": "true"} if deleted else {}
        return responses.registered(self._send("GET", f"{_subject(subject)}/versions/{version}", request, query))

    def latest(self, subject: str) -> RegisteredSchema:
        """The latest version. It is never cached, because a new version may be registered at any time."""
        request = Request(f'read the latest version of subject "{subject}"', subject)
        return responses.registered(self._send("GET", f"{_subject(subject)}/versions/latest", request))

    def referenced_by(self, subject: str, version: int) -> tuple[int, ...]:
        """The ids of the schemas that refer to this version."""
        request = Request(f'read what refers to version {version} of subject "{subject}"', subject, version)
        return responses.numbers(self._send("GET", f"{_subject(subject)}/versions/{version}/referencedby", request))

    def register(
        self,
        subject: str,
        schema: Schema,
        *,
        normalize: bool = False,
        schema_id: int | None = None,
        version: int | None = None,
    ) -> int:
        """Return the schema's id. Registering the same schema again changes nothing.

        `schema_id` and `version` are allowed only for a subject in IMPORT mode. Raises IncompatibleSchema,
        SchemaRefused or RequestRefused.
        """
        request = Request(f'register a schema for subject "{subject}"', subject)
        body = {**_body(schema), **_given(id=schema_id, version=version)}
        answer = self._transport.send(
            "POST", f"{_subject(subject)}/versions", request.what, query=_normalize(normalize), body=body
        )
        if answer.status == 409:
            raise IncompatibleSchema(subject, self._reasons(subject, schema) or (answer.reason,))
        return responses.number(self._accepted(answer, request), "id")

    def look_up(
        self, subject: str, schema: Schema, *, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        """The version of the subject that has exactly this schema. Raises SubjectNotFound or SchemaNotFound."""
        request = Request(f'look up a schema in subject "{subject}"', subject)
        query = {**_normalize(normalize), **({"deleted": "true"} if deleted else {})}
        answer = self._send("POST", _subject(subject), request, query, _body(schema))
        return responses.registered(answer, unnamed=schema.type)

    def delete_version(self, subject: str, version: int, *, permanent: bool = False) -> int:
        """Delete a version softly or, after that, permanently.

        Raises NotDeletedFirst if it was not deleted softly before, StillReferenced if another schema refers to it.
        """
        request = Request(f'delete version {version} of subject "{subject}"', subject, version)
        query = {"permanent": "true"} if permanent else {}
        return responses.number(self._send("DELETE", f"{_subject(subject)}/versions/{version}", request, query))

    def delete_subject(self, subject: str, *, permanent: bool = False) -> tuple[int, ...]:
        """Like `delete_version`, for all versions. Returns the numbers of the deleted versions."""
        request = Request(f'delete subject "{subject}"', subject)
        query = {"permanent": "true"} if permanent else {}
        return responses.numbers(self._send("DELETE", _subject(subject), request, query))

    # --- compatibility, levels, modes: a subject of None means the whole registry

    def compatibility(self, subject: str, schema: Schema, version: int | None = None) -> CompatibilityResult:
        """Whether the schema could be registered or, with `version`, whether it is compatible with that version."""
        request = Request(f'test a schema against subject "{subject}"', subject, version)
        path = f"/compatibility{_subject(subject)}/versions" + (f"/{version}" if version is not None else "")
        return responses.compatibility_result(self._send("POST", path, request, {"verbose": "true"}, _body(schema)))

    def level(self, subject: str | None = None) -> CompatibilityLevel:
        """The level in effect: the subject's own, otherwise the registry's."""
        request = Request("read the compatibility level", subject)
        answer = self._send("GET", _setting("config", subject), request, {"defaultToGlobal": "true"})
        found = responses.text(answer, "compatibilityLevel", "compatibility")
        if found not in list(CompatibilityLevel):
            raise answer.unreadable(f'"{found[:40]}" is no compatibility level')
        return CompatibilityLevel(found)

    def own_level(self, subject: str) -> CompatibilityLevel | None:
        """The level that was set for the subject itself, None if it has the registry's."""
        request = Request("read the compatibility level", subject)
        answer = self._transport.send("GET", _setting("config", subject), request.what)
        if answer.status == 404:
            return None
        return CompatibilityLevel(
            responses.text(self._accepted(answer, request), "compatibilityLevel", "compatibility")
        )

    def set_level(self, level: CompatibilityLevel | None, subject: str | None = None) -> None:
        """Set the level. None removes the subject's own level, so that the registry's applies."""
        request = Request("set the compatibility level", subject)
        if level is None:
            self._send("DELETE", _setting("config", subject), request)
        else:
            self._send("PUT", _setting("config", subject), request, body={"compatibility": level.value})

    def mode(self, subject: str | None = None) -> str:
        """READWRITE, READONLY, READONLY_OVERRIDE or IMPORT. Some registries have more modes."""
        request = Request("read the mode", subject)
        answer = self._send("GET", _setting("mode", subject), request, {"defaultToGlobal": "true"})
        return responses.text(answer, "mode")

    def set_mode(self, mode: str | None, subject: str | None = None, *, force: bool = False) -> None:
        """Set the mode. None removes the subject's own mode. IMPORT over existing versions needs `force`."""
        request, query = Request("set the mode", subject), {"force": "true"} if force else {}
        if mode is None:
            self._send("DELETE", _setting("mode", subject), request)
        else:
            self._send("PUT", _setting("mode", subject), request, query, {"mode": mode})

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
            place = (reference.subject, reference.version)
            if place not in found:
                found[place] = self._referred(reference)
                waiting.extend(() if (known := found[place]) is None else known.references)
        return parse(schema, lambda reference: found.get((reference.subject, reference.version)))

    def written(self, schema: Schema, schema_id: int) -> WrittenSchema:
        """The schema with the texts of everything it refers to. Raises what `resolved` raises."""
        references = tuple((other.name, other.schema.text) for other in self.resolved(schema).dependencies)
        return WrittenSchema(schema.text, references, schema_id, schema.type)

    def _referred(self, reference: Reference) -> Schema | None:
        """None if there is no such version. Deleted versions count, because schemas that refer to them may be in
        use."""
        subject, version = reference.subject, reference.version
        try:
            return self._by_reference.get(
                (subject, version), lambda: self.version(subject, version, deleted=True).schema
            )
        except responses.NOT_FOUND:
            return None

    # --- sending

    def _send(
        self,
        method: str,
        path: str,
        request: Request,
        query: Mapping[str, str] | None = None,
        body: Json = None,
    ) -> Answer:
        return self._accepted(self._transport.send(method, path, request.what, query=query, body=body), request)

    def _accepted(self, answer: Answer, request: Request) -> Answer:
        if answer.is_refusal:
            raise responses.error_for(answer, request, lambda deleted: self.subjects(deleted=deleted))
        return answer

    def _reasons(self, subject: str, schema: Schema) -> tuple[str, ...]:
        """The messages behind a 409, which itself has at best one text. Empty if they cannot be fetched."""
        try:
            return self.compatibility(subject, schema).messages
        except RegistryError:
            return ()


def _subject(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def _setting(name: str, subject: str | None) -> str:
    return f"/{name}" if subject is None else f"/{name}/{quote(subject, safe='')}"


def _normalize(normalize: bool) -> dict[str, str]:
    return {"normalize": "true"} if normalize else {}


def _given(**values: int | None) -> dict[str, Json]:
    return {name: value for name, value in values.items() if value is not None}


def _body(schema: Schema) -> dict[str, Json]:
    body: dict[str, Json] = {"schema": schema.text}
    if schema.type is not SchemaFormat.AVRO:
        body["schemaType"] = schema.type.value
    if schema.references:
        body["references"] = [{"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references]
    return body
