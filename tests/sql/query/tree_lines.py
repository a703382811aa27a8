"""A relational tree as lines for people to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headgate.sql.query import tree as n


def shown(node: n.Node, depth: int = 0) -> Iterator[str]:
    """The tree as indented lines."""
    margin = "  " * depth
    yield f"{margin}{type(node).__name__} {_details(node)}".rstrip()
    for expression in n.expressions_of(node):
        for subquery in expression.subqueries:
            yield f"{margin}  in an expression:"
            yield from shown(subquery, depth + 2)
    for below in n.inputs_of(node):
        yield from shown(below, depth + 1)


def _details(node: n.Node) -> str:
    match node:
        case n.Scan():
            return f"{node.relation.name}: {_refs(o.ref for o in node.columns)}"
        case n.Values():
            return f"{_refs(node.columns)} of {len(node.rows)} rows"
        case n.Filter():
            return node.condition.sql
        case n.Project():
            return _computed(node.columns)
        case n.Generate():
            return f"{'outer ' if node.outer else ''}{node.call.sql} as {_refs(node.columns)}"
        case n.Aggregate():
            sets = f" sets {list(map(list, node.sets))}" if node.sets else ""
            return f"by [{_computed(node.keys)}]{sets}: {_computed(node.calls)}"
        case n.Join():
            lateral = " lateral" if node.lateral else ""
            return f"{node.kind}{lateral} {'' if node.on is None else node.on.sql}"
        case n.Window():
            return _computed(node.calls)
        case n.SetOperation():
            return f"{node.operator}{' all' if node.all else ''} as {_refs(node.columns)}"
        case n.Sort():
            return ", ".join(e.sql for e in node.by)
        case n.Limit():
            return ", ".join(e.sql for e in n.expressions_of(node))
        case n.Subquery():
            return f"{node.alias}: {_refs(node.columns)}"
        case n.Distinct():
            return ""


def _refs(refs: Iterable[n.Ref]) -> str:
    return ", ".join(map(str, refs))


def _computed(outputs: Iterable[n.Output | n.Call]) -> str:
    return ", ".join(f"{o.ref} = {o.value.sql}" for o in outputs)
