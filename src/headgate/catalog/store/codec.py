"""Definitions as JSON text, and types as text: the forms in which the catalog stores them.

Every node is an object with its class name under ``node`` and its fields, without spans. A type of the type system is
stored in its printed form. A field that a stored statement lacks gets its default, so that classes can gain fields. A
field that this version does not know is an error.
"""

from __future__ import annotations

import dataclasses
import json
from functools import lru_cache
from typing import TypeAlias, get_args

from headgate.schema.parse import parse_type
from headgate.schema.render import print_type
from headgate.schema.types import Type
from headgate.sql import (
    captures,
    connections,
    formats,
    materializations,
    objects,
    options,
    queries,
    registry_formats,
    show,
    sinks,
    sources,
    statement,
    streams,
    subscribe,
    views,
)
from headgate.sql.errors import InvalidStatementJson
from headgate.sql.statement import Create, Kind, Statement
from headgate.text.cursor import Identifier

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_MODULES = (
    captures, connections, formats, materializations, objects, options, queries,
    registry_formats, show, sinks, sources, statement, streams, subscribe, views,
)  # fmt: skip
_NODES: dict[str, type] = {
    cls.__name__: cls
    for module in _MODULES
    for cls in vars(module).values()
    if isinstance(cls, type) and dataclasses.is_dataclass(cls) and cls.__module__ == module.__name__
} | {Identifier.__name__: Identifier}
_TYPES = get_args(Type)
_TYPE = "Type"
_KIND = "Kind"


def definition_text(definition: Create | None) -> str | None:
    return None if definition is None else json.dumps(to_json(definition))


@lru_cache(maxsize=10_000)
def read_definition(text: str | None) -> Create | None:
    """Read a stored definition. Cached, because a reader loads the whole catalog again after each commit of the writer."""
    if text is None:
        return None
    found = from_json(json.loads(text))
    if not isinstance(found, Create):
        raise InvalidStatementJson("it does not create an object")
    return found


@lru_cache(maxsize=4096)
def read_type(text: str) -> Type:
    """Read a stored type. Cached, because most columns of a catalog share a few types."""
    return parse_type(text)


def type_text(type_: Type) -> str:
    return print_type(type_, full=True)


def to_json(statement: Statement) -> dict[str, Json]:
    """Convert the statement to objects, lists and scalars that any JSON writer accepts."""
    return _node(statement)


def from_json(stored: dict[str, Json]) -> Statement:
    """Read what ``to_json`` has made."""
    found = _value(stored)
    if not isinstance(found, Statement):
        raise InvalidStatementJson("it is not a statement")
    return found


def _node(node: object) -> dict[str, Json]:
    stored: dict[str, Json] = {"node": type(node).__name__}
    for name in _STORED_NAMES[type(node)]:
        stored[name] = _stored(getattr(node, name))
    return stored


def _stored(value: object) -> Json:
    if isinstance(value, Kind):
        return {"node": _KIND, "value": value.value}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, tuple):
        return [_stored(item) for item in value]
    if isinstance(value, _TYPES):
        return {"node": _TYPE, "text": type_text(value)}
    return _node(value)


def _value(stored: Json) -> object:
    if isinstance(stored, list):
        return tuple([_value(item) for item in stored])
    if isinstance(stored, dict):
        return _read_node(stored)
    return stored


def _read_node(stored: dict[str, Json]) -> object:
    name = stored.get("node")
    if name == _TYPE:
        return parse_type(str(stored.get("text")))
    if name == _KIND:
        return _read_kind(stored.get("value"))
    cls = _NODES.get(name) if isinstance(name, str) else None
    if cls is None:
        raise InvalidStatementJson(f"there is no node {name!r}")
    known, required = _FIELDS[cls]
    given = {key: _value(value) for key, value in stored.items() if key != "node"}
    if not given.keys() <= known or not required <= given.keys():
        unknown, missing = sorted(given.keys() - known), sorted(required - given.keys())
        problem = f"does not know {unknown[0]!r}" if unknown else f"lacks {missing[0]!r}"
        raise InvalidStatementJson(f"node {name} {problem}")
    return cls(**given)


def _read_kind(value: Json) -> Kind:
    try:
        return Kind(str(value))
    except ValueError as error:
        raise InvalidStatementJson(f"there is no kind {value!r}") from error


def _stored_fields(cls: type) -> list[dataclasses.Field[object]]:
    """The fields that are compared are stored: all but spans."""
    return [field for field in dataclasses.fields(cls) if field.compare]


def _names_of_fields(cls: type) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the fields that a node may have, and of those that it must have."""
    fields = _stored_fields(cls)
    required = frozenset(field.name for field in fields if field.default is dataclasses.MISSING)
    return frozenset(field.name for field in fields), required


# Computed once, because a catalog has thousands of definitions with dozens of nodes each.
_FIELDS = {cls: _names_of_fields(cls) for cls in _NODES.values()}
_STORED_NAMES = {cls: [field.name for field in _stored_fields(cls)] for cls in _NODES.values()}
