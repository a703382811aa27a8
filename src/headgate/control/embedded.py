"""The connections of the embedded world, which every catalog of it has from the start."""

from __future__ import annotations

from datetime import UTC, datetime

from headgate.catalog.changes import ObjectCreated
from headgate.catalog.names import DEFAULT_PATH, find, parent_and_name
from headgate.catalog.objects import Object
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import EMBEDDED
from headgate.sql.connections import (
    ConnectionOptions,
    CreateConnection,
    ElasticsearchConnectionOptions,
    KafkaConnectionOptions,
    PostgresConnectionOptions,
    RegistryConnectionOptions,
)
from headgate.sql.statement import Kind, ObjectName, print_statement
from headgate.text.cursor import Identifier

CONNECTIONS: dict[str, ConnectionOptions] = {
    "kafka": KafkaConnectionOptions(broker=EMBEDDED),
    "registry": RegistryConnectionOptions(url=EMBEDDED),
    "postgres": PostgresConnectionOptions(url=EMBEDDED),
    "elasticsearch": ElasticsearchConnectionOptions(url=EMBEDDED),
}


def make_connections(store: SqliteStore) -> None:
    """Create those that are missing. Their address is looked up when they are used: it may change."""
    for name, options in CONNECTIONS.items():
        catalog = store.load()
        written = ObjectName((Identifier(name),))
        if find(catalog, DEFAULT_PATH, written, Kind.CONNECTION) is not None:
            continue
        statement = CreateConnection(written, options)
        parent, exact = parent_and_name(catalog, DEFAULT_PATH, written, Kind.CONNECTION)
        made = Object(
            catalog.next_id,
            Kind.CONNECTION,
            parent,
            exact,
            datetime.now(UTC),
            print_statement(statement),
            statement,
        )
        store.commit([ObjectCreated(made)], cause="the embedded world")
