"""A Kafka topic as the target of a task, exactly once: one transaction per batch holds its rows and the task's progress.

    begin    a producer with the task's transactional id fences off all older ones, and the broker aborts what they left open.
             Only then is the progress final. A larger epoch in it: Fenced. Ours is written before any row
    write    Spark encodes the rows and hands them to the driver, before the transaction opens: a broker aborts one that stays
             open for a minute, and readers of committed records wait for it
    commit   rows and progress become visible together, or never

An aborted transaction is tried again. After one of unknown outcome nothing is written until a new producer has read the
progress, which then says whether the batch is in the topic. An engine that was stopped and wakes may fence off the live one
once: that one finds its own epoch in the progress and goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, TypeVar

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer
from pyspark.sql import DataFrame

from headgate.catalog.positions import dump_positions, lag
from headgate.connectors.errors import ConnectorError
from headgate.connectors.kafka import KafkaCluster, Topic
from headgate.crash_points import crash_point, is_armed
from headgate.errors import HeadgateError
from headgate.plan.definitions import SinkDefinition
from headgate.runtime.errors import Fenced, RecordTooLarge
from headgate.runtime.failures import result_is_too_large
from headgate.runtime.ports import Batch, Ledger, Limit, Written
from headgate.runtime.targets.errors import (
    OutputTooLarge,
    ProgressLost,
    RecordTimeRefused,
    TargetTopicReplaced,
    TransactionFailed,
    TransactionsNotAllowed,
    TransactionTimeoutRefused,
)
from headgate.runtime.targets.kafka import KafkaTarget
from headgate.runtime.targets.kafka_progress import ProgressRecord, ProgressTopic, dump_record
from headgate.runtime.targets.transactional_producer import (
    TRANSACTION_MILLISECONDS,
    OutcomeUnknown,
    TransactionAborted,
    TransactionalProducer,
)

MOST_BYTES = 64 << 20  # of a batch: its rows are in the driver's memory until they are committed
PIECE_ROWS = 10_000  # records that are Python objects at one time
BATCH_BYTES = 524_288  # of records that are sent together
FRAME_BYTES = 512  # more than what the protocol adds to them
TRIES = 4  # of a transaction that was aborted or whose outcome was unknown
PAUSE = 0.2  # seconds before the next try, and more before each further one

_MORE = ("partition", "headers", "timestamp")  # columns that some sinks have
_NOT_ALLOWED = {
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}

T = TypeVar("T")
Advance = Callable[[ProgressRecord], ProgressRecord | None]
"""The progress after a transaction, given the progress before it. None if the transaction is committed already."""


class KafkaTransactions(KafkaTarget):
    """The topic of a sink, written in transactions. Rows of a batch become visible together."""

    commit: Literal["own", "catalog"] = "own"
    atomic = True

    def __init__(self, sink: SinkDefinition, cluster: KafkaCluster, task: int, progress: ProgressTopic) -> None:
        super().__init__(sink, cluster)
        self._task = task
        self._progress = progress
        self._transactional_id = f"headgate/{progress.key}"
        self._producer: TransactionalProducer | None = None
        self._known: ProgressRecord | None = None  # None: not known, and nothing may be written
        self._epoch = 0
        self._row_bytes = 0.0  # of the output, for each row of the input

    # Taking over

    def begin(self, epoch: int) -> Ledger | None:
        self._epoch, self._known = epoch, None
        topic = self._check_topic()
        self._allowed(self._progress.ensure)
        return self._repeated(lambda: self._take_over(topic, epoch))

    def _take_over(self, topic: Topic, epoch: int) -> Ledger | None:
        held = self._fence()
        if held.epoch > epoch:
            raise self._fenced(held.epoch, epoch)
        self._check_id(held, topic)
        self._transact(None, replace(held, epoch=epoch, topic_id=topic.id))
        return held.ledger(self._task)

    def _fence(self) -> ProgressRecord:
        """Open a producer that nobody else can be, and read the progress, which nobody else can change now."""
        self._known = None
        self._abandon()
        producer = TransactionalProducer(self._settings(), self._transactional_id)
        try:
            producer.fence(self.sink.topic)
        except KafkaException as error:
            producer.abandon()
            raise self._failure(error.args[0]) from error
        self._producer = producer
        return self._progress.read()

    def _settings(self) -> dict[str, Any]:
        """Librdkafka does not split what a topic refuses as too large, as Java's producer does."""
        most = BATCH_BYTES
        with suppress(ConnectorError, KeyError, ValueError):  # the login may not be allowed to see the settings
            most = int(self.cluster.topic_config(self.sink.topic)["max.message.bytes"])
        codec = {} if self.sink.compression is None else {"compression.type": self.sink.compression}
        return {**self.cluster.librdkafka(), **codec, "batch.size": max(1, min(BATCH_BYTES, most - FRAME_BYTES))}

    def _resume(self) -> ProgressRecord:
        """The progress, which is read anew after an unknown outcome. The first look disturbs nobody: a newer engine that has
        taken over is not fenced off by this one."""
        if self._known is None:
            self._own(self._progress.read())
            self._known = self._own(self._fence())
        return self._known

    def _own(self, held: ProgressRecord) -> ProgressRecord:
        if held.epoch > self._epoch:
            raise self._fenced(held.epoch, self._epoch)
        if held.epoch < self._epoch:
            raise ProgressLost(f'sink "{self.sink.name}"')
        return held

    def _check_topic(self) -> Topic:
        topic = super()._check_topic()
        if self._known is not None:
            self._check_id(self._known, topic)
        return topic

    def _check_id(self, held: ProgressRecord, topic: Topic) -> None:
        if held.topic_id not in ("", topic.id):
            raise TargetTopicReplaced(self.sink.topic, self.sink.name)

    def _fenced(self, held: int, epoch: int) -> Fenced:
        return Fenced(f'topic "{self.sink.topic}"', f'sink "{self.sink.name}"', held, epoch)

    # A batch

    def bounded(self, limit: Limit) -> Limit:
        """The rows of a batch are in memory, so it has a bound for its output too, as far as earlier batches tell."""
        rows = limit.rows if self._row_bytes == 0 else min(limit.rows, int(MOST_BYTES / self._row_bytes))
        return Limit(max(1, rows), min(limit.bytes, MOST_BYTES))

    def _write(self, records: DataFrame | None, batch: Batch, before_commit: Callable[[], None]) -> Written:
        if self._known is not None and self._after(batch, self._known) is None:
            return Written(0)
        rows = None if records is None else self._collected(records)
        self._measure(rows, lag(batch.start, batch.end))
        before_commit()
        self._commit(rows, lambda held: self._after(batch, held), batch.number)
        return Written(0 if rows is None else rows.num_rows)

    def _after(self, batch: Batch, held: ProgressRecord) -> ProgressRecord | None:
        """The progress after a batch; None if the topic has the batch. Raises Fenced for a batch that does not follow."""
        if held.number == batch.number and held.stands_at(batch.end) and held.epoch <= batch.epoch:
            return None
        follows = batch.number == 1 if held.positions is None else held.stands_at(batch.start)
        # The first batch of a generation may begin anywhere: the sink reads another relation now.
        follows = follows or (batch.generation > held.generation and batch.number == held.number + 1)
        if held.epoch > batch.epoch or not follows:
            raise self._fenced(held.epoch, batch.epoch)
        return replace(
            held,
            generation=batch.generation,
            number=batch.number,
            positions=dump_positions(batch.end),
            definition=batch.definition,
        )

    def send(self, records: DataFrame) -> None:
        """Write records that belong to no batch, in one transaction. They are counted, so that an unknown outcome can be found
        out as that of a batch."""
        rows = self._collected(records)
        count = self._resume().sent + 1
        self._commit(rows, lambda held: None if held.sent == count else replace(held, sent=count))

    def _collected(self, records: DataFrame) -> pa.Table:
        """All records, computed and encoded by Spark."""
        columns = [name for name in ("key", "value", *_MORE) if name in records.columns]
        return records.select(*columns).toArrow()

    def _measure(self, rows: pa.Table | None, read: int) -> None:
        """How much output a row of the input makes. It is forgotten slowly, as one large batch is enough to fill the memory."""
        if rows is not None and read > 0:
            self._row_bytes = max(rows.nbytes / read, self._row_bytes * 0.9)

    # Transactions

    def _commit(self, rows: pa.Table | None, advance: Advance, number: int | None = None) -> None:
        """Return when the transaction is committed, now or before."""

        def attempt() -> None:
            if (new := advance(self._resume())) is not None:
                self._transact(rows, new, number)

        self._repeated(attempt)

    def _repeated(self, attempt: Callable[[], T]) -> T:
        """Try until the outcome is known to be good, a few times."""
        for number in range(1, TRIES + 1):
            try:
                return attempt()
            except (TransactionAborted, OutcomeUnknown) as failed:
                error = self._failure(failed.error)
                if not error.retryable or number == TRIES:
                    raise error from failed
            time.sleep(PAUSE * number)
        raise AssertionError("the last attempt returns or raises")

    def _transact(self, rows: pa.Table | None, new: ProgressRecord, number: int | None = None) -> None:
        """One transaction. The progress is unknown until it has ended."""
        producer, before, self._known = self._producer, self._known, None
        assert producer is not None, "the progress is known, so there is a producer"
        try:
            producer.transaction(lambda p: self._fill(p, rows, new, number))
        except OutcomeUnknown:
            self._abandon()
            raise
        except BaseException:  # aborted: the progress is what it was
            self._known = before
            raise
        self._known = new

    def _fill(self, producer: Producer, rows: pa.Table | None, new: ProgressRecord, number: int | None) -> None:
        if rows is not None:
            if number is not None and is_armed("in_write", self._task, number):
                self._produce_rows(producer, rows.slice(0, max(1, rows.num_rows // 2)))
                producer.flush(30)
                crash_point("in_write", self._task, number)
            self._produce_rows(producer, rows)
        _produce(producer, self._progress.name, dump_record(new), self._progress.key, self._progress.partition)

    def _produce_rows(self, producer: Producer, rows: pa.Table) -> None:
        for piece in rows.to_batches(PIECE_ROWS):
            produce_piece(producer, self.sink.topic, piece)
            producer.poll(0)

    # Failures, and the end

    def _failure(self, error: KafkaError) -> HeadgateError:
        """Our error for one of a transaction."""
        sink, code = self.sink, error.code()
        if code in (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE):
            return RecordTooLarge(sink.topic, sink.name)
        if code == KafkaError.INVALID_TIMESTAMP or (code == KafkaError.INVALID_RECORD and sink.time is not None):
            return RecordTimeRefused(sink.topic, sink.name)
        if code in _NOT_ALLOWED:
            return TransactionsNotAllowed(sink.name, self._transactional_id, self._progress.name, f"{error.str()}.")
        if code == KafkaError.INVALID_TRANSACTION_TIMEOUT:
            return TransactionTimeoutRefused(sink.name, TRANSACTION_MILLISECONDS)
        found = self.cluster.failure("write in a transaction", KafkaException(error))
        return found if found.retryable else TransactionFailed(sink.name, f"{error.str().rstrip('.')}.")

    def _allowed(self, work: Callable[[], None]) -> None:
        """Do what a login may not be allowed to do."""
        try:
            work()
        except ConnectorError as error:
            cause = error.__cause__
            if isinstance(cause, KafkaException) and cause.args[0].code() in _NOT_ALLOWED:
                raise self._failure(cause.args[0]) from error
            raise

    def explain(self, error: BaseException) -> BaseException:
        return OutputTooLarge(self.sink.name) if result_is_too_large(error) else super().explain(error)

    def _abandon(self) -> None:
        if self._producer is not None:
            self._producer.abandon()
        self._producer = None

    def close(self) -> None:
        """Give back the producer with its threads. The task may begin again."""
        producer, self._producer, self._known = self._producer, None, None
        if producer is not None:
            producer.close()


def produce_piece(producer: Producer, topic: str, piece: pa.RecordBatch) -> None:
    """Hand records to the producer. The columns are those that Spark's own writer takes: `key` and `value`, and if they are
    there, `partition` (NULL: by the key) and `headers` (a list of structs of key and value). `timestamp`, which Spark's does not
    take, is in milliseconds since 1970 (NULL: the present time)."""
    keys, values = piece.column("key").to_pylist(), piece.column("value").to_pylist()
    names = piece.schema.names
    if not any(name in names for name in _MORE):
        for key, value in zip(keys, values, strict=True):
            _produce(producer, topic, value, key)
        return
    nothing = [None] * piece.num_rows
    more = [piece.column(name).to_pylist() if name in names else nothing for name in _MORE]
    for key, value, partition, pairs, milliseconds in zip(keys, values, *more, strict=True):
        options: dict[str, Any] = {} if milliseconds is None else {"timestamp": milliseconds}
        options["headers"] = [(pair["key"], pair["value"]) for pair in pairs or ()]
        _produce(producer, topic, value, key, -1 if partition is None else partition, **options)


def _produce(producer: Producer, *record: Any, **options: Any) -> None:
    """Produce a record, and wait for room if the producer's buffer is full."""
    while True:
        try:
            producer.produce(*record, **options)
            return
        except BufferError:
            producer.poll(0.05)
