"""Rows -> documents of a given JSON Schema, which are validated before they are written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jsonschema_rs

from headgate.runtime.formats.given import values as v
from headgate.runtime.formats.given.spark_text import json_value, print_json
from headgate.runtime.formats.given.values import Unwritable
from headgate.runtime.formats.json_validation import validator
from headgate.schema import types as t
from headgate.schema.formats.jsonschema.read import logical_titles
from headgate.schema.names import ROOT, element_path, field_path, value_path
from headgate.schema.values import CONNECT_MICROSECONDS
from headgate.schema.written import WrittenSchema

Make: TypeAlias = Callable[[Any], Any]
"""From a value that is not null to a JSON value."""

_NOTHING = object()
_TIMES = (t.Date, t.Time, t.Timestamp, t.TimestampTz)


class JsonSchemaWriter:
    """Writes values of one type as documents of one schema."""

    def __init__(self, schema: WrittenSchema, type_: t.Type) -> None:
        self._documents = {name: json.loads(text) for name, text in schema.references}
        self._root: Any = json.loads(schema.text)
        self._titles = logical_titles(schema.text, dict(schema.references))
        self._validator = _validator(schema)
        self._nullable = self._accepts_null(self._root)
        self._make = self._maker(self._root, type_, ROOT)

    def encode(self, value: Any) -> bytes:
        if value is None and not self._nullable:
            raise Unwritable(ROOT, v.MISSING)
        if self._validator is None:
            raise Unwritable(ROOT, v.NO_VALIDATOR)
        document = None if value is None else self._make(value)
        text = print_json(document)
        wrong = next(iter(self._validator.iter_errors(json.loads(text))), None)
        if wrong is not None:
            raise Unwritable(_path(wrong.instance_path), f"the schema refuses it by {wrong.kind.name}")
        return text.encode()

    def _maker(self, node: Any, type_: t.Type, path: str) -> Make:
        node = self._resolved(node)
        match type_:
            case t.Record():
                return self._object(node, type_, path)
            case t.Array(element, _):
                items = node.get("items", {}) if isinstance(node, dict) else {}
                each = self._nullable_maker(items, element, element_path(path))
                return lambda values: [each(value) for value in values]
            case t.Map(inner, _):
                members = node.get("additionalProperties", {}) if isinstance(node, dict) else {}
                one = self._nullable_maker(members, inner, value_path(path))
                return lambda entries: {key: one(value) for key, value in entries.items()}
            case t.Decimal() if _is_number(node):
                return lambda value: value
            case _:
                return _scalar(type_, path, self._titles)

    def _nullable_maker(self, node: Any, type_: t.Type, path: str) -> Make:
        inner = self._maker(node, type_, path)
        return lambda value: None if value is None else inner(value)

    def _object(self, node: Any, type_: t.Record, path: str) -> Make:
        properties: Mapping[str, Any] = node.get("properties", {}) if isinstance(node, dict) else {}
        required = frozenset(node.get("required", ())) if isinstance(node, dict) else frozenset()
        parts = [
            self._property(name, property_, type_, name in required, path) for name, property_ in properties.items()
        ]

        def make(row: Any) -> dict[str, Any]:
            made = ((name, part(row)) for name, part in parts)
            return {name: value for name, value in made if value is not _NOTHING}

        return make

    def _property(
        self, name: str, node: Any, type_: t.Record, required: bool, path: str
    ) -> tuple[str, Callable[[Any], Any]]:
        here, column = field_path(path, name), type_.field(name)
        instead = self._instead(node, required, here, v.NO_COLUMN if column is None else v.MISSING)
        if column is None:
            return name, lambda _: instead()
        inner = self._maker(node, column.type, here)
        nullable = self._accepts_null(node)

        def value(row: Any) -> Any:
            found = row[name]
            if found is not None:
                return inner(found)
            return None if nullable else instead()

        return name, value

    def _instead(self, node: Any, required: bool, path: str, reason: str) -> Callable[[], Any]:
        """What stands for a property without a value: its default, null, nothing, or an error."""
        resolved = self._resolved(node)
        for each in (node, resolved):
            if isinstance(each, dict) and "default" in each:
                default = each["default"]
                return lambda: default
        if self._accepts_null(node):
            return lambda: None
        if not required:
            return lambda: _NOTHING

        def refuse() -> Any:
            raise Unwritable(path, reason)

        return refuse

    # --- schemas

    def _resolved(self, node: Any) -> Any:
        """The object schema behind references, and without the null of a choice."""
        for _ in range(100):
            if not isinstance(node, dict):
                return node
            if "$ref" in node:
                node = self._target(node["$ref"])
                continue
            choice = node.get("oneOf") or node.get("anyOf")
            others = [one for one in choice or () if not _is_null(one)]
            if choice and len(others) == 1:
                node = others[0]
                continue
            if "allOf" in node:
                return self._merged(node)
            return node
        return {}

    def _merged(self, node: dict[str, Any]) -> dict[str, Any]:
        parts = [self._resolved(one) for one in node["allOf"]]
        found: dict[str, Any] = {k: member for k, member in node.items() if k != "allOf"}
        for part in parts:
            if isinstance(part, dict):
                properties = {**part.get("properties", {}), **found.get("properties", {})}
                required = [*part.get("required", ()), *found.get("required", ())]
                found = {**part, **found, "properties": properties, "required": required}
        return found

    def _target(self, reference: str) -> Any:
        """What a reference leads to. One that leads nowhere was refused when the schema was read."""
        address, _, pointer = reference.partition("#")
        root = self._root
        for name, document in self._documents.items():
            own = document.get("$id", "") if isinstance(document, dict) else ""
            if address and (address in (name, own) or name.endswith(f"/{address}") or address.endswith(f"/{name}")):
                root = document
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            root = root[int(key)] if isinstance(root, list) else root.get(key, {})
        return root

    def _accepts_null(self, node: Any) -> bool:
        for _ in range(100):
            if isinstance(node, dict) and "$ref" in node:
                node = self._target(node["$ref"])
            else:
                break
        if not isinstance(node, dict):
            return node is True
        if "allOf" in node:
            return all(self._accepts_null(one) for one in node["allOf"])
        choice = node.get("oneOf") or node.get("anyOf")
        if choice:
            return any(self._accepts_null(one) for one in choice)
        if "enum" in node:
            return None in node["enum"]
        if "const" in node:
            return node["const"] is None
        kinds = node.get("type")
        if kinds is None:
            return not {"properties", "items", "additionalProperties", "format"} & node.keys()
        return kinds == "null" or "null" in (kinds if isinstance(kinds, list) else ())


def _validator(schema: WrittenSchema) -> jsonschema_rs.Validator | None:
    """None for a schema that is not valid itself. Some registries take such schemas."""
    try:
        return validator(schema)
    except (ValueError, jsonschema_rs.ReferencingError):
        return None


def _is_null(node: Any) -> bool:
    return isinstance(node, dict) and (node.get("type") == "null" or node.get("const", 0) is None)


def _is_number(node: Any) -> bool:
    kinds = node.get("type") if isinstance(node, dict) else None
    return bool({"number", "integer"} & {*(kinds if isinstance(kinds, list) else (kinds,))})


def _path(parts: list[str | int]) -> str:
    path = ROOT
    for part in parts:
        path = element_path(path) if isinstance(part, int) else field_path(path, part)
    return path


def _scalar(type_: t.Type, path: str, titles: Mapping[str, str]) -> Make:
    match type_:
        case t.Uuid():
            return lambda value: str(v.as_uuid(value, path))
        case _ if isinstance(type_, _TIMES) and titles.get(path) in CONNECT_MICROSECONDS:
            step = CONNECT_MICROSECONDS[titles[path]]
            return lambda value: v.in_steps(value, type_, step, path)
        case _:
            return lambda value: json_value(value, type_, path)
