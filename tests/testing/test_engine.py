"""The runner and the engine process of a run, at the two ends of one socket."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from headgate.cli.serve import EngineServer, Worlds
from headgate.cli.test import follow
from headgate.control.engine import Project
from headgate.serve.errors import EngineDidNotStart
from headgate.testing.environment import SpecEngine, SpecProject

pytestmark = pytest.mark.unit

FIRST = SpecProject(Path("/a b"), Path("/world"))
SECOND = SpecProject(Path('/quo"ted\n'), Path("/world"), "spec_1")


class _Served:
    """In place of the server: remembers projects, and refuses those that are named so."""

    def __init__(self) -> None:
        self.opened: list[Path] = []
        self.stopped = threading.Event()

    def open_project(self, project: Project) -> None:
        if project.folder.name == "refused":
            raise OSError("no\nspace")
        self.opened.append(project.folder)

    def stop(self) -> None:
        self.stopped.set()


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[tuple[SpecEngine, _Served, list[SpecProject]]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(10)
    served, current = _Served(), [FIRST]
    arguments = (theirs, cast(EngineServer, served), Worlds(), current)
    thread = threading.Thread(target=follow, args=arguments, daemon=True)
    thread.start()
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    engine = SpecEngine(FIRST, process, tmp_path / "engine.log", ours)
    try:
        yield engine, served, current
    finally:
        engine.kill()
        assert process.stdin is not None
        process.stdin.close()
        thread.join(10)
        theirs.close()


@pytest.mark.parametrize("project", [FIRST, SECOND])
def test_a_project_is_one_line_and_read_again(project: SpecProject) -> None:
    assert "\n" not in project.write()
    assert SpecProject.read(project.write()) == project


def test_the_engine_opens_one_project_after_another(
    ends: tuple[SpecEngine, _Served, list[SpecProject]],
) -> None:
    engine, served, current = ends
    for project in (SECOND, FIRST):
        engine.open_project(project)
        assert engine.project == project.folder
        assert current == [project]
    assert served.opened == [SECOND.folder, FIRST.folder]


def test_a_project_that_cannot_be_opened_is_reported_and_the_next_one_is_opened(
    ends: tuple[SpecEngine, _Served, list[SpecProject]],
) -> None:
    engine, _, current = ends
    with pytest.raises(EngineDidNotStart, match="OSError: no space"):
        engine.open_project(SpecProject(Path("/refused"), Path("/world")))
    assert engine.project == FIRST.folder
    assert current == [FIRST]
    engine.open_project(SECOND)
    assert engine.project == SECOND.folder


def test_the_engine_stops_when_the_runner_is_gone(
    ends: tuple[SpecEngine, _Served, list[SpecProject]],
) -> None:
    engine, served, _ = ends
    engine.kill()
    assert served.stopped.wait(10)
    with pytest.raises(EngineDidNotStart):
        engine.open_project(SECOND)
