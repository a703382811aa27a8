"""The rows of a query on their two ways out of Spark: collected if a LIMIT says that they are few, pushed otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import cast

import orjson
import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.connectors.connections import Clients, ServerOptions
from headgate.plan.definitions import QueryDefinition, SelectDefinition
from headgate.runtime.errors import QueryCancelled
from headgate.runtime.query import COLLECTED_BYTES, BatchQuery, Columns, Failed, Finished, QueryRequest, Rows
from headgate.runtime.spool import Receiver
from tests.embedded.world_fixtures import eventually

pytestmark = pytest.mark.spark

TIMEOUT = 60.0  # seconds, on a busy machine

Answers = Callable[[str, int | None], tuple[list[list[object]], bool]]


@pytest.fixture
def answers(session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    """The rows of a query with one column, and whether they were collected."""
    receiver = Receiver(tmp_path, 1 << 26)
    collected: list[int] = []
    frames = type(session.range(1))  # the class of Spark's classic frames, behind the abstract one
    to_arrow = frames.toArrow

    def counted(frame: DataFrame) -> object:
        made = to_arrow(frame)
        collected.append(made.num_rows)
        return made

    monkeypatch.setattr(frames, "toArrow", counted)

    def run(sql: str, limit: int | None) -> tuple[list[list[object]], bool]:
        collected.clear()
        select = SelectDefinition(QueryDefinition(sql, (("x", None),), limit=limit), {})
        request = QueryRequest(select, ServerOptions({}, {}), {})
        spool = receiver.open()
        query = BatchQuery(session, request, cast("Clients", None), spool)
        query.run(receiver.address, "pool")
        found = list(query.answers())
        spool.close()
        assert not [answer.error for answer in found if isinstance(answer, Failed)]
        assert isinstance(found[0], Columns)
        assert isinstance(found[-1], Finished)
        rows = [row for answer in found if isinstance(answer, Rows) for row in orjson.loads(answer.json)]
        return rows, bool(collected)

    yield run
    receiver.close()


def test_few_rows_are_collected(answers: Answers) -> None:
    assert answers("SELECT id FROM range(100) ORDER BY id DESC LIMIT 3", 3) == ([[99], [98], [97]], True)


def test_rows_without_a_limit_or_with_a_large_one_are_pushed(answers: Answers) -> None:
    assert answers("SELECT id FROM range(2)", None)[1] is False
    assert answers("SELECT id FROM range(2) LIMIT 100000", 100_000)[1] is False


def test_large_rows_are_pushed_although_they_are_few(answers: Answers) -> None:
    size = COLLECTED_BYTES // 1_000 + 1
    rows, collected = answers(f"SELECT repeat('x', {size}) AS x FROM range(3) LIMIT 1000", 1_000)
    assert [len(str(row[0])) for row in rows] == [size] * 3
    assert collected is False


@pytest.mark.parametrize(
    "value", ["array(repeat('x', 40000))", "map('a', repeat('x', 40000))", "named_struct('a', repeat('x', 40000))"]
)
def test_a_row_is_large_also_by_what_is_inside_of_a_value(answers: Answers, value: str) -> None:
    rows, collected = answers(f"SELECT {value} AS x FROM range(2) LIMIT 1000", 1_000)
    assert (len(rows), collected) == (2, False)


def test_a_limit_of_no_rows_gives_none(answers: Answers) -> None:
    assert answers("SELECT id FROM range(9) LIMIT 0", 0)[0] == []


def test_a_query_whose_rows_are_collected_can_be_cancelled(session: SparkSession, tmp_path: Path) -> None:
    """Spark runs the job of `toArrow` in a thread of its own, which must have the tag of the query."""
    receiver = Receiver(tmp_path, 1 << 26)
    sql = "SELECT sum(a.id % (b.id + 1)) AS x FROM range(1000000) AS a CROSS JOIN range(1000000) AS b LIMIT 1"
    select = SelectDefinition(QueryDefinition(sql, (("x", None),), limit=1), {})
    query = BatchQuery(session, QueryRequest(select, ServerOptions({}, {}), {}), cast("Clients", None), receiver.open())
    running = Thread(target=query.run, args=(receiver.address, "pool"), daemon=True)
    running.start()
    tracker = session.sparkContext.statusTracker()
    assert eventually(lambda: bool(tracker.getActiveJobsIds()), TIMEOUT)
    assert eventually(lambda: _has_ended(query, running), TIMEOUT)
    (answer,) = query.answers()
    assert isinstance(answer, Failed)
    assert isinstance(answer.error, QueryCancelled)
    receiver.close()


def _has_ended(query: BatchQuery, running: Thread) -> bool:
    query.cancel()
    return not running.is_alive()
