"""``/compatibility``: would this schema be taken as the next version?"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.routing import Route

from headgate.registry.server import requests as bodies
from headgate.registry.server import requests as names
from headgate.registry.server.errors import InvalidSchema
from headgate.registry.server.requests import Call, Json
from headgate.registry.server.routes import Service


def routes(service: Service) -> list[Route]:
    here, path = _Compatibility(service), "/compatibility/subjects/{subject}/versions"
    return [
        service.route("POST", path, here.with_subject, writes=False),
        service.route("POST", path + "/{version}", here.with_version, writes=False),
    ]


@dataclass(frozen=True, slots=True)
class _Compatibility:
    service: Service

    def with_subject(self, call: Call) -> Json:
        return self._answer(call, None)

    def with_version(self, call: Call) -> Json:
        return self._answer(call, names.version(call.path["version"]))

    def _answer(self, call: Call, number: int | None) -> Json:
        verbose, subject = call.flag("verbose"), names.subject(call.path["subject"])
        schema, registrar = bodies.schema_request(call.body).schema, self.service.registrar
        try:
            with self.service.store.reading() as rows:
                reasons = registrar.verdict(rows, subject, schema, number, normalize=call.flag("normalize"))
        except InvalidSchema as refusal:
            # With messages asked for, Confluent's registry tells what is wrong as a message and not as an error.
            if not verbose:
                raise
            reasons = (refusal.message(),)
        answer: dict[str, Json] = {"is_compatible": not reasons}
        return {**answer, "messages": [*reasons]} if verbose else answer
