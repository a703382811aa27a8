"""How the key and the value of a record are read: one plan per side, whatever the format, and the type it gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import TypeAlias, assert_never

from headgate.plan.errors import (
    CsvWithoutColumns,
    DelimiterNotOneCharacter,
    FormatColumnTwice,
    PatternWithoutGroups,
)
from headgate.schema.errors import SchemaError
from headgate.schema.evolve.changes import DocChanged, FieldMoved, TypeRenamed
from headgate.schema.evolve.diff import diff
from headgate.schema.evolve.merge import can_hold, merge
from headgate.schema.formats.avro.read import read_schema as read_avro_schema
from headgate.schema.formats.jsonschema.read import read_schema as read_json_schema
from headgate.schema.formats.protobuf import from_protobuf
from headgate.schema.formats.protobuf.protoc import read_files
from headgate.schema.formats.regex import read_pattern
from headgate.schema.types import Bytes, Field, Json, Record, Text, Type
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql.formats import (
    AvroInline,
    BytesFormat,
    CsvFormat,
    Format,
    Formats,
    JsonFormat,
    ProtobufInline,
    RegexFormat,
    TextFormat,
    frozen_schemas,
)
from headgate.sql.options import BooleanLiteral, option
from headgate.sql.registry_formats import RegistryFormat, RegistryKind, Side


@dataclass(frozen=True, slots=True)
class TextSide:
    """The bytes are one UTF-8 text."""


@dataclass(frozen=True, slots=True)
class BytesSide:
    """The bytes as they are."""


@dataclass(frozen=True, slots=True)
class JsonSide:
    """The bytes are one JSON text."""


@dataclass(frozen=True, slots=True)
class CsvSide:
    """The bytes are one line of delimited text with exactly these columns, all text."""

    columns: tuple[str, ...]
    delimiter: str = ","


@dataclass(frozen=True, slots=True)
class RegexSide:
    """The bytes are a text that the pattern matches; its groups are the columns. ``pattern`` is Java's."""

    pattern: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaSide:
    """Avro, Protobuf or JSON Schema. ``schemas`` begins with the one frozen at creation; behind it stand those that
    were followed since, in the order in which they came.

    ``framed`` values begin with the id of the schema they were written with, which the registry knows.
    """

    kind: RegistryKind
    schemas: tuple[WrittenSchema, ...]
    framed: bool = True
    message: str | None = None

    @property
    def first(self) -> WrittenSchema:
        return self.schemas[0]


FieldPath: TypeAlias = tuple[str, ...]  # names from the outermost record inwards; empty for the whole
SidePlan: TypeAlias = TextSide | BytesSide | JsonSide | CsvSide | RegexSide | SchemaSide


# from a statement


def sides_of(formats: Formats) -> tuple[SidePlan, SidePlan | None]:
    """How values and keys are read. A bare TEXT, BYTES or JSON holds for the key too, a registry's if it has a key."""
    value = _side(formats.value, "VALUE")
    assert value is not None
    if formats.key is not None:
        return value, _side(formats.key, "KEY")
    if isinstance(formats.value, AvroInline | ProtobufInline | CsvFormat | RegexFormat):
        return value, None
    if isinstance(formats.value, RegistryFormat):  # a message that is named is the value's
        return value, _side(replace(formats.value, message=None), "KEY")
    return value, _side(formats.value, "KEY")


def _side(format_: Format, side: Side) -> SidePlan | None:
    match format_:
        case TextFormat():
            return TextSide()
        case BytesFormat():
            return BytesSide()
        case JsonFormat():
            return JsonSide()
        case AvroInline():
            framed = option(format_.options, "CONFLUENT WIRE FORMAT")
            return SchemaSide("AVRO", (WrittenSchema(format_.schema),), framed != BooleanLiteral(False))
        case ProtobufInline(message, schema):
            return SchemaSide(
                "PROTOBUF", (WrittenSchema(schema, format=SchemaFormat.PROTOBUF),), False, message
            )
        case CsvFormat():
            return _csv_side(format_)
        case RegexFormat():
            return _regex_side(format_)
        case RegistryFormat():
            return _registry_side(format_, side)
        case _:
            assert_never(format_)


