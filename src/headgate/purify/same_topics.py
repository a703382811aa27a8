"""Which topics are one and the same though they are named by different addresses.

A broker has many addresses: that of a connection, a name, a number. Two connections to it share no text, but a topic has the
same id wherever it is asked for. Planning needs the ids to find a sink whose own records come back to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from headgate.catalog.catalog import Catalog
from headgate.catalog.names import find
from headgate.catalog.objects import definition_of
from headgate.connectors.connections import ConnectionRef
from headgate.connectors.errors import ConnectorError
from headgate.connectors.kafka import Topic
from headgate.resolve.statements import Context, TopicIds, kafka_server, topic_name
from headgate.resolve.streams import READ_KINDS, connection_name, read_statement, topic_of
from headgate.sql.sinks import AlterSinkFrom, CreateSink
from headgate.sql.statement import Kind, Statement
from headgate.sql.streams import CreateStream, CreateStreamAs
from headgate.sql.views import CreateMaterializedView, CreateView

CONNECTS = (CreateSink, AlterSinkFrom, CreateView, CreateMaterializedView, CreateStream, CreateStreamAs)
"""The statements after which a sink may read other topics than before."""


def topic_ids(statement: Statement, context: Context, ask: Callable[[Catalog, ConnectionRef, str], Topic]) -> TopicIds:
    """The ids of topics that are read and written under one name but at different servers. A topic whose server does not
    answer is left out: what has nothing to do with it must not fail."""
    if not isinstance(statement, CONNECTS):
        return {}
    catalog, servers = context.catalog, defaultdict[str, set[ConnectionRef]](set)
    for source in catalog.of_kind(*READ_KINDS):
        kafka = read_statement(source).kafka
        servers[topic_name(kafka)].add(kafka_server(kafka))
    written = {_written(definition_of(sink, CreateSink)) for sink in catalog.of_kind(Kind.SINK)}
    match statement:
        case CreateSink():
            written.add(_written(statement))
        case CreateStreamAs():
            name = connection_name(statement.properties.connection, "kafka")
            if (connection := find(catalog, context.path, name, Kind.CONNECTION)) is not None:
                written.add((connection.id, topic_of(statement)))
    found: dict[tuple[ConnectionRef, str], str] = {}
    for server, topic in written:
        if topic in servers and servers[topic] != {server}:
            for each in {*servers[topic], server}:
                try:
                    found[each, topic] = ask(catalog, each, topic).id
                except ConnectorError:
                    continue
    return found


def _written(sink: CreateSink) -> tuple[ConnectionRef, str]:
    return kafka_server(sink.kafka), topic_name(sink.kafka)
