"""What a JSON Schema says about the documents of a type beyond the type: which properties without a value are left out, and which
values are refused. `shape_of` raises NotPlain if the schema says anything that Spark cannot check exactly as a validator does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, functions as F

from headgate.runtime.formats.write_checks import Place, Problem, json_schema_rule
from headgate.schema import types as t
from headgate.schema.errors import MalformedJsonSchema
from headgate.schema.formats.jsonschema.keywords import FORMAT, TYPES, References
from headgate.schema.names import ROOT, element_path, field_path, value_path
from headgate.schema.values import BITS, fits_bits
from headgate.schema.written import WrittenSchema, load_document

_DOCS = frozenset(
    {"$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$defs", "definitions"}
)  # fmt: skip
_CONNECT = ("connect.", "x-")  # keywords of Kafka Connect and of ours: no validator knows them
# Drafts before 2019-09 check formats. Validators of ours do not check these.
_ANNOTATING_DRAFTS = ("2019-09", "2020-12")
UNCHECKED_FORMATS = frozenset(
    {"date", "time", "date-time", "date-time-local", "uuid", "number", "float", "double", "int32", "int64", "byte"}
)
_MOMENTS = (t.Date, t.Time, t.Timestamp, t.TimestampTz)
_IN_TEXTS = (t.Text, t.Bytes, t.Uuid, t.Decimal, *_MOMENTS)

Fails = Callable[[Any, Any], Any]
_NUMBERS: Mapping[str, Fails] = {
    "minimum": operator.lt, "maximum": operator.gt, "exclusiveMinimum": operator.le, "exclusiveMaximum": operator.ge,
}  # fmt: skip
_LENGTHS: Mapping[str, Fails] = {"minLength": operator.lt, "maxLength": operator.gt}
_COUNTS: Mapping[str, Fails] = {"minItems": operator.lt, "maxItems": operator.gt}


class NotPlain(Exception):
    """The schema says something that only a validator can check."""


@dataclass(slots=True)
class Shape:
    """``left_out`` are the paths of properties that are left out if they have no value; others are null. ``problems`` are the
    conditions under which a value is refused, by its path."""

    left_out: set[str] = field(default_factory=set)
    problems: dict[str, tuple[Problem, ...]] = field(default_factory=dict)

    def rule(self, place: Place) -> Iterator[Problem]:
        """What cannot be written at a place."""
        yield from json_schema_rule(place)
        yield from self.problems.get(place.path, ())


def shape_of(schema: WrittenSchema, type_: t.Type) -> Shape:
    """The shape of documents of the type that the schema has. Raises NotPlain."""
    documents = {name: load_document(text, FORMAT, MalformedJsonSchema) for name, text in schema.references}
    root = load_document(schema.text, FORMAT, MalformedJsonSchema)
    walk = _Walk(root, documents)
    walk.value(root, type_, ROOT)
    return walk.shape


class _Walk:
    """Goes through a schema and its type together, and fills the shape."""

    def __init__(self, root: Any, documents: Mapping[str, Any]) -> None:
        self.shape = Shape()
        self._references = References(root, documents)
        self._draft = root.get("$schema", "") if isinstance(root, dict) else ""
        self._roots = frozenset(map(id, (root, *documents.values())))

    def value(self, node: Any, type_: t.Type, path: str) -> None:
        """A schema of values of the type, some of which may be null."""
        node = self._resolved(node)
        match type_:
            case t.Record():
                self._record(node, type_, path)
            case t.Array(element):
                self._check(node, {"array"}, "items", *_COUNTS)
                self._refuse(path, _sizes(node, _COUNTS, F.size))
                self.value(node.get("items"), element, element_path(path))
            case t.Map(value):
                self._check(node, {"object"}, "additionalProperties")
                self.value(node.get("additionalProperties"), value, value_path(path))
            case _:
                self._scalar(node, type_, path)

    def _record(self, node: Mapping[str, Any], type_: t.Record, path: str) -> None:
        # Only named properties are written, so that it does not matter what else the schema allows.
        self._check(node, {"object"}, "properties", "required", "additionalProperties")
        properties, required = node.get("properties", {}), node.get("required", ())
        if not {*required} <= properties.keys() or {f.name for f in type_.fields} != properties.keys():
            raise NotPlain
        for each in type_.fields:
            inner, at = properties[each.name], field_path(path, each.name)
            nullable = self._accepts_null(inner)
            if isinstance(inner, dict) and inner.get("default", ...) is None and not nullable:
                raise NotPlain
            if isinstance(inner, dict) and inner.get("default") is not None and each.default is None:
                raise NotPlain
            if each.nullable and not nullable:
                self.shape.left_out.add(at)
            self.value(inner, each.type, at)

    def _scalar(self, node: Mapping[str, Any], type_: t.Type, path: str) -> None:
        match type_:
            case t.Boolean():
                self._check(node, {"boolean"})
            case t.Integer() | t.Bigint():
                self._check(node, {"integer"}, "format", "multipleOf", *_NUMBERS)
                self._refuse(path, _whole_bounds(node, type_))
            case t.Double():
                self._check(node, {"number"}, "format", *_NUMBERS)
                self._refuse(path, _double_bounds(node))
            case t.Real():
                self._check(node, {"number"}, "format")
            case t.Text():
                self._check(node, {"string"}, "format", *_LENGTHS)
                self._refuse(path, _sizes(node, _LENGTHS, F.length))
            case t.Enum(symbols):
                self._check(node, {"string"}, "enum", "const")
                if {*_fixed_values(node)} - {None} != {*symbols}:
                    raise NotPlain
            case t.Json():
                self._check(node, {"object", "array", "string", "number", "boolean"})
            case _ if isinstance(type_, _IN_TEXTS):
                self._check(node, {"string"}, "format", *(("contentEncoding",) if isinstance(type_, t.Bytes) else ()))
            case _:
                raise NotPlain

    def _refuse(self, path: str, problems: Iterator[Problem]) -> None:
        if found := tuple(problems):
            self.shape.problems[path] = found

    # schemas

    def _check(self, node: Mapping[str, Any], kinds: set[str], *known: str) -> None:
        """Raises NotPlain if the schema has other types or keywords than these."""
        types = _types(node) - {"null"}
        if types - ({"integer"} if "number" in types else set()) != kinds and not {"enum", "const"} & node.keys():
            raise NotPlain
        self._check_keywords(node, "type", *known)
        checked = self._draft and not any(draft in self._draft for draft in _ANNOTATING_DRAFTS)
        if checked and node.get("format", "date") not in UNCHECKED_FORMATS:
            raise NotPlain

    def _check_keywords(self, node: Mapping[str, Any], *known: str) -> None:
        own = ("$schema", "$id") if id(node) in self._roots else ()
        for key in node.keys() - _DOCS - {*known, *own}:
            if not key.startswith(_CONNECT):
                raise NotPlain
        if node.get("$schema", self._draft) != self._draft:
            raise NotPlain

    def _resolved(self, node: Any) -> Mapping[str, Any]:
        """The schema that a node stands for: behind `$ref`, an `allOf` of one, and the null of a choice."""
        while True:
            if node is True:
                return {}
            if not isinstance(node, dict):
                raise NotPlain
            keyword, inner = self._inner(node)
            if keyword is None:
                return node
            self._check_keywords(node, keyword)
            if isinstance(inner, dict) and "default" in inner:
                raise NotPlain
            node = inner

    def _inner(self, node: Mapping[str, Any]) -> tuple[str | None, Any]:
        """The keyword that leads to another schema, and that schema."""
        if "$ref" in node:
            return "$ref", self._references.find(node, node["$ref"], ROOT)
        if "allOf" in node:
            if len(node["allOf"]) != 1:
                raise NotPlain
            return "allOf", node["allOf"][0]
        for keyword in ("oneOf", "anyOf"):
            if keyword in node:
                others = [one for one in node[keyword] if not _is_null(one)]
                if len(node[keyword]) != 2 or len(others) != 1 or self._accepts_null(others[0]):
                    raise NotPlain
                return keyword, others[0]
        return None, None

    def _accepts_null(self, node: Any) -> bool:
        if not isinstance(node, dict):
            return node is True
        keyword, inner = self._inner(node)
        match keyword:
            case None:
                return "null" in _types(node) and None in _fixed_values(node, None)
            case "oneOf" | "anyOf":
                return True
            case _:
                return self._accepts_null(inner)


def _types(node: Mapping[str, Any]) -> frozenset[str]:
    kinds = node.get("type", TYPES)
    return frozenset((kinds,)) if isinstance(kinds, str) else frozenset(kinds)


def _fixed_values(node: Mapping[str, Any], *otherwise: Any) -> tuple[Any, ...]:
    """The values that `const` or `enum` allow."""
    return (node["const"],) if "const" in node else tuple(node.get("enum", otherwise))


def _is_null(node: Any) -> bool:
    return isinstance(node, dict) and node.keys() - _DOCS == {"type"} and node["type"] == "null"


# bounds


def _whole_bounds(node: Mapping[str, Any], type_: t.Type) -> Iterator[Problem]:
    for keyword, fails in _NUMBERS.items():
        if keyword in node:
            bound = _whole(node[keyword])
            smallest, largest = -(1 << BITS[type(type_)] - 1), (1 << BITS[type(type_)] - 1) - 1
            if fails(smallest, bound) or fails(largest, bound):  # otherwise every value of the type is within it
                yield _refused(keyword, fails, bound)
    if "multipleOf" in node:
        divisor = _whole(node["multipleOf"])
        if divisor <= 0:
            raise NotPlain
        yield (lambda value: value % F.lit(divisor) != 0), _reason("multipleOf")


def _double_bounds(node: Mapping[str, Any]) -> Iterator[Problem]:
    for keyword, fails in _NUMBERS.items():
        if keyword in node:
            bound = node[keyword]
            if isinstance(bound, bool) or float(bound) != bound:
                raise NotPlain
            yield _refused(keyword, fails, float(bound))


def _sizes(
    node: Mapping[str, Any], keywords: Mapping[str, Fails], size: Callable[[Column], Column]
) -> Iterator[Problem]:
    for keyword, fails in keywords.items():
        if keyword in node:
            yield _refused(keyword, fails, _whole(node[keyword]), size)


def _refused(
    keyword: str, fails: Fails, bound: float, measured: Callable[[Column], Column] = lambda value: value
) -> Problem:
    return (lambda value: value.isNotNull() & fails(measured(value), F.lit(bound))), _reason(keyword)


def _whole(bound: Any) -> int:
    if isinstance(bound, bool) or int(bound) != bound or not fits_bits(int(bound), 64):
        raise NotPlain
    return int(bound)


def _reason(keyword: str) -> str:
    return f"the schema refuses it by {keyword}"
