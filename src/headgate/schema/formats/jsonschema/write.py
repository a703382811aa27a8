"""Neutral type -> JSON Schema, draft 2020-12.

Objects are closed, because the rules of schema registries allow adding a property to a closed object and not to an
open one. A nullable field may be missing or null. In this draft formats are annotations. A time has no zone;
validators that check the formats of older drafts would require one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
