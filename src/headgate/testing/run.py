"""Running spec files: the steps of a file in turn, and several files side by side.

The first step that fails ends its file; the other files go on. Jobs are threads of this process, because they mostly
wait. Each has an environment of its own, and so nothing that a file could see of another one.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, assert_never

from headgate.errors import HeadgateError, InternalError
from headgate.testing.actions import check_call, perform
from headgate.testing.context import Edit, SpecContext
from headgate.testing.environment import SpecEnvironment
from headgate.testing.errors import MalformedSpec, NoSpecs
from headgate.testing.parse import (
    ActionCall,
    Fails,
    Prints,
    Spec,
    SpecFault,
    SpecFaults,
    Step,
    Succeeds,
    parse_spec,
)
from headgate.testing.report import Failure, Outcome, rewritten
from headgate.testing.schedule import SpecFile, WaitingFiles, describe
from headgate.testing.statements import expect_error, expect_rows, expect_text

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
        return describe(path, parse_spec(str(path), path.read_text("utf-8"), check_call))
    except SpecFaults as faults:
        return describe(path, faults)
    except (UnicodeDecodeError, OSError) as error:
        unreadable = MalformedSpec(f"the file cannot be read as UTF-8 text ({type(error).__name__})")
        return describe(path, SpecFaults((SpecFault(1, unreadable),)))


def run_files(files: Sequence[SpecFile], settings: Settings, open_job: OpenJob) -> Iterator[Outcome]:
    """Run the files and yield the outcome of each as soon as it has ended.

    ``open_job`` opens the environment of a job, given its number from 1 on. With several jobs, files that disrupt
    services run alone and last. What a job cannot go on with ends the run and is raised here."""
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
        self._threads = [
            threading.Thread(target=self._work, args=(number,), daemon=True) for number in range(1, jobs + 1)
        ]

    def outcomes(self) -> Iterator[Outcome]:
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
    if isinstance(spec, SpecFaults):
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
    file: SpecFile,
    spec: Spec,
    format_: str | None,
    environment: SpecEnvironment,
    settings: Settings,
    edits: list[Edit],
) -> Failure | None:
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


def run_step(step: Step, context: SpecContext) -> None:
    match step:
        case Succeeds():
            expect_rows(step, context)
        case Fails():
            expect_error(step, context)
        case Prints():
            expect_text(step, context)
        case ActionCall():
            perform(step, context)
        case _:
            assert_never(step)
