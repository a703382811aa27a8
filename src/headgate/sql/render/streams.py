"""Streams and tables."""

from __future__ import annotations

from headgate.sql.ast.streams import CreateStream, CreateStreamAs, StreamColumn
from headgate.sql.render.types import type_
from headgate.sql.render.values import (
    block,
    clauses,
    identifier,
    if_not_exists,
    name,
    string,
    with_options,
    words,
)


def create_stream(node: CreateStream) -> str:
    columns = block([_column(column) for column in node.columns]) if node.columns else ""
    return clauses(words(_head(node), columns), with_options(node.properties))


def create_stream_as(node: CreateStreamAs) -> str:
    head = _head(node)
    partition_by = ", ".join([expression.text for expression in node.partition_by])
    return clauses(
        head if node.properties else f"{head} AS",
        f"{with_options(node.properties)} AS" if node.properties else "",
        node.query.text,
        f"PARTITION BY {partition_by}" if partition_by else "",
    )


def _head(node: CreateStream | CreateStreamAs) -> str:
    create = f"CREATE OR REPLACE {node.kind}" if node.or_replace else f"CREATE {node.kind}"
    return words(create, if_not_exists(node.if_not_exists), name(node.name))


def _column(node: StreamColumn) -> str:
    header = f"({string(node.header)})" if node.header is not None else ""
    return words(identifier(node.name), type_(node.type), (node.role or "") + header)
