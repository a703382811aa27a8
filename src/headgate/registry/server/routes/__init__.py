"""The REST resources, one module each: what a path takes, which rule it calls, what it answers.

In: a ``Service`` (store, registrar, users). Out: Starlette routes. Nothing is decided here; the rules are in
``registration``, ``deletion`` and ``settings``.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.routing import Route

from headgate.registry.server.requests import Handler, Users, endpoint
from headgate.registry.server.rules import Registration
from headgate.registry.server.store import Store


@dataclass(frozen=True, slots=True)
class Service:
    store: Store
    registrar: Registration
    users: Users

    def route(self, method: str, path: str, handler: Handler, *, writes: bool | None = None) -> Route:
        """What is not a GET writes, unless it is said not to."""
        changes = method != "GET" if writes is None else writes
        return Route(path, endpoint(handler, self.users, writes=changes), methods=[method])
