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
from headgate.sql.render.types import type_
from headgate.sql.render.values import (
    block,
    clauses,
    identifier,
    if_exists,
    if_not_exists,
    name,
    options,
    string,
    with_options,
    words,
)


def create_materialization(node: CreateMaterialization) -> str:
    return clauses(
        words("CREATE MATERIALIZATION", if_not_exists(node.if_not_exists), name(node.name)),
        f"FROM {name(node.relation)}",
        f"INTO {_target(node.target)}",
        f"FIELDS {_fields(node.fields)}" if node.fields is not None else "",
        with_options(node.with_options),
    )


def _target(node: MaterializationTarget) -> str:
    match node:
        case PostgresTarget(connection, given):
            return f"POSTGRES CONNECTION {name(connection)} {options(given)}"
        case ElasticsearchTarget(connection, given):
            return f"ELASTICSEARCH CONNECTION {name(connection)} {options(given)}"
        case OnDemandTarget():
            return "ON DEMAND"
        case _:
            assert_never(node)


def _fields(node: Fields) -> str:
    match node:
        case FieldList(fields):
            return block([_field(field) for field in fields])
        case RecommendedFields(depth, exclude):
            excluded = [string(item.text) if isinstance(item, Pointer) else name(item) for item in exclude]
            return words(
                "RECOMMENDED",
                f"DEPTH {depth}" if depth is not None else "",
                f"EXCLUDE {block(excluded)}" if excluded else "",
            )
        case _:
            assert_never(node)


def _field(node: MaterializedField) -> str:
    return words(
        identifier(node.name),
        _field_type(node),
        f"FROM {string(node.pointer)}" if node.pointer is not None else "",
        "NULL" if node.nullable else "",
        "REQUIRED" if node.required else "",
        f"AS {string(node.native)}" if node.native is not None else "",
    )


def _field_type(node: MaterializedField) -> str:
    if isinstance(node.type, ObjectType):
        return "OBJECT (" + ", ".join([_field(field) for field in node.type.fields]) + ")"
    return type_(node.type)


def backfill(node: BackfillMaterialization) -> str:
    return words("ALTER MATERIALIZATION", if_exists(node.if_exists), name(node.name), "BACKFILL")


def set_fields(node: SetMaterializationFields) -> str:
    target = words("ALTER MATERIALIZATION", if_exists(node.if_exists), name(node.name))
    return words(target, f"SET FIELDS {_fields(node.fields)}", with_options(node.with_options))
