"""A chain of filters and projections as one query that keeps the rows which do not pass, and marks them.

A keyed target must delete the key of a row that passed before and does not pass any more. It learns that from the mark,
without a join of the batch with its own result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from headgate.sql.query.tree import Filter, Node, Project, Ref, Scan, Subquery, columns_of
from headgate.sql.query.tree_sql import quoted

View = tuple[Node, Sequence[str]]
"""The tree of a view's query, and the names of the view's columns."""


def marked_sql(
    source: str, columns: Sequence[str], views: Sequence[View], key: Collection[str], mark: str
) -> str | None:
    """The rows of the last view over ``source``, whose column ``mark`` says whether there is a row; the result has it too.

    None if the chain has other nodes, if a condition uses a computed column, or if a column of ``key`` is computed. All
    conditions are evaluated on the source's own columns, before anything is computed: Spark does the same with filters, so
    that a value which cannot be computed does not matter where a filter above leaves its row out.
    """
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
        plain = {name: refs[ref] for name, ref in zip(names, columns_of(tree), strict=True) if ref in refs}
    if not plain.keys() >= set(key):
        return None
    for tree, names in views:
        chosen = [f"{quoted(ref)} AS {_name(name)}" for name, ref in zip(names, columns_of(tree), strict=True)]
        rows = _select([*chosen, mark], _rows(tree, rows, mark))
    return rows


class _NotOnePass(Exception):
    pass


class _Plain:
    """Which columns of the nodes of a tree are plain columns of the source. Collects the conditions on the way."""

    def __init__(self, scanned: Mapping[str, str]) -> None:
        self._scanned = scanned
        self.conditions: list[tuple[str, dict[Ref, str]]] = []

    def refs(self, node: Node) -> dict[Ref, str]:
        match node:
            case Scan():
                named = zip(node.names, node.columns, strict=True)
                return {output.ref: self._scanned[name] for name, output in named if name in self._scanned}
            case Filter():
                refs = self.refs(node.input)
                if not node.condition.uses <= refs.keys() or node.condition.subqueries:
                    raise _NotOnePass
                self.conditions.append((node.condition.sql, {ref: refs[ref] for ref in node.condition.uses}))
                return refs
            case Project():
                refs = self.refs(node.input)
                pairs = ((output.ref, output.value.column) for output in node.columns)
                return {ref: refs[column] for ref, column in pairs if column is not None and column in refs}
            case Subquery():
                refs = self.refs(node.input)
                renamed = zip(node.columns, columns_of(node.input), strict=True)
                return {new: refs[old] for new, old in renamed if old in refs}
            case _:
                raise _NotOnePass


def _marked(rows: str, columns: Iterable[str], condition: str, uses: Mapping[Ref, str], mark: str) -> str:
    """The rows with the mark taken from those for which the condition does not hold. It is evaluated for marked ones only."""
    below = _select(["*", *(f"{_name(name)} AS {quoted(ref)}" for ref, name in uses.items())], rows)
    holds = f"CASE WHEN {mark} THEN coalesce(({condition}), false) ELSE false END AS {mark}"
    return _select([*map(_name, columns), holds], below)


def _rows(node: Node, below: str, mark: str) -> str:
    """The rows of a node, whose columns are called by their refs, over those of the relation that the tree scans."""
    match node:
        case Scan():
            return _select([*(f"{o.value.sql} AS {quoted(o.ref)}" for o in node.columns), mark], below)
        case Filter():
            return _rows(node.input, below, mark)
        case Project():
            computed = [f"{_guarded(o.value.sql, o.value.column, mark)} AS {quoted(o.ref)}" for o in node.columns]
            return _select([*computed, mark], _rows(node.input, below, mark))
        case Subquery():
            renamed = zip(node.columns, columns_of(node.input), strict=True)
            chosen = [f"{quoted(old)} AS {quoted(new)}" for new, old in renamed]
            return _select([*chosen, mark], _rows(node.input, below, mark))
        case _:
            raise AssertionError("other nodes were refused")


def _guarded(sql: str, column: Ref | None, mark: str) -> str:
    """Nothing is computed for a row that does not pass. Its plain columns are kept: they may be the key."""
    return sql if column is not None else f"CASE WHEN {mark} THEN {sql} END"


def _select(items: Iterable[str], below: str) -> str:
    return f"SELECT {', '.join(items)} FROM ({below})"


def _name(column: str) -> str:
    return f"`{column.replace('`', '``')}`"
