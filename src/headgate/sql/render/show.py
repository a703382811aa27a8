"""SHOW, DESCRIBE, REPLAY QUARANTINE and EXPLAIN."""

from __future__ import annotations

from collections.abc import Callable

from headgate.sql.ast.explain import (
    Explain,
    ExplainChange,
    ExplainObject,
    ExplainSchema,
    ExplainSubjectChange,
)
from headgate.sql.ast.names import ObjectName, print_name, print_string, words
from headgate.sql.ast.show import (
    Describe,
    ReplayQuarantine,
    ShowCollectionSchema,
    ShowCreate,
    ShowLineage,
    ShowObjects,
    ShowSchemaHistory,
)
from headgate.sql.ast.statement import Statement
from headgate.sql.render.sinks import print_create_sink


def print_show_objects(node: ShowObjects) -> str:
    return words(
        f"SHOW {node.what}",
        f"FROM {print_name(node.within)}" if node.within is not None else "",
        f"FOR {print_name(node.subject)}" if node.subject is not None else "",
        f"LIKE {print_string(node.like)}" if node.like is not None else "",
    )


def print_show_create(node: ShowCreate) -> str:
    return f"SHOW CREATE {node.kind} {print_name(node.name)}"


def print_show_lineage(node: ShowLineage) -> str:
    return words("SHOW LINEAGE FOR", node.kind or "", print_name(node.name))


def print_show_collection_schema(node: ShowCollectionSchema) -> str:
    return f"SHOW {node.which} SCHEMA FOR COLLECTION {print_name(node.name)}"


def print_show_schema_history(node: ShowSchemaHistory) -> str:
    return words("SHOW SCHEMA HISTORY FOR", node.kind or "", print_name(node.name))


def print_describe(node: Describe) -> str:
    return words("DESCRIBE", "EXTENDED" if node.extended else "", node.kind or "", print_name(node.name))


def print_replay_quarantine(node: ReplayQuarantine) -> str:
    return words("REPLAY QUARANTINE FOR", node.kind or "", print_name(node.name))


def print_explain(node: Explain, inner: Callable[[Statement], str]) -> str:
    return f"EXPLAIN {inner(node.statement)}"


def print_explain_object(node: ExplainObject) -> str:
    return f"EXPLAIN {node.kind} {print_name(node.name)}"


def print_explain_schema(node: ExplainSchema) -> str:
    target = (
        f"SINK {print_name(node.sink)}" if isinstance(node.sink, ObjectName) else print_create_sink(node.sink)
    )
    return f"EXPLAIN {node.side} SCHEMA FOR {target}"


def print_explain_change(node: ExplainChange, inner: Callable[[Statement], str]) -> str:
    return f"EXPLAIN CHANGE {inner(node.statement)}"


def print_explain_subject_change(node: ExplainSubjectChange) -> str:
    return f"EXPLAIN CHANGE SUBJECT {print_string(node.subject)} TO {print_string(node.schema)}"
