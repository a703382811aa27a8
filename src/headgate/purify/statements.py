"""Which statements ask something of the outside, and what."""

from __future__ import annotations

from dataclasses import replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.names import SearchPath
from headgate.purify.connections import purify_connection
from headgate.purify.outside import Outside
from headgate.purify.references import lasting_types
from headgate.purify.sinks import purify_sink
from headgate.purify.sources import purify_source
from headgate.sql.connections import CreateConnection
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Statement
from headgate.sql.types import CreateType


def purify(statement: Statement, catalog: Catalog, path: SearchPath, outside: Outside) -> Statement:
    """The statement with every outside answer in it, and with names that last."""
    match statement:
        case CreateConnection():
            return purify_connection(statement, catalog, path, outside)
        case CreateSource():
            return purify_source(statement, catalog, path, outside)
        case CreateSink():
            return purify_sink(statement, catalog, path)
        case CreateType():
            return replace(statement, body=lasting_types(catalog, path, statement.body))
        case _:
            return statement
