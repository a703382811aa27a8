"""CREATE and ALTER CAPTURE."""

from __future__ import annotations

from headgate.sql.ast.captures import (
    Binding,
    CaptureFiles,
    CaptureHttp,
    CaptureKafka,
    CaptureOrigin,
    CapturePostgres,
    CaptureTarget,
    CreateCapture,
    DiscoverCapture,
    IntoBindings,
    IntoCollection,
    IntoSchema,
)
from headgate.sql.ast.names import object_name
from headgate.sql.parser.alter import Target
from headgate.sql.parser.clauses import ON_ERROR, if_not_exists
from headgate.sql.parser.formats import READ_FORMAT_OPTIONS, format_, formats
from headgate.sql.parser.kafka import READ_OPTIONS, kafka
from headgate.sql.parser.options import OptionRule, OptionTable, ValueKind, items
from headgate.sql.parser.values import options, with_options
from headgate.text.cursor import Cursor

CAPTURE_OPTIONS = OptionTable(
    "the capture",
    (
        OptionRule("AUTO DISCOVER", ValueKind.BOOLEAN),
        OptionRule("ADD NEW BINDINGS", ValueKind.BOOLEAN),
        OptionRule("ON KEY CHANGE", ValueKind.CHOICE, ("RESET", "HALT")),
        ON_ERROR,
        OptionRule("INTERVAL", ValueKind.INTERVAL),
    ),
)
TABLES_OPTIONS = OptionTable(
    "the postgres capture",
    (OptionRule("TABLES", ValueKind.STRINGS), OptionRule("SCHEMAS", ValueKind.STRINGS)),
)

TABLES = {"capture option": CAPTURE_OPTIONS, "tables option": TABLES_OPTIONS}
RULES = {
    "capture origin": "{<kafka origin> <read formats> | POSTGRES CONNECTION <name> (<tables option>)"
    " | FILES <string> FORMAT <read format> | HTTP <string>}",
    "capture target": "{<name> | (<string> -> <name> [, ...]) | SCHEMA <schema>}",
}
SYNOPSES = {
    "CREATE CAPTURE": (
        "CREATE CAPTURE [IF NOT EXISTS] <name> FROM <capture origin> INTO <capture target>"
        " [WITH (<capture option> [, ...])]"
    ),
    "ALTER CAPTURE": (
        "ALTER CAPTURE [IF EXISTS] <name> {<task state> [BINDING <string>] | DISCOVER | RENAME TO <new name>}"
    ),
}


def create_capture(cursor: Cursor) -> CreateCapture:
    exists = if_not_exists(cursor)
    name = object_name(cursor)
    cursor.expect("FROM")
    origin = _origin(cursor)
    cursor.expect("INTO")
    target = _target(cursor)
    return CreateCapture(name, origin, target, with_options(cursor, CAPTURE_OPTIONS), exists)


def _origin(cursor: Cursor) -> CaptureOrigin:
    match cursor.choose("KAFKA", "POSTGRES", "FILES", "HTTP"):
        case "KAFKA":
            return CaptureKafka(kafka(cursor, READ_OPTIONS), formats(cursor, READ_FORMAT_OPTIONS))
        case "POSTGRES":
            cursor.expect("CONNECTION")
            return CapturePostgres(object_name(cursor), options(cursor, TABLES_OPTIONS))
        case "FILES":
            path = cursor.string()
            cursor.expect("FORMAT")
            return CaptureFiles(path, format_(cursor, READ_FORMAT_OPTIONS))
        case "HTTP":
            return CaptureHttp(cursor.string())
        case _:
            raise cursor.unexpected()


def _target(cursor: Cursor) -> CaptureTarget:
    if cursor.at("("):
        return IntoBindings(tuple(_binding(cursor) for _ in items(cursor)))
    if cursor.at("SCHEMA") and cursor.at_name(1):
        cursor.step()
        return IntoSchema(object_name(cursor, most=2))
    cursor.expecting("(")
    cursor.expecting("SCHEMA")
    return IntoCollection(object_name(cursor))


def _binding(cursor: Cursor) -> Binding:
    stream = cursor.string()
    cursor.expect("->")
    return Binding(stream, object_name(cursor))


def discover_capture(cursor: Cursor, target: Target) -> DiscoverCapture | None:
    return DiscoverCapture(target.name, target.if_exists) if cursor.take("DISCOVER") else None
