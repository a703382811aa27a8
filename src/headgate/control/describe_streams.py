"""DESCRIBE EXTENDED of a stream or table: its topic, and the logical and the physical schema side by side."""

from __future__ import annotations

from collections.abc import Iterator

from headgate.catalog.objects import Object
from headgate.plan.definitions import RecordEncoding
from headgate.plan.writing import written_sides
from headgate.resolve.statements import topic_name
from headgate.resolve.streams import key_side, read_statement, value_side
from headgate.runtime.values import Json
from headgate.schema.encodings import type_of_schema
from headgate.schema.render import print_type
from headgate.schema.types import Enum, Field, Record
from headgate.sql.registry_formats import Side, subject_name
from headgate.sql.streams import CreateStream, CreateStreamAs


def stream_properties(found: Object) -> Iterator[list[Json]]:
    """The properties that a stream or table has beyond those of every object."""
    definition = found.definition
    if not isinstance(definition, CreateStream | CreateStreamAs):
        return
    topic = topic_name(read_statement(found).kafka)
    yield ["topic", topic]
    key, value = written_sides(definition)
    sides: tuple[tuple[Side, RecordEncoding | None, str | None], ...] = (
        ("KEY", key, key_side(definition).format), ("VALUE", value, value_side(definition).format),
    )  # fmt: skip
    for side, encoded, format_ in sides:
        if encoded is not None:
            yield [f"{side.lower()} format", format_]
            yield from _schema(side, encoded, topic)


def _schema(side: Side, encoded: RecordEncoding, topic: str) -> Iterator[list[Json]]:
    written, word = encoded.written, side.lower()
    if written is None:
        return
    whole = type_of_schema(written.format, written, encoded.message)
    yield [f"{word} schema id", encoded.schema_id]
    yield [f"{word} subject", subject_name(topic, side)]
    yield [f"{word} schema type", written.format.words]
    if isinstance(whole.type, Record | Enum) and whole.type.name:
        yield [f"{word} full name", whole.type.name]
    if isinstance(whole.type, Record) and not encoded.whole:
        for field in whole.type.fields:
            column = encoded.record.field(field.name)
            logical = "no column" if column is None else print_type(column.type)
            yield [f"{word} field {field.name}", f"{logical} | {_physical(field)}"]
    else:
        column = encoded.record.fields[0]
        yield [f"{word} of column {column.name}", f"{print_type(column.type)} | {_physical(whole)}"]
    yield [f"{word} schema", written.text]


def _physical(field: Field) -> str:
    default = "" if field.default is None else f" default {field.default}"
    return f"{print_type(field.type)}{'' if field.nullable else ' not null'}{default}"
