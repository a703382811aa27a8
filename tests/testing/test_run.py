"""Files side by side: each job has an environment of its own, and what ends a run ends all of its jobs."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from headgate.embedded.world import World
from headgate.serve.errors import EngineUnreachable
from headgate.serve.protocol import Event
from headgate.testing.environment import SpecEnvironment
from headgate.testing.run import OpenJob, Settings, SpecFile, read_spec, run_files
from tests.testing.fake_engine import FakeEngine, failure, result, run_fake_engine

pytestmark = pytest.mark.unit


class _World:
    """A world that has no services to start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def status(self) -> object:
        return type("Status", (), {"services": ()})

    def ensure(self, *services: str) -> None: ...


class _Machine:
    """Opens jobs over one fake engine and remembers who ran beside whom."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened: list[int] = []
        self.closed: list[int] = []
        self.busy: set[str] = set()
        self.seen: list[tuple[str, int]] = []
        self.meeting: threading.Barrier | None = None

    def answer(self, sql: str) -> list[Event]:
        name = sql.split()[1].rstrip(";")
        if name == "never":
            return failure("RUN-0102", "not yet")
        self.busy.add(name)
        if name.startswith("shared") and self.meeting is not None:
            self.meeting.wait(10)
        self.seen.append((name, len(self.busy)))
        self.busy.discard(name)
        return result({"n": "bigint"}, (1,))

    def open_job(self, engine: FakeEngine) -> OpenJob:
        @contextmanager
        def open_(job: int) -> Iterator[SpecEnvironment]:
            self.opened.append(job)
            folder = self.folder / f"job-{job}"
            folder.mkdir()
            try:
                yield SpecEnvironment(folder, cast(World, _World(folder)), engine.start)
            finally:
                self.closed.append(job)

        return open_


@pytest.fixture
def machine(tmp_path: Path) -> _Machine:
    return _Machine(tmp_path)


def _files(folder: Path, **texts: str) -> list[SpecFile]:
    for name, text in texts.items():
        (folder / f"{name}.spec").write_text(text)
    return [read_spec(folder / f"{name}.spec") for name in texts]


def test_two_jobs_run_two_files_at_once_and_disruptive_ones_alone_at_the_end(machine: _Machine, tmp_path: Path) -> None:
    machine.meeting = threading.Barrier(2)
    files = _files(
        tmp_path,
        alone="$ kill\n\n> SELECT alone;\n1\n",
        one="> SELECT shared1;\n1\n",
        two="> SELECT shared2;\n1\n",
    )
    with run_fake_engine(machine.answer) as engine:
        outcomes = list(run_files(files, Settings(5, jobs=2), machine.open_job(engine)))
    assert all(outcome.passed for outcome in outcomes)
    assert sorted(outcome.path for outcome in outcomes[:2]) == [str(file.path) for file in files[1:]]
    assert outcomes[2].path == str(files[0].path)
    assert sorted(machine.opened) == [1, 2]
    assert machine.closed == [2, 1]
    assert machine.seen[-1] == ("alone", 1)
    assert len({project.folder for project in engine.projects}) == 3


def test_one_job_keeps_the_order_of_files(machine: _Machine, tmp_path: Path) -> None:
    files = _files(tmp_path, b="$ kill\n", a="> SELECT a;\n1\n", broken="nonsense\n")
    with run_fake_engine(machine.answer) as engine:
        outcomes = list(run_files(files, Settings(5), machine.open_job(engine)))
    assert [outcome.path for outcome in outcomes] == [str(file.path) for file in files]
    assert [outcome.passed for outcome in outcomes] == [True, True, False]


def test_no_more_jobs_are_opened_than_there_are_files_for_them(machine: _Machine, tmp_path: Path) -> None:
    files = _files(tmp_path, a="> SELECT a;\n1\n", b="$ kill\n")
    with run_fake_engine(machine.answer) as engine:
        list(run_files(files, Settings(5, jobs=4), machine.open_job(engine)))
    assert machine.opened == [1]


def test_a_job_that_cannot_open_its_environment_ends_the_run(machine: _Machine, tmp_path: Path) -> None:
    files = _files(tmp_path, a="> SELECT never;\n1\n", b="> SELECT never;\n1\n")
    with run_fake_engine(machine.answer) as engine:
        opens = machine.open_job(engine)

        @contextmanager
        def second_fails(job: int) -> Iterator[SpecEnvironment]:
            if job == 2:
                raise EngineUnreachable("x", "it is not there")
            with opens(job) as environment:
                yield environment

        began = time.monotonic()
        with pytest.raises(EngineUnreachable):
            list(run_files(files, Settings(300, jobs=2), second_fails))
    assert machine.closed == [1]
    assert time.monotonic() - began < 30


def test_an_interrupted_run_ends_its_jobs_at_once(machine: _Machine, tmp_path: Path) -> None:
    files = _files(tmp_path, a="> SELECT never;\n1\n", b="> SELECT never;\n1\n", c="> SELECT c;\n1\n")
    began = time.monotonic()
    with run_fake_engine(machine.answer) as engine:
        outcomes = run_files([files[2], *files[:2]], Settings(300, jobs=2), machine.open_job(engine))
        assert next(outcomes).path == str(files[2].path)
        with pytest.raises(KeyboardInterrupt):
            outcomes.throw(KeyboardInterrupt)  # type: ignore[attr-defined]
    assert sorted(machine.closed) == sorted(machine.opened)
    assert time.monotonic() - began < 60
    assert "kill" in engine.ended


def test_ctrl_c_ends_all_jobs(machine: _Machine, tmp_path: Path) -> None:
    files = _files(tmp_path, a="> SELECT never;\n1\n", b="> SELECT never;\n1\n")
    began = time.monotonic()
    # A process that a shell starts in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with run_fake_engine(machine.answer) as engine, pytest.raises(KeyboardInterrupt):
            list(run_files(files, Settings(300, jobs=2), machine.open_job(engine)))
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert sorted(machine.closed) == sorted(machine.opened) == [1, 2]
    assert time.monotonic() - began < 60
