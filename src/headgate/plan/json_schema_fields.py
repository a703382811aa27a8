"""What a JSON Schema allows at a place whose type is json for us, because several types are possible there. Pure.

A property without a type is also json for us, but any type may be asked of it: its values are checked one by one. Where the schema itself
says that values have different types, a field of one type would fail for some of them by design, so the statement is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import Column, Object, definition_of
from headgate.plan.source import plan_source
from headgate.sql.formats import format_of, frozen_schemas
from headgate.sql.registry_formats import RegistryFormat
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Kind

MOST_REFERENCES = 100  # that one place may lead through; a schema may refer to itself


def why_mixed(catalog: Catalog, relation: Object, tokens: Sequence[str]) -> str | None:
    """Why values at a place of a relation have several types by their schema; None if they have not, or nobody knows."""
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
    return _mixed(_node(schema, schema, steps), schema)


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


def _mixed(node: object, schema: object) -> str | None:
    found = _resolved(node, schema)
    kinds = found.get("type")
    if isinstance(kinds, list) and len([kind for kind in kinds if kind != "null"]) > 1:
        return f"Its schema allows the types {', '.join(map(str, kinds))}."
    if kinds in ("null", ["null"]):
        return "Its schema allows null alone."
    if len(_branches(found)) > 1:
        return "Its schema allows several alternatives."
    if "prefixItems" in found or isinstance(found.get("items"), list):
        return "Its schema is a tuple, whose elements have types of their own."
    items = found.get("items")
    return _mixed(items, schema) if isinstance(items, Mapping) else None
