"""CREATE SOURCE, and ALTER SOURCE n ACCEPT SCHEMA CHANGE."""

from __future__ import annotations

from headgate.sql.ast.names import object_name
from headgate.sql.ast.sources import (
    AcceptSchemaChange,
    CreateSource,
    DebeziumEnvelope,
    Include,
    IncludeHeader,
    IncludeMetadata,
    Metadata,
    NoneEnvelope,
    SourceEnvelope,
    UpsertEnvelope,
)
from headgate.sql.errors import RepeatedClause
from headgate.sql.parser.alter import Target
from headgate.sql.parser.clauses import (
    CHANGE_OPTIONS,
    ON_ERROR,
    ON_SCHEMA_CHANGE,
    if_not_exists,
    optional_columns,
)
from headgate.sql.parser.formats import READ_FORMAT_OPTIONS, formats
from headgate.sql.parser.kafka import READ_OPTIONS, kafka
from headgate.sql.parser.options import OptionTable, items
from headgate.sql.parser.values import with_options
from headgate.text.cursor import Cursor, Identifier

SOURCE_OPTIONS = OptionTable("the source", (ON_SCHEMA_CHANGE, ON_ERROR))

_METADATA: tuple[Metadata, ...] = ("KEY", "PARTITION", "OFFSET", "TIMESTAMP", "TOPIC", "HEADERS")

TABLES = {"source option": SOURCE_OPTIONS, "change option": CHANGE_OPTIONS}
RULES = {
    "kafka origin": "KAFKA {CONNECTION <name> (<read option> [, ...])"
    " | BROKER <string> TOPIC <string> [(<read option> [, ...])]}",
    "include": "{KEY [AS <column>] | PARTITION [AS <column>] | OFFSET [AS <column>] | TIMESTAMP [AS <column>]"
    " | TOPIC [AS <column>] | HEADERS [AS <column>] | HEADER <string> AS <column> [BYTES]}",
    "source envelope": "{NONE | UPSERT [(<upsert option> [, ...])] | DEBEZIUM}",
    "upsert option": "{KEY (<column> [, ...]) | VALUE DECODING ERRORS = INLINE [AS <column>]}",
}
SYNOPSES = {
    "CREATE SOURCE": (
        "CREATE SOURCE [IF NOT EXISTS] <name> [(<column> [, ...])] FROM <kafka origin> <read formats>"
        " [INCLUDE <include> [, ...]] [ENVELOPE <source envelope>] [WITH (<source option> [, ...])]"
    ),
    "ALTER SOURCE": (
        "ALTER SOURCE [IF EXISTS] <name> {ACCEPT SCHEMA CHANGE [WITH (<change option>)] | RENAME TO <new name>}"
    ),
}


def create_source(cursor: Cursor) -> CreateSource:
    exists = if_not_exists(cursor)
    name = object_name(cursor)
    columns = optional_columns(cursor)
    cursor.expect("FROM KAFKA")
    return CreateSource(
        name=name,
        columns=columns,
        kafka=kafka(cursor, READ_OPTIONS),
        formats=formats(cursor, READ_FORMAT_OPTIONS),
        include=_include(cursor),
        envelope=_envelope(cursor),
        with_options=with_options(cursor, SOURCE_OPTIONS),
        if_not_exists=exists,
    )


def _include(cursor: Cursor) -> tuple[Include, ...]:
    if not cursor.take("INCLUDE"):
        return ()
    found: list[Include] = []
    while True:
        start = cursor.token
        item = _include_item(cursor)
        if isinstance(item, IncludeMetadata) and item.what == "KEY" and _has_key(found):
            raise RepeatedClause("INCLUDE KEY").at(start.span)
        found.append(item)
        if not cursor.take(","):
            return tuple(found)


def _has_key(found: list[Include]) -> bool:
    return any(isinstance(item, IncludeMetadata) and item.what == "KEY" for item in found)


def _include_item(cursor: Cursor) -> Include:
    for what in _METADATA:
        if cursor.take(what):
            return IncludeMetadata(what, cursor.identifier() if cursor.take("AS") else None)
    cursor.expect("HEADER")
    header = cursor.string()
    cursor.expect("AS")
    return IncludeHeader(header, cursor.identifier(), cursor.take("BYTES"))


def _envelope(cursor: Cursor) -> SourceEnvelope | None:
    if not cursor.take("ENVELOPE"):
        return None
    match cursor.choose("NONE", "UPSERT", "DEBEZIUM"):
        case "NONE":
            return NoneEnvelope()
        case "UPSERT":
            return _upsert(cursor) if cursor.at("(") else UpsertEnvelope()
        case "DEBEZIUM":
            return DebeziumEnvelope()
        case _:
            raise cursor.unexpected()


def _upsert(cursor: Cursor) -> UpsertEnvelope:
    key: tuple[Identifier, ...] = ()
    inline, alias = False, None
    for _ in items(cursor):
        start = cursor.token
        if not key and cursor.take("KEY"):
            key = cursor.identifiers()
        elif not inline and cursor.take("VALUE DECODING ERRORS"):
            cursor.take("=")
            inline, alias = True, _inline(cursor)
        elif (key and cursor.at("KEY")) or (inline and cursor.at("VALUE")):
            raise RepeatedClause(start.word).at(start.span)
        else:
            raise cursor.unexpected()
    return UpsertEnvelope(key, inline, alias)


def _inline(cursor: Cursor) -> Identifier | None:
    """``INLINE [AS n]``, also in parentheses."""
    enclosed = cursor.take("(")
    cursor.expect("INLINE")
    alias = cursor.identifier() if cursor.take("AS") else None
    if enclosed:
        cursor.expect(")")
    return alias


def accept_schema_change(cursor: Cursor, target: Target) -> AcceptSchemaChange | None:
    if not cursor.take("ACCEPT SCHEMA CHANGE"):
        return None
    kind = target.kind
    assert kind == "SOURCE" or kind == "STREAM" or kind == "TABLE"
    return AcceptSchemaChange(kind, target.name, with_options(cursor, CHANGE_OPTIONS), target.if_exists)
