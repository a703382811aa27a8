"""The registry as an ASGI application."""

from __future__ import annotations

import logging

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from headgate.registry.server import routes as about
from headgate.registry.server import routes as compatibility
from headgate.registry.server import routes as schemas
from headgate.registry.server import routes as settings
from headgate.registry.server import routes as subjects
from headgate.registry.server.errors import Failed
from headgate.registry.server.requests import OWN_TYPE, EncodedPaths, Users, refuse
from headgate.registry.server.routes import Service
from headgate.registry.server.rules import CompatibilityCheck, Registration, check_level
from headgate.registry.server.store import ParsedVersions, Store

log = logging.getLogger(__name__)


def create(store: Store, *, users: Users | None = None, judge: CompatibilityCheck = check_level) -> Starlette:
    """``judge`` decides about compatibility, for registering and for the compatibility resource alike."""
    service = Service(store, Registration(judge, ParsedVersions()), users or Users())
    resources = (about, subjects, schemas, compatibility, settings)
    app = Starlette(
        routes=[route for resource in resources for route in resource.routes(service)],
        middleware=[Middleware(EncodedPaths)],
        exception_handlers={HTTPException: _no_such_path, Exception: _bug},
    )
    app.router.redirect_slashes = False
    return app


def _no_such_path(_request: Request, failure: Exception) -> Response:
    assert isinstance(failure, HTTPException), "registered for this class only"
    body = {"error_code": failure.status_code, "message": failure.detail.lower()}
    return Response(orjson.dumps(body), failure.status_code, failure.headers, OWN_TYPE)


def _bug(request: Request, failure: Exception) -> Response:
    """The path is logged, the body never: a schema may be confidential. The traceback follows from uvicorn."""
    log.error("%s %s failed: %s", request.method, request.url.path, type(failure).__name__)
    return refuse(Failed())
