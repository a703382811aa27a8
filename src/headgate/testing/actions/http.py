"""`http` against Headgate's own server, and `grpc`, which has none yet."""

from __future__ import annotations

import httpx

from headgate.testing.actions.action import Action, Invocation
from headgate.testing.errors import Mismatch, StepFailed
from headgate.testing.json_values import Json, is_part, read_json, write_json
from headgate.testing.patience import Deadline, Hopeless
from headgate.testing.stage import Stage


def http(call: Invocation, stage: Stage) -> None:
    method, path = call.positional
    sent, expected = _parts(stage.fill(call.body))
    status = call.number("status") or 200

    def attempt(deadline: Deadline) -> None:
        response = stage.engine.client.send(
            method.upper(), path, timeout=max(1.0, deadline.left), token=call.optional("token"),
            content=sent.encode() if sent is not None else None,
            headers={"Content-Type": "application/json"} if sent is not None else {},
        )  # fmt: skip
        try:
            _check(response, status, expected)
        except (Mismatch, StepFailed) as wrong:
            if method.upper() in ("GET", "HEAD"):  # others may have changed something
                raise
            raise Hopeless(wrong) from wrong

    stage.eventually(attempt)


def grpc(call: Invocation, stage: Stage) -> None:
    del stage
    raise call.wrong("is not supported yet")


def _parts(lines: tuple[str, ...]) -> tuple[str | None, Json]:
    """What is sent, and what is expected, with `----` between them."""
    rule = next(
        (index for index, line in enumerate(lines) if line.strip() and not line.strip().strip("-")),
        len(lines),
    )
    sent, expected = "\n".join(lines[:rule]), "\n".join(lines[rule + 1 :])
    return sent or None, read_json(expected) if expected.strip() else None


def _check(response: httpx.Response, status: int, expected: Json) -> None:
    if response.status_code != status:
        raise StepFailed(
            f"the server answered with status {response.status_code} and not {status}", response.text[:2000]
        )
    if expected is None:
        return
    try:
        actual = read_json(response.text)
    except Exception as wrong:
        raise StepFailed("the server's answer is no JSON", response.text[:2000]) from wrong
    if not is_part(expected, actual):
        raise Mismatch("the answer is not the expected one", (write_json(expected),), (write_json(actual),))


ACTIONS = (
    Action("http", http, options=("status", "token"), positional=2, body="optional"),
    Action("grpc", grpc, options=("json",), positional=1, body="optional"),
)
