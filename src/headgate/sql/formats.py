"""Formats of topics and files: how bytes become rows and rows bytes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, assert_never

from headgate.errors import Span
from headgate.sql.errors import MissingRegistry, RegistryGivenTwice, RepeatedClause, RepeatedOption
from headgate.sql.kafka import Kafka, KafkaBroker, KafkaConnection
from headgate.sql.options import (
    Option,
    OptionRule,
    OptionTable,
    ValueKind,
    items,
    map_literal,
    one_option,
    options,
    print_map,
    print_option,
    print_options,
)
from headgate.sql.statement import (
    ObjectName,
    block,
    column_name,
    object_name,
    print_identifiers,
    print_name,
    print_string,
    words,
)
from headgate.text.cursor import Cursor, Identifier
from headgate.text.lexer import TokenKind

Side: TypeAlias = Literal["KEY", "VALUE"]
RegistryKind: TypeAlias = Literal["AVRO", "PROTOBUF", "JSON SCHEMA"]


@dataclass(frozen=True, slots=True)
class TextFormat:
    pass


@dataclass(frozen=True, slots=True)
class BytesFormat:
    pass


@dataclass(frozen=True, slots=True)
class JsonFormat:
    pass


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """``columns``: so many, without names. ``header``: named columns. Neither: the file's own header line."""

    columns: int | None = None
    header: tuple[Identifier, ...] | None = None
    delimiter: str | None = None


@dataclass(frozen=True, slots=True)
class RegexFormat:
    pattern: str


@dataclass(frozen=True, slots=True)
class AvroInline:
    """A schema in the statement. Options: CONFLUENT WIRE FORMAT."""

    schema: str
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class ProtobufInline:
    message: str
    schema: str


@dataclass(frozen=True, slots=True)
class LatestStrategy:
    pass


@dataclass(frozen=True, slots=True)
class IdStrategy:
    id: int


@dataclass(frozen=True, slots=True)
class InlineStrategy:
    schema: str


@dataclass(frozen=True, slots=True)
class SchemaStrategy:
    """``KEY|VALUE STRATEGY``: which of a subject's schemas is the reader's."""

    side: Side
    strategy: LatestStrategy | IdStrategy | InlineStrategy


@dataclass(frozen=True, slots=True)
class SeedSchema:
    """A registry's answer, frozen: ``SEED KEY SCHEMA ID 3 '…'``; references by name, those needed by others first."""

    side: Side
    id: int
    schema: str
    references: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DocTarget:
    """What ``[KEY|VALUE] DOC ON TYPE|COLUMN name`` speaks of. Without a side: both schemas."""

    side: Side | None
    on: Literal["TYPE", "COLUMN"]
    name: ObjectName


@dataclass(frozen=True, slots=True)
class DocOn:
    target: DocTarget
    doc: str


FormatOption: TypeAlias = Option | DocOn | SchemaStrategy | SeedSchema


@dataclass(frozen=True, slots=True)
class RegistryUrl:
    url: str


@dataclass(frozen=True, slots=True)
class RegistryFormat:
    """Schemas in a registry: a connection, or the address of one. ``message``: of several in one Protobuf file."""

    kind: RegistryKind
    registry: ObjectName | RegistryUrl
    options: tuple[FormatOption, ...] = ()
    message: str | None = None


Format: TypeAlias = (
    TextFormat
    | BytesFormat
    | JsonFormat
    | CsvFormat
    | RegexFormat
    | AvroInline
    | ProtobufInline
    | RegistryFormat
)


@dataclass(frozen=True, slots=True)
class Formats:
    """``FORMAT f`` (without a key) or ``KEY FORMAT f VALUE FORMAT f``."""

    value: Format
    key: Format | None = None


def frozen_schemas(format_: Format, side: Side) -> tuple[SeedSchema, ...]:
    """The schemas that the format holds for a side, oldest first."""
    options = format_.options if isinstance(format_, RegistryFormat) else ()
    return tuple(o for o in options if isinstance(o, SeedSchema) and o.side == side)


def format_of(formats: Formats, side: Side) -> Format:
    """The format that holds the schemas of a side. One that is given without KEY and VALUE holds those of both."""
    return formats.key if side == "KEY" and formats.key is not None else formats.value


