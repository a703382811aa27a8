from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from headgate.cli.run import IdleDetector, RowRates, Task, changed_lines, halted_status, task_table

pytestmark = pytest.mark.unit

BEGAN = datetime(2024, 5, 1, 12, tzinfo=UTC)
STARTING = Task("bigs", "sink", "starting", None, None, 0, None, BEGAN + timedelta(seconds=1))
RUNNING = replace(STARTING, state="running")
BEHIND = replace(RUNNING, batch=0, rows=100, lag=50)
DONE = replace(RUNNING, batch=1, rows=150, lag=0)
HALTED = replace(RUNNING, state="halted", error="error SCH-0101: a field is missing\ndetail: Which?")


def test_a_task_is_done_when_two_looks_in_a_row_see_no_lag() -> None:
    settling = IdleDetector()
    assert [settling.observe([task]) for task in (STARTING, BEHIND, DONE, BEHIND, DONE, DONE)] == [
        False, False, False, False, False, True,
    ]  # fmt: skip


def test_every_task_must_be_done() -> None:
    settling = IdleDetector()
    other = replace(BEHIND, name="other")
    assert not any(settling.observe([DONE, other]) for _ in range(5))
    assert [settling.observe([DONE, replace(other, lag=0)]) for _ in range(2)] == [False, True]


def test_a_halted_or_disabled_task_is_not_waited_for() -> None:
    assert IdleDetector().observe([HALTED, replace(STARTING, state="disabled")])


def test_a_task_that_finds_nothing_at_its_start_is_done() -> None:
    settling = IdleDetector()
    nothing = replace(RUNNING, lag=0)
    assert [settling.observe([task]) for task in (STARTING, nothing, nothing)] == [False, False, True]


def test_a_state_that_an_earlier_engine_reported_does_not_count() -> None:
    settling = IdleDetector(after=BEGAN)
    stale = replace(DONE, since=BEGAN - timedelta(days=1))
    assert not any(settling.observe([stale]) for _ in range(5))
    assert not settling.observe([replace(HALTED, since=stale.since)])
    assert [settling.observe([DONE]) for _ in range(2)] == [False, True]


def test_rates_are_of_the_time_between_two_looks() -> None:
    rates = RowRates()
    assert rates.observe([BEHIND], 10.0) == {}
    assert rates.observe([DONE], 12.0) == {"bigs": 25.0}
    assert rates.observe([DONE], 13.0) == {"bigs": 0.0}


def test_a_task_whose_count_started_again_has_no_rate() -> None:
    rates = RowRates()
    rates.observe([DONE], 1.0)
    assert rates.observe([replace(DONE, rows=3)], 2.0) == {}


def test_the_exit_status_tells_the_family_of_the_error_that_halted_a_task() -> None:
    assert halted_status([DONE, HALTED]) == 11
    assert halted_status([replace(HALTED, error=None)]) == 1
    assert halted_status([DONE, BEHIND]) == 0


def test_the_table_has_one_line_per_task_and_only_the_first_of_an_error() -> None:
    console = Console(width=120, record=True, force_terminal=False)
    with console.capture() as shown:
        console.print(task_table([DONE, replace(HALTED, name="odd\x1b[31m")], {"bigs": 1234.4}))
    header, first, second = (line.split() for line in shown.get().splitlines())
    assert header == ["task", "kind", "state", "rows/s", "rows", "lag", "last", "error"]
    assert first == ["bigs", "sink", "running", "1,234", "150", "0"]
    assert second[0] == "odd\\x1b[31m"
    assert "detail:" not in second


def test_a_log_gets_a_line_when_a_task_changes() -> None:
    assert list(changed_lines([], [BEHIND])) == ["sink bigs: running, 100 rows, lag 50"]
    assert list(changed_lines([BEHIND], [BEHIND])) == []
    assert list(changed_lines([BEHIND], [DONE])) == ["sink bigs: running, 150 rows, lag 0"]
