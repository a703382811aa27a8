"""The names in a statement, resolved once: each carries the id of its object from here on.

Which fields name other objects is declared with the fields (`names` in `headgate.sql.statement`). A query's names are
resolved by its analysis, because only that knows which of them are aliases.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from headgate.catalog.catalog import Catalog
from headgate.catalog.errors import CatalogError
from headgate.catalog.graph import type_by_path
from headgate.catalog.names import SearchPath, resolve, type_name
from headgate.catalog.objects import definition_of
from headgate.errors import InternalError
from headgate.resolve.errors import ConnectionOfOtherKind
from headgate.schema.types import Named, Type, map_named
from headgate.sql.connections import (
    ConnectionSystem,
    CreateConnection,
    Kafka,
    KafkaConnection,
    ReadOptions,
    WriteOptions,
)
from headgate.sql.registry_formats import RegistryFormat, RegistryUrl
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import CreateSource
from headgate.sql.statement import TYPES, Create, DataField, Kind, ObjectName, kinds_named, rewrite

Statement = TypeVar("Statement", bound=Create)


def resolve_names(statement: Statement, catalog: Catalog, path: SearchPath, *, must_exist: bool = True) -> Statement:
    """The statement with ids in the names of other objects, and with full names of types.

    A name that has an id keeps it. Raises for a name that means nothing, or with ``must_exist=False`` leaves it alone.
    """

    def change(value: Any, field: DataField | None) -> Any:
        kinds = kinds_named(field)
        try:
            if isinstance(value, ObjectName) and kinds and value.id is None:
                return replace(value, id=resolve(catalog, path, value, *kinds).id)
            if isinstance(value, TYPES):
                return _same_or(value, qualified_type(catalog, path, value))
        except CatalogError:
            if must_exist:
                raise
        return value

    return rewrite(statement, change)


def qualified_type(catalog: Catalog, path: SearchPath, type_: Type) -> Type:
    """The type with the full names of the catalog's types that it mentions."""

    def full(named: Named) -> Type:
        known = type_by_path(catalog, named.parts) if len(named.parts) == 3 else None
        found = known or resolve(catalog, path, type_name(named), Kind.TYPE)
        return Named(catalog.path(found.id))

    return map_named(type_, full)


def _same_or(old: Type, new: Type) -> Type:
    return old if old == new else new


def object_id(name: ObjectName) -> int:
    """The id of a name that was resolved."""
    if name.id is None:
        raise InternalError(f"name {name} was not resolved")
    return name.id


def kafka_server(kafka: Kafka[ReadOptions] | Kafka[WriteOptions]) -> int | str:
    """The cluster that a resolved statement names: the id of a connection, or an address."""
    return object_id(kafka.connection) if isinstance(kafka, KafkaConnection) else kafka.broker


def registry_server(registry: ObjectName | RegistryUrl) -> int | str:
    """The registry that a resolved statement names: the id of a connection, or an address."""
    return object_id(registry) if isinstance(registry, ObjectName) else registry.url


def check_connections(catalog: Catalog, statement: CreateSource | CreateSink) -> None:
    """Check that the connections of a source or sink are to Kafka and to registries. Raises ConnectionOfOtherKind."""
    if isinstance(statement.kafka, KafkaConnection):
        _check_system(catalog, statement.kafka.connection, "KAFKA")
    for format_ in (statement.formats.value, statement.formats.key):
        if isinstance(format_, RegistryFormat) and isinstance(format_.registry, ObjectName):
            _check_system(catalog, format_.registry, "CONFLUENT SCHEMA REGISTRY")


def _check_system(catalog: Catalog, name: ObjectName, system: ConnectionSystem) -> None:
    found = catalog.get(object_id(name))
    other = definition_of(found, CreateConnection).options.system
    if other != system:
        raise ConnectionOfOtherKind(found.name, other, system).at(name.span)
