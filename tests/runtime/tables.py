"""Tables of materializations for tests of the runtime, without a statement and a catalog."""

from __future__ import annotations

from headgate.connectors.options import ConnectionOptions
from headgate.connectors.postgres import PostgresDatabase
from headgate.plan.target_definitions import (
    TableColumn,
    TableDefinition,
    TableName,
    TargetErrorPolicy,
    TargetField,
    ValuePath,
)
from headgate.schema.formats.postgres import to_postgres
from headgate.schema.types import Type


def field(
    name: str,
    type_: Type,
    source: Type | None = None,
    *,
    nullable: bool = False,
    key: bool = False,
    native: str | None = None,
    inside: tuple[str, ...] | None = None,
    column: str | None = None,
) -> TargetField:
    """A field over the column of its name. Without ``source`` the column has the field's type."""
    path = ValuePath(column or name, (), inside)
    return TargetField(name, path, type_, source or type_, nullable, native, None, key)


def table(
    name: str, *fields: TargetField, on_error: TargetErrorPolicy = "HALT", adopt: bool = False
) -> TableDefinition:
    columns = tuple(TableColumn(f.name, f, (), f.native or to_postgres(f.type), f.nullable) for f in fields)
    keys = tuple(f.name for f in fields if f.key)
    return TableDefinition(name, 1, 1, TableName("public", name), fields, columns, keys, on_error, adopt=adopt)


def database(address: str) -> PostgresDatabase:
    return PostgresDatabase(ConnectionOptions("postgres", (("URL", (address,)),)))
