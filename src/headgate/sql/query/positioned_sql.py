"""A chain of views as one query that passes on one more column of its source: where the record of a row is.

Views do not select that column, so it is added to every node of their trees between the source and the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headgate.sql.query import tree as n
from headgate.sql.query.tree_sql import View, quoted, spark_sql

_NUMBER = -1  # of the added column; those of a query begin at 0


def positioned_sql(source: str, names: Sequence[str], views: Sequence[View], at: str) -> str | None:
    """The rows of the last view, with the column ``at`` of its source. ``names`` are the names of the views in Spark, the
    lowest first; each reads the one before it, and the first one the source. None if a row of a view may come from more
    than one row below it."""
    if not views:
        return f"SELECT * FROM {source}"
    ref = n.Ref(at, _NUMBER)
    parts = []
    for name, (tree, columns) in zip(names, views, strict=True):
        try:
            made = _with(tree, ref)
        except _SeveralRows:
            return None
        chosen = [f"{quoted(r)} AS {_name(column)}" for column, r in zip(columns, n.columns_of(tree), strict=True)]
        parts.append(
            f"{name} AS (SELECT {', '.join([*chosen, f'{quoted(ref)} AS {_name(at)}'])} FROM ({spark_sql(made)}))"
        )
    return f"WITH {', '.join(parts)} SELECT * FROM {names[-1]}"


def generates_rows(views: Sequence[View]) -> bool:
    """Whether a row of the source may give more than one row of the last view."""
    return any(isinstance(node, n.Generate | n.Join) for tree, _ in views for node in n.walk(tree))


class _SeveralRows(Exception):
    pass


def _with(node: n.Node, at: n.Ref) -> n.Node:
    """The node with one more column."""
    match node:
        case n.Scan():
            scanned = n.Output(at, n.Expr(_name(at.name)))
            return replace(node, names=(*node.names, at.name), columns=(*node.columns, scanned))
        case n.Project():
            passed = n.Output(at, n.Expr(quoted(at), uses=frozenset({at}), column=at))
            return replace(node, input=_with(node.input, at), columns=(*node.columns, passed))
        case n.Filter() | n.Sort() | n.Generate():
            return replace(node, input=_with(node.input, at))
        case n.Subquery():
            below = _with(node.input, at)
            names = dict(zip(n.columns_of(node.input), node.columns, strict=True))
            return replace(node, input=below, columns=tuple(names.get(ref, at) for ref in n.columns_of(below)))
        case n.Join(kind="inner" | "left" | "cross"):
            return replace(node, left=_with(node.left, at))
        case _:
            raise _SeveralRows


def _name(column: str) -> str:
    return f"`{column.replace('`', '``')}`"
