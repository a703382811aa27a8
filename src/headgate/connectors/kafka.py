"""A Kafka cluster: described, checked and provisioned through librdkafka, read and written through Spark.

Both clients take their settings from the same options; librdkafka and the Java client spell them differently.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from headgate.connectors.errors import (
    BrokerRefusedLogin,
    BrokerUnreachable,
    ConnectorError,
    KafkaFailed,
    OptionMissing,
    OptionsExclude,
    TopicNotFound,
    TopicRefused,
)
from headgate.connectors.options import Options, pem_text
from headgate.errors import similar_names

TIMEOUT = 10.0  # seconds for one answer of the broker
NEAR = 500  # records that are read sooner than passed over

_LOGIN_ERRORS = {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL}
_DOWN_ERRORS = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
}

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Topic:
    """``id`` tells this topic from a later one of the same name."""

    name: str
    id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class NewTopicOptions:
    partitions: int = 1
    replicas: int = -1
    config: tuple[tuple[str, str], ...] = ()


class KafkaCluster:
    """Safe to share between threads. Opens its client when it is first asked something."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.brokers = _brokers(options)
        self._admin: AdminClient | None = None
        self._refused: str | None = None  # why the last login was refused

    def __repr__(self) -> str:
        return f"KafkaCluster({self.brokers})"

    # settings

    def librdkafka(self) -> dict[str, Any]:
        """Settings for confluent_kafka's clients."""
        given = {
            "security.protocol": self._options.get("SECURITY PROTOCOL"),
            "sasl.mechanisms": self._options.get("SASL MECHANISMS"),
            "sasl.username": self._options.get("SASL USERNAME"),
            "sasl.password": self._options.get("SASL PASSWORD"),
            "ssl.ca.pem": pem_text(self._options, "SSL CERTIFICATE AUTHORITY"),
            "ssl.certificate.pem": pem_text(self._options, "SSL CERTIFICATE"),
            "ssl.key.pem": pem_text(self._options, "SSL KEY"),
        }
        return {"bootstrap.servers": self.brokers, **{k: v for k, v in given.items() if v is not None}}

    def spark(self) -> dict[str, str]:
        """Options of Spark's Kafka reader and writer."""
        settings = {"kafka.bootstrap.servers": self.brokers}
        if protocol := self._options.get("SECURITY PROTOCOL"):
            settings["kafka.security.protocol"] = protocol
        if mechanism := self._options.get("SASL MECHANISMS"):
            settings["kafka.sasl.mechanism"] = mechanism
            settings["kafka.sasl.jaas.config"] = self._jaas(mechanism)
        if authority := pem_text(self._options, "SSL CERTIFICATE AUTHORITY"):
            settings |= {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.certificates": authority}
        if certificate := pem_text(self._options, "SSL CERTIFICATE"):
            self._options.need("SSL KEY")
            settings |= {
                "kafka.ssl.keystore.type": "PEM",
                "kafka.ssl.keystore.certificate.chain": certificate,
                "kafka.ssl.keystore.key": pem_text(self._options, "SSL KEY") or "",
            }
        return settings

    def _jaas(self, mechanism: str) -> str:
        module = (
            "org.apache.kafka.common.security.scram.ScramLoginModule"
            if mechanism.upper().startswith("SCRAM")
            else "org.apache.kafka.common.security.plain.PlainLoginModule"
        )
        quoted = [
            self._options.need(name).replace("\\", "\\\\").replace('"', '\\"')
            for name in ("SASL USERNAME", "SASL PASSWORD")
        ]
        return f'{module} required username="{quoted[0]}" password="{quoted[1]}";'

    # questions

    def check(self) -> None:
        """That the cluster answers and lets us in; otherwise one of two different errors."""
        self._topic_names()

    def topic(self, name: str) -> Topic:
        found = self._futures("describe the topic", self._client().describe_topics(TopicCollection([name])))
        described = next(iter(found.values()))
        return Topic(name, str(described.topic_id), len(described.partitions))

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """Those of the topics that exist, in one request."""
        found = {}
        for name, future in self._client().describe_topics(TopicCollection(sorted(names))).items():
            with suppress(TopicNotFound):
                described = self._futures("describe the topic", {name: future})[name]
                found[name] = Topic(name, str(described.topic_id), len(described.partitions))
        return found

    def find_topic(self, name: str) -> Topic | None:
        try:
            return self.topic(name)
        except TopicNotFound:
            return None

    def offsets(self, topic: Topic, *, latest: bool) -> dict[int, int]:
        """The earliest or the next offset of every partition, committed transactions only."""
        spec = OffsetSpec.latest() if latest else OffsetSpec.earliest()
        return self._list_offsets([topic], spec)[topic.name]

    def ends(self, topics: Collection[Topic]) -> dict[str, dict[int, int]]:
        """The next offset of every partition of several topics, in one request."""
        return self._list_offsets(topics, OffsetSpec.latest())

    def _list_offsets(self, topics: Collection[Topic], spec: OffsetSpec) -> dict[str, dict[int, int]]:
        wanted = {TopicPartition(t.name, p): spec for t in topics for p in range(t.partitions)}
        asked = self._client().list_offsets(
            wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=TIMEOUT
        )
        found = self._futures("read the offsets", asked)
        offsets: dict[str, dict[int, int]] = {topic.name: {} for topic in topics}
        for partition, result in found.items():
            offsets[partition.topic][partition.partition] = result.offset
        return offsets

    def offsets_at(self, topic: Topic, timestamp: int) -> dict[int, int]:
        """The first offset of every partition at or after the time, in milliseconds; the end where there is none."""
        end = self.offsets(topic, latest=True)
        found = self._list_offsets([topic], OffsetSpec.for_timestamp(timestamp))[topic.name]
        return {partition: offset if offset >= 0 else end[partition] for partition, offset in found.items()}

    def topic_config(self, name: str) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, name)
        found = self._futures("read the topic's settings", self._client().describe_configs([resource]))
        return {key: entry.value for key, entry in next(iter(found.values())).items()}

    def record(self, topic: str, partition: int, offset: int) -> tuple[bytes | None, bytes | None] | None:
        """Key and value of one record, or None if it is no longer there."""
        with closing(self.records(topic, [(partition, offset)])) as found:
            return next(found)

    def records(
        self, topic: str, places: Iterable[tuple[int, int]]
    ) -> Generator[tuple[bytes | None, bytes | None] | None]:
        """The same for many, their places ascending within a partition, by one consumer. What lies shortly before the next
        one is read along: to seek takes longer."""
        settings = {**self.librdkafka(), "group.id": "headgate-look", "enable.auto.commit": False}
        consumer = Consumer({**settings, "isolation.level": "read_committed", "auto.offset.reset": "error"})
        last: Message | None = None
        try:
            for partition, offset in places:
                last = _next_record(consumer, TopicPartition(topic, partition, offset), last)
                yield (last.key(), last.value()) if last is not None and _offset(last) == offset else None
        finally:
            consumer.close()

    # provisioning

    def create_topic(self, name: str, options: NewTopicOptions) -> None:
        """Create the topic and wait until it can be seen; one that is there already is left alone."""
        if not self._ask_for_topic(name, options, validate_only=False):
            return
        # The controller answers a moment before the brokers know of the topic.
        deadline = time.monotonic() + TIMEOUT
        while self.find_topic(name) is None and time.monotonic() < deadline:
            time.sleep(0.05)

    def check_new_topic(self, name: str, options: NewTopicOptions) -> None:
        """That the cluster would create the topic, or has it. Raises TopicRefused; nothing is created."""
        self._ask_for_topic(name, options, validate_only=True)

    def _ask_for_topic(self, name: str, options: NewTopicOptions, *, validate_only: bool) -> bool:
        """False if the topic is there already."""
        new = NewTopic(name, options.partitions, options.replicas, config=dict(options.config))
        client = self._client()
        try:
            asked = client.create_topics([new], operation_timeout=TIMEOUT, validate_only=validate_only)
            self._futures("create the topic", asked)
        except KafkaFailed as error:
            cause = error.__cause__
            if isinstance(cause, KafkaException) and cause.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            raise TopicRefused(name, error.reason) from cause
        return True

    def delete_topic(self, name: str) -> None:
        self._futures("delete the topic", self._client().delete_topics([name], operation_timeout=TIMEOUT))

    # plumbing

    def _client(self) -> AdminClient:
        if self._admin is None:
            quiet: dict[str, Any] = {"log_level": 0, "socket.timeout.ms": int(TIMEOUT * 1000)}
            quiet["error_cb"] = self._heard
            self._admin = AdminClient({**self.librdkafka(), **quiet})
        return self._admin

    def _heard(self, error: KafkaError) -> None:
        """librdkafka tells of a refused login only here; whoever waits for an answer is told that no broker is up."""
        if error.code() in _LOGIN_ERRORS:
            self._refused = _sentence(error.str())

    def _topic_names(self) -> list[str]:
        try:
            names = list(self._client().list_topics(timeout=TIMEOUT).topics)
            self._refused = None
            return names
        except KafkaException as error:
            raise self._translated("list the topics", error, None) from error

    def _futures(self, what: str, futures: Mapping[Any, Future[Answer]]) -> dict[Any, Answer]:
        answers = {}
        for key, future in futures.items():
            try:
                answers[key] = future.result(TIMEOUT + 5)
            except KafkaException as error:
                raise self._translated(what, error, str(getattr(key, "topic", key))) from error
            except TimeoutError as error:
                if self._refused is not None:
                    raise BrokerRefusedLogin(self.brokers, self._refused) from error
                raise BrokerUnreachable(self.brokers, f"No answer within {TIMEOUT:.0f} seconds.") from error
        self._refused = None
        return answers

    def _translated(self, what: str, error: KafkaException, topic: str | None) -> ConnectorError:
        self._client().poll(0)  # what was heard meanwhile
        code, reason = error.args[0].code(), _sentence(error.args[0].str())
        if code in _LOGIN_ERRORS or (code in _DOWN_ERRORS and self._refused is not None):
            return BrokerRefusedLogin(self.brokers, self._refused or reason)
        if code in _DOWN_ERRORS:
            return BrokerUnreachable(self.brokers, reason)
        if code == KafkaError.UNKNOWN_TOPIC_OR_PART and topic is not None:
            return TopicNotFound(topic, similar_names(topic, self._topic_names()))
        return KafkaFailed(f'{what} "{topic}"' if topic else what, reason)


def _next_record(consumer: Consumer, wanted: TopicPartition, last: Message | None) -> Message | None:
    """The first record from there on. ``last`` is the one that the consumer gave before."""
    near = last is not None and last.partition() == wanted.partition
    if last is None or not near or wanted.offset - _offset(last) >= NEAR:
        consumer.assign([wanted])
        last = None
    while last is None or _offset(last) < wanted.offset:
        last = consumer.poll(TIMEOUT)
        if last is None or last.error():
            return None
    return last


def _offset(message: Message) -> int:
    return message.offset() or 0


def _brokers(options: Options) -> str:
    one, several = options.get("BROKER"), options.all("BROKERS")
    if one is not None and several:
        raise OptionsExclude("BROKER", "BROKERS", options.connection)
    brokers: Sequence[str] = several or ((one,) if one is not None else ())
    if not brokers:
        raise OptionMissing("BROKER", options.connection)
    return ",".join(brokers)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."
