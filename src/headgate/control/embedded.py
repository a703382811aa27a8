"""The connections of the embedded world, which every catalog of it has from the start."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from headgate.catalog.changes import ObjectCreated
from headgate.catalog.names import DEFAULT_PATH, find, parent_and_name
from headgate.catalog.objects import Object
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import EMBEDDED
from headgate.sql.connections import ConnectionKind, CreateConnection
from headgate.sql.json import to_json
from headgate.sql.options import Option, StringLiteral
from headgate.sql.statement import Kind, ObjectName, print_statement
from headgate.text.cursor import Identifier

CONNECTIONS: dict[str, tuple[ConnectionKind, str]] = {
    "kafka": ("KAFKA", "BROKER"),
    "registry": ("CONFLUENT SCHEMA REGISTRY", "URL"),
    "postgres": ("POSTGRES", "URL"),
    "elasticsearch": ("ELASTICSEARCH", "URL"),
}


def make_connections(store: SqliteStore) -> None:
    """Create those that are missing. Their address is looked up when they are used: it may change."""
    for name, (kind, option) in CONNECTIONS.items():
        catalog = store.load()
        written = ObjectName((Identifier(name),))
        if find(catalog, DEFAULT_PATH, written, Kind.CONNECTION) is not None:
            continue
        statement = CreateConnection(written, kind, (Option(option, StringLiteral(EMBEDDED)),))
        parent, exact = parent_and_name(catalog, DEFAULT_PATH, written, Kind.CONNECTION)
        purified = json.dumps({"statement": to_json(statement)})
        made = Object(
            catalog.next_id,
            Kind.CONNECTION,
            parent,
            exact,
            datetime.now(UTC),
            print_statement(statement),
            purified,
        )
        store.commit([ObjectCreated(made)], cause="the embedded world")
