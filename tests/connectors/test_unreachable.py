"""Clusters that do not answer or do not let us in: result apart, within the time that is set."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from headgate.connectors import kafka
from headgate.connectors.errors import BrokerRefusedLogin, BrokerUnreachable, KafkaFailed
from headgate.connectors.kafka import KafkaCluster, NewTopicOptions, Topic
from headgate.connectors.options import ConnectionOptions
from tests.connectors.brokers import REASON, closed_port, refusing_broker

pytestmark = pytest.mark.unit

PATIENCE = 0.3  # seconds, instead of the ten that a broker far away may take


@pytest.fixture(autouse=True)
def _short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "TIMEOUT", PATIENCE)


def cluster(broker: str, *more: tuple[str, str]) -> KafkaCluster:
    return KafkaCluster(ConnectionOptions("c", (("BROKER", (broker,)), *((name, (text,)) for name, text in more))))


@pytest.mark.parametrize(
    "ask",
    [
        lambda k: k.check(),
        lambda k: k.topic("t"),
        lambda k: k.topics(["t"]),
        lambda k: k.offsets(Topic("t", "", 1), latest=True),
        lambda k: k.create_topic("t", NewTopicOptions()),
        lambda k: k.delete_topic("t"),
    ],
    ids=["check", "topic", "topics", "offsets", "create_topic", "delete_topic"],
)
def test_a_closed_port_is_unreachable_in_bounded_time(ask: Callable[[KafkaCluster], object]) -> None:
    broker = f"127.0.0.1:{closed_port()}"
    began = time.monotonic()
    with pytest.raises(BrokerUnreachable) as caught:
        ask(cluster(broker))
    assert time.monotonic() - began < PATIENCE + 5 + 3
    assert caught.value.message() == f"could not reach Kafka at {broker}"
    assert "VALIDATE = false" in str(caught.value.hint())


def test_a_refused_login_is_not_taken_for_a_broker_that_is_away() -> None:
    login = (
        ("SECURITY PROTOCOL", "SASL_PLAINTEXT"),
        ("SASL MECHANISMS", "PLAIN"),
        ("SASL USERNAME", "u"),
        ("SASL PASSWORD", "hunter2"),
    )
    with refusing_broker() as broker:
        refused = cluster(broker, *login)
        for ask in (refused.check, lambda: refused.topic("t")):
            with pytest.raises(BrokerRefusedLogin) as caught:
                ask()
            assert REASON in str(caught.value.detail())
            assert "hunter2" not in caught.value.diagnostic().render()


def test_any_other_refusal_has_the_text_of_the_broker() -> None:
    refused: Future[None] = Future()
    refused.set_exception(KafkaException(KafkaError(KafkaError.POLICY_VIOLATION, "no topics on Sundays")))
    with pytest.raises(KafkaFailed) as caught:
        cluster(f"127.0.0.1:{closed_port()}")._request("delete topic", lambda _: {"t": refused})
    assert caught.value.message() == 'could not delete topic "t"'
    assert caught.value.detail() == "No topics on Sundays."
