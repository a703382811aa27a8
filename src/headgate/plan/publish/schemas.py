"""The schema of one side of a sink's records, in JSON Schema and Protobuf, and the next version of one in any format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from headgate.plan import sink_errors as errors
from headgate.plan.definitions import RecordEncoding
from headgate.schema.encodings import AFTER, change_event, type_of_schema
from headgate.schema.formats.avro import write as avro
from headgate.schema.formats.avro.published import with_docs_of
from headgate.schema.formats.avro.read import load_tree
from headgate.schema.formats.avro.tree import to_json as avro_json
from headgate.schema.formats.jsonschema import write as json_schema
from headgate.schema.formats.jsonschema.write import to_json_schema
from headgate.schema.formats.protobuf import print_proto, read_files, to_protobuf, version as protobuf_version
from headgate.schema.formats.protobuf.names import is_identifier
from headgate.schema.names import FieldNames, published_names
from headgate.schema.render import print_type
from headgate.schema.types import Array, Bytes, Enum, Json, Map, Record, Text, Type, Uuid
from headgate.schema.written import Resolve, SchemaFormat, WrittenSchema
from headgate.sql.formats import Formats
from headgate.sql.registry_formats import RegistryFormat, Side, WriteFormatOptions

NAMES: dict[Side, str] = {"KEY": "row", "VALUE": "envelope"}
"""What the record of a side is called unless a FULLNAME says otherwise."""


def full_name(options: WriteFormatOptions, side: Side) -> str | None:
    """What the statement calls the record of a side; None if it says nothing."""
    return options.avro_key_fullname if side == "KEY" else options.avro_value_fullname


def json_schema_side(
    format_: RegistryFormat, side: Side, record: Record, resolve: Resolve, *, as_event: bool = False
) -> RecordEncoding:
    """The side as JSON. A FULLNAME is the title of its schema."""
    published = change_event(record) if as_event else record
    schema = to_json_schema(published, title=full_name(format_.write_options, side), resolve=resolve)
    names = tuple(f.name for f in record.fields)
    return RecordEncoding("JSON SCHEMA", names, record, json.dumps(schema, ensure_ascii=False), as_event=as_event)


def protobuf_side(format_: RegistryFormat, side: Side, record: Record, *, as_event: bool = False) -> RecordEncoding:
    """The side as a message, for a record without types by name. A FULLNAME is its package and its name."""
    given = full_name(format_.write_options, side)
    full = NAMES[side] if given is None else given
    if not all(map(is_identifier, full.split("."))):
        raise errors.InvalidMessageName(full, f"{side} FULLNAME")
    package, _, name = full.rpartition(".")
    file = to_protobuf(change_event(record) if as_event else record, name=name, package=package)
    names = tuple(f.name for f in record.fields)
    return RecordEncoding("PROTOBUF", names, record, print_proto(file), as_event=as_event)


# checks of the clause


def check_format_options(formats: Formats) -> None:
    """Raises for options that the format or the side of a schema does not have, so that none is ignored silently."""
    for format_ in formats.each():
        if not isinstance(format_, RegistryFormat):
            continue
        options = format_.write_options
        if options.null_defaults and format_.kind != "AVRO":
            raise errors.OptionOfOtherFormat("NULL DEFAULTS", format_.kind, "AVRO")
        if formats.key is not None:
            side: Side = "KEY" if format_ is formats.key else "VALUE"
            other: Side = "VALUE" if side == "KEY" else "KEY"
            for option in _options_of(options, other):
                raise errors.OptionOfOtherSide(option, side, other)


def _options_of(options: WriteFormatOptions, side: Side) -> Iterator[str]:
    level = options.key_compatibility_level if side == "KEY" else options.value_compatibility_level
    if full_name(options, side) is not None:
        yield f"{side} FULLNAME"
    if level is not None:
        yield f"{side} COMPATIBILITY LEVEL"


def check_bytes(record: Record, sink: str, side: Side) -> None:
    """Raises if the one column of FORMAT BYTES has no bytes of its own."""
    (field,) = record.fields
    if not isinstance(field.type, Bytes | Text | Json | Uuid | Enum):
        raise errors.TypeNotBytes(sink, side.lower(), field.name, print_type(field.type))


# versions


def published_record(schema: WrittenSchema) -> Record:
    """The type of the records that are written with a schema of ours."""
    found = type_of_schema(schema.format, schema).type
    assert isinstance(found, Record)
    return found


def missing_fields(side: RecordEncoding, schema: WrittenSchema, names: FieldNames) -> tuple[tuple[str, ...], ...]:
    """The fields that a side has and its published schema lacks, each as a path of SQL names that begins with the column. What is
    inside such a field is not listed. ``names`` are the names in the schema that differ from those in SQL."""
    written: Type = published_record(schema)
    if side.as_event:
        after = published_record(schema).field(AFTER)
        assert after is not None
        written = after.type
    return tuple(_missing(side.record, written, dict(names), ()))


def _missing(
    wanted: Type, written: Type, names: Mapping[tuple[str, ...], str], path: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    match wanted, written:
        case Record(), Record():
            known = {field.name: field for field in written.fields}
            given = published_names([field.name for field in wanted.fields], path, names)
            for field, name in zip(wanted.fields, given, strict=True):
                inner = (*path, field.name)
                if name in known:
                    yield from _missing(field.type, known[name].type, names, inner)
                else:
                    yield inner
        case Array(), Array():
            yield from _missing(wanted.element, written.element, names, path)
        case Map(), Map():
            yield from _missing(wanted.value, written.value, names, path)
        case _:
            return


def next_schema(old: WrittenSchema, new: RecordEncoding, defaults: Record) -> WrittenSchema | None:
    """The next version of a published schema; None if the relation needs no other one.

    ``new`` is the side with the schema that it would get today. ``defaults`` are its columns with the defaults of the
    source's fields. What both versions have keeps its docs, and in Protobuf its numbers.
    """
    assert new.schema is not None
    match old.format:
        case SchemaFormat.AVRO:
            before, now = load_tree(old.text), load_tree(new.schema)
            tree = avro.next_version(before, now, defaults)
            text = json.dumps(avro_json(tree), ensure_ascii=False) if avro.differs(before, tree) else None
        case SchemaFormat.JSON:
            was, wanted = json.loads(old.text), json.loads(new.schema)
            made = json_schema.next_version(was, wanted, defaults)
            text = json.dumps(made, ensure_ascii=False) if json_schema.differs(was, made) else None
        case SchemaFormat.PROTOBUF:
            text = _next_proto(old.text, change_event(new.record) if new.as_event else new.record)
    return None if text is None else replace(old, text=text, id=None)


def redocumented(old: WrittenSchema, new: RecordEncoding, defaults: Record) -> WrittenSchema:
    """The next version of a published schema with the docs of ``new``, also if nothing but docs is another."""
    assert new.schema is not None
    match old.format:
        case SchemaFormat.AVRO:
            now = load_tree(new.schema)
            tree = with_docs_of(avro.next_version(load_tree(old.text), now, defaults), now)
            text = json.dumps(avro_json(tree), ensure_ascii=False)
        case SchemaFormat.JSON:
            made = json_schema.next_version(json.loads(old.text), json.loads(new.schema), defaults, keep_docs=False)
            text = json.dumps(made, ensure_ascii=False)
        case SchemaFormat.PROTOBUF:
            file, *imported = read_files(old.text)
            record = change_event(new.record) if new.as_event else new.record
            text = print_proto(protobuf_version.next_version(file, record, imported, keep_docs=False))
    return replace(old, text=text, id=None)


def differs(old: WrittenSchema, new: WrittenSchema) -> bool:
    """Whether two versions of a schema of ours differ in more than their docs."""
    match old.format:
        case SchemaFormat.AVRO:
            return avro.differs(load_tree(old.text), load_tree(new.text))
        case SchemaFormat.JSON:
            return json_schema.differs(json.loads(old.text), json.loads(new.text))
        case SchemaFormat.PROTOBUF:
            return protobuf_version.differs(read_files(old.text)[0], read_files(new.text)[0])


def is_same(old: WrittenSchema, new: WrittenSchema) -> bool:
    """Whether two versions of a schema of ours are the same, docs included."""
    if old.format is SchemaFormat.PROTOBUF:
        return old.text == new.text
    return bool(json.loads(old.text) == json.loads(new.text))


def _next_proto(old: str, record: Record) -> str | None:
    file, *imported = read_files(old)
    text = print_proto(protobuf_version.next_version(file, record, imported))
    return text if protobuf_version.differs(file, read_files(text)[0]) else None
