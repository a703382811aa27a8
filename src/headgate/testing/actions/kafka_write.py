"""Actions that create, change, check and delete topics, and `kafka-ingest`, which writes records."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewPartitions, NewTopic

from headgate.registry import wire
from headgate.registry.client import RegistryClient
from headgate.testing.context import Action, Deadline, Invocation, SpecContext
from headgate.testing.errors import MalformedSpec, Mismatch, ServiceFailed
from headgate.testing.notation import Json, Written, read_written, write_json
from headgate.testing.records import FORMATS, REGISTERED, Records, encode_plain

TIMEOUT = 30.0  # seconds for one request of the broker

Pairs = Iterator[tuple[bytes | None, bytes | None]]  # keys and values
Encoder = Callable[[Written], bytes | None]
OPTIONS = (
    "format", "subject", "schema-id", "message", "key-format", "key-subject", "key-schema-id", "key-message",
    "partition", "timestamp", "headers", "repeat", "raw", "transaction",
)  # fmt: skip


def create_topic(call: Invocation, context: SpecContext) -> None:
    """`kafka-create-topic`."""
    topic = call.text("topic")
    new = NewTopic(topic, call.number("partitions") or 1, 1, config=call.with_prefix("config."))
    _request(context, lambda admin: admin.create_topics([new], operation_timeout=TIMEOUT))
    context.eventually(lambda _: partitions(topic, context))  # the broker answers before its metadata is complete


def add_partitions(call: Invocation, context: SpecContext) -> None:
    """`kafka-add-partitions`."""
    topic, wanted = call.text("topic"), call.number("partitions") or 1
    new = [NewPartitions(topic, wanted)]
    _request(context, lambda admin: admin.create_partitions(new, operation_timeout=TIMEOUT))
    context.eventually(lambda _: _check_partitions(topic, wanted, context))
    context.producer = None  # it still has the old metadata of the topic


def _check_partitions(topic: str, wanted: int, context: SpecContext) -> None:
    found = partitions(topic, context)
    if found != wanted:
        raise Mismatch(f'topic "{topic}" has another shape', (f"partitions={wanted}",), (f"partitions={found}",))


def delete_topic(call: Invocation, context: SpecContext) -> None:
    """`kafka-delete-topic`: returns when the broker no longer lists the topic."""
    topic = call.text("topic")
    _request(context, lambda admin: admin.delete_topics([topic], operation_timeout=TIMEOUT))
    context.eventually(lambda _: _check_gone(topic, context))
    context.producer = None  # it still has the old metadata of the topic


def _check_gone(topic: str, context: SpecContext) -> None:
    if has_topic(topic, context):
        raise Mismatch(f'topic "{topic}" is still there', (), (topic,))


def delete_records(call: Invocation, context: SpecContext) -> None:
    """Delete the records of a partition before an offset, as retention would."""
    before = TopicPartition(call.text("topic"), call.number("partition") or 0, call.number("before") or 0)
    _request(context, lambda admin: admin.delete_records([before], operation_timeout=TIMEOUT))


def verify_topic(call: Invocation, context: SpecContext) -> None:
    """`kafka-verify-topic`: the number of partitions and settings of a topic."""
    topic = call.text("topic")
    wanted = {name: value for name, value in call.options.items() if name != "topic"}

    def attempt(_: Deadline) -> None:
        actual = _shape(topic, wanted, context)
        if actual != wanted:
            lines = [tuple(f"{name}={shape[name]}" for name in wanted) for shape in (wanted, actual)]
            raise Mismatch(f'topic "{topic}" has another shape', *lines)

    context.eventually(attempt)


def admin(context: SpecContext) -> AdminClient:
    return AdminClient({"bootstrap.servers": context.kafka, "log_level": 0, "socket.timeout.ms": int(TIMEOUT * 1000)})


def _request(context: SpecContext, send: Callable[[AdminClient], Mapping[Any, Future[Any]]]) -> Any:
    """The answer to a request about one topic."""
    client = admin(context)  # a name of its own, because its futures fail when it is collected
    with kafka_errors():
        [answer] = send(client).values()
        return answer.result(TIMEOUT + 5)


def partitions(topic: str, context: SpecContext) -> int:
    """Raises ServiceFailed if the topic does not exist."""
    with kafka_errors():
        found = admin(context).list_topics(topic, timeout=TIMEOUT).topics[topic]
    if found.error is not None:
        raise ServiceFailed("kafka", f'topic "{topic}": {found.error.str()}')
    return len(found.partitions)


def has_topic(topic: str, context: SpecContext) -> bool:
    with kafka_errors():
        return topic in admin(context).list_topics(timeout=TIMEOUT).topics


@contextmanager
def kafka_errors() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        reason = error.args[0]
        raise ServiceFailed("kafka", reason.str() if hasattr(reason, "str") else str(reason)) from error


def _shape(topic: str, wanted: dict[str, str], context: SpecContext) -> dict[str, str]:
    found = {"partitions": str(partitions(topic, context))}
    resource = ConfigResource(ResourceType.TOPIC, topic)
    configs = _request(context, lambda admin: admin.describe_configs([resource]))
    found |= {f"config.{name}": str(entry.value) for name, entry in configs.items()}
    return {name: found.get(name, "(not there)") for name in wanted}


@dataclass(frozen=True, slots=True)
class Destination:
    """Where and how records are sent. Kafka decides what is None."""

    topic: str
    partition: int | None
    timestamp: int | None
    headers: list[tuple[str, bytes | None]]
    transaction: str | None = None  # how it ends


def ingest(call: Invocation, context: SpecContext) -> None:
    """`kafka-ingest`: write the records of the body. The registry is asked only if a format needs a schema."""
    _check(call)
    headers, transaction = read_headers(call.json("headers")), call.optional("transaction")
    place = call.text("topic"), call.number("partition"), call.number("timestamp")
    destination = Destination(*place, headers, transaction)
    if not any(_needs_registry(call, prefix) for prefix in ("", "key-")):
        _send(_encoded(call, context, _plain(call, "key-"), _plain(call, "")), destination, context)
        return
    with context.registry() as registry:
        key, value = _encoder(call, "key-", registry), _encoder(call, "", registry)
        _send(_encoded(call, context, key, value), destination, context)


def read_headers(written: Json) -> list[tuple[str, bytes | None]]:
    """Headers from an object, or from a list of pairs if a name occurs twice."""
    pairs = list(written.items()) if isinstance(written, dict) else written or []
    if not isinstance(pairs, list):
        advice = 'Write {"h": "v"} or [["h", "v"], ["h", "w"]].'
        raise MalformedSpec("headers are no object and no list of pairs", advice)
    found: list[tuple[str, bytes | None]] = []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise MalformedSpec("a header is no pair of a name and a value", 'Write [["h", "v"], ["h", "w"]].')
        value = pair[1]
        text = None if value is None else value if isinstance(value, str) else write_json(value)
        found.append((pair[0], None if text is None else text.encode()))
    return found


def check_formats(call: Invocation) -> None:
    for option in ("format", "key-format"):
        if (written := call.optional(option)) is not None and written not in FORMATS:
            raise call.wrong(f'takes one of {", ".join(FORMATS)} for "{option}", not "{written}"')


def _check(call: Invocation) -> None:
    check_formats(call)
    if call.optional("key-format") is None:
        extra = next((name for name in ("key-subject", "key-schema-id", "key-message") if name in call.options), None)
        if extra is not None:
            raise call.wrong(f'has "{extra}" without "key-format"')
    if call.optional("transaction") not in (None, "commit", "abort", "open"):
        raise call.wrong(f'takes commit, abort or open for "transaction", not "{call.optional("transaction")}"')
    if call.flag("raw") and call.optional("format") != "bytes":
        raise call.wrong("takes raw=true with format=bytes alone")


def _needs_registry(call: Invocation, prefix: str) -> bool:
    given = f"{prefix}subject" in call.options or f"{prefix}schema-id" in call.options
    return call.optional(f"{prefix}format") in REGISTERED or (given and not call.flag("raw"))


def _plain(call: Invocation, prefix: str) -> Encoder:
    format_ = call.optional(f"{prefix}format") or "json"
    return lambda written: None if written.value is None else encode_plain(format_, written)


def _encoder(call: Invocation, prefix: str, registry: RegistryClient) -> Encoder:
    """How keys or values become bytes. ``prefix`` is `key-` for keys."""
    if not _needs_registry(call, prefix):
        return _plain(call, prefix)
    records, schema_id = Records(lambda: registry), _schema_id(call, prefix, registry)
    wanted, message = call.optional(f"{prefix}format"), call.optional(f"{prefix}message")
    if wanted in ("bytes", "text", "json"):
        plain = _plain(call, prefix)
        return lambda written: None if (data := plain(written)) is None else wire.encode(schema_id, data)
    if wanted is not None and records.format_of(schema_id) != wanted:
        raise call.wrong(f"was told {wanted}, and schema {schema_id} is {records.format_of(schema_id)}")
    return lambda written: None if written.value is None else records.encode_framed(written, schema_id, message)


def _schema_id(call: Invocation, prefix: str, registry: RegistryClient) -> int:
    given = call.number(f"{prefix}schema-id")
    if given is not None:
        return given
    part = "key" if prefix else "value"
    return registry.latest(call.optional(f"{prefix}subject") or f"{call.text('topic')}-{part}").schema_id


def _encoded(call: Invocation, context: SpecContext, key: Encoder, value: Encoder) -> Pairs:
    """The records of the body as bytes, as often as `repeat` says."""
    repeat = call.number("repeat")
    with_key = call.optional("key-format") is not None
    for index in range(1 if repeat is None else repeat):
        more = {} if repeat is None else {"i": str(index)}
        for line in call.body.lines:
            parts = read_written(context.variables.fill(line, more))
            if len(parts) != 1 + with_key:
                wanted = "a key and a value" if with_key else "one value"
                raise call.wrong(f"wants {wanted} in each line, and one has {len(parts)}")
            yield (key(parts[0]) if with_key else None), value(parts[-1])


def _send(records: Pairs, to: Destination, context: SpecContext) -> None:
    """Write records and wait until the broker has acknowledged all. A producer that failed is not kept."""
    failures: list[str] = []

    def acknowledged(error: KafkaError | None, message: Message) -> None:
        del message
        if error is not None:
            failures.append(error.str())

    options: dict[str, Any] = {"headers": to.headers or None, "on_delivery": acknowledged}
    if to.partition is not None:
        options["partition"] = to.partition
    if to.timestamp is not None:
        options["timestamp"] = to.timestamp
    if to.transaction is not None:
        with kafka_errors():
            _in_transaction(records, to, options, context)
        return
    producer, context.producer = context.producer or _producer(context), None
    with kafka_errors():
        for key, value in records:
            _produce(producer, to.topic, key, value, options)
        left = producer.flush(context.request_timeout)
    if not failures and not left:
        context.producer = producer
    else:
        raise ServiceFailed("kafka", failures[0] if failures else f"{left} records were not acknowledged in time")


def _in_transaction(records: Pairs, to: Destination, options: dict[str, Any], context: SpecContext) -> None:
    """Write the records and wait until they are acknowledged. Then the transaction is committed, aborted, or left open
    until the file ends."""
    producer = _producer(context, {"transactional.id": f"spec-{uuid.uuid4().hex}", "message.timeout.ms": 30_000})
    producer.init_transactions(context.request_timeout)
    producer.begin_transaction()
    for key, value in records:
        _produce(producer, to.topic, key, value, options)
    producer.flush(context.request_timeout)
    if to.transaction == "commit":
        producer.commit_transaction(context.request_timeout)
    elif to.transaction == "abort":
        producer.abort_transaction(context.request_timeout)
    else:
        context.open_transactions.append(producer)


def _producer(context: SpecContext, more: dict[str, Any] | None = None) -> Producer:
    """The settings of a producer. It chooses partitions by key as Java's clients do."""
    return Producer(
        {
            "bootstrap.servers": context.kafka,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 5,
            "log_level": 0,
            "message.timeout.ms": int(context.request_timeout * 1000),
            **(more or {}),
        }
    )


def _produce(producer: Producer, topic: str, key: bytes | None, value: bytes | None, options: dict[str, Any]) -> None:
    """Hand one record to the producer."""
    while True:
        try:
            producer.produce(topic, value, key, **options)
        except BufferError:  # its queue is full: wait for acknowledgements
            producer.poll(0.5)
        else:
            producer.poll(0)
            return


ACTIONS = (
    Action("kafka-create-topic", create_topic, required=("topic",), options=("partitions", "config.")),
    Action("kafka-add-partitions", add_partitions, required=("topic", "partitions")),
    Action("kafka-delete-topic", delete_topic, required=("topic",)),
    Action("kafka-delete-records", delete_records, required=("topic", "before"), options=("partition",)),
    Action("kafka-verify-topic", verify_topic, required=("topic",), options=("partitions", "config.")),
    Action("kafka-ingest", ingest, required=("topic",), options=OPTIONS, body="required"),
)
