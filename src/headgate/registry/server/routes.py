"""The REST interface: what each path takes, which rule it calls, what it answers.

`create_app` makes the ASGI application, `_routes` is the list of all paths. A handler gets the tables in one transaction,
and the call. Nothing is decided here: the rules are in `rules`, and `requests` reads what a client sends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headgate.registry.schemas import Schema
from headgate.registry.server import errors, requests, rules
from headgate.registry.server.store import Store, StoredVersion, Tables, Visibility, parse_stored
from headgate.schema.written import SchemaFormat

# The version of Confluent's API. Clients decide by it what a registry can do.
API_VERSION = "7.9.0"
_CLUSTER: requests.Json = {"scope": {"path": [], "clusters": {"schema-registry-cluster": "headgate"}}, "id": ""}

_TYPES = (SchemaFormat.JSON, SchemaFormat.PROTOBUF, SchemaFormat.AVRO)

Handler: TypeAlias = Callable[[Tables, requests.Call], "requests.Json | requests.Raw"]

log = logging.getLogger(__name__)


def create_app(
    store: Store, *, users: requests.Users | None = None, check: rules.CompatibilityCheck = rules.check_level
) -> Starlette:
    """The registry as an ASGI application. `check` decides about compatibility, for registering and for the
    compatibility resource."""
    app = Starlette(
        routes=_routes(store, rules.Registration(check), users or requests.Users()),
        middleware=[Middleware(requests.EncodedPaths)],
        exception_handlers={HTTPException: _no_such_path, Exception: _bug},
    )
    app.router.redirect_slashes = False
    return app


def _routes(store: Store, registration: rules.Registration, users: requests.Users) -> list[Route]:
    """All paths. The tables are opened for each handler in one transaction."""

    def route(method: str, path: str, handler: Handler, *, writes: bool | None = None) -> Route:
        """Every method but GET writes, unless `writes` says otherwise. Writing needs the right to write."""
        changes = method != "GET" if writes is None else writes

        def run(call: requests.Call) -> requests.Json | requests.Raw:
            with store.writing() if changes else store.reading() as tables:
                return handler(tables, call)

        return Route(path, requests.endpoint(run, users, writes=changes), methods=[method])

    versions, test = "/subjects/{subject}/versions", partial(_test_compatibility, registration)
    return [
        route("GET", "/", lambda tables, call: {}),
        route("GET", "/contexts", lambda tables, call: call.page((".",))),
        route("GET", "/v1/metadata/id", lambda tables, call: _CLUSTER),
        route("GET", "/v1/metadata/version", lambda tables, call: {"version": API_VERSION, "commitId": ""}),
        route("GET", "/subjects", _list_subjects),
        route("GET", versions, _list_versions),
        route("GET", versions + "/{version}", _read_version),
        route("GET", versions + "/{version}/schema", _read_text_of_version),
        route("GET", versions + "/{version}/referencedby", _referenced_by),
        route("POST", versions, partial(_register, registration)),
        route("POST", "/subjects/{subject}", _look_up, writes=False),
        route("DELETE", versions + "/{version}", _delete_version),
        route("DELETE", "/subjects/{subject}", _delete_subject),
        route("GET", "/schemas", _list_schemas),
        route("GET", "/schemas/types", lambda tables, call: [*_TYPES]),
        route("GET", "/schemas/ids/{id}", _read_schema),
        route("GET", "/schemas/ids/{id}/schema", _read_text_of_id),
        route("GET", "/schemas/ids/{id}/subjects", _subjects_of_id),
        route("GET", "/schemas/ids/{id}/versions", _versions_of_id),
        route("POST", "/compatibility" + versions, test, writes=False),
        route("POST", "/compatibility" + versions + "/{version}", test, writes=False),
        *(
            route(method, path + end, handler)
            for end in ("", "/{subject}")
            for method, path, handler in (
                ("GET", "/config", _read_config),
                ("PUT", "/config", _put_config),
                ("DELETE", "/config", _drop_config),
                ("GET", "/mode", _read_mode),
                ("PUT", "/mode", _put_mode),
                ("DELETE", "/mode", _drop_mode),
            )
        ),
    ]


# --- subjects and their versions


def _list_subjects(tables: Tables, call: requests.Call) -> requests.Json:
    prefix = requests.subject_prefix(call.query.get("subjectPrefix", ""))
    return call.page(tables.subjects(prefix, _visibility(call)))


def _list_versions(tables: Tables, call: requests.Call) -> requests.Json:
    subject, visibility = requests.subject_name(call.path["subject"]), _visibility(call)
    found = tables.versions(subject, visibility)
    if not found:
        # A subject without deleted versions exists, so asking for its deleted versions is no error.
        rules.require_subject(tables, subject, Visibility.LIVE if visibility is Visibility.LIVE else Visibility.ALL)
    return call.page(tuple(version.version for version in found))


def _read_version(tables: Tables, call: requests.Call) -> requests.Json:
    version = _named(tables, call, _visibility(call))
    return requests.version_answer(version, _formatted(tables, version.schema, call))


def _read_text_of_version(tables: Tables, call: requests.Call) -> requests.Raw:
    return requests.Raw(_formatted(tables, _named(tables, call, _visibility(call)).schema, call))


def _referenced_by(tables: Tables, call: requests.Call) -> requests.Json:
    version = _named(tables, call, Visibility.ALL)
    referring = tables.referring(version.subject, version.version, _visibility(call))
    return call.page(tuple(sorted({other.schema_id for other in referring})))


def _register(registration: rules.Registration, tables: Tables, call: requests.Call) -> requests.Json:
    """Register a schema and answer with its id."""
    subject, request = requests.subject_name(call.path["subject"]), requests.schema_request(call.body)
    version = registration.register(tables, subject, request, normalize=call.flag("normalize"))
    # Old clients refuse an answer with unknown names. New ones send this header.
    if call.headers.get("confluent-accept-unknown-properties", "").lower() == "true":
        return {"id": version.schema_id, "version": version.version}
    return {"id": version.schema_id}


def _look_up(tables: Tables, call: requests.Call) -> requests.Json:
    subject, schema = requests.subject_name(call.path["subject"]), requests.schema_request(call.body).schema
    normalize, visibility = call.flag("normalize"), _visibility(call)
    version = rules.look_up(tables, subject, schema, normalize=normalize, visibility=visibility)
    return requests.version_answer(version, _formatted(tables, version.schema, call))


def _delete_version(tables: Tables, call: requests.Call) -> requests.Json:
    subject, number = requests.subject_name(call.path["subject"]), requests.version_number(call.path["version"])
    rules.refuse_if_read_only(tables, subject)
    return rules.delete_version(tables, subject, number, permanent=call.flag("permanent"))


def _delete_subject(tables: Tables, call: requests.Call) -> requests.Json:
    subject = requests.subject_name(call.path["subject"])
    rules.refuse_if_read_only(tables, subject)
    return [*rules.delete_subject(tables, subject, permanent=call.flag("permanent"))]


def _test_compatibility(registration: rules.Registration, tables: Tables, call: requests.Call) -> requests.Json:
    """Compare a schema with the version in the path. Without one, with those that registering would compare it with."""
    verbose, subject = call.flag("verbose"), requests.subject_name(call.path["subject"])
    number = requests.version_number(call.path["version"]) if "version" in call.path else None
    schema = requests.schema_request(call.body).schema
    try:
        reasons = registration.verdict(tables, subject, schema, number, normalize=call.flag("normalize"))
    except errors.InvalidSchema as refusal:
        # With `verbose`, Confluent's registry reports an invalid schema as a message and not as an error.
        if not verbose:
            raise
        reasons = (refusal.message(),)
    answer: dict[str, requests.Json] = {"is_compatible": not reasons}
    return {**answer, "messages": [*reasons]} if verbose else answer


def _named(tables: Tables, call: requests.Call, visibility: Visibility) -> StoredVersion:
    subject, number = requests.subject_name(call.path["subject"]), requests.version_number(call.path["version"])
    return rules.find_version(tables, subject, number, visibility)


def _visibility(call: requests.Call) -> Visibility:
    """`deletedOnly` takes precedence over `deleted`."""
    return Visibility.DELETED if call.flag("deletedOnly") else _all_or_live(call)


def _all_or_live(call: requests.Call) -> Visibility:
    return Visibility.ALL if call.flag("deleted") else Visibility.LIVE


# --- schemas by id


def _list_schemas(tables: Tables, call: requests.Call) -> requests.Json:
    prefix = requests.subject_prefix(call.query.get("subjectPrefix", ""))
    found = tables.all_versions(prefix, _all_or_live(call))
    if call.flag("latestOnly"):
        found = tuple({version.subject: version for version in found}.values())
    return call.page(tuple(requests.version_answer(version, version.schema.text) for version in found))


def _read_schema(tables: Tables, call: requests.Call) -> requests.Json:
    schema = _known(tables, call)
    answer = requests.schema_answer(schema, _formatted(tables, schema, call))
    return {**answer, "maxId": tables.highest_id()} if call.flag("fetchMaxId") else answer


def _read_text_of_id(tables: Tables, call: requests.Call) -> requests.Raw:
    return requests.Raw(_formatted(tables, _known(tables, call), call))


def _subjects_of_id(tables: Tables, call: requests.Call) -> requests.Json:
    return call.page(tuple(dict.fromkeys(version.subject for version in _with_id(tables, call))))


def _versions_of_id(tables: Tables, call: requests.Call) -> requests.Json:
    found = _with_id(tables, call)
    return call.page(tuple({"subject": version.subject, "version": version.version} for version in found))


def _with_id(tables: Tables, call: requests.Call) -> tuple[StoredVersion, ...]:
    """The versions that have the id. An id that only deleted versions have exists, but none of them is listed."""
    _known(tables, call)
    only = call.query.get("subject")
    found = tables.versions_of_id(_id(call), _all_or_live(call))
    return tuple(version for version in found if only in (None, version.subject))


def _known(tables: Tables, call: requests.Call) -> Schema:
    """An id stays readable while any version has it, even a deleted one, because records still contain it."""
    schema = tables.schema(_id(call))
    if schema is None:
        raise errors.UnknownSchemaId(_id(call))
    return schema


def _id(call: requests.Call) -> int:
    text = call.path["id"]
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        raise errors.UnreadableRequest(f'"{text[:40]}" is no schema id')
    return int(text)


def _formatted(tables: Tables, schema: Schema, call: requests.Call) -> str:
    """The stored text of a schema. With `format=serialized`, its Protobuf descriptor in base64."""
    form = call.query.get("format", "")
    if form == "serialized":
        return requests.serialized(parse_stored(tables, schema))
    if form not in ("", "default"):
        raise errors.InvalidSchema(f'"{form[:40]}" is no format of a schema; leave it out, or write serialized')
    return schema.text


# --- settings of the registry, or of the subject in the path


def _read_config(tables: Tables, call: requests.Call) -> requests.Json:
    find = rules.config_in_scope if call.flag("defaultToGlobal") else rules.own_config
    return requests.config_answer(find(tables, _setting_subject(call)), "compatibilityLevel")


def _put_config(tables: Tables, call: requests.Call) -> requests.Json:
    change = requests.config_change(call.body)
    rules.put_config(tables, _setting_subject(call), change)
    return requests.config_answer(change, "compatibility")


def _drop_config(tables: Tables, call: requests.Call) -> requests.Json:
    return requests.config_answer(rules.drop_config(tables, _setting_subject(call)), "compatibilityLevel")


def _read_mode(tables: Tables, call: requests.Call) -> requests.Json:
    find = rules.mode_in_scope if call.flag("defaultToGlobal") else rules.own_mode
    return {"mode": find(tables, _setting_subject(call))}


def _put_mode(tables: Tables, call: requests.Call) -> requests.Json:
    mode = requests.mode_change(call.body)
    rules.put_mode(tables, _setting_subject(call), mode, force=call.flag("force"))
    return {"mode": mode}


def _drop_mode(tables: Tables, call: requests.Call) -> requests.Json:
    return {"mode": rules.drop_mode(tables, _setting_subject(call))}


def _setting_subject(call: requests.Call) -> str | None:
    """None for the whole registry. The default context, written `:.:`, means the whole registry as well."""
    name = call.path.get("subject", ":.:")
    return None if name == ":.:" else requests.subject_name(name)


# --- failures


def _no_such_path(_request: Request, failure: Exception) -> Response:
    assert isinstance(failure, HTTPException), "registered for this class only"
    body = {"error_code": failure.status_code, "message": failure.detail.lower()}
    return Response(orjson.dumps(body), failure.status_code, failure.headers, requests.OWN_TYPE)


def _bug(request: Request, failure: Exception) -> Response:
    """Log the path but never the body, because a schema may be confidential. uvicorn logs the traceback."""
    log.error("%s %s failed: %s", request.method, request.url.path, type(failure).__name__)
    return requests.refuse(errors.Failed())
