"""A relational tree as Spark SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headgate.sql.query import tree as n
from headgate.sql.query.functions import GENERATORS

# The words of Spark SQL.
_JOINS = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
    "cross": "CROSS JOIN",
}


def quoted(ref: n.Ref) -> str:
    """The name of a column in the SQL of a tree."""
    return f"`{str(ref).replace('`', '``')}`"


def version_name(spark_name: str, version: n.Version) -> str:
    """The name under which Spark knows a version of a relation."""
    return spark_name if version == "now" else f"{spark_name}_{version}"


def spark_sql(node: n.Node) -> str:
    """A query with the rows of the node, whose columns are called by their refs."""
    match node:
        case n.Scan():
            return f"SELECT {_outputs(node.columns)} FROM {version_name(node.spark_name, node.version)}"
        case n.Values():
            return " UNION ALL ".join(_row(node.columns, row) for row in node.rows)
        case n.Filter():
            return f"SELECT * FROM {_inner(node.input)} WHERE {node.condition.sql}"
        case n.Project():
            return f"SELECT {_outputs(node.columns)} FROM {_inner(node.input)}"
        case n.Generate():
            return _generate(node)
        case n.Aggregate():
            return _aggregate(node)
        case n.Join():
            return _join(node)
        case n.Window():
            return f"SELECT *, {_outputs(node.calls)} FROM {_inner(node.input)}"
        case n.Distinct():
            return f"SELECT DISTINCT * FROM {_inner(node.input)}"
        case n.SetOperation():
            words = f"{node.operator.upper()} {'ALL' if node.all else 'DISTINCT'}"
            names = ", ".join(map(quoted, node.columns))
            return f"SELECT * FROM (({spark_sql(node.left)}) {words} ({spark_sql(node.right)})) AS t({names})"
        case n.Sort():
            return f"SELECT * FROM {_inner(node.input)} ORDER BY {', '.join(e.sql for e in node.by)}"
        case n.Limit():
            return _limit(node)
        case n.Subquery():
            return f"SELECT * FROM ({spark_sql(node.input)}) AS t({', '.join(map(quoted, node.columns))})"


def _inner(node: n.Node) -> str:
    """The node as a subquery. One row without columns needs some column in Spark."""
    if isinstance(node, n.Values) and not node.columns and len(node.rows) == 1:
        return "(SELECT 1 AS `one row`)"
    return f"({spark_sql(node)})"


def _row(columns: Sequence[n.Ref], row: Sequence[n.Expr]) -> str:
    return f"SELECT {', '.join(f'{v.sql} AS {quoted(c)}' for c, v in zip(columns, row, strict=True)) or '1'}"


def _outputs(outputs: Iterable[n.Output | n.Call]) -> str:
    return ", ".join(f"{output.value.sql} AS {quoted(output.ref)}" for output in outputs)


def _generate(node: n.Generate) -> str:
    """LATERAL VIEW for Spark's generators, a join for its table functions."""
    names = ", ".join(map(quoted, node.columns))
    above = ", ".join(quoted(ref) for ref in n.columns_of(node))
    if node.function not in GENERATORS:
        return f"SELECT {above} FROM {_inner(node.input)} CROSS JOIN {node.call.sql} AS g({names})"
    outer = "OUTER " if node.outer else ""
    return f"SELECT {above} FROM {_inner(node.input)} LATERAL VIEW {outer}{node.call.sql} g AS {names}"


def _aggregate(node: n.Aggregate) -> str:
    """The keys are computed below the groups, so that a constant among them is not taken for a position."""
    below = _inner(node.input)
    keys = [quoted(key.ref) for key in node.keys]
    if node.keys:
        below = f"(SELECT *, {_outputs(node.keys)} FROM {below})"
    chosen = ", ".join([*keys, *(f"{c.value.sql} AS {quoted(c.ref)}" for c in node.calls)])
    if not keys:
        return f"SELECT {chosen or '1'} FROM {below} HAVING true"
    sets = ", ".join(f"({', '.join(keys[at] for at in each)})" for each in node.sets)
    return f"SELECT {chosen} FROM {below} GROUP BY {f'GROUPING SETS ({sets})' if sets else ', '.join(keys)}"


def _join(node: n.Join) -> str:
    lateral = "LATERAL " if node.lateral else ""
    on = f" ON {node.on.sql}" if node.on is not None else ""
    return f"SELECT * FROM {_inner(node.left)} {_JOINS[node.kind]} {lateral}{_inner(node.right)}{on}"


def _limit(node: n.Limit) -> str:
    """Right above its Sort, because Spark does not keep the order of a subquery."""
    below = spark_sql(node.input) if isinstance(node.input, n.Sort) else f"SELECT * FROM {_inner(node.input)}"
    count = f" LIMIT {node.count.sql}" if node.count is not None else ""
    return below + count + (f" OFFSET {node.offset.sql}" if node.offset is not None else "")
