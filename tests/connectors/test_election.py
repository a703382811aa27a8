"""Requests that reach a cluster while it elects leaders, and threads that ask a cluster at the same time."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from headgate.connectors import kafka
from headgate.connectors.errors import BrokerUnreachable, TopicNotFound
from headgate.connectors.kafka import KafkaCluster, NewTopicOptions, Topic
from headgate.connectors.options import ConnectionOptions

pytestmark = pytest.mark.unit

TOPIC = "orders"
ORDERS = Topic(TOPIC, "id", 1)


class _Partition:
    replicas = (1,)


class _Description:
    topic_id = "id"
    partitions = (_Partition(),)


class _Offset:
    offset = 7


class _Admin:
    """Answers like a broker. Each request fails with the next of its errors, and succeeds when none is left."""

    def __init__(self, **errors: list[int]) -> None:
        self._errors = errors

    def describe_topics(self, _: object) -> Mapping[str, Future[Any]]:
        return {TOPIC: self._answer("describe", _Description())}

    def list_offsets(self, wanted: Mapping[TopicPartition, object], **_: object) -> Mapping[Any, Future[Any]]:
        return {partition: self._answer("offsets", _Offset()) for partition in wanted}

    def create_topics(self, _: object, **__: object) -> Mapping[str, Future[Any]]:
        return {TOPIC: self._answer("create", None)}

    def list_topics(self, **_: object) -> Any:
        return type("Metadata", (), {"topics": {}})

    def poll(self, _: float) -> int:
        return 0

    def _answer(self, request: str, result: object) -> Future[Any]:
        future: Future[Any] = Future()
        if remaining := self._errors.get(request):
            future.set_exception(KafkaException(KafkaError(remaining.pop(0))))
        else:
            future.set_result(result)
        return future


def cluster(**errors: list[int]) -> KafkaCluster:
    made = KafkaCluster(ConnectionOptions("c", (("BROKER", ("127.0.0.1:1",)),)))
    made._admin = cast("AdminClient", _Admin(**errors))
    return made


@pytest.mark.parametrize("code", sorted(kafka._ELECTION_ERRORS))
def test_a_request_is_repeated_while_the_brokers_elect_a_leader(code: int) -> None:
    assert cluster(offsets=[code, code]).offsets(ORDERS, latest=True) == {0: 7}


def test_a_partition_that_stays_without_a_leader_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "ELECTION_TIMEOUT", 0.2)
    with pytest.raises(BrokerUnreachable):
        cluster(offsets=[KafkaError.NOT_LEADER_FOR_PARTITION] * 100).offsets(ORDERS, latest=True)


def test_a_request_to_a_broker_that_is_away_is_not_repeated() -> None:
    errors = [KafkaError._TRANSPORT, KafkaError._TRANSPORT]
    with pytest.raises(BrokerUnreachable):
        cluster(offsets=errors).offsets(ORDERS, latest=True)
    assert len(errors) == 1


def test_creating_a_topic_waits_until_the_brokers_know_and_lead_it() -> None:
    errors = {
        "create": [KafkaError.NOT_CONTROLLER],
        "describe": [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE],
        "offsets": [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART],
    }
    assert cluster(**errors).create_topic(TOPIC, NewTopicOptions())
    assert errors == {"create": [], "describe": [], "offsets": []}


def test_creating_a_topic_that_exists_waits_for_its_leaders_too() -> None:
    errors = {"create": [KafkaError.TOPIC_ALREADY_EXISTS], "offsets": [KafkaError.NOT_LEADER_FOR_PARTITION]}
    assert not cluster(**errors).create_topic(TOPIC, NewTopicOptions())
    assert errors == {"create": [], "offsets": []}


def test_a_new_topic_that_no_broker_comes_to_know_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "TIMEOUT", 0.2)
    with pytest.raises(TopicNotFound):
        cluster(describe=[KafkaError.UNKNOWN_TOPIC_OR_PART] * 100).create_topic(TOPIC, NewTopicOptions())


def test_a_topic_that_does_not_exist_is_left_out_at_once() -> None:
    errors = [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_OR_PART]
    assert cluster(describe=errors).topics([TOPIC]) == {}
    assert len(errors) == 1


def test_threads_that_ask_at_once_share_one_client(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    together = threading.Barrier(4)

    def make(_: object) -> object:
        time.sleep(0.05)  # as long as a real client takes, so that the threads would overtake each other
        made.append(object())
        return made[-1]

    monkeypatch.setattr(kafka, "AdminClient", make)
    shared = KafkaCluster(ConnectionOptions("c", (("BROKER", ("127.0.0.1:1",)),)))

    def client(_: int) -> object:
        together.wait()
        return shared._client()

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(client, range(4))) == set(made)
    assert len(made) == 1
