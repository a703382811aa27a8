"""``/subjects``: listing, registering, looking up, deleting."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.routing import Route

from headgate.registry.schemas import Schema
from headgate.registry.server import requests as bodies
from headgate.registry.server import requests as names
from headgate.registry.server import rules as deletion
from headgate.registry.server import rules as registration
from headgate.registry.server import rules as settings
from headgate.registry.server import store as reading
from headgate.registry.server.errors import InvalidSchema, UnknownSubject
from headgate.registry.server.requests import Call, Json, Raw
from headgate.registry.server.routes import Service
from headgate.registry.server.store import StoredVersion, Tables, Visibility


def routes(service: Service) -> list[Route]:
    here, route = _Subjects(service), service.route
    versions = "/subjects/{subject}/versions"
    return [
        route("GET", "/subjects", here.list),
        route("GET", versions, here.versions),
        route("GET", versions + "/{version}", here.version),
        route("GET", versions + "/{version}/schema", here.text),
        route("GET", versions + "/{version}/referencedby", here.referenced_by),
        route("POST", versions, here.register),
        route("POST", "/subjects/{subject}", here.look_up, writes=False),
        route("DELETE", versions + "/{version}", here.delete_version),
        route("DELETE", "/subjects/{subject}", here.delete),
    ]


def formatted(rows: Tables, schema: Schema, form: str) -> str:
    """A schema's text as kept, or the form asked for: ``serialized`` gives a Protobuf descriptor in base64."""
    if form == "serialized":
        return bodies.serialized(reading.parse_stored(rows, schema))
    if form not in ("", "default"):
        raise InvalidSchema(f'"{form[:40]}" is no format of a schema; leave it out, or write serialized')
    return schema.text


@dataclass(frozen=True, slots=True)
class _Subjects:
    service: Service

    def list(self, call: Call) -> Json:
        with self.service.store.reading() as rows:
            return call.page(rows.subjects(names.prefix(call.query.get("subjectPrefix", "")), _show(call)))

    def versions(self, call: Call) -> Json:
        subject = names.subject(call.path["subject"])
        with self.service.store.reading() as rows:
            found = rows.versions(subject, _show(call))
            if (
                not found
                and rows.latest(
                    subject, Visibility.ALL if _show(call) is not Visibility.LIVE else Visibility.LIVE
                )
                is None
            ):
                raise UnknownSubject(subject)
        return call.page(tuple(version.version for version in found))

    def version(self, call: Call) -> Json:
        with self.service.store.reading() as rows:
            version = _named(rows, call, _show(call))
            return bodies.version_answer(
                version, formatted(rows, version.schema, call.query.get("format", ""))
            )

    def text(self, call: Call) -> Raw:
        with self.service.store.reading() as rows:
            version = _named(rows, call, _show(call))
            return Raw(formatted(rows, version.schema, call.query.get("format", "")))

    def referenced_by(self, call: Call) -> Json:
        with self.service.store.reading() as rows:
            version = _named(rows, call, Visibility.ALL)
            referring = rows.referring(version.subject, version.version, _show(call))
        return call.page(tuple(sorted({other.schema_id for other in referring})))

    def register(self, call: Call) -> Json:
        subject, request = names.subject(call.path["subject"]), bodies.schema_request(call.body)
        normalize = call.flag("normalize")
        with self.service.store.writing() as rows:
            version = self.service.registrar.register(rows, subject, request, normalize=normalize)
        # Old clients refuse an answer with names that they do not know; new ones say that they do not mind.
        if call.headers.get("confluent-accept-unknown-properties", "").lower() == "true":
            return {"id": version.schema_id, "version": version.version}
        return {"id": version.schema_id}

    def look_up(self, call: Call) -> Json:
        subject, request = names.subject(call.path["subject"]), bodies.schema_request(call.body)
        with self.service.store.reading() as rows:
            version = registration.look_up(
                rows, subject, request.schema, normalize=call.flag("normalize"), show=_show(call)
            )
            return bodies.version_answer(
                version, formatted(rows, version.schema, call.query.get("format", ""))
            )

    def delete_version(self, call: Call) -> Json:
        subject, number = names.subject(call.path["subject"]), names.version(call.path["version"])
        with self.service.store.writing() as rows:
            settings.refuse_if_read_only(rows, subject)
            return deletion.delete_version(rows, subject, number, permanent=call.flag("permanent"))

    def delete(self, call: Call) -> Json:
        subject = names.subject(call.path["subject"])
        with self.service.store.writing() as rows:
            settings.refuse_if_read_only(rows, subject)
            return [*deletion.delete_subject(rows, subject, permanent=call.flag("permanent"))]


def _named(rows: Tables, call: Call, show: Visibility) -> StoredVersion:
    subject, number = names.subject(call.path["subject"]), names.version(call.path["version"])
    return registration.find(rows, subject, number, show)


def _show(call: Call) -> Visibility:
    """``deletedOnly`` goes before ``deleted``."""
    if call.flag("deletedOnly"):
        return Visibility.DELETED
    return Visibility.ALL if call.flag("deleted") else Visibility.LIVE
