"""The REST interface: what each path takes, which rule it calls, what it answers.

`create_app` makes the ASGI application, `_routes` is the list of all paths. Nothing is decided here: the rules are in
`rules`, and `requests` reads what a client sends.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headgate.registry.schemas import Schema
from headgate.registry.server import errors, requests, rules
from headgate.registry.server.rules import CompatibilityCheck, Registration, check_level
from headgate.registry.server.store import Store, StoredVersion, Tables, Visibility, parse_stored
from headgate.schema.written import SchemaFormat

# The version of Confluent's API. Clients decide by it what a registry can do.
API_VERSION = "7.9.0"

log = logging.getLogger(__name__)


def create_app(
    store: Store, *, users: requests.Users | None = None, check: CompatibilityCheck = check_level
) -> Starlette:
    """The registry as an ASGI application. `check` decides about compatibility, for registering and for the
    compatibility resource."""
    app = Starlette(
        routes=_routes(Service(store, Registration(check), users or requests.Users())),
        middleware=[Middleware(requests.EncodedPaths)],
        exception_handlers={HTTPException: _no_such_path, Exception: _bug},
    )
    app.router.redirect_slashes = False
    return app


@dataclass(frozen=True, slots=True)
class Service:
    """What every resource works with."""

    store: Store
    registration: Registration
    users: requests.Users

    def route(self, method: str, path: str, handler: requests.Handler, *, writes: bool | None = None) -> Route:
        """Every method but GET needs the right to write, unless `writes` says otherwise."""
        changes = method != "GET" if writes is None else writes
        return Route(path, requests.endpoint(handler, self.users, writes=changes), methods=[method])


def _routes(service: Service) -> list[Route]:
    subjects, schemas = _Subjects(service), _Schemas(service)
    compatibility, settings = _Compatibility(service), _Settings(service)
    route, versions = service.route, "/subjects/{subject}/versions"
    return [
        route("GET", "/", _root),
        route("GET", "/contexts", _contexts),
        route("GET", "/v1/metadata/id", _cluster),
        route("GET", "/v1/metadata/version", _version),
        route("GET", "/subjects", subjects.list),
        route("GET", versions, subjects.versions),
        route("GET", versions + "/{version}", subjects.version),
        route("GET", versions + "/{version}/schema", subjects.text),
        route("GET", versions + "/{version}/referencedby", subjects.referenced_by),
        route("POST", versions, subjects.register),
        route("POST", "/subjects/{subject}", subjects.look_up, writes=False),
        route("DELETE", versions + "/{version}", subjects.delete_version),
        route("DELETE", "/subjects/{subject}", subjects.delete),
        route("GET", "/schemas", schemas.list),
        route("GET", "/schemas/types", schemas.types),
        route("GET", "/schemas/ids/{id}", schemas.schema),
        route("GET", "/schemas/ids/{id}/schema", schemas.text),
        route("GET", "/schemas/ids/{id}/subjects", schemas.subjects),
        route("GET", "/schemas/ids/{id}/versions", schemas.versions),
        route("POST", "/compatibility" + versions, compatibility.with_subject, writes=False),
        route("POST", "/compatibility" + versions + "/{version}", compatibility.with_version, writes=False),
        *[made for end in ("", "/{subject}") for made in settings.routes(end)],
    ]


def _root(_call: requests.Call) -> requests.Json:
    return {}


def _contexts(call: requests.Call) -> requests.Json:
    return call.page((".",))


def _cluster(_call: requests.Call) -> requests.Json:
    return {"scope": {"path": [], "clusters": {"schema-registry-cluster": "headgate"}}, "id": ""}


def _version(_call: requests.Call) -> requests.Json:
    return {"version": API_VERSION, "commitId": ""}


@dataclass(frozen=True, slots=True)
class _Subjects:
    service: Service

    def list(self, call: requests.Call) -> requests.Json:
        with self.service.store.reading() as tables:
            return call.page(
                tables.subjects(requests.subject_prefix(call.query.get("subjectPrefix", "")), _visibility(call))
            )

    def versions(self, call: requests.Call) -> requests.Json:
        subject = requests.subject_name(call.path["subject"])
        with self.service.store.reading() as tables:
            found = tables.versions(subject, _visibility(call))
            if (
                not found
                and tables.latest(
                    subject, Visibility.ALL if _visibility(call) is not Visibility.LIVE else Visibility.LIVE
                )
                is None
            ):
                raise errors.UnknownSubject(subject)
        return call.page(tuple(version.version for version in found))

    def version(self, call: requests.Call) -> requests.Json:
        with self.service.store.reading() as tables:
            version = _named(tables, call, _visibility(call))
            return requests.version_answer(version, _formatted(tables, version.schema, call.query.get("format", "")))

    def text(self, call: requests.Call) -> requests.Raw:
        with self.service.store.reading() as tables:
            version = _named(tables, call, _visibility(call))
            return requests.Raw(_formatted(tables, version.schema, call.query.get("format", "")))

    def referenced_by(self, call: requests.Call) -> requests.Json:
        with self.service.store.reading() as tables:
            version = _named(tables, call, Visibility.ALL)
            referring = tables.referring(version.subject, version.version, _visibility(call))
        return call.page(tuple(sorted({other.schema_id for other in referring})))

    def register(self, call: requests.Call) -> requests.Json:
        subject, request = requests.subject_name(call.path["subject"]), requests.schema_request(call.body)
        normalize = call.flag("normalize")
        with self.service.store.writing() as tables:
            version = self.service.registration.register(tables, subject, request, normalize=normalize)
        # Old clients refuse an answer with unknown names. New ones send this header.
        if call.headers.get("confluent-accept-unknown-properties", "").lower() == "true":
            return {"id": version.schema_id, "version": version.version}
        return {"id": version.schema_id}

    def look_up(self, call: requests.Call) -> requests.Json:
        subject, request = requests.subject_name(call.path["subject"]), requests.schema_request(call.body)
        with self.service.store.reading() as tables:
            version = rules.look_up(
                tables,
                subject,
                request.schema,
                normalize=call.flag("normalize"),
                visibility=_visibility(call),
            )
            return requests.version_answer(version, _formatted(tables, version.schema, call.query.get("format", "")))

    def delete_version(self, call: requests.Call) -> requests.Json:
        subject, number = requests.subject_name(call.path["subject"]), requests.version_number(call.path["version"])
        with self.service.store.writing() as tables:
            rules.refuse_if_read_only(tables, subject)
            return rules.delete_version(tables, subject, number, permanent=call.flag("permanent"))

    def delete(self, call: requests.Call) -> requests.Json:
        subject = requests.subject_name(call.path["subject"])
        with self.service.store.writing() as tables:
            rules.refuse_if_read_only(tables, subject)
            return [*rules.delete_subject(tables, subject, permanent=call.flag("permanent"))]


def _named(tables: Tables, call: requests.Call, visibility: Visibility) -> StoredVersion:
    subject, number = requests.subject_name(call.path["subject"]), requests.version_number(call.path["version"])
    return rules.find_version(tables, subject, number, visibility)


def _visibility(call: requests.Call) -> Visibility:
    """`deletedOnly` takes precedence over `deleted`."""
    if call.flag("deletedOnly"):
        return Visibility.DELETED
    return Visibility.ALL if call.flag("deleted") else Visibility.LIVE


@dataclass(frozen=True, slots=True)
class _Schemas:
    service: Service

    def list(self, call: requests.Call) -> requests.Json:
        prefix = requests.subject_prefix(call.query.get("subjectPrefix", ""))
        with self.service.store.reading() as tables:
            found = tables.all_versions(prefix, Visibility.ALL if call.flag("deleted") else Visibility.LIVE)
        if call.flag("latestOnly"):
            found = tuple({version.subject: version for version in found}.values())
        return call.page(tuple(requests.version_answer(version, version.schema.text) for version in found))

    def types(self, call: requests.Call) -> requests.Json:
        return [SchemaFormat.JSON, SchemaFormat.PROTOBUF, SchemaFormat.AVRO]

    def schema(self, call: requests.Call) -> requests.Json:
        with self.service.store.reading() as tables:
            schema = _known(tables, _id(call))
            answer = requests.schema_answer(schema, _formatted(tables, schema, call.query.get("format", "")))
            return {**answer, "maxId": tables.highest_id()} if call.flag("fetchMaxId") else answer

    def text(self, call: requests.Call) -> requests.Raw:
        with self.service.store.reading() as tables:
            return requests.Raw(_formatted(tables, _known(tables, _id(call)), call.query.get("format", "")))

    def subjects(self, call: requests.Call) -> requests.Json:
        return call.page(tuple(dict.fromkeys(version.subject for version in self._versions(call))))

    def versions(self, call: requests.Call) -> requests.Json:
        return call.page(
            tuple({"subject": version.subject, "version": version.version} for version in self._versions(call))
        )

    def _versions(self, call: requests.Call) -> tuple[StoredVersion, ...]:
        """The versions that have the id. An id that only deleted versions have exists, but none of them is listed."""
        with self.service.store.reading() as tables:
            _known(tables, _id(call))
            found = tables.versions_of_id(_id(call), Visibility.ALL if call.flag("deleted") else Visibility.LIVE)
        only = call.query.get("subject")
        return tuple(version for version in found if only in (None, version.subject))


def _known(tables: Tables, schema_id: int) -> Schema:
    """An id stays readable while any version has it, even a deleted one, because records still contain it."""
    schema = tables.schema(schema_id)
    if schema is None:
        raise errors.UnknownSchemaId(schema_id)
    return schema


def _id(call: requests.Call) -> int:
    text = call.path["id"]
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        raise errors.UnreadableRequest(f'"{text[:40]}" is no schema id')
    return int(text)


def _formatted(tables: Tables, schema: Schema, form: str) -> str:
    """The stored text of a schema or, with the form `serialized`, its Protobuf descriptor in base64."""
    if form == "serialized":
        return requests.serialized(parse_stored(tables, schema))
    if form not in ("", "default"):
        raise errors.InvalidSchema(f'"{form[:40]}" is no format of a schema; leave it out, or write serialized')
    return schema.text


@dataclass(frozen=True, slots=True)
class _Compatibility:
    service: Service

    def with_subject(self, call: requests.Call) -> requests.Json:
        return self._answer(call, None)

    def with_version(self, call: requests.Call) -> requests.Json:
        return self._answer(call, requests.version_number(call.path["version"]))

    def _answer(self, call: requests.Call, number: int | None) -> requests.Json:
        verbose, subject = call.flag("verbose"), requests.subject_name(call.path["subject"])
        schema, registration = requests.schema_request(call.body).schema, self.service.registration
        try:
            with self.service.store.reading() as tables:
                reasons = registration.verdict(tables, subject, schema, number, normalize=call.flag("normalize"))
        except errors.InvalidSchema as refusal:
            # With `verbose`, Confluent's registry reports an invalid schema as a message and not as an error.
            if not verbose:
                raise
            reasons = (refusal.message(),)
        answer: dict[str, requests.Json] = {"is_compatible": not reasons}
        return {**answer, "messages": [*reasons]} if verbose else answer


@dataclass(frozen=True, slots=True)
class _Settings:
    service: Service

    def routes(self, end: str) -> list[Route]:
        route = self.service.route
        return [
            route("GET", "/config" + end, self.config),
            route("PUT", "/config" + end, self.put_config),
            route("DELETE", "/config" + end, self.drop_config),
            route("GET", "/mode" + end, self.mode),
            route("PUT", "/mode" + end, self.put_mode),
            route("DELETE", "/mode" + end, self.drop_mode),
        ]

    def config(self, call: requests.Call) -> requests.Json:
        find = rules.config_in_scope if call.flag("defaultToGlobal") else rules.own_config
        with self.service.store.reading() as tables:
            return requests.config_answer(find(tables, _setting_subject(call)), "compatibilityLevel")

    def put_config(self, call: requests.Call) -> requests.Json:
        change = requests.config_change(call.body)
        with self.service.store.writing() as tables:
            rules.put_config(tables, _setting_subject(call), change)
        return requests.config_answer(change, "compatibility")

    def drop_config(self, call: requests.Call) -> requests.Json:
        with self.service.store.writing() as tables:
            return requests.config_answer(rules.drop_config(tables, _setting_subject(call)), "compatibilityLevel")

    def mode(self, call: requests.Call) -> requests.Json:
        find = rules.mode_in_scope if call.flag("defaultToGlobal") else rules.own_mode
        with self.service.store.reading() as tables:
            return {"mode": find(tables, _setting_subject(call))}

    def put_mode(self, call: requests.Call) -> requests.Json:
        mode = requests.mode_change(call.body)
        with self.service.store.writing() as tables:
            rules.put_mode(tables, _setting_subject(call), mode, force=call.flag("force"))
        return {"mode": mode}

    def drop_mode(self, call: requests.Call) -> requests.Json:
        with self.service.store.writing() as tables:
            return {"mode": rules.drop_mode(tables, _setting_subject(call))}


def _setting_subject(call: requests.Call) -> str | None:
    """None for the whole registry. The default context, written `:.:`, means the whole registry as well."""
    name = call.path.get("subject", ":.:")
    return None if name == ":.:" else requests.subject_name(name)


def _no_such_path(_request: Request, failure: Exception) -> Response:
    assert isinstance(failure, HTTPException), "registered for this class only"
    body = {"error_code": failure.status_code, "message": failure.detail.lower()}
    return Response(orjson.dumps(body), failure.status_code, failure.headers, requests.OWN_TYPE)


def _bug(request: Request, failure: Exception) -> Response:
    """Log the path but never the body, because a schema may be confidential. uvicorn logs the traceback."""
    log.error("%s %s failed: %s", request.method, request.url.path, type(failure).__name__)
    return requests.refuse(errors.Failed())
