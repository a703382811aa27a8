"""CREATE and ALTER MATERIALIZATION."""

from __future__ import annotations

from headgate.schema.types import Type
from headgate.sql.ast.materializations import (
    BackfillMaterialization,
    CreateMaterialization,
    ElasticsearchTarget,
    FieldList,
    Fields,
    MaterializationTarget,
    MaterializedField,
    ObjectType,
    OnDemandTarget,
    Pointer,
    PostgresTarget,
    RecommendedFields,
    SetMaterializationFields,
)
from headgate.sql.ast.names import ObjectName, object_name
from headgate.sql.errors import NestedTooDeep, RepeatedClause
from headgate.sql.parser.alter import Target
from headgate.sql.parser.clauses import CHANGE_OPTIONS, CONFIRM, ON_ERROR, column_type, if_not_exists
from headgate.sql.parser.options import OptionRule, OptionTable, ValueKind, items
from headgate.sql.parser.values import options, with_options
from headgate.text.cursor import Cursor

MAX_DEPTH = 64  # of OBJECT in OBJECT; each level costs stack

MATERIALIZATION_OPTIONS = OptionTable(
    "the materialization",
    (
        OptionRule(
            "ON INCOMPATIBLE SCHEMA CHANGE",
            ValueKind.CHOICE,
            ("BACKFILL", "DISABLE BINDING", "DISABLE TASK", "ABORT"),
        ),
        ON_ERROR,
        OptionRule("NESTED", ValueKind.CHOICE, ("FLATTEN", "TABLES", "JSON")),
        OptionRule("DELTA UPDATES", ValueKind.BOOLEAN),
        OptionRule("ADOPT", ValueKind.BOOLEAN),
        CONFIRM,
    ),
)
TABLE_OPTIONS = OptionTable("the postgres target", (OptionRule("TABLE", ValueKind.STRING),))
INDEX_OPTIONS = OptionTable("the elasticsearch target", (OptionRule("INDEX", ValueKind.STRING),))

TABLES = {
    "materialization option": MATERIALIZATION_OPTIONS,
    "table option": TABLE_OPTIONS,
    "index option": INDEX_OPTIONS,
}
RULES = {
    "materialization target": "{POSTGRES CONNECTION <name> (<table option>)"
    " | ELASTICSEARCH CONNECTION <name> (<index option>) | ON DEMAND}",
    "fields": "{(<field> [, ...]) | RECOMMENDED [DEPTH <number>] [EXCLUDE ({<column> | <pointer>} [, ...])]}",
    "field": "<column> {<type> | OBJECT (<column> <type> [FROM <pointer>])}"
    " [FROM <pointer>] [NULL] [REQUIRED] [AS <string>]",
}
SYNOPSES = {
    "CREATE MATERIALIZATION": (
        "CREATE MATERIALIZATION [IF NOT EXISTS] <name> FROM <name> INTO <materialization target> [FIELDS <fields>]"
        " [WITH (<materialization option> [, ...])]"
    ),
    "ALTER MATERIALIZATION": (
        "ALTER MATERIALIZATION [IF EXISTS] <name> {BACKFILL | <task state>"
        " | SET FIELDS <fields> [WITH (<change option>)] | RENAME TO <new name>}"
    ),
}


def create_materialization(cursor: Cursor) -> CreateMaterialization:
    exists = if_not_exists(cursor)
    name = object_name(cursor)
    cursor.expect("FROM")
    relation = object_name(cursor)
    cursor.expect("INTO")
    target = _target(cursor)
    fields = _fields(cursor) if cursor.take("FIELDS") else None
    with_ = with_options(cursor, MATERIALIZATION_OPTIONS)
    return CreateMaterialization(name, relation, target, fields, with_, exists)


def _target(cursor: Cursor) -> MaterializationTarget:
    match cursor.choose("POSTGRES", "ELASTICSEARCH", "ON DEMAND"):
        case "POSTGRES":
            cursor.expect("CONNECTION")
            return PostgresTarget(object_name(cursor), options(cursor, TABLE_OPTIONS))
        case "ELASTICSEARCH":
            cursor.expect("CONNECTION")
            return ElasticsearchTarget(object_name(cursor), options(cursor, INDEX_OPTIONS))
        case "ON DEMAND":
            return OnDemandTarget()
        case _:
            raise cursor.unexpected()


def _fields(cursor: Cursor) -> Fields:
    if not cursor.take("RECOMMENDED"):
        return FieldList(_field_list(cursor, 1))
    depth = cursor.whole_number() if cursor.take("DEPTH") else None
    exclude = tuple(_excluded(cursor) for _ in items(cursor)) if cursor.take("EXCLUDE") else ()
    return RecommendedFields(depth, exclude)


def _excluded(cursor: Cursor) -> ObjectName | Pointer:
    pointer = cursor.take_string()
    return Pointer(pointer) if pointer is not None else object_name(cursor)


def _field_list(cursor: Cursor, depth: int) -> tuple[MaterializedField, ...]:
    if depth > MAX_DEPTH:
        raise NestedTooDeep(MAX_DEPTH).at(cursor.token.span)
    return tuple(_field(cursor, depth) for _ in items(cursor))


def _field(cursor: Cursor, depth: int) -> MaterializedField:
    name = cursor.identifier()
    type_ = _field_type(cursor, depth)
    said: dict[str, str] = {}
    while True:
        start = cursor.token
        word = cursor.choose("FROM", "NOT NULL", "NULL", "REQUIRED", "AS")
        if word is None:
            break
        if word in said or {word, *said} >= {"NULL", "NOT NULL"}:
            raise RepeatedClause(word).at(start.span)
        said[word] = cursor.string() if word in ("FROM", "AS") else word
    return MaterializedField(
        name, type_, said.get("FROM"), "NULL" in said, "REQUIRED" in said, said.get("AS")
    )


def _field_type(cursor: Cursor, depth: int) -> Type | ObjectType:
    if cursor.at("OBJECT", "("):
        cursor.expect("OBJECT")
        return ObjectType(_field_list(cursor, depth + 1))
    return column_type(cursor)


def backfill(cursor: Cursor, target: Target) -> BackfillMaterialization | None:
    return BackfillMaterialization(target.name, target.if_exists) if cursor.take("BACKFILL") else None


def set_fields(cursor: Cursor, target: Target) -> SetMaterializationFields | None:
    if not cursor.take("SET FIELDS"):
        return None
    fields = _fields(cursor)
    return SetMaterializationFields(
        target.name, fields, with_options(cursor, CHANGE_OPTIONS), target.if_exists
    )
