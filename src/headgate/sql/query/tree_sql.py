"""A relational tree as Spark SQL, and as lines for people to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headgate.sql.query.functions import GENERATORS
from headgate.sql.query.tree import (
    Aggregate,
    Call,
    Distinct,
    Expr,
    Filter,
    Generate,
    Join,
    Limit,
    Node,
    Output,
    Project,
    Ref,
    Scan,
    SetOperation,
    Sort,
    Subquery,
    Values,
    Window,
    columns_of,
    expressions_of,
    inputs_of,
)

_JOINS = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
    "cross": "CROSS JOIN",
}


def quoted(ref: Ref) -> str:
    """The name of a column in the SQL of a tree."""
    return f"`{str(ref).replace('`', '``')}`"


def spark_sql(node: Node) -> str:
    """A query with the rows of the node, whose columns are called by their refs."""
    match node:
        case Scan():
            return f"SELECT {_outputs(node.columns)} FROM {node.spark_name}"
        case Values():
            return " UNION ALL ".join(_row(node.columns, row) for row in node.rows)
        case Filter():
            return f"SELECT * FROM {_inner(node.input)} WHERE {node.condition.sql}"
        case Project():
            return f"SELECT {_outputs(node.columns)} FROM {_inner(node.input)}"
        case Generate():
            return _generate(node)
        case Aggregate():
            return _aggregate(node)
        case Join():
            return _join(node)
        case Window():
            return f"SELECT *, {_outputs(node.calls)} FROM {_inner(node.input)}"
        case Distinct():
            return f"SELECT DISTINCT * FROM {_inner(node.input)}"
        case SetOperation():
            words = f"{node.operator.upper()} {'ALL' if node.all else 'DISTINCT'}"
            names = ", ".join(map(quoted, node.columns))
            return f"SELECT * FROM (({spark_sql(node.left)}) {words} ({spark_sql(node.right)})) AS t({names})"
        case Sort():
            return f"SELECT * FROM {_inner(node.input)} ORDER BY {', '.join(e.sql for e in node.by)}"
        case Limit():
            return _limit(node)
        case Subquery():
            return f"SELECT * FROM ({spark_sql(node.input)}) AS t({', '.join(map(quoted, node.columns))})"


def _inner(node: Node) -> str:
    if isinstance(node, Values) and not node.columns and len(node.rows) == 1:
        return "(SELECT 1 AS `one row`)"
    return f"({spark_sql(node)})"


def _row(columns: Sequence[Ref], row: Sequence[Expr]) -> str:
    return f"SELECT {', '.join(f'{v.sql} AS {quoted(c)}' for c, v in zip(columns, row, strict=True)) or '1'}"


def _outputs(outputs: Iterable[Output | Call]) -> str:
    return ", ".join(f"{output.value.sql} AS {quoted(output.ref)}" for output in outputs)


def _generate(node: Generate) -> str:
    names = ", ".join(map(quoted, node.columns))
    above = ", ".join(quoted(ref) for ref in columns_of(node))
    if node.function not in GENERATORS:
        return f"SELECT {above} FROM {_inner(node.input)} CROSS JOIN {node.call.sql} AS g({names})"
    outer = "OUTER " if node.outer else ""
    return f"SELECT {above} FROM {_inner(node.input)} LATERAL VIEW {outer}{node.call.sql} g AS {names}"


def _aggregate(node: Aggregate) -> str:
    """The keys are computed below the groups, so that a constant among them is not taken for a position."""
    below = _inner(node.input)
    keys = [quoted(key.ref) for key in node.keys]
    if node.keys:
        below = f"(SELECT *, {_outputs(node.keys)} FROM {below})"
    chosen = ", ".join([*keys, *(f"{c.value.sql} AS {quoted(c.ref)}" for c in node.calls)])
    if not keys:
        return f"SELECT {chosen or '1'} FROM {below} HAVING true"
    sets = ", ".join(f"({', '.join(keys[n] for n in each)})" for each in node.sets)
    return f"SELECT {chosen} FROM {below} GROUP BY {f'GROUPING SETS ({sets})' if sets else ', '.join(keys)}"


def _join(node: Join) -> str:
    lateral = "LATERAL " if node.lateral else ""
    on = f" ON {node.on.sql}" if node.on is not None else ""
    return f"SELECT * FROM {_inner(node.left)} {_JOINS[node.kind]} {lateral}{_inner(node.right)}{on}"


def _limit(node: Limit) -> str:
    """Right above its Sort, because Spark does not keep the order of a subquery."""
    below = spark_sql(node.input) if isinstance(node.input, Sort) else f"SELECT * FROM {_inner(node.input)}"
    count = f" LIMIT {node.count.sql}" if node.count is not None else ""
    return below + count + (f" OFFSET {node.offset.sql}" if node.offset is not None else "")


def shown(node: Node, depth: int = 0) -> Iterator[str]:
    """The tree as indented lines, for tests and for EXPLAIN."""
    margin = "  " * depth
    yield f"{margin}{type(node).__name__} {_details(node)}".rstrip()
    for expression in expressions_of(node):
        for subquery in expression.subqueries:
            yield f"{margin}  in an expression:"
            yield from shown(subquery, depth + 2)
    for below in inputs_of(node):
        yield from shown(below, depth + 1)


def _details(node: Node) -> str:
    match node:
        case Scan():
            return f"{node.relation.name}: {_refs(o.ref for o in node.columns)}"
        case Values():
            return f"{_refs(node.columns)} of {len(node.rows)} rows"
        case Filter():
            return node.condition.sql
        case Project():
            return _computed(node.columns)
        case Generate():
            return f"{'outer ' if node.outer else ''}{node.call.sql} as {_refs(node.columns)}"
        case Aggregate():
            sets = f" sets {list(map(list, node.sets))}" if node.sets else ""
            return f"by [{_computed(node.keys)}]{sets}: {_computed(node.calls)}"
        case Join():
            lateral = " lateral" if node.lateral else ""
            return f"{node.kind}{lateral} {'' if node.on is None else node.on.sql}"
        case Window():
            return _computed(node.calls)
        case SetOperation():
            return f"{node.operator}{' all' if node.all else ''} as {_refs(node.columns)}"
        case Sort():
            return ", ".join(e.sql for e in node.by)
        case Limit():
            return ", ".join(e.sql for e in expressions_of(node))
        case Subquery():
            return f"{node.alias}: {_refs(node.columns)}"
        case Distinct():
            return ""


def _refs(refs: Iterable[Ref]) -> str:
    return ", ".join(map(str, refs))


def _computed(outputs: Iterable[Output | Call]) -> str:
    return ", ".join(f"{o.ref} = {o.value.sql}" for o in outputs)
