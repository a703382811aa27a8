"""A Kafka cluster. Topics are described, checked and created through librdkafka; Spark reads and writes the data.

Both clients get their settings from the options of one connection. librdkafka and Java name the settings differently.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
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
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from headgate.connectors import errors
from headgate.connectors.kafka_rows import Record, RecordProducer
from headgate.connectors.options import ConnectionOptions, pem_text
from headgate.errors import similar_names

TIMEOUT = 10.0  # seconds to wait for one answer of the broker
SAMPLE_RECORDS, SAMPLE_BYTES, SAMPLE_TIMEOUT = 100, 256 << 10, 1.0  # of a look at the size of records; seconds
ELECTION_TIMEOUT = 5.0  # seconds that a request is repeated while partitions have no leader
MAX_SKIP = 500  # up to so many unwanted records are read: a seek takes longer

_LOGIN_ERRORS = {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL}
# Brokers answer with these while they elect a leader or a controller, also right after a topic was created. They have
# not carried out the request, so it is safe to repeat it. `KafkaError.retriable` knows nothing of them: it is only set
# for errors of transactions.
_ELECTION_ERRORS = {
    KafkaError._NOENT,  # librdkafka's "No leaders found"
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.NOT_CONTROLLER,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.KAFKA_STORAGE_ERROR,
}
_DOWN_ERRORS = _ELECTION_ERRORS | {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
}

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the broker describes it. ``id`` differs from that of a later topic with the same name. ``replicas`` is how
    many copies of a record there are, 0 if that is not known."""

    name: str
    id: str
    partitions: int
    replicas: int = 0


@dataclass(frozen=True, slots=True)
class NewTopicOptions:
    """Settings of a topic to create. ``replicas`` of -1 means the broker's default."""

    partitions: int = 1
    replicas: int = -1
    config: tuple[tuple[str, str], ...] = ()


