"""REPLAY QUARANTINE: whom it means, and what it answers."""

from __future__ import annotations

import pytest

from headgate.catalog.errors import UnknownObject, WrongKind
from headgate.connectors.kafka import NewTopicOptions
from headgate.control.executor import REPLAY_COLUMNS, replayed
from headgate.control.sessions import ResultColumns, ResultRows
from headgate.runtime.errors import TaskNotRunning
from headgate.runtime.replay import Replayed
from tests.control.scripts import Shell

pytestmark = pytest.mark.unit

OUTDATED = "out: 2 records were no longer the last of a key, and left the quarantine unwritten"


@pytest.fixture
def busy(sql: Shell) -> Shell:
    sql.topics["lines"] = NewTopicOptions()
    sink = "CREATE SINK {} FROM {} INTO KAFKA CONNECTION kafka (TOPIC '{}') FORMAT TEXT;"
    sql.run(
        "CREATE SOURCE lines FROM KAFKA CONNECTION kafka (TOPIC 'lines') FORMAT TEXT;"
        "CREATE VIEW loud AS SELECT upper(text) AS text FROM lines;"
        + sink.format("out", "lines", "out") + sink.format("lines", "loud", "louder")
    )  # fmt: skip
    return sql


def test_a_task_is_meant_before_a_source_of_the_same_name(busy: Shell) -> None:
    assert busy.rows("REPLAY QUARANTINE FOR out") == [("out", 3, 2, 1)]
    assert busy.rows("REPLAY QUARANTINE FOR lines") == [("lines", 3, 2, 1)]
    assert busy.names("REPLAY QUARANTINE FOR out") == ["task", "replayed", "outdated", "kept"]


def test_a_source_means_all_tasks_over_it_at_any_depth(busy: Shell) -> None:
    assert busy.rows("REPLAY QUARANTINE FOR SOURCE lines") == [("out", 3, 2, 1), ("lines", 3, 2, 1)]


def test_a_task_that_does_not_run_does_not_keep_the_others(busy: Shell) -> None:
    def replay(_: int, name: str) -> Replayed:
        if name == "out":
            raise TaskNotRunning(name)
        return Replayed(3)

    catalog = busy.store.load()
    answer = replayed(sorted(catalog.desired), catalog, replay)
    assert [next(answer), next(answer)] == [ResultColumns(REPLAY_COLUMNS), ResultRows((("lines", 3, 0, 0),))]
    with pytest.raises(TaskNotRunning, match='"out"'):
        next(answer)


def test_outdated_records_are_told_of(busy: Shell) -> None:
    assert busy.notices("REPLAY QUARANTINE FOR out") == [OUTDATED]


def test_what_has_no_task_is_refused(busy: Shell) -> None:
    assert isinstance(busy.failure("REPLAY QUARANTINE FOR nobody"), UnknownObject)
    assert isinstance(busy.failure("REPLAY QUARANTINE FOR loud"), WrongKind)
