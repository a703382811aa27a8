"""A loopback server that answers as Elasticsearch does, for statuses that a real one cannot be made to give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headgate.connectors.elasticsearch import SearchClient
from headgate.registry.transport import Retries
from tests.registry.running import serving

Answering = Callable[[str, bytes], Response]


class Script:
    """Gives these answers in turn, the last one for ever, and keeps what it was asked."""

    def __init__(self, *answers: Response | Answering) -> None:
        self._answers = list(answers)
        self.paths: list[str] = []
        self.bodies: list[bytes] = []
        self.logins: list[str] = []
        methods = ["GET", "POST", "PUT", "DELETE"]
        self.app = Starlette(routes=[Route("/{path:path}", self._answer, methods=methods)])

    async def _answer(self, request: Request) -> Response:
        body = await request.body()
        self.paths.append(f"{request.method} {request.url.path}")
        self.bodies.append(body)
        self.logins.append(request.headers.get("authorization", ""))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return answer if isinstance(answer, Response) else answer(request.url.path, body)


class Pauses(list[float]):
    """Instead of sleeping: what would have been slept."""

    def retries(self, attempts: int = 4) -> Retries:
        return Retries(attempts=attempts, sleep=self.append)


@contextmanager
def scripted(*answers: Response | Answering, attempts: int = 4) -> Iterator[tuple[SearchClient, Script]]:
    """A client of a server that gives these answers."""
    script = Script(*answers)
    with serving(script.app) as url, SearchClient(url, retries=Pauses().retries(attempts)) as client:
        yield client, script


def failure(status: int, kind: str = "some_exception", reason: str = "It is so") -> JSONResponse:
    """An error as the servers write it."""
    return JSONResponse({"error": {"type": kind, "reason": reason}, "status": status}, status)