class KafkaCluster:
    """One cluster. Safe to share between threads. Connects when a method first needs the broker.

    Methods raise BrokerUnreachable if no broker answers within TIMEOUT, or if partitions have no leader for
    ELECTION_TIMEOUT, and BrokerRefusedLogin if the broker refuses the login.
    """

    def __init__(self, options: ConnectionOptions) -> None:
        self._options = options
        self.brokers = _brokers(options)
        self._admin: AdminClient | None = None
        self._making_admin = threading.Lock()
        self._producer: RecordProducer | None = None
        self._refused_login: str | None = None  # the broker's reason, until a request succeeds

    def __repr__(self) -> str:
        return f"KafkaCluster({self.brokers})"

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
        """The login in the syntax of Java's JAAS. Quotes and backslashes in a password are escaped."""
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

    def check(self) -> None:
        """Check that the cluster answers and accepts the login."""
        self._topic_names()

    def topic(self, name: str) -> Topic:
        """Describe one topic. Raises TopicNotFound."""
        found = self._request("describe the topic", lambda c: c.describe_topics(TopicCollection([name])))
        return _topic(name, found[name])

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """Describe several topics in one request. Topics that do not exist are left out."""
        wanted = TopicCollection(sorted(names))
        found = self._request("describe the topic", lambda c: c.describe_topics(wanted), skip_missing=True)
        return {name: _topic(name, described) for name, described in found.items()}

    def offsets(self, topic: Topic, *, latest: bool) -> dict[int, int]:
        """The first or the next offset of every partition. Records of open transactions do not count."""
        spec = OffsetSpec.latest() if latest else OffsetSpec.earliest()
        return self._list_offsets([topic], spec)[topic.name]

    def end_offsets(self, topics: Collection[Topic]) -> dict[str, dict[int, int]]:
        """The next offset of every partition of several topics, in one request."""
        return self._list_offsets(topics, OffsetSpec.latest())

    def _list_offsets(self, topics: Collection[Topic], spec: OffsetSpec) -> dict[str, dict[int, int]]:
        """Offsets of all partitions of several topics in one request, by topic and partition."""
        wanted = {TopicPartition(t.name, p): spec for t in topics for p in range(t.partitions)}
        found = self._request(
            "read the offsets",
            lambda c: c.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=TIMEOUT),
        )
        offsets: dict[str, dict[int, int]] = {topic.name: {} for topic in topics}
        for partition, result in found.items():
            offsets[partition.topic][partition.partition] = result.offset
        return offsets

    def offset_range(self, name: str, partition: int) -> tuple[int, int]:
        """The first and the next offset of one partition. Unlike in `offsets`, records of open transactions count."""
        where, every = TopicPartition(name, partition), IsolationLevel.READ_UNCOMMITTED

        def offset(spec: OffsetSpec) -> int:
            wanted = {where: spec}
            found = self._request(
                "read the offsets", lambda c: c.list_offsets(wanted, isolation_level=every, request_timeout=TIMEOUT)
            )
            return int(found[where].offset)

        return offset(OffsetSpec.earliest()), offset(OffsetSpec.latest())

    def offsets_at_time(self, topic: Topic, timestamp: int) -> dict[int, int]:
        """The first offset of every partition at or after a time, in milliseconds since 1970. A partition without such a
        record gets its end."""
        end = self.offsets(topic, latest=True)
        found = self._list_offsets([topic], OffsetSpec.for_timestamp(timestamp))[topic.name]
        return {partition: offset if offset >= 0 else end[partition] for partition, offset in found.items()}

    def topic_config(self, name: str) -> dict[str, str]:
        """The settings of a topic as texts, with the broker's defaults. Raises TopicNotFound."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        found = self._request("read the topic's settings", lambda c: c.describe_configs([resource]))
        return {key: entry.value for key, entry in next(iter(found.values())).items()}

    def read_record(self, topic: str, partition: int, offset: int) -> tuple[bytes | None, bytes | None] | None:
        """Key and value of one record, or None if the topic no longer has it."""
        with closing(self.read_records(topic, [(partition, offset)])) as found:
            return next(found)

    def read_records(
        self, topic: str, positions: Iterable[tuple[int, int]]
    ) -> Generator[tuple[bytes | None, bytes | None] | None]:
        """Like ``read_record`` for many records, with one consumer. ``positions`` are pairs of partition and offset;
        offsets ascend within a partition."""
        # librdkafka wants a group, but nothing is committed to it, so the broker never hears of it.
        settings = {**self.librdkafka(), "group.id": "headgate-look", "enable.auto.commit": False}
        consumer = Consumer({**settings, "isolation.level": "read_committed", "auto.offset.reset": "error"})
        last: Message | None = None
        try:
            for partition, offset in positions:
                last = _next_record(consumer, TopicPartition(topic, partition, offset), last)
                yield (last.key(), last.value()) if last is not None and _offset(last) == offset else None
        finally:
            consumer.close()

    def mean_record_bytes(self, topic: str, places: Iterable[tuple[int, int]]) -> float:
        """About how many bytes a record has: of some records at each place, a pair of partition and offset, the largest mean.
        0 if there are none."""
        settings = {**self.librdkafka(), "group.id": "headgate-look", "enable.auto.commit": False}
        consumer = Consumer({**settings, "auto.offset.reset": "error", "max.partition.fetch.bytes": SAMPLE_BYTES})
        largest = 0.0
        try:
            for partition, offset in places:
                consumer.assign([TopicPartition(topic, partition, offset)])
                messages = [*consumer.consume(1, SAMPLE_TIMEOUT), *consumer.consume(SAMPLE_RECORDS, 0.0)]
                found = [m for m in messages if m.error() is None]
                size = sum(len(m.key() or b"") + len(m.value() or b"") for m in found)
                largest = max(largest, size / max(1, len(found)))
        finally:
            consumer.close()
        return largest

    def create_topic(self, name: str, options: NewTopicOptions) -> bool:
        """Create the topic and wait until its partitions have leaders. Returns False if it exists; its options then stay
        as they are."""
        created = self._request_topic(name, options, validate_only=False)
        self._wait_for_leaders(name)
        return created

    def _wait_for_leaders(self, name: str) -> None:
        """The controller confirms a new topic a moment before all brokers know it and lead its partitions. A broker that
        is named as leader but does not lead yet refuses to list offsets, so an answer proves that it does."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                self.offsets(self.topic(name), latest=True)
                return
            except errors.TopicNotFound:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(0.05)

    def check_new_topic(self, name: str, options: NewTopicOptions) -> None:
        """Check that the cluster has the topic or would create it. Creates nothing. Raises TopicRefused."""
        self._request_topic(name, options, validate_only=True)

    def _request_topic(self, name: str, options: NewTopicOptions, *, validate_only: bool) -> bool:
        """Create or validate a topic. Returns False if it exists already."""
        new = NewTopic(name, options.partitions, options.replicas, config=dict(options.config))
        try:
            self._request(
                "create the topic",
                lambda c: c.create_topics([new], operation_timeout=TIMEOUT, validate_only=validate_only),
            )
        except errors.KafkaFailed as error:
            if _code(error.__cause__) == KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            raise errors.TopicRefused(name, error.reason) from error.__cause__
        return True

    def add_partitions(self, name: str, total: int) -> None:
        """Let a topic have at least so many partitions, with leaders on return. Raises TopicRefused."""
        wanted = [NewPartitions(name, total)]
        try:
            self._request("add partitions", lambda c: c.create_partitions(wanted, operation_timeout=TIMEOUT))
        except errors.KafkaFailed as error:
            # Somebody else may have added them.
            if _code(error.__cause__) != KafkaError.INVALID_PARTITIONS or self.topic(name).partitions < total:
                raise errors.TopicRefused(name, error.reason) from error.__cause__
        self._wait_for_partitions(name, total)

    def _wait_for_partitions(self, name: str, total: int) -> None:
        """Requests go by what the client last heard of the topic, so it is asked for it until it has heard of all partitions."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            known = self._client().list_topics(name, timeout=TIMEOUT).topics[name].partitions.values()
            if len(known) >= total and all(partition.leader >= 0 for partition in known):
                return
            if time.monotonic() >= deadline:
                raise errors.BrokerUnreachable(self.brokers, f'Partitions of topic "{name}" have no leader.')
            time.sleep(0.05)

    def write(self, records: Sequence[Record]) -> None:
        """Write records, each with its topic. Returns when all are acknowledged."""
        with self._making_admin:
            producer = self._producer = self._producer or RecordProducer(self.librdkafka())
        try:
            producer.write(records)
        except KafkaException as error:
            raise self.failure("write the rows", error, records[0].topic) from error

    def delete_topic(self, name: str) -> None:
        """Delete a topic. Raises TopicNotFound. The broker forgets it a moment later."""
        self._request("delete the topic", lambda c: c.delete_topics([name], operation_timeout=TIMEOUT))

    def _client(self) -> AdminClient:
        """The client of the cluster, made by the first request."""
        with self._making_admin:  # two threads would make two clients, each with threads and connections of its own
            if self._admin is None:
                quiet: dict[str, Any] = {"log_level": 0, "socket.timeout.ms": int(TIMEOUT * 1000)}
                quiet["error_cb"] = self._on_error
                self._admin = AdminClient({**self.librdkafka(), **quiet})
            return self._admin

    def _on_error(self, error: KafkaError) -> None:
        """Remember a refused login. librdkafka reports it only through this callback; the request itself fails with
        "all brokers are down"."""
        if error.code() in _LOGIN_ERRORS:
            self._refused_login = _sentence(error.str())

    def _topic_names(self) -> list[str]:
        try:
            names = list(self._client().list_topics(timeout=TIMEOUT).topics)
            self._refused_login = None
            return names
        except KafkaException as error:
            raise self._connector_error("list the topics", error, None) from error

    def _request(
        self, what: str, send: Callable[[AdminClient], Mapping[Any, Future[Answer]]], *, skip_missing: bool = False
    ) -> dict[Any, Answer]:
        """The answers to one request, which is repeated while the brokers elect leaders. ``what`` is its name in errors.
        ``skip_missing`` leaves out topics that do not exist."""
        deadline = time.monotonic() + ELECTION_TIMEOUT
        while True:
            try:
                return self._results(what, send(self._client()), skip_missing)
            except errors.BrokerUnreachable as error:
                if _code(error.__cause__) not in _ELECTION_ERRORS or time.monotonic() >= deadline:
                    raise
            time.sleep(0.1)

    def _results(self, what: str, futures: Mapping[Any, Future[Answer]], skip_missing: bool) -> dict[Any, Answer]:
        """Wait for the answers of one attempt. Raises the connector's error for the first one that fails."""
        answers = {}
        for key, future in futures.items():
            try:
                answers[key] = future.result(TIMEOUT + 5)
            except KafkaException as error:
                if skip_missing and _code(error) == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                raise self._connector_error(what, error, str(getattr(key, "topic", key))) from error
            except TimeoutError as error:
                if self._refused_login is not None:
                    raise errors.BrokerRefusedLogin(self.brokers, self._refused_login) from error
                raise errors.BrokerUnreachable(self.brokers, f"No answer within {TIMEOUT:.0f} seconds.") from error
        self._refused_login = None
        return answers

    def failure(self, what: str, error: KafkaException, topic: str | None = None) -> errors.ConnectorError:
        """Our error for what a producer or consumer of this cluster raised."""
        return self._connector_error(what, error, topic)

    def _connector_error(self, what: str, error: KafkaException, topic: str | None) -> errors.ConnectorError:
        """Our error for one of the broker. A refused login hides behind brokers that seem to be down."""
        self._client().poll(0)  # runs the error callback
        code, reason = error.args[0].code(), _sentence(error.args[0].str())
        if code in _LOGIN_ERRORS or (code in _DOWN_ERRORS and self._refused_login is not None):
            return errors.BrokerRefusedLogin(self.brokers, self._refused_login or reason)
        if code in _DOWN_ERRORS:
            return errors.BrokerUnreachable(self.brokers, reason)
        if code == KafkaError.UNKNOWN_TOPIC_OR_PART and topic is not None:
            return errors.TopicNotFound(topic, similar_names(topic, self._topic_names()))
        return errors.KafkaFailed(f'{what} "{topic}"' if topic else what, reason)


