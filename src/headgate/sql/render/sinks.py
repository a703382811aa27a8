"""Sinks and sink policies."""

from __future__ import annotations

from typing import assert_never

from headgate.sql.ast.formats import RegistryKind
from headgate.sql.ast.names import (
    block,
    clauses,
    print_identifier,
    print_identifiers,
    print_if_exists,
    print_if_not_exists,
    print_name,
    words,
)
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
    RefreshDocs,
    SinkKey,
)
from headgate.sql.render.formats import print_doc_on, print_doc_target, print_formats, print_kafka
from headgate.sql.render.values import print_with_options


def print_create_sink(node: CreateSink) -> str:
    own = print_name(node.name) if node.name is not None else ""
    return clauses(
        words("CREATE SINK", print_if_not_exists(node.if_not_exists), own),
        f"FROM {print_name(node.relation)}",
        f"INTO {print_kafka(node.kafka)}",
        _print_key(node.key) if node.key is not None else "",
        f"HEADERS {print_identifier(node.headers)}" if node.headers is not None else "",
        print_formats(node.formats),
        f"ENVELOPE {node.envelope}" if node.envelope is not None else "",
        print_with_options(node.with_options),
    )


def _print_key(node: SinkKey) -> str:
    return words("KEY", print_identifiers(node.columns), "" if node.enforced else "NOT ENFORCED")


def print_alter_sink_docs(node: AlterSinkDocs) -> str:
    changes = block([_print_doc_change(change) for change in node.changes])
    return words(
        "ALTER SINK", print_if_exists(node.if_exists), print_name(node.name), "FORMAT", node.format, changes
    )


def _print_doc_change(node: DocChange) -> str:
    match node:
        case AddDoc(doc):
            return f"ADD {print_doc_on(doc)}"
        case DropDoc(target):
            return f"DROP {print_doc_target(target)}"
        case RefreshDocs():
            return "REFRESH DOCS"
        case _:
            assert_never(node)


def print_alter_sink_from(node: AlterSinkFrom) -> str:
    target = words("ALTER SINK", print_if_exists(node.if_exists), print_name(node.name))
    return words(target, f"SET FROM {print_name(node.relation)}", print_with_options(node.with_options))


def print_create_sink_policy(node: CreateSinkPolicy) -> str:
    return clauses(
        words("CREATE SINK POLICY", print_if_not_exists(node.if_not_exists), print_name(node.name)),
        _print_requirements(node.format, node.requires),
        f"ON {node.scope.kind} {print_name(node.scope.name)}" if node.scope is not None else "",
    )


def print_alter_sink_policy(node: AlterSinkPolicy) -> str:
    target = words("ALTER SINK POLICY", print_if_exists(node.if_exists), print_name(node.name))
    return words(target, _print_requirements(node.format, node.requires))


def _print_requirements(format_: RegistryKind, requires: tuple[Documented, ...]) -> str:
    return f"FORMAT {format_} " + block([f"REQUIRE DOCUMENTATION FOR ALL {what}" for what in requires])
