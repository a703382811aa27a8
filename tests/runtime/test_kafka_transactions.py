"""Kafka topics written in transactions: zombies, unknown outcomes, hidden progress, refusals. Without Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Any, cast

import psutil
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from pyspark.sql import DataFrame

from headgate.connectors.kafka import NewTopicOptions
from headgate.embedded.world import World
from headgate.runtime.errors import Fenced, RecordTooLarge, TargetTopicGone
from headgate.runtime.ports import Limit
from headgate.runtime.targets.errors import (
    OutputTooLarge,
    ProgressHidden,
    ProgressLost,
    TargetTopicReplaced,
    TransactionFailed,
    TransactionsNotAllowed,
    TransactionTimeoutRefused,
)
from headgate.runtime.targets.kafka_progress import FIRST_PARTITIONS, ProgressRecord, dump_record, load_record
from headgate.runtime.targets.kafka_transactions import MOST_BYTES, KafkaTransactions
from headgate.runtime.targets.transactional_producer import OutcomeUnknown, TransactionAborted, TransactionalProducer
from tests.embedded.world_fixtures import eventually
from tests.runtime.once_topics import Frame, Once, Pair, at, batch, cluster_at, frame, write

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


_names = count()


@pytest.fixture
def once(world: World) -> Iterator[Once]:
    name = f"once_{next(_names)}"
    topic = Once(world.ensure("kafka")["kafka"], name, project=name)
    yield topic
    topic.close()


# Zombies


def test_an_engine_that_wakes_disturbs_the_live_one_once_and_writes_nothing(once: Once) -> None:
    once.create()
    old, live = once.open(), once.open()
    old.begin(1)
    write(old, batch(1, 0, 1), ("a", "1"))
    assert live.begin(2) is not None
    with pytest.raises(Fenced) as raised:
        write(old, batch(2, 1, 2), ("b", "2"))
    assert (raised.value.held, raised.value.epoch) == (2, 1)
    with pytest.raises(Fenced):
        old.begin(1)  # fences the producer of the live one
    write(live, batch(2, 1, 2, epoch=2), ("c", "3"))
    write(live, batch(3, 2, 3, epoch=2), ("d", "4"))
    assert once.held() == [("a", "1"), ("c", "3"), ("d", "4")]


def test_what_a_dead_engine_left_open_is_never_seen(once: Once) -> None:
    once.create()
    dead, next_ = once.open(), once.open()
    dead.begin(1)
    producer = dead._producer
    assert producer is not None
    producer._producer.begin_transaction()
    producer._producer.produce(once.name, b"lost")
    producer._producer.flush(10)
    assert next_.begin(2) is None
    write(next_, batch(1, 0, 1, epoch=2), ("a", "1"))
    assert once.held() == [("a", "1")]


def test_the_first_batch_of_a_generation_may_begin_anywhere(once: Once) -> None:
    """The sink reads another relation, whose positions have nothing to do with those before."""
    once.create()
    target = once.open()
    target.begin(1)
    write(target, batch(1, 0, 5), ("a", "1"))
    write(target, replace(batch(2, 0, 3), generation=2), ("b", "2"))
    found = target.begin(2)
    assert found is not None
    assert (found.generation, found.number, found.positions) == (2, 2, at(3))
    with pytest.raises(Fenced):
        write(target, replace(batch(3, 5, 6, epoch=2), generation=2), ("c", "3"))
    assert once.held() == [("a", "1"), ("b", "2")]


# Outcomes


class Troubled:
    """A producer whose transactions end in another way than the target hears, once."""

    def __init__(self, real: TransactionalProducer, error: Exception, *, committed: bool) -> None:
        self._real, self._error, self._committed = real, error, committed
        self.done = False

    def transaction(self, fill: Callable[[Producer], None]) -> None:
        if self.done:
            self._real.transaction(fill)
            return
        self.done = True
        if self._committed:
            self._real.transaction(fill)
        raise self._error

    def abandon(self) -> None:
        self._real.abandon()

    def close(self) -> None:
        self._real.close()


TIMED_OUT = KafkaError(KafkaError._TIMED_OUT)


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "lost"])
def test_a_commit_without_an_answer_is_found_out(once: Once, committed: bool) -> None:
    once.create()
    target = once.open()
    target.begin(1)
    _trouble(target, OutcomeUnknown(TIMED_OUT), committed=committed)
    write(target, batch(1, 0, 1), ("a", "1"))
    write(target, batch(2, 1, 2), ("b", "2"))
    assert once.held() == [("a", "1"), ("b", "2")]


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "lost"])
def test_rows_of_no_batch_are_not_doubled_by_a_commit_without_an_answer(once: Once, committed: bool) -> None:
    once.create()
    target = once.open()
    target.begin(1)
    write(target, batch(1, 0, 1), ("a", "1"))
    _trouble(target, OutcomeUnknown(TIMED_OUT), committed=committed)
    target.send(frame([("b", "2")]))
    target.send(frame([("b", "2")]))
    write(target, batch(2, 1, 2), ("c", "3"))
    assert once.held() == [("a", "1"), ("b", "2"), ("b", "2"), ("c", "3")]


def test_an_aborted_transaction_is_tried_again(once: Once) -> None:
    once.create()
    target = once.open()
    target.begin(1)
    _trouble(target, TransactionAborted(TIMED_OUT), committed=False)
    write(target, batch(1, 0, 1), ("a", "1"))
    assert once.held() == [("a", "1")]


def test_transactions_that_are_aborted_again_and_again_are_an_error_that_may_pass(
    once: Once, monkeypatch: pytest.MonkeyPatch
) -> None:
    once.create()
    target = once.open()
    target.begin(1)
    producer = target._producer
    assert producer is not None

    def refuse(_: object) -> None:
        raise TransactionAborted(KafkaError(KafkaError.INVALID_TXN_STATE))

    monkeypatch.setattr(producer, "transaction", refuse)
    with pytest.raises(TransactionFailed) as raised:
        write(target, batch(1, 0, 1), ("a", "1"))
    assert raised.value.retryable
    assert once.held() == []


def test_a_failure_between_two_records_leaves_nothing_and_the_task_may_go_on(once: Once) -> None:
    once.create()
    target = once.open()
    target.begin(1)
    producer = target._producer
    assert producer is not None

    def fill(p: Producer) -> None:
        p.produce(once.name, b"1")
        raise ValueError("a row cannot be produced")

    with pytest.raises(ValueError, match="cannot be produced"):
        producer.transaction(fill)
    write(target, batch(1, 0, 1), ("a", "1"))
    assert once.held() == [("a", "1")]


def _trouble(target: KafkaTransactions, error: Exception, *, committed: bool) -> None:
    assert target._producer is not None
    target._producer = cast(TransactionalProducer, Troubled(target._producer, error, committed=committed))


# Finding the progress


def test_a_foreign_open_transaction_does_not_hide_progress_in_silence(once: Once) -> None:
    once.create()
    target = once.open()
    target.begin(1)
    place = once.progress()
    foreign = Producer({"bootstrap.servers": once.brokers, "transactional.id": f"foreign {once.name}", "log_level": 0})
    foreign.init_transactions(30)
    foreign.begin_transaction()
    foreign.produce(place.name, b"{}", "another task", place.partition)
    foreign.flush(10)
    write(target, batch(1, 0, 1), ("a", "1"))  # lies behind the open transaction
    next_ = once.open(timeout=2.0)
    with pytest.raises(ProgressHidden):
        next_.begin(2)
    foreign.abort_transaction(30)
    found = next_.begin(2)
    assert found is not None
    assert found.number == 1


def test_progress_is_found_behind_many_aborted_and_foreign_records(once: Once) -> None:
    once.create()
    target = once.open()
    target.begin(1)
    write(target, batch(1, 0, 5), ("a", "1"))
    producer, place = target._producer, once.progress()
    assert producer is not None
    for number in range(60):
        producer._producer.begin_transaction()
        producer._producer.produce(place.name, b"{}", "a dropped task", place.partition)
        if number % 2 == 0:
            producer._producer.commit_transaction(10)
            continue
        producer._producer.produce(place.name, dump_record(ProgressRecord(1, number=99)), place.key, place.partition)
        producer._producer.flush(10)
        producer._producer.abort_transaction(10)
    found = once.open().begin(2)
    assert found is not None
    assert (found.number, found.positions) == (1, at(5))


def test_progress_that_was_deleted_is_missed(once: Once) -> None:
    once.create()
    target = once.open()
    target.begin(1)
    write(target, batch(1, 0, 1), ("a", "1"))
    name = once.progress().name
    once.cluster.delete_topic(name)
    assert eventually(lambda: name not in once.cluster.topics({name}), 30)
    once.progress().ensure()
    target._known = None  # as after a commit without an answer
    with pytest.raises(ProgressLost):
        write(target, batch(2, 1, 2), ("b", "2"))
    assert once.held() == [("a", "1")]


def test_a_slot_that_another_task_had_is_empty_for_the_next(once: Once) -> None:
    once.create()
    first = once.open()
    first.begin(7)
    write(first, batch(1, 0, 5, epoch=7), ("a", "1"))
    second = Once(once.brokers, f"{once.name}_second", project=once.slot.project).create()
    target = second.open()
    assert target.begin(1) is None
    write(target, batch(1, 0, 1), ("b", "2"))
    assert second.held() == [("b", "2")]
    found = once.open().begin(8)
    assert found is not None
    assert found.number == 1
    second.close()


def test_the_progress_topic_is_compacted_and_grows_with_the_slots(once: Once) -> None:
    topics = [Once(once.brokers, f"{once.name}_{n}", n, once.name).create() for n in (0, 3, FIRST_PARTITIONS, 17)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda topic: topic.open().begin(1), topics)) == [None] * 4
    name = topics[0].progress().name
    assert name == f"headgate-progress-{once.name}"
    assert once.cluster.topic(name).partitions == 4 * FIRST_PARTITIONS
    assert once.cluster.topic_config(name)["cleanup.policy"] == "compact"
    for topic in topics:
        topic.close()


def test_progress_survives_its_record() -> None:
    record = ProgressRecord(3, 2, 11, "{}", "d", "id", 4)
    assert load_record(dump_record(record)) == record
    assert load_record(b'{"epoch": 5, "added later": 1}') == ProgressRecord(5)


# The target itself


def test_a_topic_made_again_is_noticed_before_anything_is_written(once: Once) -> None:
    once.create()
    target = once.open()
    target.begin(1)
    write(target, batch(1, 0, 1), ("a", "1"))
    once.cluster.delete_topic(once.name)
    assert eventually(lambda: once.name not in once.cluster.topics({once.name}), 30)
    with pytest.raises(TargetTopicGone):
        write(target, batch(2, 1, 2), ("b", "2"))
    once.cluster.create_topic(once.name, NewTopicOptions(1))
    with pytest.raises(TargetTopicReplaced):
        write(target, batch(2, 1, 2), ("b", "2"))
    with pytest.raises(TargetTopicReplaced):
        once.open().begin(2)
    assert once.held() == []


def test_a_record_that_the_topic_refuses_is_named_and_small_ones_fit(once: Once) -> None:
    """Many small records are together larger than the topic takes at once."""
    once.create(("max.message.bytes", "20000"))
    target = once.open()
    target.begin(1)
    small: list[Pair] = [(f"k{n}", "x" * 500) for n in range(400)]
    write(target, batch(1, 0, 1), *small)
    with pytest.raises(RecordTooLarge):
        write(target, batch(2, 1, 2), ("a", "y"), ("b", "y" * 30_000))
    write(target, batch(2, 1, 2), ("c", "z"))
    assert once.held() == [*small, ("c", "z")]


def test_a_record_may_be_as_large_as_the_topic_takes(once: Once) -> None:
    once.create(("max.message.bytes", "6000000"))
    target = once.open()
    target.begin(1)
    large: Pair = ("a", "x" * 5_000_000)
    write(target, batch(1, 0, 1), large, ("b", "2"))
    assert once.held() == [large, ("b", "2")]


def test_headers_and_partitions_are_those_of_the_columns(once: Once) -> None:
    once.cluster.create_topic(once.name, NewTopicOptions(3))
    target = once.open()
    target.begin(1)
    header = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table(
        {
            "key": pa.array([b"a", b"b"]),
            "value": pa.array([b"1", None], pa.binary()),
            "partition": pa.array([2, 1], pa.int32()),
            "headers": pa.array([[{"key": "h", "value": b"x"}, {"key": "h", "value": None}], None], header),
        }
    )
    target.write_records(cast(DataFrame, Frame(table)), batch(1, 0, 1))
    found = {message.partition(): message for message in _messages(once, [1, 2])}
    assert (found[2].value(), found[2].headers()) == (b"1", [("h", b"x"), ("h", None)])
    assert (found[1].value(), found[1].headers()) == (None, None)


def _messages(once: Once, partitions: list[int]) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": once.brokers, "group.id": "look", "log_level": 0})
    try:
        consumer.assign([TopicPartition(once.name, p, 0) for p in partitions])
        found: list[Any] = []
        while len(found) < len(partitions):
            found += consumer.consume(10, 1.0)
        return found
    finally:
        consumer.close()


def test_the_size_of_a_batch_follows_its_output(once: Once) -> None:
    once.create()
    target = once.open()
    target.begin(1)
    assert target.bounded(Limit(500_000, 256 << 20)) == Limit(500_000, MOST_BYTES)
    write(target, batch(1, 0, 10), *[(None, "x" * 100_000)] * 10)
    bounded = target.bounded(Limit(500_000, 256 << 20)).rows
    assert 600 < bounded < 700  # of 100 kB each in 64 MB
    write(target, batch(2, 10, 5010), (None, "x"))
    assert target.bounded(Limit(500_000, 256 << 20)).rows > bounded
    assert target.bounded(Limit(3)).rows == 3


def test_a_closed_target_holds_no_threads_and_may_begin_again(once: Once) -> None:
    once.create()
    target = once.open()
    target.begin(1)
    target.close()
    before = psutil.Process().num_threads()
    for epoch in range(2, 6):
        target.begin(epoch)
        write(target, batch(epoch - 1, epoch - 2, epoch - 1, epoch), ("a", str(epoch)))
    target.close()
    assert eventually(lambda: psutil.Process().num_threads() <= before, 30)
    assert not any(thread.name == "abandoned-producer" for thread in threading.enumerate())
    assert len(once.held()) == 4


# Refusals


def test_a_transaction_that_is_too_long_for_the_broker_is_named(once: Once, monkeypatch: pytest.MonkeyPatch) -> None:
    once.create()
    target = once.open()
    settings = {**once.cluster.librdkafka(), "transaction.timeout.ms": 3_600_000}
    monkeypatch.setattr(target, "_settings", lambda: settings)
    with pytest.raises(TransactionTimeoutRefused):
        target.begin(1)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    ],
)
def test_a_login_without_rights_is_told_which_it_needs(code: int) -> None:
    target = Once("localhost:1", "t").open()
    error = target._failure(KafkaError(code))
    assert isinstance(error, TransactionsNotAllowed)
    assert not error.retryable
    hint = error.hint() or ""
    assert 'transactional id "headgate/uuid of t"' in hint
    assert 'topic "headgate-progress-once"' in hint


def test_more_output_than_the_driver_takes_is_named() -> None:
    target = Once("localhost:1", "t").open()
    said = (
        "Total size of serialized results of 3 tasks (1.2 GiB) is bigger than spark.driver.maxResultSize (1024.0 MiB)"
    )
    found = target.explain(RuntimeError(said))
    assert isinstance(found, OutputTooLarge)
    assert found.retryable


def test_a_cluster_that_is_away_is_said_to_be_away() -> None:
    error = KafkaException(KafkaError(KafkaError._TRANSPORT))
    assert cluster_at("localhost:1").failure("write", error).code == "CON-0201"
