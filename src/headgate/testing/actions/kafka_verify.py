"""`kafka-verify` and `kafka-verify-latest`: the records of a topic, read from its start."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from headgate.errors import HeadgateError
from headgate.testing.actions.kafka_write import check_formats, has_topic, kafka_errors, partitions, read_headers
from headgate.testing.compare import align, as_written, differences
from headgate.testing.context import Action, Deadline, GiveUp, Invocation, SpecContext
from headgate.testing.errors import Mismatch, ServiceFailed, StepFailed
from headgate.testing.notation import Json, canonical, equal, read_values, without_nulls, write_json
from headgate.testing.records import Decoded, Records

QUIET = 1.0  # seconds without a record after which no more are awaited
POLL = 0.3
REOPEN = 10.0  # seconds after which a topic is read anew: it may have been deleted and created again


@dataclass(frozen=True, slots=True)
class Raw:
    """A record as it is in the topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class TopicReader:
    """Reads committed records. ``records`` holds all that were read so far, in order within a partition."""

    def __init__(self, topic: str, consumer: Consumer, count: int) -> None:
        self.topic = topic
        self.partitions = count
        self.records: list[Raw] = []
        self._consumer = consumer
        self._at_end: set[int] = set()

    def read_to_end(self, deadline: Deadline) -> None:
        """Read all records up to the current end. Raises StepFailed if that takes too long."""
        while len(self._at_end) < self.partitions:
            if deadline.is_over:
                raise StepFailed(f'could not read topic "{self.topic}" to its end in time')
            self._read(min(0.5, deadline.left))

    def read_more(self, seconds: float) -> bool:
        """Wait for more records. True as soon as one has come."""
        before, until = len(self.records), time.monotonic() + seconds
        while len(self.records) == before and time.monotonic() < until:
            self._read(max(0.0, until - time.monotonic()))
        return len(self.records) > before

    def _read(self, seconds: float) -> None:
        with kafka_errors():
            first = self._consumer.poll(seconds)
            if first is None:
                return
            for message in (first, *self._consumer.consume(5000, timeout=0)):
                self._take(message)

    def _take(self, message: Message) -> None:
        """Take a record, note the end of a partition, or raise the error that the consumer reports as a record."""
        error = message.error()
        if error is None:
            self.records.append(_raw(message))
            self._at_end.discard(self.records[-1].partition)
        elif error.code() == KafkaError._PARTITION_EOF:
            self._at_end.add(_number(message.partition()))
        elif not error.retriable():
            raise ServiceFailed("kafka", error.str())


def _raw(message: Message) -> Raw:
    headers = tuple((str(pair[0]), _bytes(pair[1])) for pair in message.headers() or ())
    place = _number(message.partition()), _number(message.offset())
    return Raw(*place, _bytes(message.key()), _bytes(message.value()), headers)


def _number(number: int | None) -> int:
    return -1 if number is None else number


def _bytes(data: str | bytes | None) -> bytes | None:
    """The library's annotations allow text, which it never gives to a consumer without a deserializer."""
    return data.encode() if isinstance(data, str) else data


@contextmanager
def open_topic(topic: str, context: SpecContext) -> Iterator[TopicReader]:
    """A reader of a topic from its start, without a consumer group that outlives it."""
    count = partitions(topic, context)
    consumer = Consumer(
        {
            "bootstrap.servers": context.kafka,
            "group.id": f"headgate-test-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            "fetch.error.backoff.ms": 20,
            "retry.backoff.ms": 20,
            "log_level": 0,
        }
    )
    try:
        with kafka_errors():
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(count)])
        yield TopicReader(topic, consumer, count)
    finally:
        consumer.close()


