"""Views."""

from __future__ import annotations

from headgate.sql.ast.views import CreateMaterializedView, CreateView
from headgate.sql.render.values import (
    block,
    clauses,
    identifier,
    identifiers,
    if_not_exists,
    name,
    option,
    with_options,
    words,
)


def create_view(node: CreateView) -> str:
    create = "CREATE OR REPLACE VIEW" if node.or_replace else "CREATE VIEW"
    columns = identifiers(node.columns) if node.columns else ""
    head = words(create, if_not_exists(node.if_not_exists), name(node.name), columns)
    return clauses(words(head, with_options(node.with_options), "AS"), node.query.text)


def create_materialized_view(node: CreateMaterializedView) -> str:
    create = "CREATE OR REPLACE MATERIALIZED VIEW" if node.or_replace else "CREATE MATERIALIZED VIEW"
    columns = identifiers(node.columns) if node.columns else ""
    head = words(create, if_not_exists(node.if_not_exists), name(node.name), columns)
    given = [f"ASSERT NOT NULL {identifier(column)}" for column in node.assert_not_null]
    given += [option(item) for item in node.with_options]
    if not given:
        return clauses(f"{head} AS", node.query.text)
    return clauses(head, f"WITH {block(given)} AS", node.query.text)
