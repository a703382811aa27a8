"""`headgate ARGS...`: the command line as a user would call it, in `${dir}`, for this file's project and world."""

from __future__ import annotations

import re
import subprocess

from headgate.serve.process import HEADGATE, program_environment
from headgate.testing.actions.action import Action, Invocation
from headgate.testing.errors import Mismatch, StepFailed
from headgate.testing.stage import Stage

# Those that work in a project folder; the others know none.
OF_A_PROJECT = ("apply", "plan", "run", "serve", "sql")

_CHECK = re.compile(r"contains: ?(.*)")


def headgate(call: Invocation, stage: Stage) -> None:
    status = call.number("status") or 0
    checks = [_check(call, line) for line in stage.fill(call.body)]
    arguments = tuple(word for word in call.words if not word.startswith("status="))
    command = (*HEADGATE, *_with_project(arguments, stage))
    try:
        ended = subprocess.run(
            command, cwd=stage.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=stage.timeout, check=False,
            env=program_environment({"HEADGATE_WORLD": str(stage.world.folder)}),
        )  # fmt: skip
    except subprocess.TimeoutExpired as wrong:
        raise StepFailed(
            f"the command did not end within {stage.timeout:.0f} s", _text(wrong.stdout)
        ) from wrong
    told = _text(ended.stdout) + _text(ended.stderr)
    if ended.returncode != status:
        raise StepFailed(f"the command ended with status {ended.returncode} and not {status}", told)
    for text in checks:
        if text not in told:
            wanted = tuple(f"contains: {one}" for one in checks)
            raise Mismatch(f'the command did not print "{text}"', wanted, tuple(told.splitlines()))


def _with_project(arguments: tuple[str, ...], stage: Stage) -> tuple[str, ...]:
    if not arguments or arguments[0] not in OF_A_PROJECT or "--project" in arguments:
        return arguments
    return (arguments[0], "--project", str(stage.project), *arguments[1:])


def _check(call: Invocation, line: str) -> str:
    found = _CHECK.fullmatch(line)
    if found is None:
        raise call.wrong(f'takes contains: lines, not "{line[:40]}"')
    return found[1].rstrip()


def _text(output: bytes | None) -> str:
    return (output or b"").decode("utf-8", "replace")


ACTIONS = (Action("headgate", headgate, options=None, positional=None, body="optional"),)
