"""A relational tree as Spark SQL.

`marked_sql` is for a chain of filters and projections: one query that keeps the rows which do not pass, and marks them. A keyed
target must delete the key of a row that passed before and does not pass any more. It learns that from the mark, without a join
of the batch with its own result.

`positioned_sql` is for a chain of views: one query that passes on one more column of the source, the position of the record.
Views do not select that column, so it is added to every node of their trees between the source and the result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from headgate.schema.render import spark_identifier
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
    return spark_identifier(str(ref))


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


View = tuple[n.Node, Sequence[str]]
"""The tree of a view's query, and the names of the view's columns."""


def marked_sql(
    source: str, columns: Sequence[str], views: Sequence[View], key: Collection[str], mark: str
) -> str | None:
    """The rows of the last view over ``source``, whose column ``mark`` says whether there is a row; the result has it too.

    None if the chain has other nodes, if a condition uses a computed column, or if a column of ``key`` is computed. All
    conditions are evaluated on the source's own columns, before anything is computed: Spark does the same with filters, so
    that a value which cannot be computed does not matter where a filter above leaves its row out.
    """
    mark = spark_identifier(mark)
    plain: Mapping[str, str] = {name: name for name in columns}
    rows = f"SELECT * FROM {source}"
    for tree, names in views:
        found = _Plain(plain)
        try:
            refs = found.refs(tree)
        except _NotOnePass:
            return None
        for condition, uses in found.conditions:
            rows = _marked(rows, columns, condition, uses, mark)
        plain = {name: refs[ref] for name, ref in zip(names, n.columns_of(tree), strict=True) if ref in refs}
    if not plain.keys() >= set(key):
        return None
    for tree, names in views:
        chosen = [
            f"{quoted(ref)} AS {spark_identifier(name)}" for name, ref in zip(names, n.columns_of(tree), strict=True)
        ]
        rows = _select([*chosen, mark], _rows(tree, rows, mark))
    return rows


class _NotOnePass(Exception):
    pass


class _Plain:
    """Which columns of the nodes of a tree are plain columns of the source. Collects the conditions on the way."""

    def __init__(self, scanned: Mapping[str, str]) -> None:
        self._scanned = scanned
        self.conditions: list[tuple[str, dict[n.Ref, str]]] = []

    def refs(self, node: n.Node) -> dict[n.Ref, str]:
        match node:
            case n.Scan():
                named = zip(node.names, node.columns, strict=True)
                return {output.ref: self._scanned[name] for name, output in named if name in self._scanned}
            case n.Filter():
                refs = self.refs(node.input)
                if not node.condition.uses <= refs.keys() or node.condition.subqueries:
                    raise _NotOnePass
                self.conditions.append((node.condition.sql, {ref: refs[ref] for ref in node.condition.uses}))
                return refs
            case n.Project():
                refs = self.refs(node.input)
                pairs = ((output.ref, output.value.column) for output in node.columns)
                return {ref: refs[column] for ref, column in pairs if column is not None and column in refs}
            case n.Subquery():
                refs = self.refs(node.input)
                renamed = zip(node.columns, n.columns_of(node.input), strict=True)
                return {new: refs[old] for new, old in renamed if old in refs}
            case _:
                raise _NotOnePass


def _marked(rows: str, columns: Iterable[str], condition: str, uses: Mapping[n.Ref, str], mark: str) -> str:
    """The rows with the mark taken from those for which the condition does not hold. It is evaluated for marked ones only."""
    below = _select(["*", *(f"{spark_identifier(name)} AS {quoted(ref)}" for ref, name in uses.items())], rows)
    holds = f"CASE WHEN {mark} THEN coalesce(({condition}), false) ELSE false END AS {mark}"
    return _select([*map(spark_identifier, columns), holds], below)


def _rows(node: n.Node, below: str, mark: str) -> str:
    """The rows of a node, whose columns are called by their refs, over those of the relation that the tree scans."""
    match node:
        case n.Scan():
            return _select([*(f"{o.value.sql} AS {quoted(o.ref)}" for o in node.columns), mark], below)
        case n.Filter():
            return _rows(node.input, below, mark)
        case n.Project():
            computed = [f"{_guarded(o.value.sql, o.value.column, mark)} AS {quoted(o.ref)}" for o in node.columns]
            return _select([*computed, mark], _rows(node.input, below, mark))
        case n.Subquery():
            renamed = zip(node.columns, n.columns_of(node.input), strict=True)
            chosen = [f"{quoted(old)} AS {quoted(new)}" for new, old in renamed]
            return _select([*chosen, mark], _rows(node.input, below, mark))
        case _:
            raise AssertionError("other nodes were refused")


def _guarded(sql: str, column: n.Ref | None, mark: str) -> str:
    """Nothing is computed for a row that does not pass. Its plain columns are kept: they may be the key."""
    return sql if column is not None else f"CASE WHEN {mark} THEN {sql} END"


def _select(items: Iterable[str], below: str) -> str:
    return f"SELECT {', '.join(items)} FROM ({below})"


_NUMBER = -1  # of the added column; the numbers of the columns of a query begin at 0


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
        chosen = [
            f"{quoted(r)} AS {spark_identifier(column)}" for column, r in zip(columns, n.columns_of(tree), strict=True)
        ]
        parts.append(
            f"{name} AS (SELECT {', '.join([*chosen, f'{quoted(ref)} AS {spark_identifier(at)}'])} FROM ({spark_sql(made)}))"
        )
    return f"WITH {', '.join(parts)} SELECT * FROM {names[-1]}"


def plain_columns(columns: Sequence[str], views: Sequence[View]) -> Mapping[str, str]:
    """The columns of the last view that are plain columns of its source, and their names there. ``columns`` are the source's. None of
    them if the chain does more than rename, choose and filter."""
    plain: Mapping[str, str] = {name: name for name in columns}
    for tree, names in views:
        try:
            refs = _Plain(plain).refs(tree)
        except _NotOnePass:
            return {}
        plain = {name: refs[ref] for name, ref in zip(names, n.columns_of(tree), strict=True) if ref in refs}
    return plain


def carrying(views: Sequence[View], more: Sequence[str], shown: Mapping[str, str]) -> list[View]:
    """The views of such a chain with ``more`` columns of the source, which each passes on after its own. The last view has instead those
    of ``shown`` in the place of its own columns of these names."""
    refs = {name: n.Ref(name, _NUMBER) for name in more}
    made: list[View] = []
    for number, (tree, names) in enumerate(views, start=1):
        own = dict(zip(names, n.columns_of(tree), strict=True))
        for ref in refs.values():
            tree = _with(tree, ref)
        is_last = number == len(views)
        wanted = {name: refs[shown[name]] if is_last and name in shown else ref for name, ref in own.items()}
        if not is_last:
            wanted |= refs
        outputs = [
            n.Output(n.Ref(name, _NUMBER), n.Expr(quoted(ref), uses=frozenset((ref,)), column=ref))
            for name, ref in wanted.items()
        ]
        made.append((n.Project(tree, tuple(outputs)), tuple(wanted)))
    return made


def view_sql(view: View) -> str:
    """The rows of a view, under the names of its columns."""
    tree, names = view
    chosen = [f"{quoted(ref)} AS {spark_identifier(name)}" for name, ref in zip(names, n.columns_of(tree), strict=True)]
    return f"SELECT {', '.join(chosen)} FROM ({spark_sql(tree)})"


def generates_rows(views: Sequence[View]) -> bool:
    """Whether a row of the source may give more than one row of the last view."""
    return any(isinstance(node, n.Generate | n.Join) for tree, _ in views for node in n.walk(tree))


class _SeveralRows(Exception):
    """A row of the node may come from more than one row below it, so it has no position of its own."""


def _with(node: n.Node, at: n.Ref) -> n.Node:
    """The node with one more column."""
    match node:
        case n.Scan():
            scanned = n.Output(at, n.Expr(spark_identifier(at.name)))
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
