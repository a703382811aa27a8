"""Rows -> documents of a given JSON Schema in the JVM, for schemas that say nothing but the types of their properties.

Python workers take ten times as long. They stay for schemas with further conditions, references or choices, for types whose text
depends on a format, and for schemas in which some properties without a value are null and others are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from pyspark.sql import Column

from headgate.plan.definitions import RecordEncoding
from headgate.runtime.formats.frame import framed
from headgate.runtime.formats.given_avro import can_fill, rewritten
from headgate.runtime.formats.json_text import json_object
from headgate.runtime.formats.writers import RecordWriter
from headgate.schema import types as t
from headgate.schema.encodings import type_of_schema
from headgate.schema.errors import MalformedJsonSchema
from headgate.schema.written import load_document

Absent: TypeAlias = Literal["null", "left out"]
"""What stands for a property without a value."""

_ANNOTATIONS = frozenset({"$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated"})
_INT32 = {"minimum": -(2**31), "maximum": 2**31 - 1}


class GivenJsonWriter:
    """Like `GivenWriter`. Made by `json_in_jvm` alone."""

    def __init__(self, side: RecordEncoding, physical: t.Record, absent: Absent) -> None:
        self._side = side
        self._physical = physical
        self._absent = absent
        names = tuple(field.name for field in physical.fields)
        self._writer = RecordWriter(replace(side, columns=names, record=physical, given=False))

    @property
    def can_reject(self) -> bool:
        return self._writer.can_reject

    def accepts(self, row: Mapping[str, Column]) -> Column:
        return self._writer.accepts(self._rewritten(row))

    def error(self, row: Mapping[str, Column]) -> Column:
        return self._writer.error(self._rewritten(row))

    def encode(self, row: Mapping[str, Column]) -> Column:
        assert self._side.schema_id is not None
        made = self._rewritten(row)
        fields = [(field, made[field.name]) for field in self._physical.fields]
        text = json_object(fields, leave_out_nulls=self._absent == "left out")
        return framed(self._side.schema_id, text.cast("binary"))

    def _rewritten(self, row: Mapping[str, Column]) -> Mapping[str, Column]:
        return rewritten(row, self._side.record, self._physical)


def json_in_jvm(side: RecordEncoding) -> GivenJsonWriter | None:
    """A writer for the side; None if Python workers must write it."""
    written = side.written
    if side.encoding != "JSON SCHEMA" or side.whole or side.references or written is None:
        return None
    physical = type_of_schema(written.format, written).type
    if not isinstance(physical, t.Record) or not can_fill(side.record, physical):
        return None
    try:
        absent = set(_absent(load_document(written.text, "JSON Schema", MalformedJsonSchema), physical))
    except _NotPlain:
        return None
    if len(absent) > 1:
        return None
    return GivenJsonWriter(side, physical, absent.pop() if absent else "null")


class _NotPlain(Exception):
    """The schema says more than types."""


def _absent(node: Any, type_: t.Type) -> Iterator[Absent]:
    """What stands for each property that may be without a value, at any depth. Raises if the schema says more than types."""
    node = _value_schema(node)
    match type_:
        case t.Record(fields):
            _check(node, {"type", "properties", "required", "additionalProperties"})
            if not isinstance(node.get("additionalProperties", False), bool):
                raise _NotPlain
            properties, required = node.get("properties", {}), node.get("required", ())
            if not {*required} <= properties.keys() or [f.name for f in fields] != list(properties):
                raise _NotPlain
            for field in fields:
                inner = properties[field.name]
                if field.nullable:
                    yield "null" if _accepts_null(inner) else "left out"
                yield from _absent(inner, field.type)
        case t.Array(element):
            _check(node, {"type", "items"})
            yield from _absent(node.get("items"), element)
        case t.Map(value):
            _check(node, {"type", "additionalProperties"})
            yield from _absent(node.get("additionalProperties"), value)
        case t.Boolean() | t.Bigint() | t.Double() | t.Text():
            _check(node, {"type"})
        case t.Integer():
            _check(node, {"type", "minimum", "maximum"})
            if {key: node.get(key) for key in _INT32} != _INT32:
                raise _NotPlain
        case t.Enum(symbols):
            _check(node, {"type", "enum"})
            if [each for each in node.get("enum", ()) if each is not None] != list(symbols):
                raise _NotPlain
        case _:
            raise _NotPlain


def _check(node: Mapping[str, Any], known: set[str]) -> None:
    if not node.keys() <= known | _ANNOTATIONS:
        raise _NotPlain


def _value_schema(node: Any) -> Mapping[str, Any]:
    """The schema of values that are not null."""
    if not isinstance(node, dict):
        raise _NotPlain
    choice = _choice(node)
    if choice is None:
        return node
    others = [one for one in choice if one != {"type": "null"}]
    if len(choice) != 2 or len(others) != 1 or not isinstance(others[0], dict) or len(node.keys() - _ANNOTATIONS) != 1:
        raise _NotPlain
    return others[0]


def _choice(node: Mapping[str, Any]) -> list[Any] | None:
    found = node.get("oneOf", node.get("anyOf"))
    return found if isinstance(found, list) else None


def _accepts_null(node: Mapping[str, Any]) -> bool:
    choice = _choice(node)
    if choice is not None:
        return {"type": "null"} in choice
    kinds = node.get("type")
    typed = kinds is None or "null" in (kinds if isinstance(kinds, list) else (kinds,))
    return typed and ("enum" not in node or None in node["enum"])
