"""The keywords of a JSON Schema that matter for a type: checked, intersected, and the type of a scalar;
and the targets of `$ref`.

The type of a text or number comes from its format, its bounds, and the annotations that Kafka Connect's converter
writes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import unquote, urljoin

from headgate.errors import similar_names
from headgate.schema import types as t
from headgate.schema.errors import DecimalTooWide, MalformedJsonSchema, UnknownReference
from headgate.schema.formats.avro.read import CONNECT_DECIMAL, CONNECT_TYPES, connect_decimal

Number = int | float
# Keywords that lead to alternatives. Most schemas have none, and are not searched for them.
_ALTERNATIVES = ("anyOf", "oneOf", "if", "dependentSchemas", "dependencies")
TYPES = frozenset(("null", "boolean", "integer", "number", "string", "array", "object"))


@dataclass(frozen=True, slots=True)
class Keywords:
    """What a schema requires. None means that it does not say. Sub-schemas stay as they are in the document.

    `title` and `description` are of the schema itself. `inner_title` and `inner_description` come from schemas that
    it refers to: they describe the type, not the field.
    """

    types: frozenset[str] | None = None
    enum: tuple[object, ...] | None = None
    lower: Number | None = None
    upper: Number | None = None
    format: str | None = None
    encoding: str | None = None
    digits: tuple[int, int] | None = None
    connect_type: str | None = None
    connect_parameters: Mapping[str, object] = field(default_factory=dict)
    properties: Mapping[str, object] | None = None
    required: frozenset[str] = frozenset()
    additional: object = None
    patterns: tuple[object, ...] = ()
    items: object = None
    is_tuple: bool = False
    unions: tuple[tuple[object, ...], ...] = ()
    title: str | None = None
    description: str | None = None
    inner_title: str | None = None
    inner_description: str | None = None


def keywords_of(schema: Mapping[str, object], path: str) -> Keywords:
    """The keywords of a schema without those of `$ref` and allOf."""
    enum = _list(schema, "enum", path)
    items = schema.get("items")
    return Keywords(
        types=_types(schema, path),
        enum=(schema["const"],) if "const" in schema else enum,
        lower=_bound(schema, "minimum", "exclusiveMinimum", 1, path),
        upper=_bound(schema, "maximum", "exclusiveMaximum", -1, path),
        format=_text(schema, "format"),
        encoding=_text(schema, "contentEncoding"),
        digits=_digits(schema),
        connect_type=_text(schema, "connect.type"),
        connect_parameters=_mapping(schema, "connect.parameters", path) or {},
        properties=_mapping(schema, "properties", path),
        required=_required(schema, path),
        additional=_schema(schema, "additionalProperties", path),
        patterns=tuple((_mapping(schema, "patternProperties", path) or {}).values()),
        items=None if isinstance(items, list) else _schema(schema, "items", path),
        is_tuple=isinstance(items, list) or "prefixItems" in schema,
        unions=_unions(schema, path),
        title=_text(schema, "title"),
        description=_text(schema, "description"),
    )


def intersect(outer: Keywords, inner: Keywords) -> Keywords | None:
    """What both schemas require, None if no value fits both. The docs of `outer` are those of the field."""
    types = _common_types(outer.types, inner.types)
    enum = _common_values(outer.enum, inner.enum)
    if types == frozenset() or enum == ():
        return None
    return replace(
        outer,
        types=types,
        enum=enum,
        lower=max((b for b in (outer.lower, inner.lower) if b is not None), default=None),
        upper=min((b for b in (outer.upper, inner.upper) if b is not None), default=None),
        format=outer.format or inner.format,
        encoding=outer.encoding or inner.encoding,
        digits=outer.digits or inner.digits,
        connect_type=outer.connect_type or inner.connect_type,
        connect_parameters=outer.connect_parameters or inner.connect_parameters,
        properties=_common_properties(outer.properties, inner.properties),
        required=outer.required | inner.required,
        additional=both(outer.additional, inner.additional),
        patterns=outer.patterns + inner.patterns,
        items=both(outer.items, inner.items),
        is_tuple=outer.is_tuple or inner.is_tuple,
        unions=outer.unions + inner.unions,
        inner_title=outer.inner_title or inner.title or inner.inner_title,
        inner_description=_first(outer.inner_description, inner.description, inner.inner_description),
    )


def both(one: object, other: object) -> object:
    """A schema for what both sub-schemas require. None is no schema."""
    if one is False or other is False:
        return False
    if one is None or one is True:
        return other if other is not None else one
    if other is None or other is True:
        return one
    docs = {key: one[key] for key in ("title", "description") if key in one} if isinstance(one, dict) else {}
    return {**docs, "allOf": [one, other]}


def _common_properties(
    one: Mapping[str, object] | None, other: Mapping[str, object] | None
) -> Mapping[str, object] | None:
    if one is None or other is None:
        return other if one is None else one
    merged = dict(one)
    for name, schema in other.items():
        merged[name] = both(merged.get(name), schema)
    return merged


def _common_types(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    """The types that both schemas allow. An integer is also a number."""
    if one is None or other is None:
        return other if one is None else one
    whole = {"integer"} if "integer" in one | other and "number" in one | other else set()
    return (one & other) | (whole if _numeric(one) and _numeric(other) else frozenset())


def _numeric(types: frozenset[str]) -> bool:
    return not types.isdisjoint(("integer", "number"))


def _common_values(one: tuple[object, ...] | None, other: tuple[object, ...] | None) -> tuple[object, ...] | None:
    """The values that both enums have. Python's 1 equals True, so types are compared too."""
    if one is None or other is None:
        return other if one is None else one
    return tuple(a for a in one if any(type(a) is type(b) and a == b for b in other))


