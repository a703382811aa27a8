"""``/schemas``: by id, whatever subjects they are in."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.routing import Route

from headgate.registry.schemas import Schema
from headgate.registry.server import requests as bodies
from headgate.registry.server import requests as names
from headgate.registry.server.errors import UnknownSchemaId, UnreadableRequest
from headgate.registry.server.requests import Call, Json, Raw
from headgate.registry.server.routes import Service, formatted
from headgate.registry.server.store import StoredVersion, Tables, Visibility
from headgate.schema.written import SchemaFormat


def routes(service: Service) -> list[Route]:
    here, route = _Schemas(service), service.route
    return [
        route("GET", "/schemas", here.list),
        route("GET", "/schemas/types", here.types),
        route("GET", "/schemas/ids/{id}", here.schema),
        route("GET", "/schemas/ids/{id}/schema", here.text),
        route("GET", "/schemas/ids/{id}/subjects", here.subjects),
        route("GET", "/schemas/ids/{id}/versions", here.versions),
    ]


@dataclass(frozen=True, slots=True)
class _Schemas:
    service: Service

    def list(self, call: Call) -> Json:
        prefix = names.prefix(call.query.get("subjectPrefix", ""))
        with self.service.store.reading() as rows:
            found = rows.all_versions(prefix, Visibility.ALL if call.flag("deleted") else Visibility.LIVE)
        if call.flag("latestOnly"):
            found = tuple({version.subject: version for version in found}.values())
        return call.page(tuple(bodies.version_answer(version, version.schema.text) for version in found))

    def types(self, call: Call) -> Json:
        return [SchemaFormat.JSON, SchemaFormat.PROTOBUF, SchemaFormat.AVRO]

    def schema(self, call: Call) -> Json:
        with self.service.store.reading() as rows:
            schema = _known(rows, _id(call))
            answer = bodies.schema_answer(schema, formatted(rows, schema, call.query.get("format", "")))
            return {**answer, "maxId": rows.highest_id()} if call.flag("fetchMaxId") else answer

    def text(self, call: Call) -> Raw:
        with self.service.store.reading() as rows:
            return Raw(formatted(rows, _known(rows, _id(call)), call.query.get("format", "")))

    def subjects(self, call: Call) -> Json:
        return call.page(tuple(dict.fromkeys(version.subject for version in self._versions(call))))

    def versions(self, call: Call) -> Json:
        return call.page(
            tuple(
                {"subject": version.subject, "version": version.version} for version in self._versions(call)
            )
        )

    def _versions(self, call: Call) -> tuple[StoredVersion, ...]:
        """Those that carry the id. An id that only deleted versions carry exists, but shows none of them."""
        with self.service.store.reading() as rows:
            _known(rows, _id(call))
            found = rows.versions_of_id(
                _id(call), Visibility.ALL if call.flag("deleted") else Visibility.LIVE
            )
        only = call.query.get("subject")
        return tuple(version for version in found if only in (None, version.subject))


def _known(rows: Tables, schema_id: int) -> Schema:
    """An id stays readable while any version has it, also a deleted one: records still carry it."""
    schema = rows.schema(schema_id)
    if schema is None:
        raise UnknownSchemaId(schema_id)
    return schema


def _id(call: Call) -> int:
    text = call.path["id"]
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        raise UnreadableRequest(f'"{text[:40]}" is no schema id')
    return int(text)
