"""Sources."""

from __future__ import annotations

from typing import assert_never

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
from headgate.sql.render.formats import formats, kafka
from headgate.sql.render.values import (
    block,
    clauses,
    identifier,
    identifiers,
    if_exists,
    if_not_exists,
    name,
    string,
    with_options,
    words,
)


def create_source(node: CreateSource) -> str:
    columns = identifiers(node.columns) if node.columns else ""
    return clauses(
        words("CREATE SOURCE", if_not_exists(node.if_not_exists), name(node.name), columns),
        f"FROM {kafka(node.kafka)}",
        formats(node.formats),
        "INCLUDE " + ", ".join([_include(item) for item in node.include]) if node.include else "",
        f"ENVELOPE {_envelope(node.envelope)}" if node.envelope is not None else "",
        with_options(node.with_options),
    )


def _include(node: Include) -> str:
    match node:
        case IncludeMetadata(what, alias):
            return words(what, f"AS {identifier(alias)}" if alias is not None else "")
        case IncludeHeader(header, alias, as_bytes):
            return words(f"HEADER {string(header)} AS {identifier(alias)}", "BYTES" if as_bytes else "")
        case _:
            assert_never(node)


def _envelope(node: SourceEnvelope) -> str:
    match node:
        case NoneEnvelope():
            return "NONE"
        case DebeziumEnvelope():
            return "DEBEZIUM"
        case UpsertEnvelope():
            return _upsert(node)
        case _:
            assert_never(node)


def _upsert(node: UpsertEnvelope) -> str:
    items = []
    if node.key:
        items.append(f"KEY {identifiers(node.key)}")
    if node.inline_errors:
        alias = f"AS {identifier(node.inline_errors_as)}" if node.inline_errors_as is not None else ""
        items.append(words("VALUE DECODING ERRORS = INLINE", alias))
    return words("UPSERT", block(items) if items else "")


def accept_schema_change(node: AcceptSchemaChange) -> str:
    target = words(f"ALTER {node.kind}", if_exists(node.if_exists), name(node.name))
    return words(target, "ACCEPT SCHEMA CHANGE", with_options(node.with_options))
