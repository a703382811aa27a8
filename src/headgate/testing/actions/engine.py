"""Actions on Headgate itself, its processes and its command line; and on variables and files."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import httpx

from headgate.processes import program_environment
from headgate.serve.client import HEADGATE
from headgate.serve.protocol import value_text
from headgate.testing.context import Action, Deadline, GiveUp, Invocation, SpecContext
from headgate.testing.errors import Mismatch, StepFailed
from headgate.testing.notation import Json, is_part, read_json, write_json
from headgate.testing.parse import read_duration
from headgate.testing.statements import busy_tasks, query


def set_(call: Invocation, context: SpecContext) -> None:
    """`set`: give variables their values. `timeout` also becomes the time-out of the steps that follow."""
    for name, value in call.options.items():
        if name == "timeout":
            context.timeout = read_duration(value)
        context.variables.set(name, value)


def set_from_sql(call: Invocation, context: SpecContext) -> None:
    """`set-from-sql`: a variable gets the one value of a query."""
    sql = "\n".join(context.fill(call.body))

    def attempt(deadline: Deadline) -> str:
        found = query(context.engine.client, sql, deadline)
        if len(found.rows) != 1 or len(found.columns) != 1 or found.rows[0][0] is None:
            shape = f"It gave {len(found.rows)} rows of {len(found.columns)} columns."
            raise StepFailed("the query did not give one value", shape)
        return value_text(found.rows[0][0])

    value = context.eventually(attempt)
    if value is not None:
        context.variables.set(call.positional[0], value)


def write_file(call: Invocation, context: SpecContext) -> None:
    """`file-write`: a file with the body as its text, in place of an earlier one."""
    _file_path(call, context).write_text(_body_text(call, context), "utf-8")


def append_file(call: Invocation, context: SpecContext) -> None:
    """`file-append`: add the body to a file."""
    with _file_path(call, context).open("a", encoding="utf-8") as file:
        file.write(_body_text(call, context))


def _body_text(call: Invocation, context: SpecContext) -> str:
    return "".join(f"{line}\n" for line in context.fill(call.body))


def _file_path(call: Invocation, context: SpecContext) -> Path:
    """The path below `${dir}`. A spec must not write anywhere else."""
    folder = context.folder.resolve()
    path = (folder / call.text("path")).resolve()
    if not path.is_relative_to(folder) or path == folder:
        raise call.wrong(f'writes only below ${{dir}}, and "{call.text("path")}" is not')
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


# The commands with the option --project.
PROJECT_COMMANDS = ("apply", "plan", "run", "serve", "sql")

_CHECK = re.compile(r"contains: ?(.*)")


def headgate(call: Invocation, context: SpecContext) -> None:
    """`headgate`: run a command, and check its exit status and what it prints."""
    status = call.number("status") or 0
    checks = [_command_check(call, line) for line in context.fill(call.body)]
    arguments = tuple(word for word in call.arguments if not word.startswith("status="))
    command = (*HEADGATE, *_with_project(arguments, context))
    try:
        ended = subprocess.run(
            command, cwd=context.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=context.timeout, check=False,
            env=program_environment({"HEADGATE_WORLD": str(context.world.folder)}),
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        problem = f"the command did not end within {context.timeout:.0f} s"
        raise StepFailed(problem, _output_text(error.stdout)) from error
    output = _output_text(ended.stdout) + _output_text(ended.stderr)
    if ended.returncode != status:
        raise StepFailed(f"the command ended with status {ended.returncode} and not {status}", output)
    for text in checks:
        if text not in output:
            wanted = tuple(f"contains: {one}" for one in checks)
            raise Mismatch(f'the command did not print "{text}"', wanted, tuple(output.splitlines()))


def _with_project(arguments: tuple[str, ...], context: SpecContext) -> tuple[str, ...]:
    """The arguments with the folder of the spec's project, unless they name another one or the command takes none."""
    if not arguments or arguments[0] not in PROJECT_COMMANDS or "--project" in arguments:
        return arguments
    return (arguments[0], "--project", str(context.project), *arguments[1:])


