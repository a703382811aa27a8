"""A side of a sink's records that is written with a schema of the registry, given by its id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headgate.errors import joined
from headgate.plan.definitions import RecordEncoding
from headgate.plan.fitting import misfits, null_fields, shown_fields, stands_for
from headgate.plan.sink_errors import SchemaIdExcludes
from headgate.resolve.stream_errors import ColumnsNotInSchema
from headgate.schema.encodings import change_event, type_of_schema
from headgate.schema.types import Field, Record
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql.formats import Format, frozen_schemas
from headgate.sql.registry_formats import RegistryFormat, Side, WriteFormatOptions


def given_id(format_: Format, side: Side) -> int | None:
    """The id of the schema that a side is written with; None if its schema is generated."""
    if not isinstance(format_, RegistryFormat) or not isinstance(format_.options, WriteFormatOptions):
        return None
    return format_.options.key_schema_id if side == "KEY" else format_.options.value_schema_id


def is_given(format_: Format, side: Side) -> bool:
    """Whether rows are rewritten into a schema that is given: by its id, or as the one of a single column."""
    if given_id(format_, side) is not None:
        return True
    return isinstance(format_, RegistryFormat) and any(schema.single for schema in frozen_schemas(format_, side))


def given_side(format_: RegistryFormat, side: Side, record: Record, sink: str) -> RecordEncoding:
    """The side with the schema that purification froze into the format. The columns must be a part of it."""
    _check_options(format_, side)
    (schema,) = frozen_schemas(format_, side)
    written = WrittenSchema(schema.schema, schema.references, schema.known_id, SchemaFormat.from_words(format_.kind))
    place = type_of_schema(written.format, written, format_.message)
    columns, fields, whole = _compared(record.fields, place)
    if problems := misfits(columns, fields):
        raise ColumnsNotInSchema(
            "sink",
            sink,
            side.lower(),
            "the schema that is made of it" if schema.single else f"schema {schema.known_id}",
            problems,
            shown_fields(columns),
            shown_fields(fields),
        )
    return RecordEncoding(
        format_.kind, tuple(f.name for f in record.fields), record, schema.schema, schema.known_id, given=True,
        references=schema.references, message=format_.message, whole=whole,
    )  # fmt: skip


def _compared(columns: Sequence[Field], place: Field) -> tuple[Sequence[Field], Sequence[Field], bool]:
    """The columns, the fields that they must be among, and whether one column is the whole value under any name."""
    if isinstance(place.type, Record):
        first = columns[0] if len(columns) == 1 else None
        if first is None or not stands_for(first, place.type):
            return columns, place.type.fields, False
    name = columns[0].name if columns else "value"
    return columns, (Field(name, place.type, place.nullable),), len(columns) == 1


def _check_options(format_: RegistryFormat, side: Side) -> None:
    """Raises for options that would change the given schema."""
    options = format_.write_options
    given = {
        f"AVRO {side} FULLNAME": options.avro_key_fullname if side == "KEY" else options.avro_value_fullname,
        f"{side} DOC ON": next(
            (doc for doc in format_.docs if not doc.frozen and doc.target.side in (None, side)), None
        ),
    }
    for option, value in given.items():
        if value is not None:
            raise SchemaIdExcludes(option, f"{side} SCHEMA ID")


def null_notices(whole: str, side: RecordEncoding, section: str) -> Iterator[str]:
    """Which fields of a given schema take no null, and which write their default instead. ``whole`` is the kind and name of
    what is written."""
    written = side.written
    if not side.given or written is None:
        return
    place = type_of_schema(written.format, written, side.message)
    if not isinstance(place.type, Record) or side.whole:
        return
    written_fields = (change_event(side.record) if side.as_event else side.record).fields
    found = null_fields(written_fields, place.type.fields)
    if found.refused:
        fields = joined([f'"{field}"' for field in found.refused], "and")
        yield f"a row of {whole} with null in {fields} of its {section} cannot be written: the schema requires a value"
    if found.filled:
        fields = joined([f'"{field}"' for field in found.filled], "and")
        yield f"a null in {fields} of the {section} of {whole} is written as the default of the schema"
    if found.always_refused:
        fields = joined([f'"{field}"' for field in found.always_refused], "and")
        yield f"no row of {whole} can be written: the schema requires {fields} in the {section}, and there is no such column"