def with_frozen_schemas(formats: Formats, side: Side, schemas: Sequence[SeedSchema]) -> Formats:
    """Replace the schemas of one side."""
    format_ = format_of(formats, side)
    assert isinstance(format_, RegistryFormat)
    kept = tuple(o for o in format_.options if not (isinstance(o, SeedSchema) and o.side == side))
    changed = replace(format_, options=(*kept, *schemas))
    return replace(formats, key=changed) if format_ is formats.key else replace(formats, value=changed)


def without_frozen_schemas(formats: Formats) -> Formats:
    return Formats(_without_frozen(formats.value), _without_frozen(formats.key) if formats.key else None)


def _without_frozen(format_: Format) -> Format:
    if not isinstance(format_, RegistryFormat):
        return format_
    return replace(format_, options=tuple(o for o in format_.options if not isinstance(o, SeedSchema)))


READ_FORMAT_OPTIONS = OptionTable(
    "the format",
    (OptionRule("CONFLUENT WIRE FORMAT", ValueKind.BOOLEAN),),
    also=(
        "KEY STRATEGY",
        "VALUE STRATEGY",
        "CONFLUENT SCHEMA REGISTRY",
        "SEED KEY SCHEMA",
        "SEED VALUE SCHEMA",
    ),
)
_LEVELS = (
    "BACKWARD_TRANSITIVE",
    "BACKWARD",
    "FORWARD_TRANSITIVE",
    "FORWARD",
    "FULL_TRANSITIVE",
    "FULL",
    "NONE",
)
WRITE_FORMAT_OPTIONS = OptionTable(
    "the format",
    (
        OptionRule("AVRO KEY FULLNAME", ValueKind.STRING, aliases=("KEY FULLNAME",)),
        OptionRule("AVRO VALUE FULLNAME", ValueKind.STRING, aliases=("VALUE FULLNAME",)),
        OptionRule("NULL DEFAULTS", ValueKind.BOOLEAN),
        OptionRule("KEY COMPATIBILITY LEVEL", ValueKind.CHOICE, _LEVELS),
        OptionRule("VALUE COMPATIBILITY LEVEL", ValueKind.CHOICE, _LEVELS),
        OptionRule("KEY SCHEMA ID", ValueKind.INTEGER),
        OptionRule("VALUE SCHEMA ID", ValueKind.INTEGER),
        OptionRule("IGNORE COMMENTS", ValueKind.BOOLEAN),
    ),
    also=(
        "DOC ON TYPE", "DOC ON COLUMN", "KEY DOC ON TYPE", "KEY DOC ON COLUMN", "VALUE DOC ON TYPE",
        "VALUE DOC ON COLUMN", "CONFLUENT SCHEMA REGISTRY", "SEED KEY SCHEMA", "SEED VALUE SCHEMA",
    ),
)  # fmt: skip
_INLINE_OPTIONS = OptionTable("the format", READ_FORMAT_OPTIONS.rules)

TABLES = {"inline option": _INLINE_OPTIONS, "plain write format option": WRITE_FORMAT_OPTIONS}

RULES = {
    "read formats": "{FORMAT <read format> | KEY FORMAT <read format> VALUE FORMAT <read format>}",
    "write formats": "{FORMAT <write format> | KEY FORMAT <write format> VALUE FORMAT <write format>}",
    "read format": "{TEXT | BYTES | JSON | <csv> | REGEX <string>"
    " | AVRO USING SCHEMA <string> [(<inline option> [, ...])]"
    " | PROTOBUF MESSAGE <string> USING SCHEMA <string>"
    " | <registry kind> USING <registry> [(<read format option> [, ...])]}",
    "csv": "CSV [WITH {<number> COLUMNS | HEADER (<column> [, ...])}] [DELIMITED BY <string>]",
    "registry kind": "{AVRO | PROTOBUF [MESSAGE <string>] | JSON SCHEMA}",
    "registry": "CONFLUENT SCHEMA REGISTRY {CONNECTION <name> | <string>}",
    "read format option": "{{KEY | VALUE} STRATEGY = {LATEST | ID <number> | INLINE <string>} | <seed>}",
    "seed": "SEED {KEY | VALUE} SCHEMA ID <number> <string> [REFERENCES <map>]",
    "write format": "{<registry kind> USING <registry> [(<write format option> [, ...])]"
    " | <registry kind> (CONFLUENT SCHEMA REGISTRY = {CONNECTION <name> | <string>} [, <write format option>])"
    " | JSON | TEXT | BYTES}",
    "write format option": "{<doc target> = <string> | <plain write format option> | <seed>}",
    "doc target": "[KEY | VALUE] DOC ON {TYPE <name> | COLUMN <name>.<column>}",
}


