"""Loops: a sink whose records come back to it, from its own topic or over other sources and sinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import search_path_of, stored_statement
from headgate.catalog.graph import upstream
from headgate.catalog.names import resolve
from headgate.catalog.objects import Object
from headgate.plan.errors import SinkFeedsItself
from headgate.purify.topics import topic_name
from headgate.sql.connections import CreateConnection
from headgate.sql.kafka import Kafka, KafkaConnection
from headgate.sql.options import ListLiteral, StringLiteral
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Kind

LOCAL = ("localhost", "[::1]")

Addresses: TypeAlias = frozenset[str]


@dataclass(frozen=True, slots=True)
class Flow:
    """What a sink reads, by its sources, and what it writes."""

    sink: Object
    reads: tuple[tuple[Object, Place], ...]
    writes: Place

    def reader(self, topic: Place) -> Object | None:
        """The source over which the sink reads a topic."""
        return next((source for source, read in self.reads if read.same(topic)), None)


@dataclass(frozen=True, slots=True)
class Place:
    """A topic. Clusters are the same if an address of theirs is; one that is called otherwise is another one to us."""

    brokers: Addresses
    topic: str

    def same(self, other: Place) -> bool:
        return self.topic == other.topic and not self.brokers.isdisjoint(other.brokers)


def check_loops(catalog: Catalog, sinks: Iterable[int]) -> None:
    """Raises if what one of these sinks of the catalog writes comes back to it."""
    wanted = tuple(sinks)
    flows = [_flow(catalog, sink) for sink in catalog.of_kind(Kind.SINK)] if wanted else []
    for start in (flow for flow in flows if flow.sink.id in wanted):
        way = _way_back(start, flows)
        if way:
            source = way[0].reader(start.writes)
            assert source is not None
            over = tuple(flow.sink.name for flow in way[:-1])
            raise SinkFeedsItself(start.sink.name, source.name, start.writes.topic, over)


def _way_back(start: Flow, flows: list[Flow]) -> list[Flow]:
    """The sinks behind a sink one after the other, up to itself; none if it is not behind itself."""
    before: dict[int, Flow] = {}
    open_ = [start]
    while open_:
        at = open_.pop(0)
        for flow in flows:
            if flow.sink.id not in before and flow.reader(at.writes) is not None:
                before[flow.sink.id] = at
                open_.append(flow)
    if start.sink.id not in before:
        return []
    way = [start]
    while (at := before[way[0].sink.id]) is not start:
        way.insert(0, at)
    return way


def _flow(catalog: Catalog, sink: Object) -> Flow:
    sources = [entry for entry in upstream(catalog, sink.id) if entry.kind is Kind.SOURCE]
    return Flow(sink, tuple((s, _place(catalog, s)) for s in sources), _place(catalog, sink))


def _place(catalog: Catalog, entry: Object) -> Place:
    statement = stored_statement(entry)
    assert isinstance(statement, CreateSource | CreateSink)
    return Place(_brokers(catalog, entry, statement.kafka), topic_name(statement.kafka))


def _brokers(catalog: Catalog, entry: Object, kafka: Kafka) -> Addresses:
    """Every address that leads to the cluster: those of all connections that share one are its own."""
    if isinstance(kafka, KafkaConnection):
        connection = resolve(catalog, search_path_of(entry), kafka.connection, Kind.CONNECTION)
        known = _addresses(connection)
    else:
        known = frozenset(_spelled(kafka.broker))
    others = [_addresses(other) for other in catalog.of_kind(Kind.CONNECTION)]
    while joined := [each for each in others if not known.isdisjoint(each) and not each <= known]:
        known = known.union(*joined)
    return known


def _addresses(connection: Object) -> Addresses:
    statement = stored_statement(connection)
    if not isinstance(statement, CreateConnection) or statement.kind != "KAFKA":
        return frozenset()
    given = [o.value for o in statement.options if o.name in ("BROKER", "BROKERS")]
    texts = [
        item for value in given for item in (value.items if isinstance(value, ListLiteral) else (value,))
    ]
    return frozenset(a for text in texts if isinstance(text, StringLiteral) for a in _spelled(text.value))


def _spelled(brokers: str) -> Iterator[str]:
    for each in brokers.split(","):
        address = each.strip().lower().rpartition("://")[2]
        host, _, port = address.rpartition(":")
        yield f"127.0.0.1:{port}" if host in LOCAL else address
