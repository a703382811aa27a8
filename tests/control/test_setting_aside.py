"""What a task keeps of bad records: the bytes of small ones, as Spark hands them over, and of others as the topic has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import DataFrame, Observation, Row

from headgate.connectors.connections import Clients
from headgate.connectors.kafka import NewTopicOptions, Topic
from headgate.control.definitions import task_definition
from headgate.runtime.decode import REJECTED
from headgate.runtime.inputs.kafka import INLINE_RAW_BYTES, LARGEST_KEPT, KafkaInput
from headgate.runtime.sink_task import sink_task
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
    task = sink_task(task_definition(catalog, sink), clients, sql.store)
    task.begin()
    small = bad(0, large=False, raw=b"\xff" * INLINE_RAW_BYTES)
    rows = [bad(3, large=True), bad(2, large=True), small, bad(1, large=True)]
    decoded = SimpleNamespace(
        where=lambda _: SimpleNamespace(selectExpr=lambda *_: SimpleNamespace(toLocalIterator=lambda: rows))
    )
    (input_,) = task.inputs.values()
    assert isinstance(input_, KafkaInput)
    input_._decoded = cast("DataFrame", decoded)
    input_._observed = cast("Observation", SimpleNamespace(get={REJECTED: 4}))
    kept = list(input_.rejected().records)
    reason = "It is not valid UTF-8"
    assert [(q.offset, q.raw, q.reason) for q in kept] == [
        (0, b"\xff" * INLINE_RAW_BYTES, reason),
        (1, b"a" * LARGEST_KEPT, reason),
        (2, None, f"{reason} (its 100,001 bytes are too many to be kept here)"),
        (3, None, f"{reason} (its bytes were gone before they could be kept)"),
    ]
