"""What a JSON Schema allows at a place whose type is json for us, because several types are possible there. Pure.

A property without a type is also json for us, but any type may be asked of it: its values are checked one by one. Where the schema itself
says that values have different types, or only another one, a field of one type would fail for them by design, so the statement is
refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import Column, Object, definition_of
from headgate.plan.source import plan_source
from headgate.schema import types as t
from headgate.sql.formats import format_of, frozen_schemas
from headgate.sql.registry_formats import RegistryFormat
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Kind

_Kinds: TypeAlias = frozenset[str] | None
MOST_REFERENCES = 100  # that one place may lead through; a schema may refer to itself


def why_not(catalog: Catalog, relation: Object, tokens: Sequence[str], type_: t.Type) -> str | None:
    """Why values at a place of a relation are not all of a type, by their schema; None if they may be, or nobody knows."""
    column = next((c for c in relation.columns if c.name == tokens[0]), None)
    if column is None:
        return None
    relation, column = _origin(catalog, relation, column)
    if relation.kind is not Kind.SOURCE:
        return None
    statement = definition_of(relation, CreateSource)
    format_ = format_of(statement.formats, "VALUE")
    frozen = frozen_schemas(format_, "VALUE")
    if not isinstance(format_, RegistryFormat) or format_.kind != "JSON SCHEMA" or not frozen:
        return None
    origin = next((c.origin for c in plan_source(statement).columns if c.name == column.name), None)
    if origin is None or origin.section != "value":
        return None
    steps = tokens[1:] if origin.name is None else (origin.name, *tokens[1:])
    schema = json.loads(frozen[-1].schema)
    node = _node(schema, schema, steps)
    return _mixed(node, schema, type_) or _other(_kinds(node, schema, {}), type_)


def _origin(catalog: Catalog, relation: Object, column: Column) -> tuple[Object, Column]:
    """The column that a column is a plain projection of, through any number of views."""
    while column.origin is not None:
        relation = catalog.get(column.origin.object)
        above = relation.column(column.origin.column)
        if above is None:
            break
        column = above
    return relation, column


def _node(node: object, schema: object, steps: Sequence[str]) -> object:
    """The schema of a member, None if it says nothing of it."""
    for step in steps:
        found = _resolved(node, schema)
        properties = found.get("properties")
        node = properties.get(step) if isinstance(properties, Mapping) else None
    return node


def _resolved(node: object, schema: object) -> Mapping[str, object]:
    """The node that a reference within the schema leads to, or the one branch of `oneOf` that is not null."""
    for _ in range(MOST_REFERENCES):
        if not isinstance(node, Mapping):
            return {}
        reference = node.get("$ref")
        branches = _branches(node)
        if isinstance(reference, str) and reference.startswith("#/"):
            node = _at(schema, reference[2:].split("/"))
        elif len(branches) == 1:
            node = branches[0]
        else:
            return node
    return {}


def _at(schema: object, steps: Sequence[str]) -> object:
    for step in steps:
        schema = schema.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(schema, Mapping) else None
    return schema


def _branches(node: Mapping[str, object]) -> list[object]:
    """The alternatives of a node without null."""
    given = node.get("oneOf") or node.get("anyOf")
    return [] if not isinstance(given, list) else [b for b in given if b != {"type": "null"}]


def _mixed(node: object, schema: object, type_: t.Type, depth: int = 0) -> str | None:
    """The construct by which a node allows values of several types, or of none. ``type_`` is what its values shall become."""
    found = _resolved(node, schema)
    kinds = found.get("type")
    several = _several(_kinds(node, schema, {}))
    if kinds in ("null", ["null"]):
        return "Its schema allows null alone."
    if isinstance(kinds, list) and len(several) > 1:
        return f"Its schema allows the types {', '.join(map(str, kinds))}."
    if len(_branches(found)) > 1:
        return f"Its schema allows several alternatives ({'oneOf' if found.get('oneOf') else 'anyOf'})."
    if len(several) > 1:
        return f"Its schema allows values of the types {', '.join(several)}."
    if isinstance(type_, t.Array) and isinstance(type_.element, t.Json):
        return None
    if "prefixItems" in found or isinstance(found.get("items"), list):
        return "Its schema is a tuple, whose elements have types of their own."
    items = found.get("items")
    if not isinstance(items, Mapping) or depth > MOST_REFERENCES:
        return None
    return _mixed(items, schema, type_.element if isinstance(type_, t.Array) else type_, depth + 1)


def _other(kinds: _Kinds, type_: t.Type) -> str | None:
    """Why values of the only kind that a schema allows never become a type."""
    match _several(kinds), type_:
        case ["array"], t.Array():
            return None
        case ["object"], t.Record() | t.Map():
            return None
        case ["array" | "object" as kind], _:
            return f"Its schema allows {kind}s alone."
        case [kind], t.Array() | t.Record() | t.Map():
            return f"Its schema allows values of type {kind} alone, which have no parts."
        case ["string" as kind], t.Boolean() | t.Integer() | t.Bigint() | t.Real() | t.Double():
            return f"Its schema allows values of type {kind} alone."
        case _:
            return None


_KINDS: dict[type, str] = {
    bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object", type(None): "null"
}  # fmt: skip


def _kinds(node: object, schema: object, known: dict[int, _Kinds]) -> _Kinds:
    """The kinds of values that a node allows; None for any. ``known`` are those of the nodes seen so far, by which a schema that refers
    to itself has an end."""
    found = _resolved(node, schema)
    if id(found) in known:
        return known[id(found)]
    known[id(found)] = None
    all_: list[_Kinds] = []
    given = found.get("type")
    if given is not None:
        listed = given if isinstance(given, list) else [given]
        all_.append(frozenset("number" if kind == "integer" else str(kind) for kind in listed))
    values = [found["const"]] if "const" in found else found.get("enum")
    if isinstance(values, list):
        all_.append(frozenset(_KINDS[type(value)] for value in values))
    for word in ("oneOf", "anyOf"):
        branches = [_kinds(branch, schema, known) for branch in _list(found, word)]
        if branches and None not in branches:
            all_.append(frozenset[str]().union(*(one for one in branches if one is not None)))
    all_ += [_kinds(part, schema, known) for part in _list(found, "allOf")]
    stated = [one for one in all_ if one is not None]
    known[id(found)] = frozenset.intersection(*stated) if stated else None
    return known[id(found)]


def _list(node: Mapping[str, object], word: str) -> list[object]:
    found = node.get(word)
    return found if isinstance(found, list) else []


def _several(kinds: _Kinds) -> list[str]:
    """The kinds without null."""
    return [] if kinds is None else sorted(kinds - {"null"})
