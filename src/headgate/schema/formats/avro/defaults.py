"""Whether a JSON value is a value of an Avro type, as the default of a field must be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from headgate.schema.formats.avro import tree
from headgate.schema.formats.documents import Json

INT_RANGE = range(-(2**31), 2**31)
LONG_RANGE = range(-(2**63), 2**63)


def default_problems(value: Json, node: tree.AvroType, path: str) -> Iterator[tuple[str, str]]:
    """Path and reason of every part of a default that is not a value of its type.

    This is stricter than Java, which accepts any text for bytes, fixed and enum. A default that cannot be encoded fails
    every reader that needs it, long after the schema was registered.
    """
    match node:
        case tree.Union():
            # Since Avro 1.12 the value may be of any branch; up to 1.11 it had to be of the first.
            if not any(_is_value(value, branch) for branch in node.branches):
                yield path, f"{_shown(value)} fits no branch of {tree.describe(node)}"
        case tree.Record():
            yield from _record_problems(value, node, path)
        case tree.Array() if isinstance(value, list):
            for index, item in enumerate(value):
                yield from default_problems(item, node.items, f"{path}[{index}]")
        case tree.Map() if isinstance(value, dict):
            for key, item in value.items():
                yield from default_problems(item, node.values, f"{path}.{key}")
        case tree.Primitive() | tree.Fixed() | tree.Enum() | tree.Array() | tree.Map():
            if not _is_scalar(value, node):
                yield path, f"{_shown(value)} is no value of type {tree.describe(node)}"
        case _:
            assert_never(node)


def _is_value(value: Json, node: tree.AvroType) -> bool:
    return next(default_problems(value, node, ""), None) is None


def _shown(value: Json) -> str:
    """A default as an error names it. Of arrays and objects only the kind is named, because they may be large."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"number {value}"
        case str():
            return f'text "{value if len(value) <= 40 else value[:37] + "..."}"'
        case list():
            return "an array"
        case dict():
            return "an object"


def _record_problems(value: Json, node: tree.Record, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, dict):
        yield path, f"{_shown(value)} is no value of type {tree.describe(node)}"
        return
    for member in node.fields:
        if member.name in value:
            yield from default_problems(value[member.name], member.type, f"{path}.{member.name}")
        elif not member.has_default:
            yield path, f'field "{member.name}" of {tree.describe(node)} has neither a value nor a default'


def _is_scalar(value: Json, node: tree.Primitive | tree.Fixed | tree.Enum | tree.Array | tree.Map) -> bool:
    match node:
        case tree.Primitive():
            return _is_primitive(value, node.kind)
        case tree.Fixed():
            return isinstance(value, str) and _is_bytes(value) and len(value) == node.size
        case tree.Enum():
            return isinstance(value, str) and value in node.symbols
        case tree.Array() | tree.Map():
            return False
        case _:
            assert_never(node)


def _is_primitive(value: Json, kind: str) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            bounds = INT_RANGE if kind == "int" else LONG_RANGE
            return isinstance(value, int) and not isinstance(value, bool) and value in bounds
        case "float" | "double":
            # Java reads these texts too: JSON has no other way to write them.
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return is_number or value in ("NaN", "Infinity", "-Infinity")
        case "bytes":
            return isinstance(value, str) and _is_bytes(value)
        case _:
            return isinstance(value, str)


def _is_bytes(text: str) -> bool:
    return all(ord(character) < 256 for character in text)