def _code(error: BaseException | None) -> int | None:
    """The broker's error code, None for an error that is not of the broker."""
    return error.args[0].code() if isinstance(error, KafkaException) else None


def _next_record(consumer: Consumer, wanted: TopicPartition, last: Message | None) -> Message | None:
    """The first record at or after the wanted offset, or None. ``last`` is the record that the consumer read before."""
    same_partition = last is not None and last.partition() == wanted.partition
    if last is None or not same_partition or wanted.offset - _offset(last) >= MAX_SKIP:
        consumer.assign([wanted])
        last = None
    while last is None or _offset(last) < wanted.offset:
        last = consumer.poll(TIMEOUT)
        if last is None or last.error():
            return None
    return last


def _topic(name: str, described: Any) -> Topic:  # confluent_kafka has no public name for the description's type
    replicas = len(described.partitions[0].replicas) if described.partitions else 0
    return Topic(name, str(described.topic_id), len(described.partitions), replicas)


def _offset(message: Message) -> int:
    return message.offset() or 0


def _brokers(options: ConnectionOptions) -> str:
    """The addresses of BROKER or BROKERS as Kafka's clients take them."""
    one, several = options.get("BROKER"), options.all("BROKERS")
    if one is not None and several:
        raise errors.ConflictingOptions("BROKER", "BROKERS", options.connection)
    brokers: Sequence[str] = several or ((one,) if one is not None else ())
    if not brokers:
        raise errors.OptionMissing("BROKER", options.connection)
    return ",".join(brokers)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."
