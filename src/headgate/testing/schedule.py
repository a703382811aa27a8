"""What a file needs before it runs: services, and whether it runs alone. And the order in which jobs take files.

All of it comes from the parsed steps. A word in a comment or in a record starts nothing.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from headgate.errors import HeadgateError
from headgate.testing.actions import ACTIONS
from headgate.testing.parse import ActionCall, Spec, SpecFaults, Step
from headgate.testing.records import PLAIN
from headgate.text.lexer import tokenize

SERVICES = ("kafka", "registry", "postgres", "elasticsearch")
SLOW = frozenset({"elasticsearch"})  # services that take long to start and much memory

_VARIABLES = {"bootstrap": "kafka", **{name: name for name in SERVICES[1:]}}
_VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)\}")
_FORMAT_OPTIONS = ("format", "key-format")
_SCHEMA_OPTIONS = ("subject", "key-subject", "schema-id", "key-schema-id")
_CONNECTION = re.compile(r"\bCONNECTION\s+\"?(\w+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SpecFile:
    """A file to run. ``spec`` holds its mistakes if it cannot run."""

    path: Path
    spec: Spec | SpecFaults
    services: frozenset[str] = frozenset()
    is_alone: bool = False


def describe(path: Path, spec: Spec | SpecFaults) -> SpecFile:
    if isinstance(spec, SpecFaults):
        return SpecFile(path, spec)
    return SpecFile(path, spec, services_of(spec.steps), disrupts(spec.steps))


def disrupts(steps: Sequence[Step]) -> bool:
    """Whether a step kills or restarts Headgate or a service. Other files would only wait for it."""
    return any(isinstance(step, ActionCall) and ACTIONS[step.action].disrupts for step in steps)


def services_of(steps: Sequence[Step]) -> frozenset[str]:
    """The services that the steps use by action, by connection or by variable."""
    return frozenset(service for step in steps for service in _services(step))


def _services(step: Step) -> Iterator[str]:
    if isinstance(step, ActionCall):
        yield from _services_of_action(step)
    else:
        yield from _named(step.sql)
        yield from _connections(step.sql)


def _services_of_action(call: ActionCall) -> Iterator[str]:
    family = call.action.partition("-")[0]
    if family in SERVICES:
        yield family
    for argument in call.arguments:
        yield from _named(argument.value)
        if argument.name is None and ACTIONS[call.action].disrupts and argument.value in SERVICES:
            yield argument.value
        if argument.name in _SCHEMA_OPTIONS or (argument.name in _FORMAT_OPTIONS and argument.value not in PLAIN):
            yield "registry"
    body = "\n".join(call.body.lines)
    yield from _named(body)
    if family not in SERVICES:  # a body of SQL, in a file or for a request; records hold none
        yield from _connections_of_text(body)


def _named(text: str) -> Iterator[str]:
    """Services whose address a variable of the text is."""
    return (_VARIABLES[name] for name in _VARIABLE.findall(text) if name in _VARIABLES)


def _connections(sql: str) -> Iterator[str]:
    """Services whose connection a statement names. Comments and strings do not count."""
    try:
        tokens = tokenize(_VARIABLE.sub("x", sql))
    except HeadgateError:  # the spec may be about just that
        yield from _connections_of_text(sql)
        return
    for token, following in pairwise(tokens):
        if token.word == "CONNECTION" and following.value in SERVICES:
            yield following.value


def _connections_of_text(text: str) -> Iterator[str]:
    return (name for name in _CONNECTION.findall(text) if name in SERVICES)


class WaitingFiles:
    """The files that no job has taken yet. Jobs have the numbers from 1 to ``jobs``, and may ask at the same time."""

    def __init__(self, files: Sequence[SpecFile], jobs: int) -> None:
        self._shared = [file for file in files if not file.is_alone]
        self._alone = [file for file in files if file.is_alone]
        self._jobs = jobs
        self._changed = threading.Condition()

    def take(self, job: int, started: frozenset[str] = frozenset()) -> SpecFile | None:
        """The next file for a job that has ``started`` these services; None if it is done.

        Files in their order, but a job leaves files with a slow service to others while it has other work. Files that
        run alone come last. Job 1 takes them when all other jobs have left."""
        with self._changed:
            if self._shared:
                ready = (file for file in self._shared if SLOW & file.services <= started)
                file = next(ready, self._shared[0])
                self._shared.remove(file)
                return file
            if job != 1 or not self._alone:
                return None
            self._changed.wait_for(lambda: self._jobs == 1)
            return self._alone.pop(0) if self._alone else None

    def leave(self) -> None:
        """A job has ended, and what it had started, too."""
        with self._changed:
            self._jobs -= 1
            self._changed.notify_all()

    def clear(self) -> None:
        """No file is taken any more."""
        with self._changed:
            self._shared.clear()
            self._alone.clear()
