"""`kafka-create-topic`, `kafka-add-partitions`, `kafka-delete-topic`, `kafka-delete-records` and `kafka-verify-topic`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewPartitions, NewTopic

from headgate.testing.actions.action import Action, Invocation
from headgate.testing.errors import Mismatch, ServiceFailed
from headgate.testing.patience import Deadline
from headgate.testing.stage import Stage

TIMEOUT = 30.0  # seconds for one request of the broker


def create(call: Invocation, stage: Stage) -> None:
    topic = call.text("topic")
    new = NewTopic(topic, call.number("partitions") or 1, 1, config=call.beginning("config."))
    client = admin(stage)  # kept: what it promised is broken when it goes
    with kafka_errors():
        client.create_topics([new], operation_timeout=TIMEOUT)[topic].result()
    _wait_until_known(topic, stage)


def add_partitions(call: Invocation, stage: Stage) -> None:
    topic, wanted = call.text("topic"), call.number("partitions") or 1
    client = admin(stage)
    with kafka_errors():
        client.create_partitions([NewPartitions(topic, wanted)], operation_timeout=TIMEOUT)[topic].result()
    stage.eventually(lambda _: _check_partitions(topic, wanted, stage))
    stage.producer = None  # which knows the topic as it was


def _check_partitions(topic: str, wanted: int, stage: Stage) -> None:
    found = partitions(topic, stage)
    if found != wanted:
        raise Mismatch(
            f'topic "{topic}" has another shape', (f"partitions={wanted}",), (f"partitions={found}",)
        )


def delete(call: Invocation, stage: Stage) -> None:
    topic = call.text("topic")
    client = admin(stage)
    with kafka_errors():
        client.delete_topics([topic], operation_timeout=TIMEOUT)[topic].result()
    stage.eventually(lambda _: _check_gone(topic, stage))
    stage.producer = None  # which knows the topic as it was


def _check_gone(topic: str, stage: Stage) -> None:
    if has_topic(topic, stage):
        raise Mismatch(f'topic "{topic}" is still there', (), (topic,))


def delete_records(call: Invocation, stage: Stage) -> None:
    """What retention does, at once: the records of a partition before an offset are gone."""
    before = TopicPartition(call.text("topic"), call.number("partition") or 0, call.number("before") or 0)
    client = admin(stage)
    with kafka_errors():
        client.delete_records([before], operation_timeout=TIMEOUT)[before].result()


def verify(call: Invocation, stage: Stage) -> None:
    topic = call.text("topic")
    wanted = {name: value for name, value in call.options.items() if name != "topic"}

    def attempt(deadline: Deadline) -> None:
        del deadline
        actual = _shape(topic, wanted, stage)
        if actual != wanted:
            lines = [tuple(f"{name}={shape[name]}" for name in wanted) for shape in (wanted, actual)]
            raise Mismatch(f'topic "{topic}" has another shape', *lines)

    stage.eventually(attempt)


def admin(stage: Stage) -> AdminClient:
    return AdminClient(
        {"bootstrap.servers": stage.kafka, "log_level": 0, "socket.timeout.ms": int(TIMEOUT * 1000)}
    )


def partitions(topic: str, stage: Stage) -> int:
    """Raises ServiceFailed where there is no such topic."""
    with kafka_errors():
        found = admin(stage).list_topics(topic, timeout=TIMEOUT).topics[topic]
    if found.error is not None:
        raise ServiceFailed("kafka", f'topic "{topic}": {found.error.str()}')
    return len(found.partitions)


def has_topic(topic: str, stage: Stage) -> bool:
    with kafka_errors():
        return topic in admin(stage).list_topics(timeout=TIMEOUT).topics


@contextmanager
def kafka_errors() -> Iterator[None]:
    try:
        yield
    except KafkaException as wrong:
        told = wrong.args[0]
        raise ServiceFailed("kafka", told.str() if hasattr(told, "str") else str(told)) from wrong


def _shape(topic: str, wanted: dict[str, str], stage: Stage) -> dict[str, str]:
    found = {"partitions": str(partitions(topic, stage))}
    client = admin(stage)
    with kafka_errors():
        [described] = client.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
        configs = described.result(TIMEOUT)
    found |= {f"config.{name}": str(entry.value) for name, entry in configs.items()}
    return {name: found.get(name, "(not there)") for name in wanted}


def _wait_until_known(topic: str, stage: Stage) -> None:
    """The broker answers before all of it knows the topic."""

    def attempt(deadline: Deadline) -> None:
        del deadline
        partitions(topic, stage)

    stage.eventually(attempt)


ACTIONS = (
    Action("kafka-create-topic", create, required=("topic",), options=("partitions", "config.")),
    Action("kafka-add-partitions", add_partitions, required=("topic", "partitions")),
    Action("kafka-delete-topic", delete, required=("topic",)),
    Action("kafka-delete-records", delete_records, required=("topic", "before"), options=("partition",)),
    Action("kafka-verify-topic", verify, required=("topic",), options=("partitions", "config.")),
)
