"""How the bytes of a record's key or value are read, and the type that they have.

An encoding is plain data. It is made from the FORMAT clause of a statement, with the schemas that were frozen into it,
and the runtime builds a decoder from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias, assert_never

from headgate.schema import types as t
from headgate.schema.errors import SchemaError
from headgate.schema.evolve import renames
from headgate.schema.evolve.merge import merge_fields, with_past
from headgate.schema.formats.avro.read import read_schema as read_avro
from headgate.schema.formats.jsonschema.read import read_schema as read_json_schema
from headgate.schema.formats.protobuf import from_protobuf, read_files
from headgate.schema.written import SchemaFormat, WrittenSchema


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """The bytes are one UTF-8 text."""


@dataclass(frozen=True, slots=True)
class BytesEncoding:
    """The bytes are taken as they are."""


@dataclass(frozen=True, slots=True)
class JsonEncoding:
    """The bytes are one JSON text."""


@dataclass(frozen=True, slots=True)
class PrimitiveEncoding:
    """The bytes are one number in big-endian order, as Kafka's own serialisers write it."""

    type: t.Integer | t.Bigint | t.Double


@dataclass(frozen=True, slots=True)
class CsvEncoding:
    """The bytes are one line of delimited text with exactly these columns. All of them are text unless ``types`` says otherwise: then a
    field that is empty and not in quotes is null."""

    columns: tuple[str, ...]
    delimiter: str = ","
    types: tuple[t.Type, ...] = ()


@dataclass(frozen=True, slots=True)
class RegexEncoding:
    """The bytes are a text that the pattern matches. Its groups are the columns. ``pattern`` is written for Java."""

    pattern: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaEncoding:
    """The bytes are an Avro, Protobuf or JSON Schema value.

    ``schemas`` begins with the schema that was frozen at creation. The schemas that were followed since come after it,
    in the order in which they arrived. ``framed`` values begin with the id of the schema that they were written with.
    ``message`` names the message of a Protobuf file; None stands for the first one. ``past`` are the earlier versions
    of the subject that matter for the fields of the frozen schema: for their names and defaults, and for whether they
    may be null. ``fills`` says that a field which a record lacks has its default or is null, also where the rules of
    the format would refuse the record. ``as_json`` are places of JSON documents whose values are
    kept as json whatever their schemas say: a number keeps every digit then.
    """

    format: SchemaFormat
    schemas: tuple[WrittenSchema, ...]
    framed: bool = True
    message: str | None = None
    past: tuple[WrittenSchema, ...] = ()
    fills: bool = False
    as_json: tuple[t.Place, ...] = ()

    @property
    def first(self) -> WrittenSchema:
        """The schema that was frozen when the source was created."""
        return self.schemas[0]


Encoding: TypeAlias = (
    TextEncoding | BytesEncoding | JsonEncoding | PrimitiveEncoding | CsvEncoding | RegexEncoding | SchemaEncoding
)
FieldPath: TypeAlias = tuple[str, ...]
"""Names of fields from the outermost record inwards. The empty path stands for the whole value."""


@lru_cache(maxsize=1024)
def decoded_type(encoding: Encoding) -> t.Field:
    """The type of the whole value, whether it may be null although there are bytes, and its doc. The name of the field
    is only a default for the column."""
    match encoding:
        case TextEncoding():
            return t.Field("text", t.Text(), False)
        case BytesEncoding():
            return t.Field("data", t.Bytes(), False)
        case JsonEncoding():
            return t.Field("data", t.Json(), False)
        case PrimitiveEncoding():
            return t.Field("value", encoding.type, False)
        case CsvEncoding(columns, types=types) if types:
            return t.Field("data", t.Record(tuple(map(t.Field, columns, types))), False)
        case CsvEncoding(columns) | RegexEncoding(columns=columns):
            optional = isinstance(encoding, RegexEncoding)
            return t.Field("data", t.Record(tuple(t.Field(c, t.Text(), optional) for c in columns)), False)
        case SchemaEncoding():
            *_, whole = (_followed_type(part) for part in _as_followed(encoding))
            return whole


def _as_followed(encoding: SchemaEncoding) -> Iterator[SchemaEncoding]:
    """The encoding as it was at creation, and after each schema that it followed. What is known of one serves the next: without
    that, the time to follow a schema would grow with the number of those before it, and its square."""
    for count in range(1, len(encoding.schemas) + 1):
        yield replace(encoding, schemas=encoding.schemas[:count])


@lru_cache(maxsize=1024)
def _followed_type(encoding: SchemaEncoding) -> t.Field:
    """The type of all schemas of an encoding. Ask for those of `_as_followed` one after the other."""
    *before, last = encoding.schemas
    if not before:
        return with_past(_type(encoding, last), [type_in(encoding, schema) for schema in encoding.past])
    known = _followed_type(replace(encoding, schemas=tuple(before)))
    return merge_fields(known, type_in(encoding, last), accept=True)


def _type(encoding: SchemaEncoding, schema: WrittenSchema) -> t.Field:
    """The type of values of a schema, with the names of the schema."""
    found = type_of_schema(encoding.format, schema, encoding.message)
    return replace(found, type=t.with_json(found.type, encoding.as_json)) if encoding.as_json else found


@lru_cache(maxsize=1024)
def type_in(encoding: SchemaEncoding, schema: WrittenSchema) -> t.Field:
    """The type of values of a schema, with the names that the side has for its fields."""
    written = _type(encoding, schema)
    return replace(written, type=renames.renamed_type(written.type, names_in(encoding, schema)))


