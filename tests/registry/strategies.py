"""Hypothesis strategies for pairs of schemas: one version and what somebody made of it, sound or not.

Half of what a person does to a schema is compatible, so a pair is made by evolving one schema at random places, and
now and then of two schemas that have nothing in common. Everything made here is a well-formed schema.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TypeAlias

from hypothesis import strategies as st

from headgate.schema.formats.avro import parse as avro
from headgate.schema.formats.avro.tree import Array, AvroType, Enum, Fixed, Map, Primitive, Record, Union
from headgate.schema.written import Json

Pair: TypeAlias = tuple[Json, Json]

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DEFAULTS: dict[str, Json] = {
    "null": None,
    "boolean": True,
    "int": 7,
    "long": 7,
    "float": 0.5,
    "double": 0.5,
    "bytes": "\u00ff",
    "string": "x",
}
FIELD_NAMES = ("a", "b", "c", "d")
SYMBOLS = ("RED", "GREEN", "BLUE")
_MORE = st.sampled_from((True, True, False))


# Avro


@st.composite
def avro_schemas(draw: st.DrawFn) -> Json:
    return draw(_avro_types(_Names(), 3))


@st.composite
def avro_pairs(draw: st.DrawFn) -> Pair:
    """A reader and a writer."""
    writer = draw(avro_schemas())
    if draw(st.integers(0, 9)) == 0:
        return draw(avro_schemas()), writer
    reader = draw(_evolved_avro(writer))
    # A definition may be lost whose name is used further on.
    return (writer if avro.parse(reader).faults else reader), writer


@dataclass(slots=True)
class _Names:
    """How many names are given away, and which of them are complete types that others may use."""

    given: int = 0
    complete: list[str] = field(default_factory=list)

    def new(self, letter: str) -> str:
        """Full names, because libraries do not agree on what a simple one means inside a namespace."""
        self.given += 1
        return f"{'one' if self.given % 3 else 'two'}.{letter}{self.given}"


def _avro_types(names: _Names, depth: int) -> st.SearchStrategy[Json]:
    kinds = ["primitive"] * 3 + ["enum", "fixed"]
    kinds += ["record"] * 3 + ["array", "map", "union"] if depth else []
    kinds += ["name"] if names.complete else []
    return st.sampled_from(kinds).flatmap(lambda kind: _avro_type(kind, names, depth))


@st.composite
def _avro_type(draw: st.DrawFn, kind: str, names: _Names, depth: int) -> Json:
    match kind:
        case "primitive":
            return draw(st.sampled_from(PRIMITIVES))
        case "name":
            return draw(st.sampled_from(names.complete))
        case "array":
            return {"type": "array", "items": draw(_avro_types(names, depth - 1))}
        case "map":
            return {"type": "map", "values": draw(_avro_types(names, depth - 1))}
        case "union":
            return draw(_avro_unions(names, depth - 1))
        case "enum":
            symbols = draw(st.lists(st.sampled_from(SYMBOLS), min_size=1, unique=True))
            default = {"default": draw(st.sampled_from(symbols))} if draw(st.booleans()) else {}
            names.complete.append(names.new("E"))
            return {"type": "enum", "name": names.complete[-1], "symbols": [*symbols], **default}
        case "fixed":
            names.complete.append(names.new("F"))
            return {"type": "fixed", "name": names.complete[-1], "size": draw(st.integers(1, 3))}
        case _:
            return draw(_avro_records(names, depth - 1))


@st.composite
def _avro_records(draw: st.DrawFn, names: _Names, depth: int) -> Json:
    name = names.new("R")
    field_names = draw(st.lists(st.sampled_from(FIELD_NAMES), min_size=1, max_size=3, unique=True))
    fields = [draw(_avro_fields(field_name, names, depth)) for field_name in field_names]
    if draw(st.integers(0, 3)) == 0:
        fields.append({"name": "next", "type": ["null", name], "default": None})
    names.complete.append(name)
    return {"type": "record", "name": name, "fields": fields}


@st.composite
def _avro_fields(draw: st.DrawFn, name: str, names: _Names, depth: int) -> Json:
    type_ = draw(_avro_types(names, depth))
    if isinstance(type_, str) and type_ in DEFAULTS and draw(st.booleans()):
        return {"name": name, "type": type_, "default": DEFAULTS[type_]}
    return {"name": name, "type": type_}


@st.composite
def _avro_unions(draw: st.DrawFn, names: _Names, depth: int) -> Json:
    branches: list[Json] = [*draw(st.lists(st.sampled_from(PRIMITIVES), min_size=1, max_size=3, unique=True))]
    if draw(st.booleans()):
        more = draw(_avro_type("record" if depth else "enum", names, max(depth, 1)))
        branches.append(more)
    return branches


@st.composite
def _evolved_avro(draw: st.DrawFn, schema: Json) -> Json:
    """The same schema after a few edits, each at a random node."""
    for _ in range(draw(st.integers(1, 3))):
        schema = draw(_edited_avro(schema))
    return schema


@st.composite
def _edited_avro(draw: st.DrawFn, schema: Json) -> Json:
    inner = _inner_avro(schema)
    goes_in: bool = draw(_MORE)
    if inner and goes_in:
        path, child = draw(st.sampled_from(inner))
        return _replaced(schema, path, draw(_edited_avro(child)))
    match schema:
        case str() if schema in PRIMITIVES:
            optional: Json = ["null", schema] if schema != "null" else "string"
            return draw(st.sampled_from([*PRIMITIVES, optional]))
        case list():
            return draw(st.sampled_from(_edited_union(schema)))
        case dict():
            return draw(_edited_complex(schema))
        case _:
            return schema


@st.composite
def _edited_complex(draw: st.DrawFn, schema: dict[str, Json]) -> Json:
    fields, inner = schema.get("fields"), schema.get("items", schema.get("values"))
    if isinstance(fields, list):
        return draw(_edited_record(schema, fields))
    match schema["type"]:
        case "enum":
            symbols = draw(st.lists(st.sampled_from(SYMBOLS), min_size=1, unique=True))
            return {"type": "enum", "name": schema["name"], "symbols": [*symbols]}
        case "fixed":
            return {**schema, "size": draw(st.integers(1, 3))}
        case "array":
            return draw(st.sampled_from((inner, {"type": "map", "values": inner})))
        case _:
            return draw(st.sampled_from((inner, {"type": "array", "items": inner})))


def _edited_union(branches: list[Json]) -> list[Json]:
    shorter: list[Json] = [branches[:i] + branches[i + 1 :] for i in range(len(branches)) if len(branches) > 1]
    longer: list[Json] = [[*branches, name] for name in PRIMITIVES if name not in branches]
    return [*shorter, *longer, branches[::-1], branches[0]]


@st.composite
def _edited_record(draw: st.DrawFn, record: dict[str, Json], fields: list[Json]) -> Json:
    name = str(record["name"])
    edits = ("drop", "add", "add", "rename field", "rename", "alias", "swap") if fields else ("add",)
    match draw(st.sampled_from(edits)):
        case "drop":
            gone = draw(st.integers(0, len(fields) - 1))
            return {**record, "fields": fields[:gone] + fields[gone + 1 :]}
        case "add":
            taken = {field["name"] for field in fields if isinstance(field, dict)}
            free = [field_name for field_name in FIELD_NAMES if field_name not in taken]
            return {**record, "fields": [*fields, *[draw(_avro_fields(n, _Names(90), 0)) for n in free[:1]]]}
        case "rename field":
            at = draw(st.integers(0, len(fields) - 1))
            field = fields[at]
            assert isinstance(field, dict)
            renamed = {**field, "name": "z", "aliases": [field["name"]]}
            return {**record, "fields": [*fields[:at], renamed, *fields[at + 1 :]]}
        case "rename":
            return {**record, "name": f"{name}x"}
        case "alias":
            return {**record, "name": f"{name}x", "aliases": [name]}
        case _:
            return {**record, "fields": fields[::-1]}


def _inner_avro(schema: Json) -> list[tuple[tuple[str | int, ...], Json]]:
    match schema:
        case list():
            return [((index,), branch) for index, branch in enumerate(schema)]
        case {"type": "record", "fields": list(fields)}:
            return [
                (("fields", index, "type"), field["type"])
                for index, field in enumerate(fields)
                if isinstance(field, dict) and "default" not in field
            ]
        case {"type": "array", "items": items}:
            return [(("items",), items)]
        case {"type": "map", "values": values}:
            return [(("values",), values)]
        case _:
            return []


def avro_values(node: AvroType, depth: int = 4) -> st.SearchStrategy[object]:
    """Values that fastavro writes as ``node``. Records end at ``depth`` where a union or a collection lets them."""
    match node:
        case Primitive():
            return _PRIMITIVE_VALUES[node.kind]
        case Fixed():
            return st.binary(min_size=node.size, max_size=node.size)
        case Enum():
            return st.sampled_from(node.symbols)
        case Array():
            return st.lists(st.deferred(lambda: avro_values(node.items, depth - 1)), max_size=2 if depth else 0)
        case Map():
            inner = st.deferred(lambda: avro_values(node.values, depth - 1))
            return st.dictionaries(st.text(max_size=2), inner, max_size=2 if depth else 0)
        case Union():
            open_branches = node.branches if depth > 0 else node.branches[:1]
            return st.one_of([avro_values(branch, depth - 1) for branch in open_branches])
        case Record():
            return st.fixed_dictionaries({f.name: avro_values(f.type, depth - 1) for f in node.fields})


_PRIMITIVE_VALUES: dict[str, st.SearchStrategy[object]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    # ASCII, because a reader may want text where bytes were written, and text is UTF-8.
    "bytes": st.text(st.characters(max_codepoint=127), max_size=3).map(str.encode),
    "string": st.text(max_size=3),
}


# JSON Schema


@st.composite
def json_schemas(draw: st.DrawFn, *, is_closed: bool = True, depth: int = 2) -> Json:
    """Schemas whose instances :func:`json_instances` can make. ``is_closed``: objects name all their properties."""
    kinds = ["string", "number", "integer", "boolean", "null", "enum"]
    kinds += ["object", "object", "object", "array", "tuple", "types", "anyOf", "oneOf"] if depth else []
    return draw(_json_schema(draw(st.sampled_from(kinds)), is_closed, depth))


@st.composite
def json_pairs(draw: st.DrawFn, *, is_closed: bool = True) -> Pair:
    """A newer version and an older one."""
    old = draw(json_schemas(is_closed=is_closed))
    if draw(st.integers(0, 9)) == 0:
        return draw(json_schemas(is_closed=is_closed)), old
    new = old
    for _ in range(draw(st.integers(1, 3))):
        new = draw(_edited_json(new, is_closed))
    return new, old


@st.composite
def _json_schema(draw: st.DrawFn, kind: str, is_closed: bool, depth: int) -> Json:
    inner = json_schemas(is_closed=is_closed, depth=depth - 1)
    match kind:
        case "string":
            return {"type": "string", **draw(_limits("minLength", "maxLength"))}
        case "number" | "integer":
            multiple: dict[str, Json] = {"multipleOf": draw(st.sampled_from((1, 2, 4)))}
            bounds = draw(st.sampled_from((("minimum", "maximum"), ("exclusiveMinimum", "exclusiveMaximum"))))
            return {"type": kind, **draw(_limits(*bounds)), **(multiple if draw(st.booleans()) else {})}
        case "enum":
            values: list[Json] = ["x", "y", 1, None, True]
            return {"enum": [*draw(st.lists(st.sampled_from(values), min_size=1, unique_by=repr))]}
        case "object":
            return draw(_json_object(is_closed, depth))
        case "array":
            return {"type": "array", "items": draw(inner), **draw(_limits("minItems", "maxItems"))}
        case "tuple":
            items: list[Json] = [*draw(st.lists(inner, min_size=1, max_size=2))]
            rest: Json = False if draw(st.booleans()) else draw(inner)
            return {"type": "array", "items": items, "additionalItems": rest}
        case "types":
            names = st.lists(st.sampled_from(("string", "integer", "boolean", "null")), min_size=1, unique=True)
            return _of_types(draw(names), draw(_limits("minLength", "maxLength")))
        case "anyOf" | "oneOf":
            return {kind: [*draw(st.lists(inner, min_size=1, max_size=3))]}
        case _:
            return {"type": kind}


def _of_types(names: list[str], limits: dict[str, Json]) -> Json:
    """Limits of text only where text may be: beside other types, Confluent takes them for a string of their own."""
    return {**(limits if "string" in names else {}), "type": [*names]}


@st.composite
def _json_object(draw: st.DrawFn, is_closed: bool, depth: int) -> Json:
    inner = json_schemas(is_closed=is_closed, depth=depth - 1)
    properties: dict[str, Json] = {**draw(st.dictionaries(st.sampled_from(FIELD_NAMES), inner, max_size=3))}
    required = [name for name in properties if draw(st.booleans())]
    schema: dict[str, Json] = {"type": "object", "properties": properties, "required": [*required]}
    return {**schema, "additionalProperties": False} if is_closed else schema


@st.composite
def _limits(draw: st.DrawFn, low: str, high: str) -> dict[str, Json]:
    limits: dict[str, Json] = {low: 1 + draw(st.integers(0, 1)), high: 4 + draw(st.integers(0, 4))}
    return {key: limits[key] for key in limits if draw(st.booleans())}


@st.composite
def _edited_json(draw: st.DrawFn, schema: Json, is_closed: bool) -> Json:
    inner = _inner_json(schema)
    goes_in: bool = draw(_MORE)
    if inner and goes_in:
        path, child = draw(st.sampled_from(inner))
        return _replaced(schema, path, draw(_edited_json(child, is_closed)))
    if not isinstance(schema, dict):
        return schema
    members = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(members, list):
        more = draw(json_schemas(is_closed=is_closed, depth=0))
        choices: list[Json] = [members[:1], members[::-1], [*members, more]]
        return {draw(st.sampled_from(("anyOf", "oneOf"))): draw(st.sampled_from(choices))}
    return draw(_edited_plain(schema, is_closed))


@st.composite
def _edited_plain(draw: st.DrawFn, schema: dict[str, Json], is_closed: bool) -> Json:
    values, kind, properties = schema.get("enum"), schema.get("type"), schema.get("properties")
    choices: list[Json] = [schema]
    if isinstance(values, list):
        choices = [{"enum": [*values, "z"] if "z" not in values else values}, {"enum": values[:1]}]
    elif isinstance(properties, dict):
        choices = [draw(_edited_object(schema, properties, is_closed))]
    elif isinstance(kind, list):
        names = [*map(str, kind)]
        choices = [_of_types(names[:1], schema), _of_types([*dict.fromkeys(("null", *names))], schema)]
    elif isinstance(kind, str):
        choices = [*_loosened(schema, kind), {"anyOf": [schema, {"type": "null"}]}]
    return draw(st.sampled_from(choices))


def _loosened(schema: dict[str, Json], kind: str) -> list[Json]:
    """The schema with one keyword less, or one limit moved up or down."""
    limits = [key for key, value in schema.items() if isinstance(value, int) and not isinstance(value, bool)]
    fewer: list[Json] = [{key: schema[key] for key in schema if key != gone} for gone in limits]
    moved: list[Json] = []
    for key in limits:
        value = schema[key]
        assert isinstance(value, int)
        moved += [{**schema, key: value * 2}, {**schema, key: max(1, value - 1)}]
    wider: list[Json] = [{**schema, "type": "number"}] if kind == "integer" else []
    return [*fewer, *moved, *wider, True, {"type": "string"}]


@st.composite
def _edited_object(draw: st.DrawFn, schema: dict[str, Json], properties: dict[str, Json], is_closed: bool) -> Json:
    required = _required(schema)
    edit = draw(st.sampled_from(("drop", "add", "add", "require", "release")))
    if edit == "add":
        free = [name for name in FIELD_NAMES if name not in properties][:1]
        added = {name: draw(json_schemas(is_closed=is_closed, depth=0)) for name in free}
        demand = [*free] if draw(st.integers(0, 3)) == 0 else []
        return {**schema, "properties": {**properties, **added}, "required": [*required, *demand]}
    if edit == "release" or not properties:
        return {**schema, "required": [*required[:-1]]}
    name = draw(st.sampled_from(sorted(properties)))
    if edit == "require":
        return {**schema, "required": [*dict.fromkeys((*required, name))]}
    rest = {key: properties[key] for key in properties if key != name}
    return {**schema, "properties": rest, "required": [key for key in required if key != name]}


def _inner_json(schema: Json) -> list[tuple[tuple[str | int, ...], Json]]:
    if not isinstance(schema, dict):
        return []
    found: list[tuple[tuple[str | int, ...], Json]] = []
    for keyword in ("items", "anyOf", "oneOf"):
        match schema.get(keyword):
            case list() as members:
                found += [((keyword, index), member) for index, member in enumerate(members)]
            case dict() as one:
                found.append(((keyword,), one))
    properties = schema.get("properties")
    for name, member in properties.items() if isinstance(properties, dict) else ():
        found.append((("properties", name), member))
    return found


def json_instances(schema: Json) -> st.SearchStrategy[Json]:
    """Values that mostly satisfy a schema made by :func:`json_schemas`; ask a validator before relying on it."""
    if not isinstance(schema, dict):
        return st.one_of([_of_json_type(kind) for kind in ("string", "integer", "null")])
    values, members = schema.get("enum"), schema.get("anyOf", schema.get("oneOf"))
    kind, properties = schema.get("type"), schema.get("properties")
    if isinstance(values, list):
        return st.sampled_from(values)
    if isinstance(members, list):
        return st.one_of([json_instances(member) for member in members])
    if isinstance(properties, dict):
        inner = {name: json_instances(value) for name, value in properties.items()}
        needed = {name: inner[name] for name in inner if name in _required(schema)}
        optional = {name: inner[name] for name in inner if name not in needed}
        return st.fixed_dictionaries(needed, optional=optional).map(lambda made: {**made})
    if kind == "array":
        return _json_arrays(schema)
    return st.one_of([_of_json_type(str(name)) for name in (kind if isinstance(kind, list) else [kind])])


def _json_arrays(schema: dict[str, Json]) -> st.SearchStrategy[Json]:
    items, rest = schema["items"], schema.get("additionalItems", False)
    if not isinstance(items, list):
        return st.lists(json_instances(items), max_size=8).map(lambda made: [*made])
    first = st.tuples(*[json_instances(item) for item in items])
    more: st.SearchStrategy[list[Json]] = st.just([])
    if rest is not False:
        more = st.lists(json_instances(rest), max_size=1)
    return st.tuples(first, more).map(lambda parts: [*parts[0], *parts[1]])


def _required(schema: dict[str, Json]) -> list[str]:
    required = schema.get("required")
    return [str(name) for name in required] if isinstance(required, list) else []


def _of_json_type(kind: str) -> st.SearchStrategy[Json]:
    match kind:
        case "string":
            return st.sampled_from(("", "x", "xx", "xxxx", "xxxxxxxx", "x" * 16))
        case "integer":
            return st.integers(-2, 20)
        case "number":
            return st.one_of(st.integers(-2, 20), st.sampled_from((0.5, 2.5, 4.0)))
        case "boolean":
            return st.booleans()
        case _:
            return st.none()


def _replaced(schema: Json, path: tuple[str | int, ...], value: Json) -> Json:
    """A copy of ``schema`` with ``value`` at ``path``."""
    copied: Json = json.loads(json.dumps(schema))
    node = copied
    for step in path[:-1]:
        node = node[step]  # type: ignore[index]
    node[path[-1]] = value  # type: ignore[index]
    return copied


# Nonsense


def odd_json(*words: str) -> st.SearchStrategy[Json]:
    """JSON made of the words of a schema language, in an order that seldom makes sense."""
    names = st.sampled_from(words)
    leaves: st.SearchStrategy[Json] = st.one_of(
        names, st.none(), st.booleans(), st.integers(-1, 5), st.just(0.5), st.just("")
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda made: [*made]),
            st.dictionaries(names, inner, max_size=4).map(lambda made: {**made}),
        ),
        max_leaves=12,
    )


AVRO_WORDS = (
    *(
        "type",
        "name",
        "fields",
        "symbols",
        "items",
        "values",
        "size",
        "default",
        "namespace",
        "aliases",
        "order",
    ),
    *("record", "enum", "array", "map", "fixed", "int", "string", "R", "logicalType", "decimal"),
)
JSON_SCHEMA_WORDS = (
    *(
        "type",
        "properties",
        "items",
        "required",
        "enum",
        "const",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "$ref",
        "#",
    ),
    *(
        "additionalProperties",
        "additionalItems",
        "definitions",
        "$defs",
        "minimum",
        "pattern",
        "if",
        "then",
        "$id",
    ),
    *(
        "object",
        "array",
        "string",
        "#/definitions/a",
        "#/$defs/type",
        "$schema",
        "dependencies",
        "contains",
        "a",
    ),
    *(
        "patternProperties",
        "http://json-schema.org/draft-04/schema#",
        "https://json-schema.org/draft/2020-12/schema",
    ),
)
