"""A client of any schema registry that speaks Confluent's REST API.

    with RegistryClient(["https://registry:8081"], credentials=Basic("reader", "…")) as registry:
        registry.latest("orders-value").schema

Every call is synchronous and may be made from several threads. What never changes (a schema by id, the target of a
reference) is asked for once. Errors are those of ``headgate.registry.errors``, none of them with a secret in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from urllib.parse import quote

from headgate.registry import answers, refusals
from headgate.registry.answers import RegisteredSchema, SubjectVersion, Verdict
from headgate.registry.errors import IncompatibleSchema, RegistryError
from headgate.registry.refusals import Asked
from headgate.registry.schemas import ParsedSchema, Reference, Schema, SchemaCache, parse
from headgate.registry.transport import Answer, Credentials, Json, Retries, Tls, Transport
from headgate.schema.written import CompatibilityLevel, SchemaFormat


class RegistryClient:
    def __init__(
        self,
        urls: Sequence[str],
        *,
        credentials: Credentials | None = None,
        tls: Tls | None = None,
        timeout: float = 10.0,
        retries: Retries | None = None,
    ) -> None:
        """``urls`` are one registry under several addresses, tried in turn. ``timeout`` in seconds, per attempt."""
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
        asked = Asked(f"read schema {schema_id}", schema_id=schema_id)
        return self._by_id.get(
            schema_id, lambda: answers.schema(self._send("GET", f"/schemas/ids/{schema_id}", asked))
        )

    def versions_of_id(self, schema_id: int) -> tuple[SubjectVersion, ...]:
        """Every version of any subject that carries the id."""
        asked = Asked(f"read the versions of schema {schema_id}", schema_id=schema_id)
        return answers.subject_versions(self._send("GET", f"/schemas/ids/{schema_id}/versions", asked))

    def types(self) -> tuple[str, ...]:
        """The types of schema that the registry takes; may be more than Headgate reads."""
        return answers.texts(self._send("GET", "/schemas/types", Asked("read the types of schemas")))

    # --- subjects

    def subjects(self, prefix: str = "", *, deleted: bool = False) -> tuple[str, ...]:
        """Sorted by name; with ``deleted`` also those deleted softly."""
        query = {"deleted": "true"} if deleted else {}
        if prefix:
            query["subjectPrefix"] = prefix
        asked = Asked("list subjects")
        answer = self._transport.send("GET", "/subjects", asked.what, query=query)
        if answer.registry_code == 404:
            raise answer.unreadable("there are no subjects at this path")
        found = answers.texts(self._taken(answer, asked))
        # Not every registry knows the parameter.
        return tuple(sorted(name for name in found if name.startswith(prefix)))

    def versions(self, subject: str, *, deleted: bool = False) -> tuple[int, ...]:
        """Oldest first. Raises SubjectNotFound or SubjectDeleted."""
        asked = Asked(f'list the versions of subject "{subject}"', subject)
        query = {"deleted": "true"} if deleted else {}
        return tuple(
            sorted(answers.numbers(self._send("GET", f"{_subject(subject)}/versions", asked, query)))
        )

    def version(self, subject: str, version: int, *, deleted: bool = False) -> RegisteredSchema:
        """Raises SubjectNotFound, SubjectDeleted or VersionNotFound."""
        asked = Asked(f'read version {version} of subject "{subject}"', subject, version)
        query = {"deleted": "true"} if deleted else {}
        return answers.registered(self._send("GET", f"{_subject(subject)}/versions/{version}", asked, query))

    def latest(self, subject: str) -> RegisteredSchema:
        """Never from the cache: the next version may be there at any time."""
        asked = Asked(f'read the latest version of subject "{subject}"', subject)
        return answers.registered(self._send("GET", f"{_subject(subject)}/versions/latest", asked))

    def referenced_by(self, subject: str, version: int) -> tuple[int, ...]:
        """The ids of the schemas that refer to this version."""
        asked = Asked(f'read what refers to version {version} of subject "{subject}"', subject, version)
        return answers.numbers(
            self._send("GET", f"{_subject(subject)}/versions/{version}/referencedby", asked)
        )

    def register(
        self,
        subject: str,
        schema: Schema,
        *,
        normalize: bool = False,
        schema_id: int | None = None,
        version: int | None = None,
    ) -> int:
        """The schema's id; registering what is registered changes nothing. Id and version only for a subject in IMPORT mode.

        Raises IncompatibleSchema, SchemaRefused or RequestRefused.
        """
        asked = Asked(f'register a schema for subject "{subject}"', subject)
        body = {**_body(schema), **_given(id=schema_id, version=version)}
        answer = self._transport.send(
            "POST", f"{_subject(subject)}/versions", asked.what, query=_normalize(normalize), body=body
        )
        if answer.status == 409:
            raise IncompatibleSchema(subject, self._reasons(subject, schema) or (answer.reason,))
        return answers.number(self._taken(answer, asked), "id")

    def look_up(
        self, subject: str, schema: Schema, *, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        """The version of the subject that is this very schema. Raises SubjectNotFound or SchemaNotFound."""
        asked = Asked(f'look up a schema in subject "{subject}"', subject)
        query = {**_normalize(normalize), **({"deleted": "true"} if deleted else {})}
        answer = self._send("POST", _subject(subject), asked, query, _body(schema))
        return answers.registered(answer, unnamed=schema.type)

    def delete_version(self, subject: str, version: int, *, permanent: bool = False) -> int:
        """Softly first, then permanently. Raises NotDeletedFirst or StillReferenced when that order is not kept."""
        asked = Asked(f'delete version {version} of subject "{subject}"', subject, version)
        query = {"permanent": "true"} if permanent else {}
        return answers.number(self._send("DELETE", f"{_subject(subject)}/versions/{version}", asked, query))

    def delete_subject(self, subject: str, *, permanent: bool = False) -> tuple[int, ...]:
        """Gives the versions that were deleted; otherwise as ``delete_version``."""
        asked = Asked(f'delete subject "{subject}"', subject)
        query = {"permanent": "true"} if permanent else {}
        return answers.numbers(self._send("DELETE", _subject(subject), asked, query))

    # --- compatibility, levels, modes: a subject of None means the whole registry

    def compatibility(self, subject: str, schema: Schema, version: int | None = None) -> Verdict:
        """What registering would say, or (with a version) how the schema compares with that version alone."""
        asked = Asked(f'test a schema against subject "{subject}"', subject, version)
        path = f"/compatibility{_subject(subject)}/versions" + (f"/{version}" if version is not None else "")
        return answers.verdict(self._send("POST", path, asked, {"verbose": "true"}, _body(schema)))

    def level(self, subject: str | None = None) -> CompatibilityLevel:
        """The level that holds: the subject's own, or else the registry's."""
        asked = Asked("read the compatibility level", subject)
        answer = self._send("GET", _setting("config", subject), asked, {"defaultToGlobal": "true"})
        found = answers.text(answer, "compatibilityLevel", "compatibility")
        if found not in list(CompatibilityLevel):
            raise answer.unreadable(f'"{found[:40]}" is no compatibility level')
        return CompatibilityLevel(found)

    def set_level(self, level: CompatibilityLevel | None, subject: str | None = None) -> None:
        """None takes a subject back to the level of the registry."""
        asked = Asked("set the compatibility level", subject)
        if level is None:
            self._send("DELETE", _setting("config", subject), asked)
        else:
            self._send("PUT", _setting("config", subject), asked, body={"compatibility": level.value})

    def mode(self, subject: str | None = None) -> str:
        """READWRITE, READONLY, READONLY_OVERRIDE or IMPORT; some registries have more."""
        asked = Asked("read the mode", subject)
        answer = self._send("GET", _setting("mode", subject), asked, {"defaultToGlobal": "true"})
        return answers.text(answer, "mode")

    def set_mode(self, mode: str | None, subject: str | None = None, *, force: bool = False) -> None:
        """None takes a subject back to the mode of the registry. IMPORT over existing versions needs ``force``."""
        asked, query = Asked("set the mode", subject), {"force": "true"} if force else {}
        if mode is None:
            self._send("DELETE", _setting("mode", subject), asked)
        else:
            self._send("PUT", _setting("mode", subject), asked, query, {"mode": mode})

    # --- references

    def resolved(self, schema: Schema) -> ParsedSchema:
        """The schema parsed, with everything it refers to. Raises MalformedSchema, UnknownReference, ReferenceCycle.

        References are fetched before parsing, so that a registry that is away is not taken for a missing reference.
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

    def _referred(self, reference: Reference) -> Schema | None:
        """None where there is no such version. Deleted ones count: what refers to them can still be in use."""
        subject, version = reference.subject, reference.version
        try:
            return self._by_reference.get(
                (subject, version), lambda: self.version(subject, version, deleted=True).schema
            )
        except refusals.NOT_FOUND:
            return None

    # --- sending

    def _send(
        self,
        method: str,
        path: str,
        asked: Asked,
        query: Mapping[str, str] | None = None,
        body: Json = None,
    ) -> Answer:
        return self._taken(self._transport.send(method, path, asked.what, query=query, body=body), asked)

    def _taken(self, answer: Answer, asked: Asked) -> Answer:
        if answer.is_refusal:
            raise refusals.error(answer, asked, lambda deleted: self.subjects(deleted=deleted))
        return answer

    def _reasons(self, subject: str, schema: Schema) -> tuple[str, ...]:
        """The messages behind a 409, which has them in one text at best; nothing when they cannot be had."""
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
        body["references"] = [
            {"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references
        ]
    return body
