"""``FORMAT f`` and ``KEY FORMAT f VALUE FORMAT f``, with everything that a format can be."""

from __future__ import annotations

from collections.abc import Hashable

from headgate.errors import Span
from headgate.sql.ast.formats import (
    AvroInline,
    BytesFormat,
    CsvFormat,
    DocOn,
    DocTarget,
    Format,
    FormatOption,
    Formats,
    IdStrategy,
    InlineStrategy,
    JsonFormat,
    LatestStrategy,
    ProtobufInline,
    RegexFormat,
    RegistryFormat,
    RegistryKind,
    RegistryUrl,
    SchemaStrategy,
    SeedSchema,
    Side,
    TextFormat,
)
from headgate.sql.ast.names import ObjectName, column_name, object_name
from headgate.sql.ast.values import Option
from headgate.sql.errors import MissingRegistry, RegistryGivenTwice, RepeatedClause, RepeatedOption
from headgate.sql.parser.options import OptionRule, OptionTable, ValueKind, items
from headgate.sql.parser.values import map_literal, one_option, options
from headgate.text.cursor import Cursor, Identifier
from headgate.text.lexer import TokenKind

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