def formats(cursor: Cursor, table: OptionTable) -> Formats:
    """The format clause that must come next."""
    if cursor.take("KEY FORMAT"):
        key = format_(cursor, table)
        cursor.expect("VALUE FORMAT")
        return Formats(format_(cursor, table), key)
    cursor.expect("FORMAT")
    return Formats(format_(cursor, table))


def format_(cursor: Cursor, table: OptionTable) -> Format:
    match cursor.choose("TEXT", "BYTES", "JSON SCHEMA", "JSON", "CSV", "REGEX", "AVRO", "PROTOBUF"):
        case "TEXT":
            return TextFormat()
        case "BYTES":
            return BytesFormat()
        case "JSON":
            return JsonFormat()
        case "CSV":
            return _csv(cursor)
        case "REGEX":
            return RegexFormat(cursor.string())
        case "AVRO":
            return _avro(cursor, table)
        case "PROTOBUF":
            return _protobuf(cursor, table)
        case "JSON SCHEMA":
            return _registry_format(cursor, "JSON SCHEMA", table)
        case _:
            raise cursor.unexpected()


def registry_kind(cursor: Cursor) -> RegistryKind:
    match cursor.choose("AVRO", "PROTOBUF", "JSON SCHEMA"):
        case "AVRO":
            return "AVRO"
        case "PROTOBUF":
            return "PROTOBUF"
        case "JSON SCHEMA":
            return "JSON SCHEMA"
        case _:
            raise cursor.unexpected()


def side(cursor: Cursor) -> Side:
    if cursor.take("KEY"):
        return "KEY"
    cursor.expect("VALUE")
    return "VALUE"


# CSV


def _csv(cursor: Cursor) -> CsvFormat:
    """``[WITH n COLUMNS | WITH HEADER (c, …)] [DELIMITED BY 'x']``; what follows WITH may stand in parentheses."""
    if _at_csv_with(cursor):
        cursor.expect("WITH")
        enclosed = cursor.take("(")
        columns, header = _csv_columns(cursor)
        delimiter = _delimiter(cursor, enclosed)
        if enclosed:
            cursor.expect(")")
        return CsvFormat(columns, header, delimiter if delimiter is not None else _delimiter(cursor))
    return CsvFormat(delimiter=_delimiter(cursor))


def _at_csv_with(cursor: Cursor) -> bool:
    """Whether WITH belongs to the format: in parentheses, it may also begin the options of the statement."""
    if cursor.at("WITH", "("):
        inside = cursor.tokens[cursor.index + 2]
        return inside.word == "HEADER" or inside.kind is TokenKind.NUMBER
    return cursor.at("WITH")


def _csv_columns(cursor: Cursor) -> tuple[int | None, tuple[Identifier, ...] | None]:
    if cursor.take("HEADER"):
        return None, cursor.identifiers()
    count = cursor.whole_number()
    cursor.expect("COLUMNS")
    return count, None


def _delimiter(cursor: Cursor, enclosed: bool = False) -> str | None:
    if enclosed:
        cursor.take(",")
    return cursor.string() if cursor.take("DELIMITED BY") else None


# Schemas in the statement or in a registry


def _avro(cursor: Cursor, table: OptionTable) -> Format:
    if not cursor.take("USING SCHEMA"):
        return _registry_format(cursor, "AVRO", table)
    schema = cursor.string()
    return AvroInline(schema, options(cursor, _INLINE_OPTIONS) if cursor.at("(") else ())


def _protobuf(cursor: Cursor, table: OptionTable) -> Format:
    message = cursor.string() if cursor.take("MESSAGE") else None
    if message is not None and cursor.take("USING SCHEMA"):
        return ProtobufInline(message, cursor.string())
    return _registry_format(cursor, "PROTOBUF", table, message)