@dataclass(frozen=True, slots=True)
class Record:
    """A line of the body, or a record of the topic in the same form. Parts that are not compared are None."""

    line: str
    value: Decoded
    key: Decoded | None = None
    headers: tuple[tuple[str, str | None], ...] | None = None

    def identity(self) -> Hashable:
        """A key that finds most equal records quickly. ``same`` decides about the rest."""
        parts = (self.value,) if self.key is None else (self.key, self.value)
        values = (without_nulls(part.value) if part.is_loose else part.value for part in parts)
        return (*map(canonical, values), self.headers)


Decode: TypeAlias = Callable[[Sequence[Raw]], list[Record]]


def same(expected: Record, actual: Record) -> bool:
    keys = expected.key is None or actual.key is None or _equal(expected.key, actual.key)
    return keys and _equal(expected.value, actual.value) and expected.headers == actual.headers


def verify(call: Invocation, context: SpecContext) -> None:
    """`kafka-verify`: the records of a topic. Waits a moment longer for records that are too many."""
    expected = _expected(call, context)
    judge, sort, at_least = _judge(call), call.flag("sort"), call.flag("at-least")

    def check(reader: TopicReader, decode: Decode, deadline: Deadline) -> None:
        in_order = reader.partitions == 1 and not sort
        while True:
            actual = decode(reader.records)
            problem = judge(expected, actual, in_order)
            # Records that are too many may still come, and a sink that doubles one must not pass.
            waits = not at_least and (problem is None or len(actual) > len(expected))
            if not waits or deadline.is_over or not reader.read_more(QUIET):
                break
        if problem is None:
            return
        too_many = len(actual) > len(expected) and not at_least
        mismatch = _mismatch(call, expected, actual, problem, in_order)
        # Records stay in a topic, so too many never become the right number.
        raise GiveUp(mismatch) if too_many and not context.rewrite else mismatch

    _read_until(call, context, check)


def verify_latest(call: Invocation, context: SpecContext) -> None:
    """`kafka-verify-latest`: the last record of each key, as a compacted topic would keep them."""
    expected = _expected(call, context)

    def check(reader: TopicReader, decode: Decode, _: Deadline) -> None:
        latest: dict[bytes | None, Raw] = {}
        for raw in reader.records:
            latest.pop(raw.key, None)
            if raw.value is not None:
                latest[raw.key] = raw
        actual = decode(list(latest.values()))
        missing, extra = differences(expected, actual, Record.identity, same)
        if missing or extra:
            problem = "the last records by key are not the expected ones"
            raise _mismatch(call, expected, actual, problem, in_order=False)

    _read_until(call, context, check)


def _read_until(call: Invocation, context: SpecContext, check: Callable[[TopicReader, Decode, Deadline], None]) -> None:
    """Check again as records come. One reader serves all attempts, because a topic may be long."""
    topic = call.text("topic")
    with ExitStack() as opened:
        records = Records(cache(lambda: opened.enter_context(context.registry())))
        decode = cache(lambda raw: _decoded(raw, call, records))  # every record once for all attempts
        reader: TopicReader | None = None
        age = Deadline(0)

        def attempt(deadline: Deadline) -> None:
            nonlocal reader, age
            try:
                if not call.body.lines and _is_missing(topic, context):
                    return
                if reader is None or age.is_over:
                    decode.cache_clear()  # the topic may have been deleted and created again
                    reader = opened.enter_context(open_topic(topic, context))
                    age = Deadline(REOPEN)
                    reader.read_to_end(deadline)
                else:
                    reader.read_more(POLL)
                check(reader, lambda raws: list(map(decode, raws)), deadline)
            except Mismatch:
                raise
            except HeadgateError:
                reader = None
                raise

        context.eventually(attempt, call.body)


def _is_missing(topic: str, context: SpecContext) -> bool:
    """Whether the topic does not exist and is not created within a second either."""
    if has_topic(topic, context):
        return False
    time.sleep(QUIET)
    return not has_topic(topic, context)


