"""Materializations."""

from __future__ import annotations

from typing import assert_never

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
from headgate.sql.ast.names import (
    block,
    clauses,
    print_identifier,
    print_if_exists,
    print_if_not_exists,
    print_name,
    print_string,
    words,
)
from headgate.sql.render.types import print_full_type
from headgate.sql.render.values import print_options, print_with_options


def print_create_materialization(node: CreateMaterialization) -> str:
    return clauses(
        words("CREATE MATERIALIZATION", print_if_not_exists(node.if_not_exists), print_name(node.name)),
        f"FROM {print_name(node.relation)}",
        f"INTO {_print_target(node.target)}",
        f"FIELDS {_print_fields(node.fields)}" if node.fields is not None else "",
        print_with_options(node.with_options),
    )


def _print_target(node: MaterializationTarget) -> str:
    match node:
        case PostgresTarget(connection, given):
            return f"POSTGRES CONNECTION {print_name(connection)} {print_options(given)}"
        case ElasticsearchTarget(connection, given):
            return f"ELASTICSEARCH CONNECTION {print_name(connection)} {print_options(given)}"
        case OnDemandTarget():
            return "ON DEMAND"
        case _:
            assert_never(node)


def _print_fields(node: Fields) -> str:
    match node:
        case FieldList(fields):
            return block([_print_field(field) for field in fields])
        case RecommendedFields(depth, exclude):
            excluded = [
                print_string(item.text) if isinstance(item, Pointer) else print_name(item) for item in exclude
            ]
            return words(
                "RECOMMENDED",
                f"DEPTH {depth}" if depth is not None else "",
                f"EXCLUDE {block(excluded)}" if excluded else "",
            )
        case _:
            assert_never(node)


def _print_field(node: MaterializedField) -> str:
    return words(
        print_identifier(node.name),
        _print_field_type(node),
        f"FROM {print_string(node.pointer)}" if node.pointer is not None else "",
        "NULL" if node.nullable else "",
        "REQUIRED" if node.required else "",
        f"AS {print_string(node.native)}" if node.native is not None else "",
    )


def _print_field_type(node: MaterializedField) -> str:
    if isinstance(node.type, ObjectType):
        return "OBJECT (" + ", ".join([_print_field(field) for field in node.type.fields]) + ")"
    return print_full_type(node.type)


def print_backfill(node: BackfillMaterialization) -> str:
    return words("ALTER MATERIALIZATION", print_if_exists(node.if_exists), print_name(node.name), "BACKFILL")


def print_set_fields(node: SetMaterializationFields) -> str:
    target = words("ALTER MATERIALIZATION", print_if_exists(node.if_exists), print_name(node.name))
    return words(target, f"SET FIELDS {_print_fields(node.fields)}", print_with_options(node.with_options))