def _command_check(call: Invocation, line: str) -> str:
    found = _CHECK.fullmatch(line)
    if found is None:
        raise call.wrong(f'takes contains: lines, not "{line[:40]}"')
    return found[1].rstrip()


def _output_text(output: bytes | None) -> str:
    return (output or b"").decode("utf-8", "replace")


def http(call: Invocation, context: SpecContext) -> None:
    """`http`: a request to the engine. Only GET and HEAD are tried again, because others may have changed something."""
    method, path = call.positional
    sent, expected = _parts(context.fill(call.body))
    status = call.number("status") or 200

    def attempt(deadline: Deadline) -> None:
        response = context.engine.client.send(
            method.upper(), path, timeout=max(1.0, deadline.left), token=call.optional("token"),
            content=sent.encode() if sent is not None else None,
            headers={"Content-Type": "application/json"} | _host(call),
        )  # fmt: skip
        try:
            _http_check(response, status, expected)
        except (Mismatch, StepFailed) as error:
            if method.upper() in ("GET", "HEAD"):  # others may have changed something
                raise
            raise GiveUp(error) from error

    context.eventually(attempt)


def _host(call: Invocation) -> dict[str, str]:
    host = call.optional("host")
    return {} if host is None else {"Host": host}


def _parts(lines: tuple[str, ...]) -> tuple[str | None, Json]:
    """What is sent and what is expected. A line of dashes stands between them."""
    dashes = (index for index, line in enumerate(lines) if line.strip() and not line.strip().strip("-"))
    rule = next(dashes, len(lines))
    sent, expected = "\n".join(lines[:rule]), "\n".join(lines[rule + 1 :])
    return sent or None, read_json(expected) if expected.strip() else None


def _http_check(response: httpx.Response, status: int, expected: Json) -> None:
    if response.status_code != status:
        problem = f"the server answered with status {response.status_code} and not {status}"
        raise StepFailed(problem, response.text[:2000])
    if expected is None:
        return
    try:
        actual = read_json(response.text)
    except Exception as error:
        raise StepFailed("the server's answer is not JSON", response.text[:2000]) from error
    if not is_part(expected, actual):
        raise Mismatch("the answer is not the expected one", (write_json(expected),), (write_json(actual),))


def _start_service(call: Invocation, context: SpecContext) -> None:
    context.world.start(call.positional[0])


def wait_idle(call: Invocation, context: SpecContext) -> None:
    """`wait-idle`: wait until tasks have nothing to do, twice in a row. The first look may fall between the commit of a batch and
    the moment in which the engine sees further records."""
    task = call.optional("task")
    idle = 0

    def attempt(deadline: Deadline) -> None:
        nonlocal idle
        busy = busy_tasks(context, deadline, task)
        idle = 0 if busy else idle + 1
        if idle < 2:
            raise StepFailed("not all tasks are idle", "\n".join(busy) or None)

    context.eventually(attempt)


ACTIONS = (
    Action("set", set_, options=None),
    Action("set-from-sql", set_from_sql, positional=1, body="required"),
    Action("file-write", write_file, required=("path",), body="optional"),
    Action("file-append", append_file, required=("path",), body="required"),
    Action("headgate", headgate, options=None, positional=None, body="optional"),
    Action("http", http, options=("status", "token", "host"), positional=2, body="optional"),
    Action("down", lambda call, context: context.world.stop_hard(call.positional[0]), positional=1, disrupts=True),
    Action("up", _start_service, positional=1, disrupts=True),
    Action("restart", lambda call, context: context.engine.restart()),
    Action("kill", lambda call, context: context.engine.kill(), disrupts=True),
    Action("wait-idle", wait_idle, options=("task",)),
)