def _csv_side(format_: CsvFormat) -> CsvSide:
    delimiter = "," if format_.delimiter is None else format_.delimiter
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise DelimiterNotOneCharacter(delimiter)
    if format_.header is not None:
        return CsvSide(_distinct("CSV", [i.name for i in format_.header]), delimiter)
    if not format_.columns:
        raise CsvWithoutColumns
    return CsvSide(tuple(f"column{n}" for n in range(1, format_.columns + 1)), delimiter)


def _regex_side(format_: RegexFormat) -> RegexSide:
    pattern = read_pattern(format_.pattern)
    if not pattern.names:
        raise PatternWithoutGroups
    names = [name or f"column{n}" for n, name in enumerate(pattern.names, 1)]
    return RegexSide(pattern.java, _distinct("REGEX", names))


def _distinct(format_: str, names: list[str]) -> tuple[str, ...]:
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise FormatColumnTwice(format_, twice)
    return tuple(names)


def _registry_side(format_: RegistryFormat, side: Side) -> SchemaSide | None:
    """The side's frozen schemas. A format given for the key alone holds only seeds of its own side."""
    seeds = frozen_schemas(format_, side)
    if not seeds:
        return None
    schema_format = SchemaFormat.from_words(format_.kind)
    schemas = tuple(WrittenSchema(s.schema, s.references, s.id, schema_format) for s in seeds)
    return SchemaSide(format_.kind, schemas, True, format_.message)


def format_words(format_: Format) -> str:
    """How a format is written, as far as its name goes."""
    match format_:
        case TextFormat():
            return "TEXT"
        case BytesFormat():
            return "BYTES"
        case JsonFormat():
            return "JSON"
        case CsvFormat():
            return "CSV"
        case RegexFormat():
            return "REGEX"
        case AvroInline():
            return "AVRO USING SCHEMA"
        case ProtobufInline():
            return "PROTOBUF USING SCHEMA"
        case RegistryFormat(kind):
            return kind
        case _:
            assert_never(format_)


# what it gives


@lru_cache(maxsize=1024)
def place_of(side: SidePlan) -> Field:
    """The type of the whole side, whether it may be null though the bytes are there, and its doc; the name says nothing."""
    match side:
        case TextSide():
            return Field("text", Text(), False)
        case BytesSide():
            return Field("data", Bytes(), False)
        case JsonSide():
            return Field("data", Json(), False)
        case CsvSide(columns) | RegexSide(columns=columns):
            optional = isinstance(side, RegexSide)
            return Field("data", Record(tuple(Field(c, Text(), optional) for c in columns)), False)
        case SchemaSide():
            places = [schema_place(side.kind, schema, side.message) for schema in side.schemas]
            return reduce(lambda known, arriving: followed(known, arriving, accept=True), places)


def at_creation(side: SidePlan) -> SidePlan:
    """The side before any schema was followed."""
    return replace(side, schemas=side.schemas[:1]) if isinstance(side, SchemaSide) else side


def followed(known: Field, arriving: Field, *, accept: bool = False) -> Field:
    """What a side gives after a schema was followed, or with ``accept`` after a change was accepted."""
    merged = merge(Record((known,)), Record((replace(arriving, name=known.name),)), accept=accept)
    return merged.fields[0]


def usable(side: SchemaSide, schema: WrittenSchema) -> bool:
    """Whether a schema has a type at all."""
    return _no_type(side, schema) is None


def _no_type(side: SchemaSide, schema: WrittenSchema) -> SchemaError | None:
    try:
        schema_place(side.kind, schema, side.message)
    except SchemaError as wrong:
        return wrong
    return None


