"""The law of the batch protocol over a real broker: topics that are written in transactions.

Engines crash between two rows of an open transaction, others take over, and those that wake are fenced off. A reader of
committed records sees every row once after each step.
"""

from __future__ import annotations

import sys
from itertools import count
from typing import ClassVar, Literal, cast

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, Producer
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from pyspark.sql import DataFrame

from headgate.embedded.world import World
from headgate.runtime.ports import Changes, Ledger, Target
from headgate.runtime.targets import kafka_transactions
from headgate.runtime.targets.kafka_transactions import KafkaTransactions, produce_piece
from headgate.runtime.targets.transactional_producer import OutcomeUnknown, TransactionAborted, TransactionalProducer
from tests.laws import TIMES
from tests.runtime.memory_ports import Pause, Row, rows_of
from tests.runtime.once_topics import Once, Pair, frame
from tests.runtime.test_protocol_law import Crash, LawTarget, Protocol

pytestmark = [pytest.mark.e2e, pytest.mark.soak, pytest.mark.timeout(900)]

_topics = count()


class Mortal(TransactionalProducer):
    """A producer that leaves its transaction open when its engine crashes."""

    def _abort(self, cause: KafkaError) -> TransactionAborted | OutcomeUnknown:
        return TransactionAborted(cause) if isinstance(sys.exc_info()[1], Crash) else super()._abort(cause)


class Watched:
    """The topic as a reader of committed records sees it."""

    commit: Literal["own", "catalog"] = "own"

    def __init__(self, once: Once) -> None:
        self.once = once
        self.pause: Pause = lambda _: None

    @property
    def rows(self) -> list[Row]:
        return [(key or "", None if value is None else int(value)) for key, value in self.once.held()]

    @property
    def ledger(self) -> Ledger | None:
        progress = self.once.progress()
        progress.ensure()
        return progress.read().ledger(9)


class RowByRow(KafkaTransactions):
    """Takes lists of rows, and stops where the law says so."""

    watched: Watched

    def records(self, changes: Changes, read: int) -> DataFrame:
        pairs: list[Pair] = [(key, None if value is None else str(value)) for key, value in rows_of(changes)]
        return frame(pairs)

    def _produce_rows(self, producer: Producer, rows: pa.Table) -> None:
        for number in range(rows.num_rows):
            self.watched.pause(number)
            for piece in rows.slice(number, 1).to_batches():
                produce_piece(producer, self.sink.topic, piece)


class OnKafka(Protocol):
    brokers: ClassVar[str]

    def __init__(self) -> None:
        number = next(_topics)
        self.once = Once(self.brokers, f"law_{number}", number, "law").create()
        super().__init__()

    def make_target(self) -> LawTarget:
        return cast(LawTarget, Watched(self.once))

    def open_target(self) -> Target:
        once = self.once
        target = RowByRow(once.sink, once.cluster, 9, once.progress())
        target.watched = cast(Watched, self.target)
        once.opened.append(target)
        return target

    def teardown(self) -> None:
        super().teardown()
        for target in self.once.opened:
            target._abandon()


@pytest.fixture
def brokers(world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(kafka_transactions, "TransactionalProducer", Mortal)
    return world.ensure("kafka")["kafka"]


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_every_row_is_seen_once_whatever_happens_to_its_engine(brokers: str, keyed: bool) -> None:
    law = type("Law", (OnKafka,), {"brokers": brokers, "keyed": keyed})
    run_state_machine_as_test(
        law,
        settings=settings(
            max_examples=4 * TIMES,
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
