"""CREATE and ALTER SINK, CREATE and ALTER SINK POLICY."""

from __future__ import annotations

from headgate.sql.ast.names import object_name
from headgate.sql.ast.sinks import (
    AddDoc,
    AlterSinkDocs,
    AlterSinkFrom,
    AlterSinkPolicy,
    CreateSink,
    CreateSinkPolicy,
    DocChange,
    Documented,
    DropDoc,
    PolicyScope,
    RefreshDocs,
    SinkEnvelope,
    SinkKey,
)
from headgate.sql.errors import RepeatedClause
from headgate.sql.parser.alter import Target
from headgate.sql.parser.clauses import CHANGE_OPTIONS, ON_ERROR, if_not_exists
from headgate.sql.parser.formats import WRITE_FORMAT_OPTIONS, doc_on, doc_target, formats, registry_kind
from headgate.sql.parser.kafka import WRITE_OPTIONS, kafka
from headgate.sql.parser.options import OptionRule, OptionTable, ValueKind, items
from headgate.sql.parser.values import with_options
from headgate.text.cursor import Cursor

SINK_OPTIONS = OptionTable(
    "the sink",
    (
        OptionRule("KEY IN VALUE", ValueKind.BOOLEAN),
        OptionRule("SNAPSHOT", ValueKind.BOOLEAN),
        OptionRule("DELIVERY", ValueKind.STRING, ("at least once", "exactly once")),
        OptionRule("LATENCY", ValueKind.STRING, ("real time",)),
        ON_ERROR,
    ),
)
_ENVELOPES: tuple[SinkEnvelope, ...] = ("UPSERT", "DEBEZIUM", "NONE")

TABLES = {"sink option": SINK_OPTIONS}
RULES = {
    "kafka target": "KAFKA {CONNECTION <name> (<write option> [, ...])"
    " | BROKER <string> TOPIC <string> [(<write option> [, ...])]}",
    "doc change": "{ADD <doc target> = <string> | DROP <doc target> | REFRESH DOCS}",
    "schema format": "{AVRO | PROTOBUF | JSON SCHEMA}",
    "requirement": "REQUIRE DOCUMENTATION FOR ALL {FIELDS | TYPES}",
}
SYNOPSES = {
    "CREATE SINK": (
        "CREATE SINK [IF NOT EXISTS] [<name>] FROM <name> INTO <kafka target>"
        " [KEY (<column> [, ...]) [NOT ENFORCED]] [HEADERS <column>] <write formats>"
        " [ENVELOPE {UPSERT | DEBEZIUM | NONE}] [WITH (<sink option> [, ...])]"
    ),
    "ALTER SINK": (
        "ALTER SINK [IF EXISTS] <name> {FORMAT <schema format> (<doc change> [, ...])"
        " | SET FROM <name> [WITH (<change option>)] | <task state> | RENAME TO <new name>}"
    ),
    "CREATE SINK POLICY": (
        "CREATE SINK POLICY [IF NOT EXISTS] <name> FORMAT <schema format> (<requirement> [, ...])"
        " [ON {SCHEMA <schema> | DATABASE <database>}]"
    ),
    "ALTER SINK POLICY": (
        "ALTER SINK POLICY [IF EXISTS] <name> {FORMAT <schema format> (<requirement> [, ...]) | RENAME TO <new name>}"
    ),
}


def create_sink(cursor: Cursor) -> CreateSink:
    exists = if_not_exists(cursor)
    name = None if cursor.at("FROM") else object_name(cursor)
    cursor.expect("FROM")
    relation = object_name(cursor)
    cursor.expect("INTO KAFKA")
    return CreateSink(
        name=name,
        relation=relation,
        kafka=kafka(cursor, WRITE_OPTIONS),
        key=_key(cursor),
        headers=cursor.identifier() if cursor.take("HEADERS") else None,
        formats=formats(cursor, WRITE_FORMAT_OPTIONS),
        envelope=_envelope(cursor),
        with_options=with_options(cursor, SINK_OPTIONS),
        if_not_exists=exists,
    )


def _key(cursor: Cursor) -> SinkKey | None:
    if not cursor.at("KEY", "("):
        cursor.expecting("KEY")
        return None
    cursor.expect("KEY")
    return SinkKey(cursor.identifiers(), not cursor.take("NOT ENFORCED"))


def _envelope(cursor: Cursor) -> SinkEnvelope | None:
    if not cursor.take("ENVELOPE"):
        return None
    for envelope in _ENVELOPES:
        if cursor.take(envelope):
            return envelope
    raise cursor.unexpected()


def alter_sink_docs(cursor: Cursor, target: Target) -> AlterSinkDocs | None:
    if not cursor.take("FORMAT"):
        return None
    format_ = registry_kind(cursor)
    changes = tuple(_doc_change(cursor) for _ in items(cursor))
    return AlterSinkDocs(target.name, format_, changes, target.if_exists)


def _doc_change(cursor: Cursor) -> DocChange:
    match cursor.choose("ADD", "DROP", "REFRESH DOCS"):
        case "ADD":
            return AddDoc(doc_on(cursor))
        case "DROP":
            return DropDoc(doc_target(cursor))
        case "REFRESH DOCS":
            return RefreshDocs()
        case _:
            raise cursor.unexpected()


def alter_sink_from(cursor: Cursor, target: Target) -> AlterSinkFrom | None:
    if not cursor.take("SET FROM"):
        return None
    return AlterSinkFrom(
        target.name, object_name(cursor), with_options(cursor, CHANGE_OPTIONS), target.if_exists
    )


def create_sink_policy(cursor: Cursor) -> CreateSinkPolicy:
    exists = if_not_exists(cursor)
    name = object_name(cursor)
    cursor.expect("FORMAT")
    format_ = registry_kind(cursor)
    requires = _requirements(cursor)
    return CreateSinkPolicy(name, format_, requires, _scope(cursor), exists)


def alter_sink_policy(cursor: Cursor, target: Target) -> AlterSinkPolicy | None:
    if not cursor.take("FORMAT"):
        return None
    return AlterSinkPolicy(target.name, registry_kind(cursor), _requirements(cursor), target.if_exists)


def _requirements(cursor: Cursor) -> tuple[Documented, ...]:
    found: list[Documented] = []
    for _ in items(cursor):
        start = cursor.token
        cursor.expect("REQUIRE DOCUMENTATION FOR ALL")
        what: Documented = "FIELDS" if cursor.take("FIELDS") else "TYPES"
        if what == "TYPES":
            cursor.expect("TYPES")
        if what in found:
            raise RepeatedClause(f"REQUIRE DOCUMENTATION FOR ALL {what}").at(start.span)
        found.append(what)
    return tuple(found)


def _scope(cursor: Cursor) -> PolicyScope | None:
    if not cursor.take("ON"):
        return None
    if cursor.take("DATABASE"):
        return PolicyScope("DATABASE", object_name(cursor, most=1))
    cursor.expect("SCHEMA")
    return PolicyScope("SCHEMA", object_name(cursor, most=2))
