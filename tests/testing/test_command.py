"""`headgate test` from its arguments to its exit status, over a world without services and a stand-in engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from headgate.cli import test as command
from headgate.serve.protocol import Event
from headgate.testing import environment as spec_engine
from headgate.testing.errors import MalformedSpec, NoSpecs
from headgate.testing.parse import read_duration
from headgate.testing.run import find_specs
from tests.testing.fake_engine import FakeEngine, failure, result, run_fake_engine

pytestmark = pytest.mark.e2e


def _answer(sql: str) -> list[Event]:
    return result({"n": "bigint"}, (1,)) if sql == "SELECT 1;" else failure("SQL-0001", "cannot read that")


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    with run_fake_engine(_answer) as engine:
        monkeypatch.setattr(spec_engine, "start_engine", engine.start)
        yield engine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    specs = tmp_path / "specs"
    (specs / "sub").mkdir(parents=True)
    (specs / "good.spec").write_text("> SELECT 1;\nn\n----\n1\n")
    (specs / "sub" / "wrong.spec").write_text("# c\n\n> SELECT 1;\n2\n\n> SELECT 1;\n")
    (specs / "broken.spec").write_text("$ kafka-injest topic=t\n")
    (specs / "notes.txt").write_text("no spec")
    return specs


def _run(*arguments: object) -> Result:
    return CliRunner().invoke(command.test, [str(one) for one in arguments])


def test_every_file_is_run_and_reported_and_the_last_line_counts(
    folder: Path, engine: FakeEngine, tmp_path: Path
) -> None:
    ran = _run(folder, "--timeout", "500ms", "--junit", tmp_path / "report.xml", "--keep", tmp_path / "kept")
    lines = ran.stdout.splitlines()
    assert ran.exit_code == 1
    assert lines[-1] == "1 passed, 2 failed"
    assert lines[0].startswith(f"FAILED {folder}/broken.spec")
    assert lines[1] == f'{folder}/broken.spec:1: CLI-0402: action "kafka-injest" does not exist'
    assert f"ok {folder}/good.spec" in ran.stdout
    shown = "the rows are not the expected ones\n--- expected\n+++ actual\n-2\n+1\n"
    assert f"{folder}/sub/wrong.spec:3: CLI-0407: {shown}" in ran.stdout
    assert len({project.folder for project in engine.projects}) == 2
    assert all(project.folder.is_dir() for project in engine.projects)
    assert engine.ended == ["stop"]
    report = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert (report.get("tests"), report.get("failures")) == ("3", "2")
    [element] = [case.find("failure") for case in report.iter("testcase") if case.get("name") == "wrong.spec"]
    assert element is not None
    assert "-2\n+1" in str(element.text)


def test_jobs_keep_their_folders_apart_and_the_report_keeps_the_order_of_files(
    folder: Path, engine: FakeEngine, tmp_path: Path
) -> None:
    (folder / "alone.spec").write_text("$ kill\n\n> SELECT 1;\n1\n")
    report, kept = tmp_path / "report.xml", tmp_path / "kept"
    ran = _run(folder, "--jobs", "2", "--timeout", "500ms", "--junit", report, "--keep", kept)
    lines = ran.stdout.splitlines()
    assert (ran.exit_code, lines[-1]) == (1, "2 passed, 2 failed")
    assert lines[-2].startswith(f"ok {folder}/alone.spec")
    names = [case.get("name") for case in ElementTree.parse(report).getroot().iter("testcase")]
    assert names == ["alone.spec", "broken.spec", "good.spec", "wrong.spec"]
    assert sorted(one.name for one in kept.iterdir()) == ["job-1", "job-2"]
    assert all(project.folder.is_relative_to(kept) for project in engine.projects)


def test_a_filter_chooses_files_and_all_that_ran_passed(folder: Path, engine: FakeEngine) -> None:
    ran = _run(folder, folder / "good.spec", "--filter", "good")
    assert (ran.exit_code, ran.stdout.splitlines()[-1]) == (0, "1 passed, 0 failed")
    assert not engine.projects[0].folder.exists()


def test_nothing_to_run_is_no_success(folder: Path) -> None:
    ran = _run(folder, "--filter", "no such word")
    assert (ran.exit_code, ran.stdout) == (1, "0 passed, 0 failed\n")


def test_rewriting_mends_a_file(folder: Path) -> None:
    ran = _run(folder / "sub", "--timeout", "500ms", "--rewrite")
    assert ran.exit_code == 0, ran.output
    assert (folder / "sub" / "wrong.spec").read_text() == "# c\n\n> SELECT 1;\n1\n\n> SELECT 1;\n"
    assert "1 rewritten" in ran.stdout


def test_a_path_without_specs_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(NoSpecs):
            find_specs([path])


@pytest.mark.parametrize(("written", "seconds"), [("60s", 60), ("500ms", 0.5), ("2m", 120), ("90", 90), ("1.5s", 1.5)])
def test_times_as_people_write_them(written: str, seconds: float) -> None:
    assert read_duration(written) == seconds


@pytest.mark.parametrize("written", ["", "soon", "-1s", "0s", "5 days"])
def test_what_is_no_time_is_refused(written: str) -> None:
    with pytest.raises(MalformedSpec):
        read_duration(written)
