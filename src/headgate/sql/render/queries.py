"""Queries, INSERT and the session's settings."""

from __future__ import annotations

from headgate.sql.ast.insert import InsertQuery, InsertValues
from headgate.sql.ast.names import clauses, print_identifiers, print_name, words
from headgate.sql.ast.queries import Select, Subscribe
from headgate.sql.ast.session import SetSearchPath, ShowSearchPath


def print_select(node: Select) -> str:
    emit = (
        words("EMIT CHANGES", f"LIMIT {node.limit}" if node.limit is not None else "")
        if node.emit_changes
        else ""
    )
    return clauses(node.query.text, emit)


def print_subscribe(node: Subscribe) -> str:
    return f"SUBSCRIBE TO {print_name(node.relation)}"


def print_insert_values(node: InsertValues) -> str:
    columns = print_identifiers(node.columns) if node.columns else ""
    rows = ["(" + ", ".join([expression.text for expression in row]) + ")" for row in node.rows]
    return clauses(words("INSERT INTO", print_name(node.relation), columns), "VALUES " + ",\n    ".join(rows))


def print_insert_query(node: InsertQuery) -> str:
    columns = print_identifiers(node.columns) if node.columns else ""
    return clauses(words("INSERT INTO", print_name(node.relation), columns), node.query.text)


def print_set_search_path(node: SetSearchPath) -> str:
    path = ", ".join([print_name(schema) for schema in node.path])
    return f"SET search_path = {path or 'DEFAULT'}"


def print_show_search_path(_: ShowSearchPath) -> str:
    return "SHOW search_path"
