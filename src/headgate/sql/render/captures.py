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
from headgate.sql.ast.names import (
    block,
    clauses,
    print_if_exists,
    print_if_not_exists,
    print_name,
    print_string,
    words,
)
from headgate.sql.render.formats import print_format, print_formats, print_kafka
from headgate.sql.render.values import print_options, print_with_options


def print_create_capture(node: CreateCapture) -> str:
    return clauses(
        words("CREATE CAPTURE", print_if_not_exists(node.if_not_exists), print_name(node.name)),
        f"FROM {_print_origin(node.origin)}",
        f"INTO {_print_target(node.target)}",
        print_with_options(node.with_options),
    )


def _print_origin(node: CaptureOrigin) -> str:
    match node:
        case CaptureKafka(origin, given):
            return clauses(print_kafka(origin), print_formats(given))
        case CapturePostgres(connection, given):
            return f"POSTGRES CONNECTION {print_name(connection)} {print_options(given)}"
        case CaptureFiles(path, given):
            return f"FILES {print_string(path)} FORMAT {print_format(given)}"
        case CaptureHttp(path):
            return f"HTTP {print_string(path)}"
        case _:
            assert_never(node)


def _print_target(node: CaptureTarget) -> str:
    match node:
        case IntoCollection(collection):
            return print_name(collection)
        case IntoBindings(bindings):
            return block(
                [
                    f"{print_string(binding.stream)} -> {print_name(binding.collection)}"
                    for binding in bindings
                ]
            )
        case IntoSchema(schema):
            return f"SCHEMA {print_name(schema)}"
        case _:
            assert_never(node)


def print_discover_capture(node: DiscoverCapture) -> str:
    return words("ALTER CAPTURE", print_if_exists(node.if_exists), print_name(node.name), "DISCOVER")