def _types(schema: Mapping[str, object], path: str) -> frozenset[str] | None:
    """The JSON types that `type` names. OpenAPI's `nullable` adds null."""
    declared = schema.get("type")
    if declared is None:
        return None
    names = declared if isinstance(declared, list) else [declared]
    if not names or not all(isinstance(name, str) and name in TYPES for name in names):
        raise MalformedJsonSchema(path, "the type is not one that json has")
    return frozenset(names) | ({"null"} if schema.get("nullable") is True else frozenset())


def _bound(schema: Mapping[str, object], key: str, exclusive: str, step: int, path: str) -> Number | None:
    """The inclusive bound for whole numbers. In draft 4 the exclusive keyword is a flag, later it is a number."""
    bound, excluded = _number(schema, key, path), schema.get(exclusive)
    if isinstance(excluded, bool):
        return bound + step if bound is not None and excluded else bound
    other = _number(schema, exclusive, path)
    if other is None:
        return bound
    other = (math.floor(other) if step > 0 else math.ceil(other)) + step
    return other if bound is None else (max(bound, other) if step > 0 else min(bound, other))


def _number(schema: Mapping[str, object], key: str, path: str) -> Number | None:
    value = schema.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value in (math.inf, -math.inf):
        raise MalformedJsonSchema(path, f'"{key}" is not a number')
    return value


def _digits(schema: Mapping[str, object]) -> tuple[int, int] | None:
    precision, scale = schema.get("x-precision"), schema.get("x-scale", 0)
    return (precision, scale) if type(precision) is int and type(scale) is int and 0 <= scale <= precision else None


def _unions(schema: Mapping[str, object], path: str) -> tuple[tuple[object, ...], ...]:
    """Groups of alternatives. A value must match one of each group, and the rest of the schema."""
    if schema.keys().isdisjoint(_ALTERNATIVES):
        return ()
    groups = [group for key in ("anyOf", "oneOf") if (group := _list(schema, key, path)) is not None]
    if "if" in schema and ("then" in schema or "else" in schema):
        groups.append((schema.get("then", True), schema.get("else", True)))
    for key in ("dependentSchemas", "dependencies"):
        dependents = (_mapping(schema, key, path) or {}).values()
        groups.extend((True, dependent) for dependent in dependents if isinstance(dependent, dict))
    return tuple(groups)


def _required(schema: Mapping[str, object], path: str) -> frozenset[str]:
    names = schema.get("required", [])
    if isinstance(names, bool):  # in draft 3 it is a flag of the property
        return frozenset()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise MalformedJsonSchema(path, '"required" is not a list of names')
    return frozenset(names)


