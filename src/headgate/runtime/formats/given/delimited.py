"""Rows -> lines of delimited text, as `formats/delimited.py` writes them in the JVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headgate.runtime.formats.given.spark_text import scalar_text
from headgate.schema import types as t


def delimited_writer(record: t.Record, delimiter: str) -> Callable[[Mapping[str, Any]], bytes]:
    """From a row to its line."""

    def write(row: Mapping[str, Any]) -> bytes:
        return delimiter.join([_field(row[f.name], f.type, delimiter) for f in record.fields]).encode()

    return write


def _field(value: Any, type_: t.Type, delimiter: str) -> str:
    """The text of a value. Null is nothing at all, and an empty text two quotes."""
    if value is None:
        return ""
    text = scalar_text(value, type_)
    if text and not {'"', "\r", "\n", delimiter} & set(text):
        return text
    escaped = text.replace('"', '""')
    return f'"{escaped}"'
