"""An executor over a real catalog and a real registry, and a Kafka of which only the topics' names are there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import cast

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import Object
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import ConnectionRef, Connections
from headgate.connectors.errors import TopicNotFound
from headgate.connectors.kafka import KafkaCluster, NewTopicOptions, Topic
from headgate.connectors.kafka_rows import Record
from headgate.control.engine import make_connections
from headgate.control.executor import Executor
from headgate.control.schema_changes import SchemaChanges
from headgate.control.sessions import Cancellation, Done, Notice, Result, ResultColumns, ResultRows, Session
from headgate.errors import HeadgateError, similar_names
from headgate.plan.errors import ColumnOfUnknownType
from headgate.plan.plans import FollowChanges
from headgate.registry.client import RegistryClient
from headgate.registry.schemas import Schema
from headgate.runtime.replay import Replayed
from headgate.schema.types import Type
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.statement import Query


class TopicNames:
    """A cluster as far as statements ask it: which topics there are."""

    def __init__(self) -> None:
        self.options: dict[str, NewTopicOptions] = {}
        self.written: list[tuple[str, bytes | None, bytes | None]] = []  # topic, key and value
        self.times: list[int | None] = []  # of the same records

    def check(self) -> None:
        return

    def topic(self, name: str) -> Topic:
        if name not in self.options:
            raise TopicNotFound(name, similar_names(name, self.options))
        options = self.options[name]
        return Topic(name, f"id of {name}", options.partitions, max(1, options.replicas))

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        return {name: self.topic(name) for name in names if name in self.options}

    def offsets(self, topic: Topic, *, latest: bool) -> dict[int, int]:
        return dict.fromkeys(range(topic.partitions), 0)

    def topic_config(self, name: str) -> dict[str, str]:
        return dict(self.options[name].config)

    def check_new_topic(self, name: str, options: NewTopicOptions) -> None:
        return

    def create_topic(self, name: str, options: NewTopicOptions) -> bool:
        new = name not in self.options
        self.options.setdefault(name, options)
        return new

    def write(self, records: Sequence[Record]) -> None:
        self.written += [(record.topic, record.key, record.value) for record in records]
        self.times += [record.time for record in records]

    def delete_topic(self, name: str) -> None:
        del self.options[name]


class Reached(Connections):
    """Every Kafka connection leads to the same topics; registries are as their connections say."""

    def __init__(self, store: SqliteStore, registry: str) -> None:
        super().__init__(store.keys.reveal, lambda _: registry)
        self.cluster = TopicNames()

    def kafka(self, catalog: Catalog, server: ConnectionRef) -> KafkaCluster:
        return cast("KafkaCluster", self.cluster)


class Answers:
    """Runs no query: tells which it was asked for."""

    def select(self, catalog: Catalog, query: Query, cancellation: Cancellation) -> Iterator[Result]:
        yield ResultColumns((("query", "text"),))
        yield ResultRows(((query.text,),))
        yield Done("SELECT 1")

    def follow_changes(self, catalog: Catalog, plan: FollowChanges, cancellation: Cancellation) -> Iterator[Result]:
        return self.select(catalog, plan.query, cancellation)

    def types(self, catalog: Catalog, analysed: AnalysedQuery) -> tuple[Type, ...]:
        """Without Spark nobody can tell: the error that planning gives then."""
        raise ColumnOfUnknownType(next(c.name for c in analysed.columns if c.type is None))

    def follow_arrived(self, catalog: Catalog, source: Object) -> bool:
        return False

    def read_times(self, texts: Sequence[str], format_: str) -> Sequence[int | None]:
        """As `yyyy-MM-dd HH:mm:ss` is read, whatever the pattern."""
        return [_time(text) for text in texts]

    def is_time_pattern(self, format_: str) -> bool:
        return format_ != "no pattern"

    def replay(self, task: int, name: str) -> Replayed:
        return Replayed(3, 2, 1)

    def refresh_tasks(self) -> None:
        """No task runs."""


def _time(text: str) -> int | None:
    try:
        return int(datetime.strptime(f"{text} +0000", "%Y-%m-%d %H:%M:%S %z").timestamp() * 1000)
    except ValueError:
        return None


class Shell:
    """One client of an engine without Spark."""

    def __init__(self, folder: Path, registry: str) -> None:
        self.store = SqliteStore(folder / "catalog.db")
        make_connections(self.store)
        self.connections = Reached(self.store, registry)
        answers = Answers()
        changed = SchemaChanges(self.store, self.connections, answers.types).changed_schemas
        self.executor = Executor(self.store, self.connections, answers, changed)
        self.session = Session()
        self.registry = RegistryClient([registry])

    @property
    def topics(self) -> dict[str, NewTopicOptions]:
        return self.connections.cluster.options

    @property
    def version(self) -> int:
        return self.store.load().version

    def subject(self, name: str, schema: str) -> int:
        return self.registry.register(name, Schema(schema))

    def run(self, script: str) -> list[Result]:
        return list(self.executor.run(script, self.session))

    def rows(self, script: str) -> list[tuple[object, ...]]:
        return [tuple(row) for r in self.run(script) if isinstance(r, ResultRows) for row in r.rows]

    def names(self, script: str) -> list[str]:
        return [name for r in self.run(script) if isinstance(r, ResultColumns) for name, _ in r.columns]

    def tags(self, script: str) -> list[str]:
        return [r.tag for r in self.run(script) if isinstance(r, Done)]

    def notices(self, script: str) -> list[str]:
        return [r.message for r in self.run(script) if isinstance(r, Notice)]

    def failure(self, script: str) -> HeadgateError:
        """The error of a script that must fail."""
        try:
            self.run(script)
        except HeadgateError as error:
            return error
        raise AssertionError("the script did not fail")

    def close(self) -> None:
        self.registry.close()
        self.connections.close()
        self.store.close()


@contextmanager
def shell(folder: Path, registry: str) -> Iterator[Shell]:
    opened = Shell(folder, registry)
    try:
        yield opened
    finally:
        opened.close()
