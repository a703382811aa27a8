"""Running spec files: what a file needs, the order in which jobs take files, its steps in turn, and the outcomes.

What a file needs (services, and whether it runs alone) comes from its parsed steps: a word in a comment or in a record
starts nothing. The first step that fails ends its file; the other files go on. Jobs are threads of this process, because
they mostly wait. Each has an environment of its own, and so sees nothing of the files of other jobs.
"""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias, assert_never
from xml.etree import ElementTree

from headgate.errors import Diagnostic, HeadgateError, InternalError
from headgate.testing import parse
from headgate.testing.actions import ACTIONS, check_call, perform
from headgate.testing.context import Edit, SpecContext
from headgate.testing.environment import SpecEnvironment
from headgate.testing.errors import MalformedSpec, NoSpecs
from headgate.testing.records import PLAIN
from headgate.testing.statements import expect_error, expect_rows, expect_text
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
    spec: parse.Spec | parse.SpecFaults
    services: frozenset[str] = frozenset()
    is_alone: bool = False


def describe(path: Path, spec: parse.Spec | parse.SpecFaults) -> SpecFile:
    if isinstance(spec, parse.SpecFaults):
        return SpecFile(path, spec)
    return SpecFile(path, spec, services_of(spec.steps), disrupts(spec.steps))


def disrupts(steps: Sequence[parse.Step]) -> bool:
    """Whether a step kills or restarts Headgate or a service. Other files would only wait for it."""
    return any(isinstance(step, parse.ActionCall) and ACTIONS[step.action].disrupts for step in steps)


def services_of(steps: Sequence[parse.Step]) -> frozenset[str]:
    """The services that the steps use by action, by connection or by variable."""
    return frozenset(service for step in steps for service in _services(step))


def _services(step: parse.Step) -> Iterator[str]:
    if isinstance(step, parse.ActionCall):
        yield from _services_of_action(step)
    else:
        yield from _named(step.sql)
        yield from _connections(step.sql)


def _services_of_action(call: parse.ActionCall) -> Iterator[str]:
    """An action uses the service of its family, and those that its arguments and body name."""
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