def _registry_format(
    cursor: Cursor, kind: RegistryKind, table: OptionTable, message: str | None = None
) -> RegistryFormat:
    start = cursor.tokens[cursor.index - 1].start
    registry = _registry(cursor, listed=False) if cursor.take("USING CONFLUENT SCHEMA REGISTRY") else None
    if registry is None and not cursor.at("("):
        cursor.expecting("(")
        raise cursor.unexpected()
    listed, found = _format_options(cursor, table) if cursor.at("(") else (None, [])
    if registry is not None and listed is not None:
        raise RegistryGivenTwice().at(cursor.span_from(start))
    registry = registry or listed
    if registry is None:
        raise MissingRegistry(kind).at(cursor.span_from(start))
    while cursor.at("KEY", "STRATEGY") or cursor.at("VALUE", "STRATEGY"):
        found.append((cursor.token.span, _strategy(cursor)))
    return RegistryFormat(kind, registry, _distinct(table, found), message)


def _registry(cursor: Cursor, listed: bool) -> ObjectName | RegistryUrl:
    """A connection or a URL; in an option list the word CONNECTION may be left out."""
    url = cursor.take_string()
    if url is not None:
        return RegistryUrl(url)
    if not listed:
        cursor.expect("CONNECTION")
    elif cursor.at("CONNECTION") and cursor.at_name(1):
        cursor.step()
    return object_name(cursor)


Found = list[tuple[Span, FormatOption]]


def _format_options(cursor: Cursor, table: OptionTable) -> tuple[ObjectName | RegistryUrl | None, Found]:
    registry: ObjectName | RegistryUrl | None = None
    found: Found = []
    for _ in items(cursor):
        start = cursor.token.start
        if cursor.take("CONFLUENT SCHEMA REGISTRY"):
            cursor.take("=")
            if registry is not None:
                raise RepeatedClause("CONFLUENT SCHEMA REGISTRY").at(cursor.span_from(start))
            registry = _registry(cursor, listed=True)
        else:
            option = _format_option(cursor, table)
            found.append((cursor.span_from(start), option))
    return registry, found


def _format_option(cursor: Cursor, table: OptionTable) -> FormatOption:
    if cursor.at("SEED"):
        return _seed(cursor)
    if table is WRITE_FORMAT_OPTIONS and at_doc(cursor):
        return doc_on(cursor)
    if table is READ_FORMAT_OPTIONS and (cursor.at("KEY", "STRATEGY") or cursor.at("VALUE", "STRATEGY")):
        return _strategy(cursor)
    return one_option(cursor, table)


def _strategy(cursor: Cursor) -> SchemaStrategy:
    of = side(cursor)
    cursor.expect("STRATEGY")
    cursor.take("=")
    match cursor.choose("LATEST", "ID", "INLINE"):
        case "LATEST":
            return SchemaStrategy(of, LatestStrategy())
        case "ID":
            return SchemaStrategy(of, IdStrategy(cursor.whole_number()))
        case "INLINE":
            return SchemaStrategy(of, InlineStrategy(cursor.string()))
        case _:
            raise cursor.unexpected()


def _seed(cursor: Cursor) -> SeedSchema:
    cursor.expect("SEED")
    of = side(cursor)
    cursor.expect("SCHEMA ID")
    number = cursor.whole_number()
    schema = cursor.string()
    references = map_literal(cursor).entries if cursor.take("REFERENCES") else ()
    return SeedSchema(of, number, schema, references)


# Docs


def at_doc(cursor: Cursor) -> bool:
    return cursor.at("DOC") or cursor.at("KEY", "DOC") or cursor.at("VALUE", "DOC")


def doc_on(cursor: Cursor) -> DocOn:
    target = doc_target(cursor)
    cursor.take("=")
    return DocOn(target, cursor.string())


def doc_target(cursor: Cursor) -> DocTarget:
    of = None if cursor.at("DOC") else side(cursor)
    cursor.expect("DOC ON")
    if cursor.take("COLUMN"):
        return DocTarget(of, "COLUMN", column_name(cursor))
    cursor.expect("TYPE")
    return DocTarget(of, "TYPE", object_name(cursor))


