"""JSON Schema documents -> nodes.

Keywords that constrain the same JSON type become one node. Several nodes are joined by an `allOf` as if it had been
written. Up to draft 7 a `$ref` disables all keywords beside it; since 2019-09 it is one constraint among others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import partial

from headgate.registry.compatibility import json_nodes as n
from headgate.registry.json_documents import REFERENCES, Documents, Draft
from headgate.schema.written import Json, compact

Schema = dict[str, Json]

COMBINATIONS = ("allOf", "anyOf", "oneOf")
CONDITIONS = ("if", "then", "else")
_NUMBER_KEYWORDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
# The keywords that constrain values of a type.
KEYWORDS = {
    "string": frozenset(("minLength", "maxLength", "pattern", "format")),
    "integer": _NUMBER_KEYWORDS,
    "number": _NUMBER_KEYWORDS,
    "array": frozenset((
        "items", "additionalItems", "minItems", "maxItems", "uniqueItems", "prefixItems", "unevaluatedItems",
        "contains",
    )),
    "object": frozenset((
        "properties", "required", "minProperties", "maxProperties", "dependencies", "patternProperties",
        "additionalProperties", "propertyNames", "dependentRequired", "dependentSchemas", "unevaluatedProperties",
    )),
}  # fmt: skip
_SINCE_6 = (Draft.V6, Draft.V7, Draft.V2019_09, Draft.V2020_12)
# The drafts that know a keyword. A keyword that is not listed is known to all.
LIFE = {
    "contains": _SINCE_6,
    "propertyNames": _SINCE_6,
    "prefixItems": (Draft.V2020_12,),
    "additionalItems": (Draft.V4, *_SINCE_6[:3]),
    "unevaluatedItems": _SINCE_6[2:],
    "unevaluatedProperties": _SINCE_6[2:],
    "dependentRequired": _SINCE_6[2:],
    "dependentSchemas": _SINCE_6[2:],
    "dependencies": (Draft.V4, *_SINCE_6[:2]),
}
UNTYPED = ("array", "object", "number", "string")


class Loader:
    """Makes the nodes of one set of documents. The same schema always gives the same node object."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._nodes: dict[int, n.Node] = {}
        self._targets: dict[int, Json] = {}
        # Kept as long as the loader, because pairs of nodes are known by identity.
        self._anything, self._nothing = n.Anything(), n.Nothing()

    def root(self) -> n.Node:
        return self.node(self._documents.root)

    def target(self, reference: n.Reference) -> n.Node:
        """The node that a reference leads to, through other references if necessary."""
        seen: set[int] = set()
        node: n.Node = reference
        while isinstance(node, n.Reference):
            if node.target in seen:
                return self._anything  # a reference that leads to itself constrains nothing
            seen.add(node.target)
            node = self.node(self._targets[node.target])
        return node

    def node(self, schema: Json) -> n.Node:
        if not isinstance(schema, dict):
            return self._nothing if schema is False else self._anything
        if id(schema) not in self._nodes:
            self._nodes[id(schema)] = self._load(schema)
        return self._nodes[id(schema)]

    def _load(self, schema: Schema) -> n.Node:
        """One node for all constraints of a schema."""
        parts = [*self._parts(schema)]
        common = _common(schema, self._documents.draft(schema))
        if not parts:
            return n.Anything(common=common)
        node = parts[0] if len(parts) == 1 else n.Combined("allOf", tuple(parts))
        return replace(node, common=common)

    def _parts(self, schema: Schema) -> Iterator[n.Node]:
        """A node for each constraint. The order is that of Confluent's registry, because paths depend on it."""
        draft = self._documents.draft(schema)
        for keyword in REFERENCES if draft > Draft.V7 else ("$ref",):
            if isinstance(reference := schema.get(keyword), str):
                yield self._reference(schema, reference)
                if draft <= Draft.V7:
                    return
        if isinstance(values := schema.get("enum"), list):
            yield n.Enum(frozenset(_text(value) for value in values))
        for criterion in COMBINATIONS:
            if isinstance(members := schema.get(criterion), list):
                yield n.Combined(criterion, tuple(self.node(member) for member in members))
        if "not" in schema:
            yield n.Not(self.node(schema["not"]))
        if "const" in schema and draft >= Draft.V6:
            yield n.Const(_text(schema["const"]))
        yield from self._typed(schema)
        if draft >= Draft.V7 and any(keyword in schema for keyword in CONDITIONS):
            yield n.Conditional(compact([schema.get(keyword) for keyword in CONDITIONS], sort_keys=True))

    def _typed(self, schema: Schema) -> Iterator[n.Node]:
        """The nodes of `type`, then those of keywords for types that `type` does not name."""
        written = schema.get("type")
        named = [written] if isinstance(written, str) else written if isinstance(written, list) else []
        types = [name for name in named if isinstance(name, str)]
        if isinstance(written, str):
            yield self._of_type(schema, written)
        elif types:
            yield n.Combined("anyOf", tuple(self._of_type(schema, name) for name in types))
        covered = frozenset(keyword for name in types for keyword in KEYWORDS.get(name, ()))
        draft = self._documents.draft(schema)
        present = {keyword for keyword in schema if draft in LIFE.get(keyword, Draft)}
        for name in UNTYPED:
            if (KEYWORDS[name] - covered) & present:
                yield self._of_type(schema, name)

    def _of_type(self, schema: Schema, name: str) -> n.Node:
        """The node for one JSON type, with those of the schema's keywords that constrain it."""
        match name:
            case "string":
                pattern = schema.get("pattern")
                longest, shortest = _number(schema, "maxLength"), _number(schema, "minLength")
                return n.String(longest, shortest, pattern if isinstance(pattern, str) else None)
            case "number" | "integer":
                return self._of_number(schema, is_integer=name == "integer")
            case "array":
                return self._of_array(schema)
            case "object":
                return self._of_object(schema)
            case "boolean":
                return n.Boolean()
            case _:
                return n.Null()

    def _of_number(self, schema: Schema, *, is_integer: bool) -> n.Number:
        # Draft 4 has "exclusiveMaximum": true beside "maximum". It is not compared, like in Confluent's registry.
        limit = partial(_number, schema)
        return n.Number(
            limit("maximum"), limit("minimum"), limit("exclusiveMaximum"), limit("exclusiveMinimum"),
            limit("multipleOf"), is_integer,
        )  # fmt: skip

    def _of_array(self, schema: Schema) -> n.Array:
        """Limits of `contains` exist since 2019-09; a schema that has it wants at least one such item."""
        draft = self._documents.draft(schema)
        contains = "contains" in schema and draft >= Draft.V2019_09
        array = n.Array(
            max_items=_number(schema, "maxItems"),
            min_items=_number(schema, "minItems"),
            max_contains=_number(schema, "maxContains") if contains else None,
            min_contains=_number({"minContains": 1, **schema}, "minContains") if contains else None,
            is_unique=schema.get("uniqueItems") is True,
            unevaluated=self._optional(schema, "unevaluatedItems") if draft >= Draft.V2019_09 else None,
        )
        return self._with_items(schema, array, draft)

    def _with_items(self, schema: Schema, array: n.Array, draft: Draft) -> n.Array:
        """`prefixItems` and `items` of 2020-12 are `items` and `additionalItems` of earlier drafts."""
        items, prefix = schema.get("items"), schema.get("prefixItems")
        if draft >= Draft.V2020_12:
            if isinstance(items, dict) and not isinstance(prefix, list):
                return replace(array, every=self.node(items))
            return self._with_additional(self._with_tuple(array, prefix), items)
        rest = schema.get("additionalItems")
        if isinstance(items, dict | bool):
            array = replace(array, every=self.node(items))
            return array if rest is False else self._with_additional(array, rest)
        return self._with_additional(self._with_tuple(array, items), rest)

    def _with_tuple(self, array: n.Array, items: Json) -> n.Array:
        members = items if isinstance(items, list) else []
        return replace(array, tuple_=tuple(self.node(item) for item in members))

    def _with_additional(self, array: n.Array, rest: Json) -> n.Array:
        if isinstance(rest, dict):
            return replace(array, additional=self.node(rest))
        return replace(array, permits_additional=rest is not False)

    def _of_object(self, schema: Schema) -> n.Object:
        """An object with its properties, dependencies and content model."""
        draft = self._documents.draft(schema)
        rest, required = schema.get("additionalProperties"), schema.get("required")
        names = required if isinstance(required, list) else []
        node = n.Object(
            properties=self._named(schema, "properties"),
            required=frozenset(name for name in names if isinstance(name, str)),
            permits_additional=rest is not False,
            additional=self.node(rest) if isinstance(rest, dict) else None,
            unevaluated=self._optional(schema, "unevaluatedProperties") if draft >= Draft.V2019_09 else None,
            patterns=self._named(schema, "patternProperties"),
            max_properties=_number(schema, "maxProperties"),
            min_properties=_number(schema, "minProperties"),
        )
        split = draft >= Draft.V2019_09  # before, one keyword held both kinds of dependencies
        lists = _lists(schema, "dependentRequired" if split else "dependencies")
        schemas = self._named(schema, "dependentSchemas" if split else "dependencies")
        return replace(node, property_dependencies=lists, schema_dependencies=schemas)

    def _named(self, schema: Schema, keyword: str) -> dict[str, n.Node]:
        named = schema.get(keyword)
        members = named.items() if isinstance(named, dict) else ()
        return {name: self.node(inner) for name, inner in members if isinstance(inner, dict | bool)}

    def _optional(self, schema: Schema, keyword: str) -> n.Node | None:
        return self.node(schema[keyword]) if keyword in schema else None

    def _reference(self, schema: Schema, written: str) -> n.Reference:
        target, _ = self._documents.follow(schema, written)
        self._targets[id(target)] = target
        return n.Reference(id(target), written)