@dataclass(frozen=True, slots=True)
class Failure:
    """A step that failed. The ``detail`` of the diagnostic holds the diff, if there is one."""

    path: str
    line: int
    diagnostic: Diagnostic
    format: str | None = None

    def render(self) -> str:
        where = f"{self.path}:{self.line}" + (f" (format {self.format})" if self.format else "")
        parts = [f"{where}: {self.diagnostic.code}: {self.diagnostic.message}"]
        if self.diagnostic.detail:
            parts.append(self.diagnostic.detail)
        if self.diagnostic.hint:
            parts.append(f"hint: {self.diagnostic.hint}")
        return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one file. ``rewritten`` is how many blocks `--rewrite` has changed."""

    path: str
    seconds: float
    failures: tuple[Failure, ...] = ()
    rewritten: int = 0

    @property
    def passed(self) -> bool:
        return not self.failures


def junit(outcomes: Sequence[Outcome]) -> bytes:
    """A JUnit document with one test case per file."""
    seconds = sum(one.seconds for one in outcomes)
    failed = sum(not one.passed for one in outcomes)
    counts = {"tests": str(len(outcomes)), "failures": str(failed), "errors": "0", "time": f"{seconds:.3f}"}
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "headgate test", **counts})
    for one in outcomes:
        folder, _, name = one.path.rpartition("/")
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": folder or ".", "name": name, "time": f"{one.seconds:.3f}"}
        )
        for failure in one.failures:
            element = ElementTree.SubElement(case, "failure", {"message": _clean(failure.diagnostic.message)})
            element.text = _clean(failure.render())
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def summary(outcomes: Sequence[Outcome]) -> str:
    passed = sum(one.passed for one in outcomes)
    return f"{passed} passed, {len(outcomes) - passed} failed"


def _clean(text: str) -> str:
    """The text without characters that XML cannot hold."""
    return "".join(one for one in text if one in "\n\t" or (one >= " " and not "\ud800" <= one <= "\udfff"))


def rewritten(text: str, edits: Sequence[Edit]) -> str:
    """The text of a file with its edits. If several formats have edited a block, the first one counts."""
    lines = text.split("\n")
    first: dict[int, Edit] = {}
    for edit in edits:
        first.setdefault(edit.block.line, edit)
    for number in sorted(first, reverse=True):
        edit = first[number]
        start = number - 1
        lines[start : start + len(edit.block.lines)] = edit.lines
    return "\n".join(lines)


SUFFIX = ".spec"
END_TIMEOUT = 60.0  # seconds for the jobs to end when a run is interrupted

OpenJob: TypeAlias = Callable[[int], AbstractContextManager[SpecEnvironment]]


@dataclass(frozen=True, slots=True)
class Settings:
    """``timeout`` is in seconds and holds for each step of a file that does not set its own."""

    timeout: float = 60.0
    rewrite: bool = False
    jobs: int = 1


def find_specs(paths: Sequence[Path], word: str | None = None) -> list[Path]:
    """The files at these paths and below them, in order and each once. With ``word``, those whose path has it. Raises
    NoSpecs for a path without any."""
    found: dict[Path, None] = {}
    for path in paths:
        files = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path] if path.is_file() else []
        if not files:
            raise NoSpecs(str(path))
        found.update(dict.fromkeys(files))
    return [path for path in found if word is None or word in str(path)]


def read_spec(path: Path) -> SpecFile:
    """A file that is ready to run, or that holds all its mistakes."""
    try:
        return describe(path, parse.parse_spec(str(path), path.read_text("utf-8"), check_call))
    except parse.SpecFaults as faults:
        return describe(path, faults)
    except (UnicodeDecodeError, OSError) as error:
        unreadable = MalformedSpec(f"the file cannot be read as UTF-8 text ({type(error).__name__})")
        return describe(path, parse.SpecFaults((parse.SpecFault(1, unreadable),)))


def run_files(files: Sequence[SpecFile], settings: Settings, open_job: OpenJob) -> Iterator[Outcome]:
    """Run the files and yield the outcome of each as soon as it has ended.

    ``open_job`` opens the environment of a job, given its number from 1 on. With several jobs, files that disrupt
    services run alone and last. What a job cannot go on with ends the run and is raised here."""
    # More jobs than files that can run side by side would only start worlds.
    jobs = min(settings.jobs, sum(not file.is_alone for file in files))
    if jobs > 1:
        yield from _Jobs(files, jobs, settings, open_job).outcomes()
        return
    with open_job(1) as environment:
        for file in files:
            yield run_file(file, environment, settings)


class _Jobs:
    """Several jobs that take files from one list."""

    def __init__(self, files: Sequence[SpecFile], jobs: int, settings: Settings, open_job: OpenJob) -> None:
        self._waiting = WaitingFiles(files, jobs)
        self._settings = settings
        self._open_job = open_job
        self._environments: list[SpecEnvironment] = []
        self._ended: queue.SimpleQueue[Outcome | BaseException | None] = queue.SimpleQueue()
        # Daemons: if one hangs, a second Ctrl-C still ends the process, and the kernel then ends its engine.
        numbers = range(1, jobs + 1)
        self._threads = [threading.Thread(target=self._work, args=(number,), daemon=True) for number in numbers]

    def outcomes(self) -> Iterator[Outcome]:
        """Start the jobs, and yield outcomes until all have ended. If the caller stops, the jobs are interrupted."""
        for thread in self._threads:
            thread.start()
        running = len(self._threads)
        try:
            while running:
                ended = self._ended.get()
                if isinstance(ended, BaseException):
                    raise ended
                if ended is None:
                    running -= 1
                else:
                    yield ended
        except BaseException:
            self._interrupt()
            raise

    def _work(self, number: int) -> None:
        """One job, in a thread that lives as long as its engine (see ``engine.start_engine``)."""
        try:
            with self._open_job(number) as environment:
                self._environments.append(environment)
                while (file := self._waiting.take(number, frozenset(environment.started))) is not None:
                    self._ended.put(run_file(file, environment, self._settings))
        except BaseException as error:  # noqa: BLE001  the main thread raises it
            self._ended.put(error)
        finally:
            self._waiting.leave()
            self._ended.put(None)

    def _interrupt(self) -> None:
        self._waiting.clear()
        for environment in self._environments:
            environment.interrupt()
        for thread in self._threads:
            thread.join(END_TIMEOUT)


def run_file(file: SpecFile, environment: SpecEnvironment, settings: Settings) -> Outcome:
    """Run a file, once for each of its formats."""
    began, path, spec = time.monotonic(), str(file.path), file.spec
    if isinstance(spec, parse.SpecFaults):
        mistakes = tuple(Failure(path, one.line, one.error.diagnostic()) for one in spec.faults)
        return Outcome(path, time.monotonic() - began, mistakes)
    edits: list[Edit] = []
    failures = []
    for format_ in spec.formats or (None,):
        failure = _run_steps(file, spec, format_, environment, settings, edits)
        failures += [failure] if failure is not None else []
    if edits:
        file.path.write_text(rewritten(spec.text, edits), "utf-8")
    return Outcome(path, time.monotonic() - began, tuple(failures), len(edits))


def _run_steps(
    file: SpecFile, spec: parse.Spec, format_: str | None, environment: SpecEnvironment, settings: Settings, edits: list[Edit]
) -> Failure | None:  # fmt: skip
    """Run the steps of a file once. Returns the failure of the first step that does not hold."""
    line = 1
    try:
        context = environment.new_context(file.services, settings.timeout, settings.rewrite)
        context.edits = edits
        if format_ is not None:
            context.variables.set("format", format_)
        for step in spec.steps:
            line = step.line
            run_step(step, context)
    except HeadgateError as error:
        return Failure(spec.path, line, error.diagnostic(), format_)
    except Exception as error:  # noqa: BLE001  the other files go on, whatever it is
        internal = InternalError(f"{type(error).__name__}: {error}")
        return Failure(spec.path, line, internal.diagnostic(), format_)
    return None


def run_step(step: parse.Step, context: SpecContext) -> None:
    """Run one step. Raises what did not hold."""
    match step:
        case parse.Succeeds():
            expect_rows(step, context)
        case parse.Fails():
            expect_error(step, context)
        case parse.Prints():
            expect_text(step, context)
        case parse.ActionCall():
            perform(step, context)
        case _:
            assert_never(step)
