"""Which statements ask something of the outside, and what."""

from __future__ import annotations

from headgate.catalog.names import SearchPath
from headgate.catalog.snapshot import Catalog
from headgate.purify.outside import Outside
from headgate.purify.sources import purify_source
from headgate.sql.ast.connections import CreateConnection
from headgate.sql.ast.sources import CreateSource
from headgate.sql.ast.statement import Statement
from headgate.sql.ast.values import BooleanLiteral, option


def purify(statement: Statement, catalog: Catalog, path: SearchPath, outside: Outside) -> Statement:
    """The statement with every outside answer in it."""
    match statement:
        case CreateConnection():
            if option(statement.with_options, "VALIDATE") != BooleanLiteral(False):
                outside.check(catalog, statement)
            return statement
        case CreateSource():
            return purify_source(statement, catalog, path, outside)
        case _:
            return statement