def _list(schema: Mapping[str, object], key: str, path: str) -> tuple[object, ...] | None:
    """The items of a keyword that needs at least one."""
    value = schema.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not value:
        raise MalformedJsonSchema(path, f'"{key}" is not a list with something in it')
    return tuple(value)


def _mapping(schema: Mapping[str, object], key: str, path: str) -> Mapping[str, object] | None:
    value = schema.get(key)
    if value is not None and not isinstance(value, dict):
        raise MalformedJsonSchema(path, f'"{key}" is not an object')
    return value


def _schema(schema: Mapping[str, object], key: str, path: str) -> object:
    value = schema.get(key)
    if value is not None and not isinstance(value, dict | bool):
        raise MalformedJsonSchema(path, f'"{key}" is not a schema')
    return value


def _text(schema: Mapping[str, object], key: str) -> str | None:
    value = schema.get(key)
    return value if isinstance(value, str) else None


def _first(*docs: str | None) -> str | None:
    return next((doc for doc in docs if doc is not None), None)


# Formats that are types of ours. Any other format is only an annotation.
_BY_FORMAT: Mapping[str, t.Type] = {
    "date": t.Date(),
    "time": t.Time(),
    "time-local": t.Time(),
    "date-time": t.TimestampTz(),
    "date-time-local": t.Timestamp(),
    "uuid": t.Uuid(),
    "byte": t.Bytes(),
    "integer": t.Decimal(t.MAX_PRECISION, 0),
    "number": t.Decimal(),
}

# Connect names its logical types in the title.
_CONNECT_TEXTS = {name: type_ for (kind, name), type_ in CONNECT_TYPES.items() if kind == "string"}
_CONNECT_INTEGERS = {name: type_ for (kind, name), type_ in CONNECT_TYPES.items() if kind != "string"}
LOGICAL_TITLES = frozenset((*_CONNECT_INTEGERS, *_CONNECT_TEXTS, CONNECT_DECIMAL))


def text_type(keywords: Keywords, path: str) -> t.Type:
    """The type of a text, by its encoding, format and title."""
    if keywords.encoding == "base64" or keywords.connect_type == "bytes":
        return t.Bytes()
    if keywords.format == "number" and keywords.digits is not None:
        return _decimal(*keywords.digits, path)
    return _CONNECT_TEXTS.get(title(keywords)) or _BY_FORMAT.get(keywords.format or "") or t.Text()


def number_type(keywords: Keywords, path: str) -> t.Type:
    """The type of a number that need not be whole. JSON Schema sets no bounds, so it is a double."""
    if title(keywords) == CONNECT_DECIMAL:
        precision, scale = connect_decimal({"connect.parameters": keywords.connect_parameters})
        return _decimal(t.MAX_PRECISION if precision is None else precision, scale or 0, path)
    return t.Real() if keywords.connect_type == "float32" or keywords.format == "float" else t.Double()


def integer_type(keywords: Keywords, path: str) -> t.Type:
    """Integer if the bounds or an annotation say so, decimal if the bounds go beyond 64 bits, otherwise bigint."""
    logical = _CONNECT_INTEGERS.get(title(keywords))
    if logical is not None:
        return logical
    if keywords.connect_type in ("int8", "int16", "int32") or keywords.format == "int32":
        return t.Integer()
    lower, upper = keywords.lower, keywords.upper
    if lower is not None and upper is not None and lower >= -(2**31) and upper < 2**31:
        return t.Integer()
    beyond = [bound for bound in (lower, upper) if bound is not None and not -(2**63) <= bound < 2**63]
    # A lower bound above the largest bigint, or an upper bound below the smallest one, needs a decimal as well.
    return (
        _decimal(max(_digits_of_bound(bound) for bound in beyond), 0, path, at_least=t.MAX_PRECISION)
        if beyond
        else t.Bigint()
    )


def enum_type(values: Sequence[object], keywords: Keywords, path: str) -> t.Type:
    """The type of fixed values that are not all texts."""
    if all(isinstance(value, bool) for value in values):
        return t.Boolean()
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(values):
        return t.Json()
    if all(isinstance(number, int) or number.is_integer() for number in numbers):
        return integer_type(Keywords(lower=min(numbers), upper=max(numbers)), path)
    return number_type(keywords, path)