def _distinct(table: OptionTable, found: Found) -> tuple[FormatOption, ...]:
    seen: set[Hashable] = set()
    for span, option in found:
        once, name = identity(option)
        if table is READ_FORMAT_OPTIONS and isinstance(
            option, SeedSchema
        ):  # what a source followed stays with it
            once = (once, option.id)
        if once in seen:
            raise RepeatedOption(name, table.owner).at(span)
        seen.add(once)
    return tuple(option for _, option in found)


def identity(option: FormatOption) -> tuple[Hashable, str]:
    """What may be there only once, and how an error calls it."""
    match option:
        case DocOn(target):
            prefix = f"{target.side} " if target.side else ""
            return target, f"{prefix}DOC ON {target.on} {target.name}"
        case SchemaStrategy(of, _):
            return ("STRATEGY", of), f"{of} STRATEGY"
        case SeedSchema(of, _, _, _):
            return ("SEED", of), f"SEED {of} SCHEMA"
        case Option(name, _):
            return name, name


def print_kafka(node: Kafka) -> str:
    match node:
        case KafkaConnection(connection, given):
            return f"KAFKA CONNECTION {print_name(connection)} {print_options(given)}"
        case KafkaBroker(broker, topic, given):
            return words(
                f"KAFKA BROKER {print_string(broker)} TOPIC {print_string(topic)}",
                print_options(given) if given else "",
            )
        case _:
            assert_never(node)


def print_formats(node: Formats) -> str:
    if node.key is None:
        return f"FORMAT {print_format(node.value)}"
    return f"KEY FORMAT {print_format(node.key)}\nVALUE FORMAT {print_format(node.value)}"


def print_format(node: Format) -> str:
    match node:
        case TextFormat():
            return "TEXT"
        case BytesFormat():
            return "BYTES"
        case JsonFormat():
            return "JSON"
        case CsvFormat():
            return _print_csv(node)
        case RegexFormat(pattern):
            return f"REGEX {print_string(pattern)}"
        case AvroInline(schema, given):
            return words(f"AVRO USING SCHEMA {print_string(schema)}", print_options(given) if given else "")
        case ProtobufInline(message, schema):
            return f"PROTOBUF MESSAGE {print_string(message)} USING SCHEMA {print_string(schema)}"
        case RegistryFormat():
            return _print_registry_format(node)
        case _:
            assert_never(node)


def _print_csv(node: CsvFormat) -> str:
    columns = f"WITH {node.columns} COLUMNS" if node.columns is not None else ""
    header = f"WITH HEADER {print_identifiers(node.header)}" if node.header is not None else ""
    delimiter = f"DELIMITED BY {print_string(node.delimiter)}" if node.delimiter is not None else ""
    return words("CSV", columns, header, delimiter)


def _print_registry_format(node: RegistryFormat) -> str:
    message = f"MESSAGE {print_string(node.message)}" if node.message is not None else ""
    registry = (
        print_string(node.registry.url)
        if isinstance(node.registry, RegistryUrl)
        else f"CONNECTION {print_name(node.registry)}"
    )
    listed = block([print_format_option(given) for given in node.options]) if node.options else ""
    return words(node.kind, message, "USING CONFLUENT SCHEMA REGISTRY", registry, listed)


def print_format_option(node: FormatOption) -> str:
    match node:
        case Option():
            return print_option(node)
        case DocOn():
            return print_doc_on(node)
        case SchemaStrategy(side, strategy):
            return f"{side} STRATEGY = {_print_strategy(strategy)}"
        case SeedSchema(side, number, schema, references):
            seed = f"SEED {side} SCHEMA ID {number} {print_string(schema)}"
            return words(seed, f"REFERENCES {print_map(references)}" if references else "")
        case _:
            assert_never(node)


def _print_strategy(node: LatestStrategy | IdStrategy | InlineStrategy) -> str:
    match node:
        case LatestStrategy():
            return "LATEST"
        case IdStrategy(number):
            return f"ID {number}"
        case InlineStrategy(schema):
            return f"INLINE {print_string(schema)}"
        case _:
            assert_never(node)


def print_doc_on(node: DocOn) -> str:
    return f"{print_doc_target(node.target)} = {print_string(node.doc)}"


def print_doc_target(node: DocTarget) -> str:
    return words(node.side or "", f"DOC ON {node.on} {print_name(node.name)}")
