"""The formats of CREATE STREAM and CREATE TABLE … AS SELECT: those that the hidden sink writes, with the schemas of given ids, and
those that the stream reads, with the schemas that are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from headgate.catalog.objects import Object
from headgate.errors import joined
from headgate.plan import streams
from headgate.plan.definitions import SinkDefinition
from headgate.plan.errors import NotSupportedYet
from headgate.resolve import stream_errors as errors
from headgate.resolve.statements import TakenSchema, registry_server, topic_name
from headgate.resolve.streams import (
    FORMAT_NAMES,
    KAFKA_TYPES,
    REGISTRY,
    StreamSide,
    check_properties,
    check_side,
    connection_name,
    delimited_format,
    key_side,
    own_name,
    read_format,
    read_statement,
    value_side,
)
from headgate.schema.names import force_quotes
from headgate.schema.render import print_type
from headgate.schema.types import Bigint, Bytes, Double, Integer, Text
from headgate.schema.written import SchemaFormat
from headgate.sql.formats import (
    BytesFormat,
    CsvFormat,
    Format,
    Formats,
    JsonFormat,
    JsonInline,
    PrimitiveFormat,
    TextFormat,
    with_frozen_schemas,
)
from headgate.sql.registry_formats import (
    FrozenSchema,
    PendingId,
    RegistryFormat,
    Side,
    WriteFormatOptions,
    subject_name,
)
from headgate.sql.sinks import CreateSink
from headgate.sql.streams import CreateStreamAs, StreamFormat, StreamProperties

_DEFAULTS: Mapping[type[Format], StreamFormat] = {
    JsonInline: "json",
    JsonFormat: "json",
    TextFormat: "kafka",
    BytesFormat: "kafka",
    PrimitiveFormat: "kafka",
    CsvFormat: "delimited",
}


def with_formats(given: StreamProperties, source: Object | None, keys: Sequence[str]) -> StreamProperties:
    """The properties with the formats of the query's source where the statement names none."""
    if given.format is not None or source is None:
        return given
    key, value = _formats_of(source)
    found = replace(
        given, value_format=given.value_format or value, key_format=given.key_format or (key if keys else None)
    )
    return _with_delimiters(found, given, source)


def _with_delimiters(found: StreamProperties, given: StreamProperties, source: Object) -> StreamProperties:
    """The properties with the delimiter of the query's source where its format is taken."""
    formats = read_statement(source).formats
    if given.value_format is None and given.value_delimiter is None and isinstance(formats.value, CsvFormat):
        found = replace(found, value_delimiter=formats.value.delimiter)
    if given.key_format is None and given.key_delimiter is None and isinstance(formats.key, CsvFormat):
        found = replace(found, key_delimiter=formats.key.delimiter if found.key_format else None)
    return found


def _formats_of(source: Object) -> tuple[StreamFormat | None, StreamFormat | None]:
    """The formats of keys and values of a relation that is read from a topic."""

    def name(format_: Format | None) -> StreamFormat | None:
        if isinstance(format_, RegistryFormat):
            return FORMAT_NAMES[format_.kind]  # type: ignore[return-value]
        return None if format_ is None else _DEFAULTS.get(type(format_))

    formats = read_statement(source).formats
    return name(formats.key if formats.key is not None else formats.value), name(formats.value)


def check_sides(statement: CreateStreamAs, keys: Sequence[str]) -> None:
    """The rules for the formats and ids of both sides, once the columns of the query are known."""
    given, who = statement.properties, own_name(statement)
    check_properties(statement)
    if given.key_schema_id is not None and not keys:
        raise errors.StreamWithoutKey(*who)
    for side in (key_side(statement), value_side(statement)):
        check_side(statement, side)
        if side.side == "KEY" and keys and given.key_format == "none":
            reason = f"{joined([force_quotes(key) for key in keys], 'and')} would be the key, and PARTITION BY NULL takes the key away"
            raise errors.PropertyWithoutMeaning(*who, "key_format", reason)
        if side.format is None and (side.side == "VALUE" or keys):
            raise errors.StreamFormatMissing(*who, side.word)
    values = value_side(statement).columns
    if given.wrap_single_value is False and len(values) != 1:
        raise errors.PropertyWithoutMeaning(*who, "wrap_single_value", f"the value has {len(values)} columns")


# writing


def write_formats(statement: CreateStreamAs, keys: Sequence[str], taken: Sequence[TakenSchema]) -> Formats:
    """The formats of the sink. ``taken`` are the schemas of the given ids, as the registry returned them."""
    value = _write_format(statement, value_side(statement), taken)
    return Formats(value, _write_format(statement, key_side(statement), taken) if keys else None)


