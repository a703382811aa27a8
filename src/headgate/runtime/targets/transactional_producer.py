"""A producer that writes in transactions. It has a transactional id: a newer producer with the same one fences it off."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

CALL_TIMEOUT = 5.0  # seconds for one call; calls that may be repeated are repeated until their deadline
INIT_TIMEOUT = 60.0  # seconds to fence off an older producer, whose transaction the broker must abort first
COMMIT_TIMEOUT = 30.0  # seconds after which the outcome of a commit counts as unknown
TRANSACTION_MILLISECONDS = 60_000  # after which the broker aborts the transaction of a producer that is gone

# RUNTIME: without `enable.sparse.connections` init takes 57 to 510 ms, with it and `list_topics` before it 3 to 12.
SETTINGS: dict[str, Any] = {
    "linger.ms": 20,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 262_144,
    "message.max.bytes": 100_000_000,  # about what a broker takes at most; the topic has a limit of its own
    "enable.sparse.connections": False,
    "transaction.timeout.ms": TRANSACTION_MILLISECONDS,
    "socket.keepalive.enable": True,
    "reconnect.backoff.max.ms": 1000,
    "partitioner": "murmur2_random",  # keys go to the partitions that Java's producers choose
    "delivery.report.only.error": True,
    "log_level": 0,
}


class TransactionAborted(Exception):
    """Nothing of the transaction is or will be visible. The producer may be used again."""

    def __init__(self, error: KafkaError) -> None:
        super().__init__(error.str())
        self.error = error


class OutcomeUnknown(Exception):
    """The producer was fenced off, or it is not known whether the commit was carried out. It must not be used again."""

    def __init__(self, error: KafkaError) -> None:
        super().__init__(error.str())
        self.error = error


class TransactionalProducer:
    """One producer and its threads. Used by one thread at a time."""

    def __init__(self, settings: dict[str, Any], transactional_id: str) -> None:
        self._refused: KafkaError | None = None  # why the first of the records was not taken
        own = {"transactional.id": transactional_id, "on_delivery": self._delivered}
        self._producer = Producer({**SETTINGS, **settings, **own})

    def _delivered(self, error: KafkaError | None, _: object) -> None:
        """Called for records that failed. Those behind the first are only purged with it."""
        self._refused = self._refused or error

    def fence(self, topic: str) -> None:
        """Fence off older producers with the id, and wait until their transactions are over. Raises KafkaException."""
        self._producer.list_topics(topic, timeout=2 * CALL_TIMEOUT)  # connects
        self._repeat(lambda: self._producer.init_transactions(CALL_TIMEOUT), INIT_TIMEOUT)

    def transaction(self, fill: Callable[[Producer], None]) -> None:
        """Commit what `fill` produces. Raises TransactionAborted or OutcomeUnknown. After an error of `fill` itself nothing is
        visible either."""
        self._refused = None
        try:
            self._producer.begin_transaction()
            fill(self._producer)
        except KafkaException as error:
            raise self._abort(error.args[0]) from error
        except BaseException as error:
            outcome = self._abort(KafkaError(KafkaError._APPLICATION, "the batch failed"))
            if isinstance(outcome, OutcomeUnknown):
                raise outcome from error
            raise
        try:
            self._repeat(lambda: self._producer.commit_transaction(CALL_TIMEOUT), COMMIT_TIMEOUT)
        except KafkaException as error:
            failed: KafkaError = error.args[0]
            raise (self._abort(failed) if failed.txn_requires_abort() else OutcomeUnknown(failed)) from error

    def _abort(self, cause: KafkaError) -> TransactionAborted | OutcomeUnknown:
        try:
            self._repeat(lambda: self._producer.abort_transaction(CALL_TIMEOUT), COMMIT_TIMEOUT)
        except KafkaException as error:
            return OutcomeUnknown(cause if cause.fatal() else error.args[0])
        return TransactionAborted(self._refused or cause)

    def _repeat(self, call: Callable[[], None], timeout: float) -> None:
        """Librdkafka says which calls may be repeated: they go on where they were."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                call()
                return
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    def close(self) -> None:
        """Give back its threads. Librdkafka ends a producer with its last reference. Its own `close` would try to abort and to
        flush first, and warn if it cannot."""
        del self._producer

    def abandon(self) -> None:
        """The same without waiting: a request to a broker that is away may be under way."""
        threading.Thread(target=self.close, name="abandoned-producer", daemon=True).start()
