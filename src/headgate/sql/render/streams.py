"""Streams and tables."""

from __future__ import annotations

from headgate.sql.ast.names import (
    block,
    clauses,
    print_identifier,
    print_if_not_exists,
    print_name,
    print_string,
    words,
)
from headgate.sql.ast.streams import CreateStream, CreateStreamAs, StreamColumn
from headgate.sql.render.types import print_full_type
from headgate.sql.render.values import print_with_options


def print_create_stream(node: CreateStream) -> str:
    columns = block([_print_column(column) for column in node.columns]) if node.columns else ""
    return clauses(words(_print_head(node), columns), print_with_options(node.properties))


def print_create_stream_as(node: CreateStreamAs) -> str:
    head = _print_head(node)
    partition_by = ", ".join([expression.text for expression in node.partition_by])
    return clauses(
        head if node.properties else f"{head} AS",
        f"{print_with_options(node.properties)} AS" if node.properties else "",
        node.query.text,
        f"PARTITION BY {partition_by}" if partition_by else "",
    )


def _print_head(node: CreateStream | CreateStreamAs) -> str:
    create = f"CREATE OR REPLACE {node.kind}" if node.or_replace else f"CREATE {node.kind}"
    return words(create, print_if_not_exists(node.if_not_exists), print_name(node.name))


def _print_column(node: StreamColumn) -> str:
    header = f"({print_string(node.header)})" if node.header is not None else ""
    return words(print_identifier(node.name), print_full_type(node.type), (node.role or "") + header)