@lru_cache(maxsize=1024)
def names_in(encoding: SchemaEncoding, schema: WrittenSchema) -> renames.KnownFields:
    """The fields of a schema, and the names that the side has for them."""
    fields = renames.members(encoding.format, schema, encoding.message)
    if schema in encoding.past:
        return past_fields(encoding)[encoding.past.index(schema)]
    if schema in encoding.schemas:
        return known_fields(encoding)[encoding.schemas.index(schema)]
    return renames.names_of_later(known_fields(encoding), fields)


@lru_cache(maxsize=1024)
def known_fields(encoding: SchemaEncoding) -> tuple[renames.KnownFields, ...]:
    """The same for each schema of the side, oldest first."""
    *_, found = (_followed_fields(part.format, part.message, part.schemas) for part in _as_followed(encoding))
    return found


@lru_cache(maxsize=1024)
def _followed_fields(
    format_: SchemaFormat, message: str | None, schemas: tuple[WrittenSchema, ...]
) -> tuple[renames.KnownFields, ...]:
    *before, last = schemas
    fields = renames.members(format_, last, message)
    if not before:
        return (renames.own_names(fields),)
    known = _followed_fields(format_, message, tuple(before))
    return (*known, renames.names_of_later(known, fields))


@lru_cache(maxsize=1024)
def past_fields(encoding: SchemaEncoding) -> tuple[renames.KnownFields, ...]:
    """The same for each earlier version, oldest first. A name may have changed several times."""
    later = [known_fields(encoding)[0]]
    for schema in reversed(encoding.past):
        later.insert(0, renames.names_of_earlier(later, renames.members(encoding.format, schema, encoding.message)))
    return tuple(later[:-1])


def needed_past(encoding: SchemaEncoding, versions: Sequence[WrittenSchema]) -> tuple[WrittenSchema, ...]:
    """Those of the earlier versions, given oldest first, without which records would be read in another way. A version
    that cannot be read counts for nothing."""
    if _readable(encoding, encoding.first) is None:  # planning says why
        return ()
    past = [schema for schema in versions if _readable(encoding, schema) is not None]
    whole = _read_by(encoding, past)
    for one in reversed(past[:]):
        rest = [other for other in past if other is not one]
        if _read_by(encoding, rest) == whole:
            past = rest
    return tuple(past)


def _read_by(encoding: SchemaEncoding, past: Sequence[WrittenSchema]) -> str:
    """How records are read with these earlier versions. Not compared as types: equal fields may have other defaults."""
    known = replace(encoding, past=tuple(past))
    return repr((decoded_type(known), _aliases(past_fields(known))))


def _aliases(past: Sequence[renames.KnownFields]) -> list[str]:
    """The names that fields had in earlier versions."""
    found = {repr((one.name, one.member.name)) for version in past for one in version if one.name != one.member.name}
    return sorted(found)


def _readable(encoding: SchemaEncoding, schema: WrittenSchema) -> t.Field | None:
    """The same; None if the schema cannot be read."""
    try:
        return _type(encoding, schema)
    except SchemaError:
        return None


def fields_of(encoding: Encoding) -> tuple[t.Field, ...] | None:
    """The fields of the decoded value, or None if it is not a record."""
    type_ = decoded_type(encoding).type
    return type_.fields if isinstance(type_, t.Record) else None


def without_followed_schemas(encoding: Encoding) -> Encoding:
    """The encoding as it was at creation."""
    return replace(encoding, schemas=encoding.schemas[:1]) if isinstance(encoding, SchemaEncoding) else encoding


def by_format_rules(encoding: Encoding) -> Encoding:
    """The encoding that knows only its own schemas: earlier records are resolved by the rules of the format."""
    return replace(encoding, past=()) if isinstance(encoding, SchemaEncoding) else encoding


def filling(encoding: Encoding) -> Encoding:
    """The encoding that fills what records lack."""
    return replace(encoding, fills=True) if isinstance(encoding, SchemaEncoding) else encoding


@lru_cache(maxsize=1024)
def type_of_schema(format_: SchemaFormat, schema: WrittenSchema, message: str | None = None) -> t.Field:
    """The type of values that are written with a schema, if the text is read in this format. ``message`` names the
    message of a Protobuf file; None stands for the first one."""
    match format_:
        case SchemaFormat.AVRO:
            type_, nullable = read_avro(schema.text, [text for _, text in schema.references])
        case SchemaFormat.JSON:
            type_, nullable = read_json_schema(schema.text, dict(schema.references))
        case SchemaFormat.PROTOBUF:
            file, *imported = read_files(schema.text, schema.references)
            type_, nullable = from_protobuf(file, message, imported), False
        case _:
            assert_never(format_)
    return t.Field("value", type_, nullable, type_.doc if isinstance(type_, t.Record) else None)


# Change events as Debezium writes them: the row before and after a change, in one record. They are the same in every format.

BEFORE, AFTER = "before", "after"
ROW = "row"  # the name of the record of a row inside an event

EVENT_DOC = "A change of one row."
BEFORE_DOC = "The row before the change. Null if the change added the row."
AFTER_DOC = "The row after the change. Null if the change removed the row."


def change_event(row: t.Record) -> t.Record:
    """The record of a change of such rows. The doc of the rows stays with them."""
    named = replace(row, name=ROW)
    return t.Record((t.Field(BEFORE, named, True, BEFORE_DOC), t.Field(AFTER, named, True, AFTER_DOC)), doc=EVENT_DOC)
