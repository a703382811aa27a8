"""How rows are written to the topic of a stream or table: the encodings of its keys and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from headgate.plan.definitions import RecordEncoding, SourceColumn
from headgate.plan.errors import NotSupportedYet
from headgate.plan.reading import stream_layout
from headgate.schema.types import Field, Record
from headgate.sql import formats as f
from headgate.sql.registry_formats import RegistryFormat, Side
from headgate.sql.streams import AnyStream

EncodingName: TypeAlias = Literal["AVRO", "JSON SCHEMA", "PROTOBUF", "JSON", "TEXT", "BYTES", "PRIMITIVE"]
_PLAIN: Mapping[type[f.Format], EncodingName] = {
    f.JsonInline: "JSON",
    f.JsonFormat: "JSON",
    f.TextFormat: "TEXT",
    f.BytesFormat: "BYTES",
    f.PrimitiveFormat: "PRIMITIVE",
}


def written_sides(statement: AnyStream) -> tuple[RecordEncoding | None, RecordEncoding]:
    """The encodings of keys and values. None for a stream whose records have no keys."""
    reads, layout = statement.reads, stream_layout(statement)
    assert reads is not None
    keys = [column for column in layout.columns if column.origin.section == "key"]
    values = [column for column in layout.columns if column.origin.section == "value"]
    key = None if reads.formats.key is None or not keys else _side(reads.formats.key, "KEY", keys)
    return key, _side(reads.formats.value, "VALUE", values)


def _side(format_: f.Format, side: Side, columns: Sequence[SourceColumn]) -> RecordEncoding:
    names = tuple(column.name for column in columns)
    record = Record(tuple(Field(column.name, column.type) for column in columns))
    whole = len(columns) == 1 and columns[0].origin.name is None
    if isinstance(format_, RegistryFormat):
        schema = f.frozen_schemas(format_, side)[-1]
        return RecordEncoding(
            format_.kind, names, record, schema.schema, schema.known_id, given=True,
            references=schema.references, message=format_.message, whole=whole,
        )  # fmt: skip
    encoding = _PLAIN.get(type(format_))
    if encoding is None:
        raise NotSupportedYet("writing the format delimited")
    return RecordEncoding(encoding, names, record, whole=whole)
