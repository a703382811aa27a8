"""``/config`` and ``/mode``: of the whole registry, and of a subject."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.routing import Route

from headgate.registry.server import requests as bodies
from headgate.registry.server import requests as names
from headgate.registry.server import rules as settings
from headgate.registry.server.requests import Call, Json
from headgate.registry.server.routes import Service


def routes(service: Service) -> list[Route]:
    here, route = _Settings(service), service.route
    return [
        made
        for end in ("", "/{subject}")
        for made in (
            route("GET", "/config" + end, here.config),
            route("PUT", "/config" + end, here.put_config),
            route("DELETE", "/config" + end, here.drop_config),
            route("GET", "/mode" + end, here.mode),
            route("PUT", "/mode" + end, here.put_mode),
            route("DELETE", "/mode" + end, here.drop_mode),
        )
    ]


@dataclass(frozen=True, slots=True)
class _Settings:
    service: Service

    def config(self, call: Call) -> Json:
        find = settings.config_in_scope if call.flag("defaultToGlobal") else settings.own_config
        with self.service.store.reading() as rows:
            return bodies.config_answer(find(rows, _subject(call)), "compatibilityLevel")

    def put_config(self, call: Call) -> Json:
        change = bodies.config_change(call.body)
        with self.service.store.writing() as rows:
            settings.put_config(rows, _subject(call), change)
        return bodies.config_answer(change, "compatibility")

    def drop_config(self, call: Call) -> Json:
        with self.service.store.writing() as rows:
            return bodies.config_answer(settings.drop_config(rows, _subject(call)), "compatibilityLevel")

    def mode(self, call: Call) -> Json:
        find = settings.mode_in_scope if call.flag("defaultToGlobal") else settings.own_mode
        with self.service.store.reading() as rows:
            return {"mode": find(rows, _subject(call))}

    def put_mode(self, call: Call) -> Json:
        mode = bodies.mode_change(call.body)
        with self.service.store.writing() as rows:
            settings.put_mode(rows, _subject(call), mode, force=call.flag("force"))
        return {"mode": mode}

    def drop_mode(self, call: Call) -> Json:
        with self.service.store.writing() as rows:
            return {"mode": settings.drop_mode(rows, _subject(call))}


def _subject(call: Call) -> str | None:
    """The default context, written ``:.:``, is the whole registry."""
    name = call.path.get("subject", ":.:")
    return None if name == ":.:" else names.subject(name)