@lru_cache(maxsize=1024)
def unreadable(side: SchemaSide, schema: WrittenSchema) -> tuple[FieldPath, ...]:
    """The fields that a schema changed so that a reader cannot follow by itself. If there are any, nothing of the schema
    is followed: then all fields are among them whose values the side has no room for as it is."""
    known, arriving = place_of(side), schema_place(side.kind, schema, side.message)
    # What a schema that was accepted has, may come again.
    taken = [schema_place(side.kind, one, side.message) for one in side.schemas]
    if _readable([one.type for one in (followed(known, arriving), *taken)], arriving.type):
        return ()
    within = [{*_without_room(one, arriving, ())} for one in taken]
    return tuple(
        path
        for path in _without_room(known, arriving, ())
        if all(any(path[:n] in broken for n in range(len(path) + 1)) for broken in within)
    )


def _readable(known: Sequence[Type], type_: Type) -> bool:
    """Whether all of a type can be read as one of those, each field by itself."""
    if any(can_hold(one, type_) for one in known):
        return True
    records = [one for one in known if isinstance(one, Record)]
    if not isinstance(type_, Record) or not records:
        return False
    return all(
        _readable([found.type for one in records if (found := one.field(field.name))], field.type)
        for field in type_.fields
    )


def _without_room(known: Field, arriving: Field, path: FieldPath) -> Iterator[FieldPath]:
    """The fields that a place cannot hold as it is: of another type, too wide, null where nothing may be, missing, new."""
    if arriving.nullable and not known.nullable:
        yield path
    elif isinstance(known.type, Record) and isinstance(arriving.type, Record):
        for field in known.type.fields:
            found = arriving.type.field(field.name)
            if found is not None:
                yield from _without_room(field, found, (*path, field.name))
            elif not field.nullable:
                yield (*path, field.name)
        yield from ((*path, f.name) for f in arriving.type.fields if known.type.field(f.name) is None)
    elif not can_hold(known.type, arriving.type):
        yield path


@lru_cache(maxsize=1024)
def grows(side: SchemaSide, schema: WrittenSchema) -> bool:
    """Whether following the schema would change what the side gives."""
    known = place_of(side)
    return followed(known, schema_place(side.kind, schema, side.message)) != known


def differences(side: SchemaSide, schema: WrittenSchema) -> tuple[str, ...]:
    """What a schema changes, in words."""
    if (wrong := _no_type(side, schema)) is not None:
        return (f"it cannot be read: {wrong.message()}",)
    known, arriving = place_of(side), schema_place(side.kind, schema, side.message)
    old = known.type if isinstance(known.type, Record) else Record((known,))
    new = (
        arriving.type if isinstance(arriving.type, Record) else Record((replace(arriving, name=known.name),))
    )
    return tuple(
        c.describe() for c in diff(old, new) if not isinstance(c, DocChanged | TypeRenamed | FieldMoved)
    )


@lru_cache(maxsize=1024)
def schema_place(kind: RegistryKind, schema: WrittenSchema, message: str | None = None) -> Field:
    """The type that values written with a schema have. ``message``: of a Protobuf file, the first unless it is named."""
    match kind:
        case "AVRO":
            type_, nullable = read_avro_schema(schema.text, [text for _, text in schema.references])
        case "JSON SCHEMA":
            type_, nullable = read_json_schema(schema.text, dict(schema.references))
        case "PROTOBUF":
            file, *imported = read_files(schema.text, schema.references)
            type_, nullable = from_protobuf(file, message, imported), False
        case _:
            assert_never(kind)
    return Field("value", type_, nullable, type_.doc if isinstance(type_, Record) else None)


def fields_of(side: SidePlan) -> tuple[Field, ...] | None:
    """The fields of a side that has some."""
    place = place_of(side)
    return place.type.fields if isinstance(place.type, Record) else None
