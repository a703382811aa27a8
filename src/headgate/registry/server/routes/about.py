"""The registry about itself."""

from __future__ import annotations

from starlette.routing import Route

from headgate.registry.server.requests import Call, Json
from headgate.registry.server.routes import Service

# The generation of Confluent's API that is served; clients look here for what a registry can do.
API_VERSION = "7.9.0"


def routes(service: Service) -> list[Route]:
    return [
        service.route("GET", "/", _root),
        service.route("GET", "/contexts", _contexts),
        service.route("GET", "/v1/metadata/id", _cluster),
        service.route("GET", "/v1/metadata/version", _version),
    ]


def _root(_call: Call) -> Json:
    return {}


def _contexts(call: Call) -> Json:
    return call.page((".",))


def _cluster(_call: Call) -> Json:
    return {"scope": {"path": [], "clusters": {"schema-registry-cluster": "headgate"}}, "id": ""}


def _version(_call: Call) -> Json:
    return {"version": API_VERSION, "commitId": ""}