def _common(schema: Schema, draft: Draft) -> n.Common:
    """The keywords that any schema may have. Draft 4 wrote `id` without a dollar sign."""
    return n.Common(
        _string(schema, "id" if draft is Draft.V4 else "$id"),
        _string(schema, "title"),
        _string(schema, "description"),
        _text(schema["default"]) if "default" in schema else None,
        schema.get("connect.type") == "bytes",
    )


def _lists(schema: Schema, keyword: str) -> dict[str, frozenset[str]]:
    """The members of a keyword that are lists of names. Others are schemas, which `_named` reads."""
    named = schema.get(keyword)
    members = named.items() if isinstance(named, dict) else ()
    return {
        name: frozenset(text for text in texts if isinstance(text, str))
        for name, texts in members
        if isinstance(texts, list)
    }


def _number(schema: Schema, keyword: str) -> Decimal | None:
    value = schema.get(keyword)
    return Decimal(str(value)) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _string(schema: Schema, keyword: str) -> str | None:
    value = schema.get(keyword)
    return value if isinstance(value, str) else None


def _text(value: Json) -> str:
    """JSON text that is equal for equal values: 1.0 is 1, and the order of keys does not count."""
    return compact(_plain_numbers(value), sort_keys=True)


def _plain_numbers(value: Json) -> Json:
    """The value with 1 in place of 1.0, because JSON Schema calls both the same number."""
    match value:
        case float():
            return int(value) if value.is_integer() else value
        case list():
            return [_plain_numbers(item) for item in value]
        case dict():
            return {key: _plain_numbers(item) for key, item in value.items()}
        case _:
            return value
