"""What a task keeps of bad records: the bytes of small ones, as Spark hands them over, and of others as the topic has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import DataFrame, Row

from headgate.connectors.connections import Clients
from headgate.connectors.kafka import NewTopicOptions, Topic
from headgate.control.definitions import task_definition
from headgate.runtime.sink_task import LARGEST_KEPT, SMALL, SinkTask
from headgate.sql.statement import Kind
from tests.control.scripts import Shell

pytestmark = pytest.mark.unit

TOPIC = Topic("lines", "id", 1)
RECORDS = {1: b"a" * LARGEST_KEPT, 2: b"b" * (LARGEST_KEPT + 1)}  # the third is gone by now


def bad(offset: int, *, large: bool, raw: bytes | None = None) -> Row:
    problem = {"side": "value", "reason": "it is not valid UTF-8", "schema_id": None}
    return Row(topic="lines", partition=0, offset=offset, time=0, **problem, large=large, raw=raw)


def records(_: str, places: Iterable[tuple[int, int]]) -> Iterator[tuple[None, bytes] | None]:
    return iter([(None, RECORDS[offset]) if offset in RECORDS else None for _, offset in places])


def test_large_records_are_read_from_the_topic_and_the_largest_not_kept(sql: Shell) -> None:
    sql.topics["lines"] = NewTopicOptions()
    sql.run(
        "CREATE SOURCE lines FROM KAFKA CONNECTION kafka (TOPIC 'lines') FORMAT TEXT WITH (ON ERROR = QUARANTINE);"
        "CREATE SINK out FROM lines INTO KAFKA CONNECTION kafka (TOPIC 'out') FORMAT TEXT"
    )
    cluster = SimpleNamespace(
        brokers="b:9092",
        topic=lambda _: TOPIC,
        topics=lambda names: dict.fromkeys(names, TOPIC),
        offsets=lambda _, latest: {0: 5 * latest},
        read_records=records,
    )
    catalog = sql.store.load()
    (sink,) = catalog.of_kind(Kind.SINK)
    clients = cast("Clients", SimpleNamespace(kafka=lambda *_: cluster))
    task = SinkTask(task_definition(catalog, sink), clients, sql.store, lambda _: None)
    task.begin()
    small = bad(0, large=False, raw=b"\xff" * SMALL)
    rows = [bad(3, large=True), bad(2, large=True), small, bad(1, large=True)]
    decoded = SimpleNamespace(
        where=lambda _: SimpleNamespace(selectExpr=lambda *_: SimpleNamespace(toLocalIterator=lambda: rows))
    )
    task._decoded = cast("DataFrame", decoded)
    task.set_aside()
    assert task.progress.skipped == 4
    reason = "It is not valid UTF-8"
    assert [(q.offset, q.raw, q.reason) for q in sql.store.quarantined()] == [
        (0, b"\xff" * SMALL, reason),
        (1, b"a" * LARGEST_KEPT, reason),
        (2, None, f"{reason} (its 100,001 bytes are too many to be kept here)"),
        (3, None, f"{reason} (its bytes were gone before they could be kept)"),
    ]