def title(keywords: Keywords) -> str:
    return keywords.title or keywords.inner_title or ""


def _digits_of_bound(bound: Number) -> int:
    return len(str(min(abs(int(bound)), 10**99)))  # Python refuses to print integers of thousands of digits


def _decimal(precision: int, scale: int, path: str, at_least: int = 1) -> t.Decimal:
    """A decimal with these digits. Raises DecimalTooWide."""
    if precision > t.MAX_PRECISION:
        raise DecimalTooWide(path, precision)
    return t.Decimal(max(precision, scale, at_least), scale)


# References

FORMAT = "json schema"

# Under these keywords are values, in which `$ref` and `$id` are data.
_DATA = frozenset(("enum", "const", "default", "examples", "example"))


class References:
    """Every document that a `$ref` can reach. A reference is relative to the `$id` of the schema around it."""

    def __init__(self, root: object, documents: Mapping[str, object]) -> None:
        self._by_address: dict[str, object] = {}
        self._by_anchor: dict[tuple[str, str], object] = {}
        self._bases: dict[int, str] = {}  # by identity of the node that holds a $ref; the documents keep it alive
        self._keep = (root, documents)
        for address, document in (("", root), *documents.items()):
            self._by_address[address] = document
            self._index(document, address)

    def find(self, node: Mapping[str, object], reference: str, path: str) -> object:
        """The schema that a node's reference means. Raises UnknownReference."""
        base = self._bases.get(id(node), "")
        target = _join_address(base, reference, path)
        address, _, fragment = target.partition("#")
        document = self._by_address.get(address)
        if document is None:  # a registry gives documents by the text of the reference
            address = reference.partition("#")[0]
            document = self._by_address.get(address)
        if document is None:
            known = [name for name in self._by_address if name]
            raise UnknownReference(FORMAT, path, reference, similar_names(reference, known))
        if fragment and not fragment.startswith("/"):
            return self._anchor(address, unquote(fragment), reference, path)
        return _follow(document, unquote(fragment), reference, path)

    def _anchor(self, address: str, anchor: str, reference: str, path: str) -> object:
        if (address, anchor) not in self._by_anchor:
            known = [name for _, name in self._by_anchor]
            raise UnknownReference(FORMAT, path, reference, similar_names(anchor, known))
        return self._by_anchor[address, anchor]

    def _index(self, document: object, address: str) -> None:
        """Record the addresses and anchors of all nodes of a document."""
        waiting = [(document, address)]
        while waiting:
            node, base = waiting.pop()
            if isinstance(node, dict):
                base = self._enter(node, base)
                waiting.extend(
                    (value, base) for key, value in node.items() if key not in _DATA or isinstance(value, dict)
                )
            elif isinstance(node, list):
                waiting.extend((value, base) for value in node)

    def _enter(self, node: Mapping[str, object], base: str) -> str:
        """Record the node's address and anchors. Returns the base address of what is inside it."""
        for key in ("$id", "id"):
            own = node.get(key)
            if isinstance(own, str) and own.startswith("#"):
                self._by_anchor.setdefault((base, own[1:]), node)
            elif isinstance(own, str) and own:
                base = _join_address(base, own, "$").partition("#")[0]
                self._by_address.setdefault(base, node)
        for key in ("$anchor", "$dynamicAnchor"):
            anchor = node.get(key)
            if isinstance(anchor, str):
                self._by_anchor.setdefault((base, anchor), node)
        if base and not node.keys().isdisjoint(("$ref", "$dynamicRef", "$recursiveRef")):
            self._bases[id(node)] = base
        return base


def _join_address(base: str, reference: str, path: str) -> str:
    if reference.startswith("#"):  # urljoin drops a base whose scheme it does not know, such as urn
        return base + reference
    try:
        return urljoin(base, reference)
    except ValueError:
        raise MalformedJsonSchema(path, "the reference is not an address") from None


def _follow(document: object, pointer: str, reference: str, path: str) -> object:
    """The node that a JSON pointer leads to."""
    node = document
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isascii() and key.isdigit() and int(key[:9]) < len(node):
            node = node[int(key[:9])]
        else:
            known = list(node) if isinstance(node, dict) else []
            raise UnknownReference(FORMAT, path, reference, similar_names(key, known))
    return node
