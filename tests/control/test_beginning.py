"""Where a task begins, and when it does not: by its ledger, and by what its topic has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from headgate.catalog.positions import KafkaPosition
from headgate.connectors.connections import Clients
from headgate.connectors.kafka import NewTopicOptions, Topic
from headgate.control.definitions import task_definition
from headgate.errors import HeadgateError
from headgate.runtime.errors import RecordsLost, TopicTruncated
from headgate.runtime.sink_task import sink_task
from headgate.sql.statement import Kind
from tests.control.scripts import Shell

pytestmark = pytest.mark.unit


def begun(sql: Shell, *partitions: tuple[int, int]) -> dict[int, int]:
    """Where the only sink goes on, over a topic that has records from and up to these offsets."""
    topic = Topic("lines", "id", len(partitions))
    cluster = SimpleNamespace(
        brokers="b:9092",
        topic=lambda _: topic,
        topics=lambda names: dict.fromkeys(names, topic),
        offsets=lambda _, latest: {p: each[latest] for p, each in enumerate(partitions)},
    )
    clients = cast("Clients", SimpleNamespace(kafka=lambda *_: cluster))
    catalog = sql.store.load()
    (sink,) = catalog.of_kind(Kind.SINK)
    task = sink_task(task_definition(catalog, sink), clients, sql.store)
    task.begin()
    (position,) = task.positions.values()
    assert isinstance(position, KafkaPosition)
    return position.by_partition


def refused(sql: Shell, *partitions: tuple[int, int]) -> HeadgateError:
    with pytest.raises(HeadgateError) as raised:
        begun(sql, *partitions)
    return raised.value


def make(sql: Shell, start: str = "") -> None:
    sql.topics["lines"] = NewTopicOptions()
    sql.run(
        f"CREATE SOURCE lines FROM KAFKA CONNECTION kafka (TOPIC 'lines'{start}) FORMAT TEXT;"
        "CREATE SINK out FROM lines INTO KAFKA CONNECTION kafka (TOPIC 'out') FORMAT TEXT"
    )


def test_what_is_deleted_before_the_first_batch_is_missed(sql: Shell) -> None:
    make(sql)
    assert begun(sql, (0, 0)) == {0: 0}
    assert str(refused(sql, (2, 3))) == str(RecordsLost("lines", 0, 0, 2))
    assert str(refused(sql, (3, 3))) == str(RecordsLost("lines", 0, 0, 3))


def test_a_new_task_begins_at_what_is_left(sql: Shell) -> None:
    make(sql, ", START OFFSET (1)")
    assert begun(sql, (2, 3)) == {0: 2}
    assert begun(sql, (2, 5)) == {0: 2}


def test_an_added_partition_is_read_from_0_or_missed(sql: Shell) -> None:
    make(sql)
    assert begun(sql, (0, 3)) == {0: 0}
    assert begun(sql, (0, 3), (0, 2)) == {0: 0}  # the added one is in the end of the next batch
    assert str(refused(sql, (0, 3), (1, 2))) == str(RecordsLost("lines", 1, 0, 1))


def test_a_topic_that_ends_before_what_was_read_is_refused(sql: Shell) -> None:
    make(sql)
    assert begun(sql, (5, 5)) == {0: 5}
    told = refused(sql, (0, 3))
    assert isinstance(told, TopicTruncated)
    assert str(told) == str(TopicTruncated("lines", 0, 5, 3, 'sink "out"'))
    assert begun(sql, (0, 5)) == {0: 5}


def test_a_task_that_begins_beyond_the_end_waits_there(sql: Shell) -> None:
    make(sql, ", START OFFSET (7)")
    assert begun(sql, (0, 3)) == {0: 7}
    assert begun(sql, (0, 3)) == {0: 7}
    assert begun(sql, (0, 8)) == {0: 7}
