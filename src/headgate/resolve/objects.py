"""The object that a statement names, of every kind: databases and schemas too."""

from __future__ import annotations

from headgate.catalog.catalog import Catalog, fold
from headgate.catalog.errors import UnknownObject
from headgate.catalog.names import SearchPath, find, resolve, resolve_database, resolve_schema
from headgate.catalog.objects import Object
from headgate.sql.statement import Kind, ObjectName


def named_object(catalog: Catalog, path: SearchPath, kind: Kind, name: ObjectName) -> Object:
    """The object of that kind and name, a database or schema too."""
    if kind is Kind.DATABASE:
        return resolve_database(catalog, name)
    if kind is Kind.SCHEMA:
        return resolve_schema(catalog, path, name)
    return resolve(catalog, path, name, kind)


def described_object(catalog: Catalog, path: SearchPath, kind: Kind | None, name: ObjectName) -> Object:
    """The object that DESCRIBE or SHOW LINEAGE names, with or without its kind."""
    return resolve(catalog, path, name) if kind is None else named_object(catalog, path, kind, name)


def find_object(catalog: Catalog, path: SearchPath, kind: Kind, name: ObjectName) -> Object | None:
    """Likewise, or None where there is none."""
    if kind not in (Kind.SCHEMA, Kind.DATABASE):
        return find(catalog, path, name, kind)
    try:
        return named_object(catalog, path, kind, name)
    except UnknownObject:
        return None


def is_name_of(written: ObjectName, shown: str) -> bool:
    """Whether a name in a statement means the object that is shown by this name. Only quoted names mind the case."""
    quoted = any(part.quoted for part in written.parts)
    return str(written) == shown if quoted else fold(str(written)) == fold(shown)
