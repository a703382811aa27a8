"""Sinks and sink policies."""

from __future__ import annotations

from typing import assert_never

from headgate.sql.ast.formats import RegistryKind
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
from headgate.sql.render.formats import doc_on, doc_target, formats, kafka
from headgate.sql.render.values import (
    block,
    clauses,
    identifier,
    identifiers,
    if_exists,
    if_not_exists,
    name,
    with_options,
    words,
)


def create_sink(node: CreateSink) -> str:
    own = name(node.name) if node.name is not None else ""
    return clauses(
        words("CREATE SINK", if_not_exists(node.if_not_exists), own),
        f"FROM {name(node.relation)}",
        f"INTO {kafka(node.kafka)}",
        _key(node.key) if node.key is not None else "",
        f"HEADERS {identifier(node.headers)}" if node.headers is not None else "",
        formats(node.formats),
        f"ENVELOPE {node.envelope}" if node.envelope is not None else "",
        with_options(node.with_options),
    )


def _key(node: SinkKey) -> str:
    return words("KEY", identifiers(node.columns), "" if node.enforced else "NOT ENFORCED")


def alter_sink_docs(node: AlterSinkDocs) -> str:
    changes = block([_doc_change(change) for change in node.changes])
    return words("ALTER SINK", if_exists(node.if_exists), name(node.name), "FORMAT", node.format, changes)


def _doc_change(node: DocChange) -> str:
    match node:
        case AddDoc(doc):
            return f"ADD {doc_on(doc)}"
        case DropDoc(target):
            return f"DROP {doc_target(target)}"
        case RefreshDocs():
            return "REFRESH DOCS"
        case _:
            assert_never(node)


def alter_sink_from(node: AlterSinkFrom) -> str:
    target = words("ALTER SINK", if_exists(node.if_exists), name(node.name))
    return words(target, f"SET FROM {name(node.relation)}", with_options(node.with_options))


def create_sink_policy(node: CreateSinkPolicy) -> str:
    return clauses(
        words("CREATE SINK POLICY", if_not_exists(node.if_not_exists), name(node.name)),
        _requirements(node.format, node.requires),
        f"ON {node.scope.kind} {name(node.scope.name)}" if node.scope is not None else "",
    )


def alter_sink_policy(node: AlterSinkPolicy) -> str:
    target = words("ALTER SINK POLICY", if_exists(node.if_exists), name(node.name))
    return words(target, _requirements(node.format, node.requires))


def _requirements(format_: RegistryKind, requires: tuple[Documented, ...]) -> str:
    return f"FORMAT {format_} " + block([f"REQUIRE DOCUMENTATION FOR ALL {what}" for what in requires])
