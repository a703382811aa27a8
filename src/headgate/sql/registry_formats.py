"""Formats with a schema registry: their options, strategies, frozen schemas and docs (`DOC ON …`)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from headgate.errors import Span
from headgate.sql.errors import MissingRegistry, RegistryGivenTwice, RepeatedClause, RepeatedOption
from headgate.sql.options import (
    Option,
    OptionRule,
    OptionTable,
    ValueKind,
    items,
    map_literal,
    one_option,
    print_map,
    print_option,
)
from headgate.sql.statement import (
    ObjectName,
    block,
    column_name,
    object_name,
    print_name,
    print_string,
    words,
)
from headgate.text.cursor import Cursor

Side: TypeAlias = Literal["KEY", "VALUE"]


RegistryKind: TypeAlias = Literal["AVRO", "PROTOBUF", "JSON SCHEMA"]


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
    """``KEY|VALUE STRATEGY``: which schema of a subject the reader uses."""

    side: Side
    strategy: LatestStrategy | IdStrategy | InlineStrategy


@dataclass(frozen=True, slots=True)
class FrozenSchema:
    """A schema as the registry returned it: ``SEED KEY SCHEMA ID 3 '…'``.

    ``references`` are pairs of name and schema. A schema comes after those that it needs.
    """

    side: Side
    id: int
    schema: str
    references: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DocTarget:
    """The target of ``[KEY|VALUE] DOC ON TYPE|COLUMN name``. Without a side it is in both schemas."""

    side: Side | None
    on: Literal["TYPE", "COLUMN"]
    name: ObjectName


@dataclass(frozen=True, slots=True)
class DocOn:
    target: DocTarget
    doc: str


FormatOption: TypeAlias = Option | DocOn | SchemaStrategy | FrozenSchema


@dataclass(frozen=True, slots=True)
class RegistryUrl:
    url: str


@dataclass(frozen=True, slots=True)
class RegistryFormat:
    """A format whose schemas are in a registry, given by connection or URL. ``message`` picks one of a Protobuf file."""

    kind: RegistryKind
    registry: ObjectName | RegistryUrl
    options: tuple[FormatOption, ...] = ()
    message: str | None = None


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


def registry_format(
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
    """Read a connection or a URL. In an option list the word CONNECTION is optional."""
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


def _seed(cursor: Cursor) -> FrozenSchema:
    cursor.expect("SEED")
    of = side(cursor)
    cursor.expect("SCHEMA ID")
    number = cursor.whole_number()
    schema = cursor.string()
    references = map_literal(cursor).entries if cursor.take("REFERENCES") else ()
    return FrozenSchema(of, number, schema, references)


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
            option, FrozenSchema
        ):  # what a source followed stays with it
            once = (once, option.id)
        if once in seen:
            raise RepeatedOption(name, table.owner).at(span)
        seen.add(once)
    return tuple(option for _, option in found)


def identity(option: FormatOption) -> tuple[Hashable, str]:
    """A key that may occur only once in the list, and the option's name in errors."""
    match option:
        case DocOn(target):
            prefix = f"{target.side} " if target.side else ""
            return target, f"{prefix}DOC ON {target.on} {target.name}"
        case SchemaStrategy(of, _):
            return ("STRATEGY", of), f"{of} STRATEGY"
        case FrozenSchema(of, _, _, _):
            return ("SEED", of), f"SEED {of} SCHEMA"
        case Option(name, _):
            return name, name


def print_registry_format(node: RegistryFormat) -> str:
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
        case FrozenSchema(side, number, schema, references):
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
