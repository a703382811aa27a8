"""Loops: a sink that reads its own records again, from its own topic or through other sources and sinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from headgate.catalog.catalog import Catalog
from headgate.catalog.graph import downstream
from headgate.catalog.objects import Object, definition_of
from headgate.plan.errors import SinkFeedsItself
from headgate.resolve.statements import object_id, topic_name
from headgate.sql import connections
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Kind

LOCAL = ("localhost", "[::1]")

Addresses: TypeAlias = frozenset[str]


@dataclass(frozen=True, slots=True)
class Hop:
    """A sink that reads, over ``source``, what the sink ``after`` writes."""

    after: int
    source: Object
    topic: str


def check_loops(catalog: Catalog, sinks: Iterable[int]) -> None:
    """Raises SinkFeedsItself if one of these sinks would read records that it wrote."""
    for sink in sinks:
        if way := _path_to_itself(catalog, sink):
            over = tuple(catalog.get(hop.after).name for hop in way[1:])
            raise SinkFeedsItself(catalog.get(sink).name, way[0].source.name, way[0].topic, over)


def _path_to_itself(catalog: Catalog, start: int) -> list[Hop]:
    """The hops from a sink through other sinks back to itself; empty if there is no such path."""
    hops: dict[int, Hop] = {}
    waiting = [start]
    while waiting and start not in hops:
        at = waiting.pop(0)
        topic, readers = _readers(catalog, catalog.get(at))
        for source in readers:
            for sink in downstream(catalog, source.id):
                if sink.kind is Kind.SINK and sink.id not in hops:
                    hops[sink.id] = Hop(at, source, topic)
                    waiting.append(sink.id)
    if start not in hops:
        return []
    way = [hops[start]]
    while way[0].after != start:
        way.insert(0, hops[way[0].after])
    return way


def _readers(catalog: Catalog, sink: Object) -> tuple[str, list[Object]]:
    """The topic that a sink writes, and the sources that read it. Clusters are the same if they share an address."""
    written = definition_of(sink, CreateSink).kafka
    topic = topic_name(written)
    sources = [(s, definition_of(s, CreateSource).kafka) for s in catalog.of_kind(Kind.SOURCE)]
    same_name = [(source, kafka) for source, kafka in sources if topic_name(kafka) == topic]
    if not same_name:
        return topic, []
    brokers = _brokers(catalog, written)
    return topic, [s for s, kafka in same_name if not brokers.isdisjoint(_brokers(catalog, kafka))]


def _brokers(
    catalog: Catalog, kafka: connections.Kafka[connections.ReadOptions] | connections.Kafka[connections.WriteOptions]
) -> Addresses:
    """Every known address of the cluster. Connections that share one address lead to one cluster."""
    if isinstance(kafka, connections.KafkaConnection):
        known = _addresses(catalog.get(object_id(kafka.connection)))
    else:
        known = frozenset(_normalised(kafka.broker))
    others = [_addresses(other) for other in catalog.of_kind(Kind.CONNECTION)]
    while joined := [each for each in others if not known.isdisjoint(each) and not each <= known]:
        known = known.union(*joined)
    return known


def _addresses(connection: Object) -> Addresses:
    statement = connection.definition
    if not isinstance(statement, connections.CreateConnection) or not isinstance(
        statement.options, connections.KafkaConnectionOptions
    ):
        return frozenset()
    options = statement.options
    brokers = (*((options.broker,) if options.broker is not None else ()), *(options.brokers or ()))
    return frozenset(address for text in brokers for address in _normalised(text))


def _normalised(brokers: str) -> Iterator[str]:
    for each in brokers.split(","):
        address = each.strip().lower().rpartition("://")[2]
        host, _, port = address.rpartition(":")
        yield f"127.0.0.1:{port}" if host in LOCAL else address
