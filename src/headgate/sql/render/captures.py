"""Captures."""

from __future__ import annotations

from typing import assert_never

from headgate.sql.ast.captures import (
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
from headgate.sql.render.formats import format_, formats, kafka
from headgate.sql.render.values import (
    block,
    clauses,
    if_exists,
    if_not_exists,
    name,
    options,
    string,
    with_options,
    words,
)


def create_capture(node: CreateCapture) -> str:
    return clauses(
        words("CREATE CAPTURE", if_not_exists(node.if_not_exists), name(node.name)),
        f"FROM {_origin(node.origin)}",
        f"INTO {_target(node.target)}",
        with_options(node.with_options),
    )


def _origin(node: CaptureOrigin) -> str:
    match node:
        case CaptureKafka(origin, given):
            return clauses(kafka(origin), formats(given))
        case CapturePostgres(connection, given):
            return f"POSTGRES CONNECTION {name(connection)} {options(given)}"
        case CaptureFiles(path, given):
            return f"FILES {string(path)} FORMAT {format_(given)}"
        case CaptureHttp(path):
            return f"HTTP {string(path)}"
        case _:
            assert_never(node)


def _target(node: CaptureTarget) -> str:
    match node:
        case IntoCollection(collection):
            return name(collection)
        case IntoBindings(bindings):
            return block([f"{string(binding.stream)} -> {name(binding.collection)}" for binding in bindings])
        case IntoSchema(schema):
            return f"SCHEMA {name(schema)}"
        case _:
            assert_never(node)


def discover_capture(node: DiscoverCapture) -> str:
    return words("ALTER CAPTURE", if_exists(node.if_exists), name(node.name), "DISCOVER")
