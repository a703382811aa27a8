"""Neutral type -> JSON Schema, draft 2020-12.

Objects are closed, because the rules of schema registries allow adding a property to a closed object and not to an
open one. A nullable field may be missing or null. In this draft formats are annotations. A time has no zone;
validators that check the formats of older drafts would require one.

`next_version` makes the next version of a published schema. What both versions have keeps the description that it was
published with. A property that the old version lacks is never required, because old documents lack it, and has its own default
if the source's field has one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import quote

from headgate.schema import types as t
from headgate.schema.errors import SchemaTooDeep
from headgate.schema.written import Resolve, unresolved

DIALECT = "https://json-schema.org/draft/2020-12/schema"
JsonObject = dict[str, object]


def to_json_schema(type_: t.Type, *, title: str | None = None, resolve: Resolve = unresolved) -> JsonObject:
    """The schema of documents of a type. Each named type is defined once, under `$defs`."""
    writer = _Writer(resolve)
    schema = writer.type(resolve(type_) if isinstance(type_, t.Named) else type_, 0)
    if title is not None:
        schema = {"title": title, **{key: value for key, value in schema.items() if key != "title"}}
    definitions: JsonObject = {"$defs": writer.definitions} if writer.definitions else {}
    return {"$schema": DIALECT, **schema, **definitions}


@dataclass(slots=True)
class _Writer:
    """Makes one schema. ``definitions`` are the named types, in the order in which they are used."""

    resolve: Resolve
    definitions: JsonObject = field(default_factory=dict)
    names: dict[tuple[str, ...], str] = field(default_factory=dict)

    def type(self, type_: t.Type, depth: int) -> JsonObject:
        """The schema of a value that is not null."""
        if depth > t.MAX_DEPTH:
            raise SchemaTooDeep("json schema", "$")
        match type_:
            case t.Array(element, nullable):
                return {"type": "array", "items": self._nullable_type(element, nullable, depth + 1)}
            case t.Map(value, nullable):
                return {"type": "object", "additionalProperties": self._nullable_type(value, nullable, depth + 1)}
            case t.Record():
                return self._record(type_, depth + 1)
            case t.Named():
                return {"$ref": f"#/$defs/{_pointer(self._define(type_, depth + 1))}"}
            case _:
                return _scalar(type_)

    def _nullable_type(self, type_: t.Type, nullable: bool, depth: int) -> JsonObject:
        """The schema of a value that may be null."""
        if not nullable:
            return self.type(type_, depth)
        if isinstance(type_, t.Json):
            return {}
        schema = self.type(type_, depth)
        if "type" in schema and "enum" not in schema:
            return {**schema, "type": [schema["type"], "null"]}
        return {"oneOf": [{"type": "null"}, schema]}

    def _record(self, record: t.Record, depth: int) -> JsonObject:
        required = [field.name for field in record.fields if not field.nullable]
        return {
            **_about(record),
            "type": "object",
            "properties": {field.name: self._property(field, depth) for field in record.fields},
            **({"required": required} if required else {}),
            "additionalProperties": False,
        }

    def _property(self, field: t.Field, depth: int) -> JsonObject:
        """The schema of a field, with the field's own description."""
        schema = self._nullable_type(field.type, field.nullable, depth)
        if "description" in schema:  # The description is that of the type and must not become that of the field.
            schema = {"allOf": [schema]}
        return schema if field.doc is None else {"description": field.doc, **schema}

    def _define(self, type_: t.Named, depth: int) -> str:
        """The name of a named type under `$defs`. Types of the same last name get numbers."""
        if type_.parts in self.names:
            return self.names[type_.parts]
        name, number = type_.parts[-1], 0
        while name in self.definitions:
            number += 1
            name = f"{type_.parts[-1]}{number}"
        self.names[type_.parts] = name
        self.definitions[name] = None  # reserves its position: outer types stand before inner ones
        self.definitions[name] = self.type(self.resolve(type_), depth)
        return name


