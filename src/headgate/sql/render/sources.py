"""Sources."""

from __future__ import annotations

from typing import assert_never

from headgate.sql.ast.names import (
    block,
    clauses,
    print_identifier,
    print_identifiers,
    print_if_exists,
    print_if_not_exists,
    print_name,
    print_string,
    words,
)
from headgate.sql.ast.sources import (
    AcceptSchemaChange,
    CreateSource,
    DebeziumEnvelope,
    Include,
    IncludeHeader,
    IncludeMetadata,
    NoneEnvelope,
    SourceEnvelope,
    UpsertEnvelope,
)
from headgate.sql.render.formats import print_formats, print_kafka
from headgate.sql.render.values import print_with_options


def print_create_source(node: CreateSource) -> str:
    columns = print_identifiers(node.columns) if node.columns else ""
    return clauses(
        words("CREATE SOURCE", print_if_not_exists(node.if_not_exists), print_name(node.name), columns),
        f"FROM {print_kafka(node.kafka)}",
        print_formats(node.formats),
        "INCLUDE " + ", ".join([_print_include(item) for item in node.include]) if node.include else "",
        f"ENVELOPE {_print_envelope(node.envelope)}" if node.envelope is not None else "",
        print_with_options(node.with_options),
    )


def _print_include(node: Include) -> str:
    match node:
        case IncludeMetadata(what, alias):
            return words(what, f"AS {print_identifier(alias)}" if alias is not None else "")
        case IncludeHeader(header, alias, as_bytes):
            return words(
                f"HEADER {print_string(header)} AS {print_identifier(alias)}", "BYTES" if as_bytes else ""
            )
        case _:
            assert_never(node)


def _print_envelope(node: SourceEnvelope) -> str:
    match node:
        case NoneEnvelope():
            return "NONE"
        case DebeziumEnvelope():
            return "DEBEZIUM"
        case UpsertEnvelope():
            return _print_upsert(node)
        case _:
            assert_never(node)


def _print_upsert(node: UpsertEnvelope) -> str:
    items = []
    if node.key:
        items.append(f"KEY {print_identifiers(node.key)}")
    if node.inline_errors:
        alias = f"AS {print_identifier(node.inline_errors_as)}" if node.inline_errors_as is not None else ""
        items.append(words("VALUE DECODING ERRORS = INLINE", alias))
    return words("UPSERT", block(items) if items else "")


def print_accept_schema_change(node: AcceptSchemaChange) -> str:
    target = words(f"ALTER {node.kind}", print_if_exists(node.if_exists), print_name(node.name))
    return words(target, "ACCEPT SCHEMA CHANGE", print_with_options(node.with_options))
