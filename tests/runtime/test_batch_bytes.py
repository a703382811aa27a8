"""How many records a batch takes if they are large."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from headgate.catalog.positions import KafkaPosition, distance
from headgate.connectors.connections import Clients
from headgate.connectors.kafka import Topic
from headgate.plan.definitions import SourceDefinition
from headgate.runtime.inputs.kafka import LOOK_EVERY, LOOKS, SURE_ROWS, KafkaInput
from headgate.runtime.ports import Limit
from tests.runtime.memory_ports import NO_SESSION
from tests.runtime.test_decode import plan

pytestmark = pytest.mark.unit

PARTITIONS = 6


class Records:
    """A topic of which every record has the same size, and the places that were looked at."""

    def __init__(self, size: float) -> None:
        self.size = size
        self.looks: list[Sequence[tuple[int, int]]] = []
        cluster = SimpleNamespace(brokers="b:1", mean_record_bytes=self._mean_record_bytes)
        clients = cast("Clients", SimpleNamespace(kafka=lambda _: cluster))
        source = SourceDefinition(1, "s", "t", 3, plan("WITH (ON ERROR = SKIP)"))
        self.input = KafkaInput(source, clients, 2, 'sink "out"', "b:1", "headgate-2")

    def _mean_record_bytes(self, topic: str, places: Sequence[tuple[int, int]]) -> float:
        assert topic == Topic("t", "id", PARTITIONS).name
        self.looks.append(places)
        return self.size

    def batch(self, waiting: int, limit: Limit) -> int:
        start = KafkaPosition("t", "id", (0,) * PARTITIONS)
        end = KafkaPosition("t", "id", (waiting - 5 * (waiting // 10), *(waiting // 10,) * (PARTITIONS - 1)))
        return distance(start, self.input.choose_end(NO_SESSION, start, limit, end, None))


def test_a_batch_of_large_records_has_fewer_of_them() -> None:
    assert abs(Records(1e6).batch(50_000, Limit(50_000, 256_000_000)) - 256) <= PARTITIONS
    assert Records(300.0).batch(50_000, Limit(50_000, 256_000_000)) == 50_000


def test_a_record_that_is_larger_than_a_batch_is_a_batch() -> None:
    assert Records(1e9).batch(10_000, Limit(50_000, 256_000_000)) == PARTITIONS  # one of each partition


def test_a_small_batch_is_not_looked_at_and_one_look_serves_several_large_ones() -> None:
    records = Records(1e6)
    assert (records.batch(SURE_ROWS, Limit(50_000, 1)), records.looks) == (SURE_ROWS, [])
    for _ in range(LOOK_EVERY + 1):
        records.batch(50_000, Limit())
    assert len(records.looks) == 2
    assert len(records.looks[0]) == LOOKS
    assert records.looks[0][0] == (0, 12_500)  # in the middle of the longest backlog


def test_records_of_an_unknown_size_are_taken_as_they_come() -> None:
    assert Records(0.0).batch(50_000, Limit(50_000, 256_000_000)) == 50_000
