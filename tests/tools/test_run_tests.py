"""`make test` over commands that only print: side by side, each with its log, and the exit status of the worst."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools import run_tests
from tools.run_tests import Part

pytestmark = pytest.mark.unit

REPORT = """<testsuites><testsuite>
<testcase classname="tests.a.test_b" name="test_one" time="1.25"/><testcase classname="tests.a.test_b" name="x" time="2"/>
<testcase classname="tests.a.test_quick" name="test_two" time="0.1"/>
<testcase classname="specs/docs" name="one.spec" time="7.4"/>
</testsuite></testsuites>"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    monkeypatch.setattr(run_tests, "BUILD", tmp_path / "build")
    return tmp_path


def part(name: str, program: str) -> Part:
    return Part(name, (Path(sys.executable).name, "-c", program))


def test_every_part_runs_to_its_end_and_the_end_of_a_failed_one_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    good = part("good", "import time; time.sleep(1); print('== 12 passed in 3.4s ==')")
    bad = part("bad", "print('why'); print('= 1 failed ='); raise SystemExit(1)")
    monkeypatch.setattr(run_tests, "PARTS", (good, bad))
    assert run_tests.main([]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["bad", "good"]
    assert "bad failed; the end of build/bad.log:" in lines
    assert "why" in lines
    assert lines[-2].endswith("passed  12 passed in 3.4s")
    assert lines[-1].endswith("FAILED  1 failed")


def test_when_all_pass_the_status_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tests, "PARTS", (part("good", "print('1 passed')"),))
    assert run_tests.main([]) == 0


@pytest.mark.parametrize(
    ("log", "words"),
    [("", ""), ("...\n....F.. [ 45%]\n", "45%"), ("ok specs/a.spec (2.0 s)\n\n", "ok specs/a.spec (2.0 s)")],
)
def test_progress_is_the_last_that_a_part_said(tmp_path: Path, log: str, words: str) -> None:
    (tmp_path / "log").write_text(log)
    assert run_tests.last_words(tmp_path / "log") == words


def test_timings_are_by_file_and_leave_out_what_is_quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    seconds = run_tests.seconds_by_file([tmp_path / "report.xml"])
    assert run_tests.timings(seconds) == ("   11  all\n    7  specs/docs/one.spec\n    3  tests/a/test_b.py\n")
    monkeypatch.setattr(run_tests, "TIMINGS", tmp_path / "timings.txt")
    run_tests.TIMINGS.write_text(run_tests.timings(seconds))
    assert run_tests.read_timings() == {"all": 11, "specs/docs/one.spec": 7, "tests/a/test_b.py": 3}