def _expected(call: Invocation, context: SpecContext) -> list[Record]:
    """The records of the body. Raises InvalidAction if a line has not the parts that the options ask for."""
    check_formats(call)
    with_key, with_headers = call.optional("key-format") is not None, _with_headers(call)
    found = []
    for line in context.fill(call.body):
        parts = read_values(line)
        if len(parts) != 1 + with_key + with_headers:
            wanted = " and ".join(["a key"] * with_key + ["a value"] + ["headers"] * with_headers)
            raise call.wrong(f"wants {wanted} in each line, and one has {len(parts)} parts")
        headers = _shown_headers(read_headers(parts.pop())) if with_headers else None
        loose = [call.optional(option) == "protobuf" for option in ("key-format", "format")]
        key = Decoded(parts.pop(0), loose[0]) if with_key else None
        found.append(Record(line.strip(), Decoded(parts[0], loose[1]), key, headers))
    return found


def _decoded(raw: Raw, call: Invocation, records: Records) -> Record:
    """A record of the topic in the form in which the spec writes it."""
    place = f'record {raw.offset} of partition {raw.partition} of topic "{call.text("topic")}"'
    try:
        value = records.decode(raw.value, call.optional("format"))
        key = records.decode(raw.key, key_format) if (key_format := call.optional("key-format")) else None
    except HeadgateError as error:
        raise StepFailed(f"{place} cannot be decoded: {error.message()}", error.hint()) from error
    headers = _shown_headers(raw.headers) if _with_headers(call) else None
    shown = [] if key is None else [write_json(key.value)]
    shown.append(write_json(value.value))
    if headers is not None:
        names = [name for name, _ in headers]
        pairs: Json = [[name, text] for name, text in headers]
        shown.append(write_json(pairs if len(set(names)) < len(names) else dict(headers)))
    return Record(" ".join(shown), value, key, headers)


def _with_headers(call: Invocation) -> bool:
    return "headers" in call.options and call.flag("headers")


def _shown_headers(headers: Sequence[tuple[str, bytes | None]]) -> tuple[tuple[str, str | None], ...]:
    return tuple(
        (name, None if value is None else value.decode("utf-8", "backslashreplace")) for name, value in headers
    )


def _equal(expected: Decoded, actual: Decoded) -> bool:
    if actual.is_loose:
        return equal(without_nulls(expected.value), without_nulls(actual.value))
    return equal(expected.value, actual.value)


def _judge(call: Invocation) -> Callable[[Sequence[Record], Sequence[Record], bool], str | None]:
    """What is wrong with the records, or None. The third argument is whether their order counts."""
    at_least = call.flag("at-least")

    def judge(expected: Sequence[Record], actual: Sequence[Record], in_order: bool) -> str | None:
        if in_order and at_least:
            rest = iter(actual)
            return None if all(any(same(one, other) for other in rest) for one in expected) else "records are missing"
        if in_order:
            holds = len(expected) == len(actual) and all(map(same, expected, actual))
            return None if holds else "the records are not the expected ones"
        missing, extra = differences(expected, actual, Record.identity, same)
        if missing:
            return "records are missing"
        return "there are more records than expected" if extra and not at_least else None

    return judge


def _mismatch(
    call: Invocation, expected: Sequence[Record], actual: Sequence[Record], problem: str, in_order: bool
) -> Mismatch:
    lines = as_written(expected, actual, same, lambda record: record.line)
    wanted = tuple(one.line for one in expected)
    found = tuple(lines) if in_order else tuple(align(wanted, lines))
    rewritten = tuple(one.line for one in actual)
    what = f'{problem} in topic "{call.text("topic")}"'
    return Mismatch(what, wanted, found, rewritten if in_order else tuple(sorted(rewritten)))


ACTIONS = (
    Action(
        "kafka-verify", verify, required=("topic",), body="optional",
        options=("format", "key-format", "sort", "headers", "at-least"),
    ),
    Action(
        "kafka-verify-latest", verify_latest, required=("topic", "key-format"), body="optional",
        options=("format", "headers"),
    ),
)  # fmt: skip
