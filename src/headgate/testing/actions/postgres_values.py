"""Values of PostgreSQL in the notation of rows."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Loader

from headgate.serve.protocol import Row, Value
from headgate.testing.json_values import Json, read_json, write_json

# PostgreSQL's names of types that compare otherwise than as text -> ours.
_TYPES = {
    "int2": "integer", "int4": "integer", "int8": "bigint", "oid": "bigint", "numeric": "decimal",
    "float4": "real", "float8": "double", "json": "json", "jsonb": "json", "bool": "boolean",
    "date": "date", "time": "time", "timestamp": "timestamp", "timestamptz": "timestamptz",
}  # fmt: skip


class _AsText(Loader):
    def load(self, data: Buffer) -> Any:
        return bytes(data).decode("utf-8")


class _Timestamp(Loader):
    """`2026-11-15 12:30:00+00` of a session in UTC."""

    def load(self, data: Buffer) -> Any:
        text = bytes(data).decode("utf-8").replace(" ", "T", 1)
        return f"{text.removesuffix('+00')}Z" if text.endswith("+00") else text


class JsonText(str):
    """The text of a json value, which must not be quoted again within an array."""

    __slots__ = ()


class _JsonLoader(Loader):
    def load(self, data: Buffer) -> Any:
        return JsonText(bytes(data).decode("utf-8"))


def read_as_shown(connection: psycopg.Connection[Any]) -> None:
    """Let the connection give these types as text: Python has no infinite dates, and would round json."""
    for name in ("date", "time", "timetz", "interval", "inet", "cidr"):
        connection.adapters.register_loader(name, _AsText)
    for name in ("timestamp", "timestamptz"):
        connection.adapters.register_loader(name, _Timestamp)
    for name in ("json", "jsonb"):
        connection.adapters.register_loader(name, _JsonLoader)


def type_name(oid: int) -> str:
    known = psycopg.adapters.types.get(oid)
    if known is None:
        return "text"
    if oid == known.array_oid:
        return f"array<{_TYPES.get(known.name, 'text')}>"
    return _TYPES.get(known.name, known.name)


def shown_row(row: Sequence[object]) -> Row:
    return tuple(map(_shown, row))


def _shown(value: object) -> Value:
    if isinstance(value, list | tuple | dict):
        return write_json(_nested(value))
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() else str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return str(value)


def _nested(value: object) -> Json:
    """Within arrays decimals are strings, as everywhere in JSON."""
    if isinstance(value, list | tuple):
        return [_nested(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _nested(item) for key, item in value.items()}
    if isinstance(value, JsonText):
        return read_json(value)
    return _shown(value)  # type: ignore[return-value]