def _write_format(statement: CreateStreamAs, side: StreamSide, taken: Sequence[TakenSchema]) -> Format:
    match side.format:
        case "avro" | "protobuf" | "json_sr":
            return _registry_format(statement, side, _given_schema(statement, side, taken))
        case "json":
            return JsonFormat(single=_is_single(statement, side))
        case "kafka":
            return _primitive(statement, side)
        case "delimited":
            return delimited_format(statement, side)
        case _:
            raise NotSupportedYet(f"the format {side.format} with AS")


def _primitive(statement: CreateStreamAs, side: StreamSide) -> Format:
    if len(side.columns) != 1:
        raise errors.FormatOfOneColumn(*own_name(statement), side.word, "kafka", len(side.columns))
    match side.columns[0].type:
        case Text():
            return TextFormat()
        case Bytes():
            return BytesFormat()
        case Integer():
            return PrimitiveFormat("integer")
        case Bigint():
            return PrimitiveFormat("bigint")
        case Double():
            return PrimitiveFormat("double")
        case other:
            column = side.columns[0].name.name
            raise errors.FormatCannotHold(
                *own_name(statement), side.word, "kafka", column, print_type(other), KAFKA_TYPES
            )


def _registry_format(statement: CreateStreamAs, side: StreamSide, given: FrozenSchema | None) -> RegistryFormat:
    assert side.format is not None
    names = [s.full_name for s in (key_side(statement), value_side(statement)) if s.schema_id is None]
    # As in the schemas of declared columns: a column that OR REPLACE adds then fits earlier versions of the subject.
    options = WriteFormatOptions(null_defaults=side.format == "avro" and side.schema_id is None)
    named = any(names) and side.schema_id is None and not _is_single(statement, side)
    full = (side.full_name or streams.RECORD_NAMES[side.side]) if named else None
    if side.side == "KEY":
        options = replace(options, key_schema_id=side.schema_id, avro_key_fullname=full)
    else:
        options = replace(options, value_schema_id=side.schema_id, avro_value_fullname=full)
    message = side.full_name if side.format == "protobuf" and side.schema_id is not None else None
    registry = connection_name(statement.properties.registry, "registry")
    frozen = () if given is None else (given,)
    return RegistryFormat(REGISTRY[side.format], registry, options, frozen=frozen, message=message)


def _is_single(statement: CreateStreamAs, side: StreamSide) -> bool:
    return side.side == "VALUE" and side.schema_id is None and statement.properties.wrap_single_value is False


def with_single_schema(sink: CreateSink, statement: CreateStreamAs) -> CreateSink:
    """The sink with the schema of the one column of its value, if that has no record around it."""
    format_, side = sink.formats.value, value_side(statement)
    if not isinstance(format_, RegistryFormat) or not _is_single(statement, side):
        return sink
    text = streams.generated(statement, side)
    pending = PendingId(registry_server(format_.registry), subject_name(topic_name(sink.kafka), "VALUE"))
    schema = FrozenSchema("VALUE", pending, text, single=True)
    return replace(sink, formats=with_frozen_schemas(sink.formats, "VALUE", (schema,)))


def _given_schema(statement: CreateStreamAs, side: StreamSide, taken: Sequence[TakenSchema]) -> FrozenSchema | None:
    """The schema of the given id, as the registry returned it."""
    schema = next((schema for of, schema in taken if of == side.side), None)
    if side.schema_id is None or schema is None:
        return None
    assert side.format is not None
    wanted = SchemaFormat.from_words(REGISTRY[side.format])
    if schema.format is not wanted:
        found = schema.format.words
        raise errors.SchemaIdOfOtherFormat(
            *own_name(statement), side.word, side.schema_id, found, wanted.words, FORMAT_NAMES[found]
        )
    # The message may stand in a schema that the given one imports: then records have the id of that one.
    return FrozenSchema(side.side, schema.id or side.schema_id, schema.text, schema.references)


# reading


def read_formats(statement: CreateStreamAs, sink: SinkDefinition, pending: Mapping[Side, PendingId]) -> Formats:
    """The formats of the stream with the schemas that the sink writes. ``pending`` are the ids that are not known yet."""

    def reading(side: StreamSide) -> Format:
        format_ = read_format(statement, side)
        encoded = sink.key if side.side == "KEY" else sink.value
        if not isinstance(format_, RegistryFormat) or encoded is None or encoded.schema is None:
            return format_
        id_ = pending.get(side.side, encoded.schema_id)
        assert id_ is not None
        return replace(format_, frozen=(FrozenSchema(side.side, id_, encoded.schema, encoded.references),))

    key = reading(key_side(statement)) if sink.key is not None else None
    return Formats(reading(value_side(statement)), key)