_SCALARS: Mapping[type, JsonObject] = {
    t.Boolean: {"type": "boolean"},
    t.Integer: {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    t.Bigint: {"type": "integer"},
    t.Real: {"type": "number", "format": "float"},
    t.Double: {"type": "number"},
    t.Text: {"type": "string"},
    t.Bytes: {"type": "string", "contentEncoding": "base64"},
    t.Date: {"type": "string", "format": "date"},
    t.Time: {"type": "string", "format": "time"},
    t.Timestamp: {"type": "string", "format": "date-time-local"},
    t.TimestampTz: {"type": "string", "format": "date-time"},
    t.Uuid: {"type": "string", "format": "uuid"},
    t.Json: {"type": ["object", "array", "string", "number", "boolean"]},
}


def _scalar(type_: t.Scalar) -> JsonObject:
    match type_:
        case t.Decimal(precision, scale):
            return {"type": "string", "format": "number", "x-precision": precision, "x-scale": scale}
        case t.Enum(symbols):
            return {**_about(type_), "type": "string", "enum": list(symbols)}
        case _:
            return dict(_SCALARS[type(type_)])


def _about(type_: t.Record | t.Enum) -> JsonObject:
    named: JsonObject = {} if type_.name is None else {"title": type_.name}
    return named if type_.doc is None else {**named, "description": type_.doc}


def _pointer(name: str) -> str:
    return quote(name.replace("~", "~0").replace("/", "~1"), safe="~")


# The next version of a published schema

_INNER = ("items", "additionalProperties")  # keywords whose value may be a schema
_BRANCHES = ("oneOf", "allOf")  # lists of schemas; the last one is the schema of the value
_NAMED = ("properties", "$defs")  # schemas by name


def next_version(
    old: JsonObject, new: JsonObject, defaults: t.Type | None = None, *, keep_docs: bool = True
) -> JsonObject:
    """The new schema as the next version of the old one. ``defaults`` is the type with the defaults of its fields. Without
    ``keep_docs`` the descriptions are those of the new schema."""
    made = _with_definitions(_next(old, new, defaults), old, new)
    return made if keep_docs else cast(JsonObject, _with_docs_of(made, new))


def _with_definitions(made: JsonObject, old: JsonObject, new: JsonObject) -> JsonObject:
    known, defined = _schemas(old, "$defs"), _schemas(new, "$defs")
    if defined:
        made["$defs"] = {
            name: _next(known[name], schema, None) if name in known else schema for name, schema in defined.items()
        }
    return made


def differs(old: JsonObject, new: JsonObject) -> bool:
    """Whether two versions differ in more than their descriptions."""
    return _without_docs(old) != _without_docs(new)


def _next(old: JsonObject, new: JsonObject, defaults: t.Type | None) -> JsonObject:
    kept: JsonObject = {key: old[key] for key in ("description", "default") if key in old}
    made: JsonObject = {**kept, **{key: value for key, value in new.items() if key != "description"}}
    for word in _BRANCHES:
        if word in new:
            *others, value = cast(list[JsonObject], new[word])
            made[word] = [*others, _next(_value(old), value, defaults)]
    body = _body(old)
    for word, inner in zip(_INNER, _inner_defaults(defaults), strict=True):
        if isinstance(new.get(word), dict) and isinstance(body.get(word), dict):
            made[word] = _next(cast(JsonObject, body[word]), cast(JsonObject, new[word]), inner)
    if "properties" in new and "properties" in body:
        _set_properties(made, body, new, defaults)
    return made


def _set_properties(made: JsonObject, old: JsonObject, new: JsonObject, defaults: t.Type | None) -> None:
    known = _schemas(old, "properties")
    given = {f.name: f for f in defaults.fields} if isinstance(defaults, t.Record) else {}
    properties: dict[str, JsonObject] = {}
    for name, schema in _schemas(new, "properties").items():
        field = given.get(name)
        if name in known:
            properties[name] = _next(known[name], schema, field.type if field is not None else None)
        else:
            properties[name] = _added(schema, field)
    made["properties"] = properties
    before = cast(list[str], old.get("required", []))
    required = [name for name in cast(list[str], new.get("required", [])) if name in before]
    made.pop("required", None)
    if required:
        made["required"] = required


def _added(schema: JsonObject, field: t.Field | None) -> JsonObject:
    """A property that the old version lacks."""
    if field is None or field.default is None:
        return schema
    return {**schema, "default": json.loads(field.default)}


def _value(schema: JsonObject) -> JsonObject:
    """The schema inside oneOf or allOf; without these the schema itself, whose description belongs to the field."""
    for word in _BRANCHES:
        if word in schema:
            return cast(list[JsonObject], schema[word])[-1]
    return {key: value for key, value in schema.items() if key not in ("description", "default")}


def _body(schema: JsonObject) -> JsonObject:
    """The innermost schema of the value."""
    while any(word in schema for word in _BRANCHES):
        schema = _value(schema)
    return schema


def _inner_defaults(defaults: t.Type | None) -> tuple[t.Type | None, t.Type | None]:
    """The types of elements and of values of a map."""
    element = defaults.element if isinstance(defaults, t.Array) else None
    return element, defaults.value if isinstance(defaults, t.Map) else None


def _schemas(schema: Mapping[str, object], word: str) -> dict[str, JsonObject]:
    return cast(dict[str, JsonObject], schema.get(word, {}))


def _with_docs_of(made: object, new: object) -> object:
    """A schema that was made from another one, with the descriptions of that one. The rest of both has the same form."""
    match made, new:
        case dict(), dict():
            # A property may be called "description": its value is a schema.
            rest = {
                k: _with_docs_of(v, new.get(k)) for k, v in made.items() if k != "description" or isinstance(v, dict)
            }
            return {"description": new["description"], **rest} if isinstance(new.get("description"), str) else rest
        case list(), list() if len(made) == len(new):
            return [_with_docs_of(one, other) for one, other in zip(made, new, strict=True)]
        case _:
            return made


def _without_docs(schema: JsonObject) -> JsonObject:
    """The schema without descriptions. The names of properties are no keywords."""
    made: JsonObject = {}
    for key, value in schema.items():
        if key in _NAMED:
            made[key] = {name: _without_docs(one) for name, one in _schemas(schema, key).items()}
        elif key in _BRANCHES:
            made[key] = [_without_docs(one) for one in cast(list[JsonObject], value)]
        elif key in _INNER and isinstance(value, dict):
            made[key] = _without_docs(value)
        elif key == "required":
            made[key] = sorted(cast(list[str], value))
        elif key != "description":
            made[key] = value
    return made
