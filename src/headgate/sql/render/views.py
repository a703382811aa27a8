"""Views."""

from __future__ import annotations

from headgate.sql.ast.names import (
    block,
    clauses,
    print_identifier,
    print_identifiers,
    print_if_not_exists,
    print_name,
    words,
)
from headgate.sql.ast.views import CreateMaterializedView, CreateView
from headgate.sql.render.values import print_option, print_with_options


def print_create_view(node: CreateView) -> str:
    create = "CREATE OR REPLACE VIEW" if node.or_replace else "CREATE VIEW"
    columns = print_identifiers(node.columns) if node.columns else ""
    head = words(create, print_if_not_exists(node.if_not_exists), print_name(node.name), columns)
    return clauses(words(head, print_with_options(node.with_options), "AS"), node.query.text)


def print_create_materialized_view(node: CreateMaterializedView) -> str:
    create = "CREATE OR REPLACE MATERIALIZED VIEW" if node.or_replace else "CREATE MATERIALIZED VIEW"
    columns = print_identifiers(node.columns) if node.columns else ""
    head = words(create, print_if_not_exists(node.if_not_exists), print_name(node.name), columns)
    given = [f"ASSERT NOT NULL {print_identifier(column)}" for column in node.assert_not_null]
    given += [print_option(item) for item in node.with_options]
    if not given:
        return clauses(f"{head} AS", node.query.text)
    return clauses(head, f"WITH {block(given)} AS", node.query.text)
