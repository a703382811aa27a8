"""What a statement names, found in the catalog, and written so that it means the same under every search path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from headgate.catalog.catalog import Catalog
from headgate.catalog.errors import CatalogError
from headgate.catalog.names import DEFAULT_PATH, SearchPath, find, resolve, type_name
from headgate.catalog.objects import Object
from headgate.connectors.connections import ConnectionRef
from headgate.purify.errors import ConnectionOfOtherKind
from headgate.schema.types import Named, Type, map_named
from headgate.sql.connections import ConnectionKind
from headgate.sql.formats import Format, Formats
from headgate.sql.kafka import Kafka, KafkaConnection
from headgate.sql.options import Option, SecretReference
from headgate.sql.registry_formats import RegistryFormat, RegistryUrl
from headgate.sql.statement import Kind, ObjectName
from headgate.sql.types import ListBody, MapBody, OtherBody, RecordBody, TypeBody
from headgate.text.cursor import Identifier


def lasting_name(catalog: Catalog, path: SearchPath, name: ObjectName, *kinds: Kind) -> ObjectName:
    """The name as it is written, or the full one where the default search path would find something else."""
    found = resolve(catalog, path, name, *kinds)
    try:
        plain = find(catalog, DEFAULT_PATH, name, *kinds)
    except CatalogError:  # something else has that name there
        plain = None
    if plain is not None and plain.id == found.id:
        return name
    parts = tuple(Identifier(part, quoted=True) for part in catalog.path(found.id))
    return ObjectName(parts, span=name.span)


def lasting_types(catalog: Catalog, path: SearchPath, body: TypeBody) -> TypeBody:
    """The body of a type with lasting names of the types that it uses."""

    def lasting(named: Named) -> Type:
        written = type_name(named)
        name = lasting_name(catalog, path, written, Kind.TYPE)
        return named if name is written else Named(tuple(part.name for part in name.parts))

    match body:
        case RecordBody(fields):
            return RecordBody(tuple(replace(f, type=map_named(f.type, lasting)) for f in fields))
        case ListBody(element):
            return ListBody(map_named(element, lasting))
        case MapBody(value):
            return MapBody(map_named(value, lasting))
        case OtherBody(type_):
            return OtherBody(map_named(type_, lasting))


def find_connection(catalog: Catalog, path: SearchPath, name: ObjectName, kind: ConnectionKind) -> Object:
    """The connection of that name, which must be to a system of that kind."""
    found = resolve(catalog, path, name, Kind.CONNECTION)
    stored = cast("dict[str, object]", found.purified_json().get("statement", {}))
    if (other := stored.get("kind")) != kind:
        raise ConnectionOfOtherKind(found.name, str(other), kind).at(name.span)
    return found


def kafka_server(catalog: Catalog, path: SearchPath, kafka: Kafka) -> ConnectionRef:
    """The cluster that a statement names."""
    if isinstance(kafka, KafkaConnection):
        return resolve(catalog, path, kafka.connection, Kind.CONNECTION).id
    return kafka.broker


def registry_server(catalog: Catalog, path: SearchPath, registry: ObjectName | RegistryUrl) -> ConnectionRef:
    """The registry that a statement names."""
    if isinstance(registry, ObjectName):
        return resolve(catalog, path, registry, Kind.CONNECTION).id
    return registry.url


def lasting_kafka(catalog: Catalog, path: SearchPath, kafka: Kafka) -> Kafka:
    if not isinstance(kafka, KafkaConnection):
        return kafka
    find_connection(catalog, path, kafka.connection, "KAFKA")
    return replace(kafka, connection=lasting_name(catalog, path, kafka.connection, Kind.CONNECTION))


def lasting_formats(catalog: Catalog, path: SearchPath, formats: Formats) -> Formats:
    def lasting(format_: Format) -> Format:
        if not isinstance(format_, RegistryFormat) or not isinstance(format_.registry, ObjectName):
            return format_
        find_connection(catalog, path, format_.registry, "CONFLUENT SCHEMA REGISTRY")
        return replace(format_, registry=lasting_name(catalog, path, format_.registry, Kind.CONNECTION))

    return Formats(lasting(formats.value), None if formats.key is None else lasting(formats.key))


def lasting_secrets(catalog: Catalog, path: SearchPath, options: Iterable[Option]) -> tuple[Option, ...]:
    """The options with lasting names of their secrets, one name for each secret."""
    names: dict[int, ObjectName] = {}

    def lasting(given: Option) -> Option:
        if not isinstance(given.value, SecretReference):
            return given
        secret = resolve(catalog, path, given.value.name, Kind.SECRET)
        name = names.setdefault(secret.id, lasting_name(catalog, path, given.value.name, Kind.SECRET))
        return replace(given, value=SecretReference(name))

    return tuple(map(lasting, options))
