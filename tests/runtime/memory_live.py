"""Topics, a registry and queries in memory, for the law of real time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from pyspark.sql import DataFrame, SparkSession

from headgate.catalog.positions import KafkaPosition, KafkaRecord, Position, furthest, limited
from headgate.catalog.tasks import Quarantined
from headgate.connectors.errors import BrokerUnreachable
from headgate.runtime.errors import SchemaChanged
from headgate.runtime.live_queries import LiveQuery, Slots
from headgate.runtime.ports import (
    NOTHING_REJECTED,
    Append,
    Batch,
    Changes,
    Limit,
    Rejected,
    ReplanNeeded,
    Upsert,
)
from headgate.runtime.realtime import RealTimeTask
from headgate.runtime.source import ArrivedSchema
from headgate.schema.written import WrittenSchema
from tests.runtime.test_realtime_task import SOURCE, RowPlan, TopicInput, TopicTarget

OLD_ID = 1  # the schema that the source was made with
BAD = -1  # a value that cannot be decoded


class Record(NamedTuple):
    """A record of the source, or of the target: then with the place of the record of the source that it was made of."""

    key: str
    value: int
    schema: int = OLD_ID
    place: tuple[int, int] = (-1, -1)


def frame(rows: Sequence[Record]) -> DataFrame:
    return cast("DataFrame", list(rows))


def last_of_each(rows: Sequence[Record]) -> list[Record]:
    return list({row.key: row for row in rows}.values())


@dataclass
class Topics:
    """All that is outside of the engine: the source, what is in the target, and what the registry has."""

    source: list[list[Record]] = field(default_factory=lambda: [[], []])
    target: list[Record] = field(default_factory=list)
    registered: set[int] = field(default_factory=lambda: {OLD_ID})
    followed: set[int] = field(default_factory=lambda: {OLD_ID})

    def put(self, key: str, value: int, schema: int) -> None:
        partition = ord(key) % 2 if key < "e" else 2  # a key stays in its partition
        if partition < len(self.source):
            self.source[partition].append(Record(key, value, schema))

    def end(self) -> KafkaPosition:
        return KafkaPosition("in", "in's id", tuple(len(one) for one in self.source))

    def between(self, start: KafkaPosition, end: KafkaPosition) -> list[Record]:
        begin = start.by_partition
        return [
            self.source[p][offset]._replace(place=(p, offset))
            for p, last in enumerate(end.offsets)
            for offset in range(begin.get(p, 0), last)
        ]


class LawSide:
    """What the engine knows of the registry."""

    uses_registry = True

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self.known: dict[int, WrittenSchema] = {}

    def refresh(self) -> None:
        self.known = {id_: WrittenSchema("{}", id=id_) for id_ in sorted(self._topics.registered)}

    def learn(self, schema_id: int) -> None:
        self.refresh()

    def schema(self, schema_id: int) -> WrittenSchema | None:
        return self.known.get(schema_id)

    def writers(self) -> Any:
        return SimpleNamespace(known=self.known, unknown_ids=frozenset(), unreadable_fields={}, halting=frozenset())

    def followable(self) -> list[WrittenSchema]:
        return [schema for id_, schema in self.known.items() if id_ not in self._topics.followed]


class LawInput(TopicInput):
    """Keeps bad records, as under QUARANTINE. Follows new schemas."""

    def __init__(self, topics: Topics) -> None:
        super().__init__()
        self.topics, self.law_side = topics, LawSide(topics)
        self.reader.schemas = cast("Any", {"value": self.law_side})
        self.reader.refresh = self.law_side.refresh  # type: ignore[method-assign]
        self._bad: list[Quarantined] = []

    def end(self) -> KafkaPosition:
        return self.topics.end()

    def begin(self) -> KafkaPosition:
        return KafkaPosition("in", "in's id", tuple(0 for _ in self.topics.source))

    def partitions(self) -> int:
        return len(self.topics.source)

    def choose_end(
        self, session: SparkSession, start: Position, limit: Limit, available: Position | None, mark: Position | None
    ) -> KafkaPosition:  # fmt: skip
        assert isinstance(start, KafkaPosition)
        if self.bound is not None:
            return super(TopicInput, self).choose_end(session, start, limit, available, mark)
        assert isinstance(available, KafkaPosition)
        end = limited(start, available, limit.rows)
        end = furthest(end, mark) if isinstance(mark, KafkaPosition) else end
        self.law_side.refresh()
        new = {schema.id: schema for schema in self.law_side.followable()}
        for record in self.topics.between(start, end):
            if record.schema in new:
                raise ReplanNeeded(SOURCE, [_arrived(new[record.schema], record)])
        return end

    def read(self, session: SparkSession, start: Position, end: Position) -> Changes:
        assert isinstance(start, KafkaPosition)
        assert isinstance(end, KafkaPosition)
        found = self.topics.between(start, end)
        if self.bound is not None:
            passed = self.passed_ids()["value"]
            for one in found:
                if one.schema not in passed:
                    raise SchemaChanged("in", "in", *one.place, "value", one.schema, ())
        self._bad = [_quarantined(*one.place) for one in found if one.value == BAD]
        return Append(frame([one for one in found if one.value != BAD]))

    def rejected(self) -> Rejected:
        return Rejected(0, self._bad) if self._bad else NOTHING_REJECTED


def _arrived(schema: WrittenSchema, record: Record) -> ArrivedSchema:
    return ArrivedSchema(schema, KafkaRecord("in", *record.place), "value")


def _quarantined(partition: int, offset: int) -> Quarantined:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return Quarantined(SOURCE, 7, KafkaRecord("in", partition, offset), now, None, None, None, "bad")


class LawPlan(RowPlan):
    def __init__(self, *, keyed: bool) -> None:
        super().__init__()
        self._keyed = keyed

    def output(self, session: SparkSession, changed: Changes) -> Changes:
        assert isinstance(changed, Append)
        if not self._keyed:
            return changed
        return Upsert(frame(last_of_each(cast("list[Record]", changed.rows))), ("key",), marked=True)

    def compute(self, session: SparkSession, changes: Mapping[int, Changes], batch: Batch) -> Changes:
        return self.output(session, changes[SOURCE])


class LawTarget(TopicTarget):
    """``refuses`` is raised by the next write, before the record of that number."""

    def __init__(self, topics: Topics, law_queries: LawQueries, *, keyed: bool) -> None:
        super().__init__("UPSERT" if keyed else "NONE")
        self.topics, self.law_queries = topics, law_queries
        self.refuses: int | None = None
        self.silent = False

    def ends(self) -> dict[int, int]:
        if self.silent:
            raise BrokerUnreachable("memory", "No answer.")
        return {0: len(self.topics.target)}

    def await_delivery(self) -> None:
        self.law_queries.deliver()

    def _check_topic(self) -> Any:
        if self.silent:
            raise BrokerUnreachable("memory", "No answer.")

    def write(self, changes: Changes, batch: Batch, before_commit: Callable[[], None]) -> Any:
        return super(TopicTarget, self).write(changes, batch, before_commit)

    def records(self, changes: Changes, read: int) -> DataFrame:
        return changes.rows

    def unwritten(self, records: DataFrame, tail: Mapping[int, int]) -> DataFrame:
        held = {row.key: row.value for row in self.topics.target[tail.get(0, 0) :]}
        wanted = last_of_each(cast("list[Record]", records))
        return frame([row for row in wanted if held.get(row.key) != row.value])

    def send(self, records: DataFrame) -> None:
        if self.tail is not None:
            self.law_queries.deliver()  # it writes behind what is in the producer of the query
        for number, row in enumerate(cast("list[Record]", records)):
            if self.refuses is not None and number >= self.refuses:
                raise BrokerUnreachable("memory", "No answer.")
            self.topics.target.append(row)


@dataclass
class Stream:
    """A query: where it reads on, and what is in its producer and not in the target yet."""

    live: LiveQuery
    topics: Topics
    passed: frozenset[int]
    at: list[int]
    sent: list[Record] = field(default_factory=list)

    def at_of(self, partition: int) -> int:
        return self.at[partition] if partition < len(self.at) else 0

    def read(self, partition: int) -> None:
        """Hand one record of a partition on."""
        while len(self.at) < len(self.topics.source):
            self.at.append(0)
        records = self.topics.source[partition]
        if self.live.ended or self.at[partition] >= len(records):
            return
        offset = self.at[partition]
        record = records[offset]
        if record.schema not in self.passed:
            self.fall(f"headgate-schema-changed:{SOURCE}/{partition}/{offset}/value/{record.schema}")
        elif record.value == BAD:
            self.fall(f"headgate-bad-record:{SOURCE}/{partition}/{offset}")
        else:
            self.at[partition] += 1
            self.sent.append(record._replace(place=(partition, offset)))

    def fall(self, words: str) -> None:
        self.live.ended, self.live.failure = True, words

    def deliver(self, count: int) -> None:
        self.topics.target += self.sent[:count]
        self.sent = self.sent[count:]


class LawQueries:
    """The queries of one engine, and what Spark has said that nobody was told yet."""

    def __init__(self, topics: Topics) -> None:
        self.slots = Slots(4)
        self.unsettled: dict[int, Mapping[int, int]] = {}
        self.handed_over: set[int] = set()
        self.topics = topics
        self.stream: Stream | None = None
        self.input: LawInput | None = None
        self.ending: list[Stream] = []  # ended queries, whose producer has records
        self.waiting: list[tuple[LiveQuery, str]] = []
        self.position: KafkaPosition | None = None

    def next_start(self) -> float:
        return 0.0

    def settle_at(self) -> float:
        return 0.0

    def take_settle(self) -> bool:
        return True

    def settled(self, seconds: float) -> None:
        """The next look may be at once."""

    def start(
        self, name: str, records: object, options: object, slots: int, on_boundary: Any, on_end: Any, has_new: Any,
        *, short: bool,
    ) -> LiveQuery:  # fmt: skip
        assert self.stream is None, "two queries of a task"
        live = LiveQuery(cast("Any", None), "run", cast("Any", None), slots, on_boundary, on_end, has_new)
        assert self.input is not None
        assert self.position is not None
        self.stream = Stream(live, self.topics, self.input.passed_ids()["value"], list(self.position.offsets))
        return live

    def stop(self, live: LiveQuery) -> None:
        assert self.stream is not None
        assert self.stream.live is live
        self.ending.append(self.stream)
        self.stream = None
        self.slots.give_back(live.slots)

    def deliver(self) -> None:
        """What ended queries had in their producer arrives."""
        for one in self.ending:
            one.deliver(len(one.sent))
        self.ending = []

    def reach_boundary(self) -> None:
        stream = self.stream
        if stream is not None and not stream.live.ended:
            stream.deliver(len(stream.sent))
            text = json.dumps({"in": {str(p): offset for p, offset in enumerate(stream.at)}})
            stream.live.announced += 1
            self.waiting.append((stream.live, text))

    def tell(self) -> None:
        if self.waiting:
            live, text = self.waiting.pop(0)
            live.on_boundary(live, text)


class LawTask(RealTimeTask):
    """Tells the queries of the law from where one starts."""

    def _start(self, position: KafkaPosition, slots: int) -> None:
        cast("LawQueries", self._queries).position = position
        super()._start(position, slots)
