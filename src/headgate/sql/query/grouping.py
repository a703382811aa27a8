"""GROUP BY: which expressions are allowed beside aggregates. Works on expressions that are already rewritten for
Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import TypeAlias

from sqlglot import exp

from headgate.errors import Span
from headgate.sql.errors import MisplacedAggregate, UngroupedColumn
from headgate.sql.query.functions import AGGREGATES
from headgate.sql.query.scope import Scope

# What may stand between an aggregate and its OVER.
AROUND = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
# Nodes of GROUP BY that only group its expressions.
_LISTS = (exp.Group, exp.GroupingSets, exp.Rollup, exp.Cube, exp.Tuple, exp.Paren)


def group_items(node: exp.Expr) -> Iterator[exp.Expr]:
    """The expressions of GROUP BY, those of all its lists and sets."""
    for child in list(node.iter_expressions()):
        if isinstance(child, _LISTS):
            yield from group_items(child)
        else:
            yield child


def has_sets(group: exp.Expr) -> bool:
    """Whether there are grouping sets: a group can then lack some of its columns, which are NULL."""
    return any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets")) or bool(
        group.find(exp.Rollup, exp.Cube, exp.GroupingSets)
    )


def grouping_sets(group: exp.Expr, positions: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The sets of keys by which rows are grouped, or none if there is only the set of all.

    ``positions`` are the keys of the expressions of `group_items`, in its order. Lists beside each other multiply;
    `a, b WITH ROLLUP` and `a, b GROUPING SETS (…)` are about the keys before them.
    """
    if not has_sets(group):
        return ()
    rest = iter(positions)
    plain = [_sets_of(each, rest) for each in group.expressions]
    after = [each for name in ("rollup", "cube", "grouping_sets") for each in group.args.get(name) or ()]
    if any(each.expressions for each in after):
        plain = [_sets_of(each, rest) for each in after]
    elif after:
        keys = [sets[0] for sets in plain]
        plain = [_rolled_up(keys) if isinstance(after[0], exp.Rollup) else _subsets(keys)]
    return tuple(_joined(chosen) for chosen in product(*plain))


_Sets: TypeAlias = list[tuple[int, ...]]


def _sets_of(node: exp.Expr, rest: Iterator[int]) -> _Sets:
    """The grouping sets of one item of GROUP BY. ``rest`` gives the position of the next key."""
    match node:
        case exp.Rollup():
            return _rolled_up([_joined(_sets_of(each, rest)) for each in node.expressions])
        case exp.Cube():
            return _subsets([_joined(_sets_of(each, rest)) for each in node.expressions])
        case exp.GroupingSets():
            return [each for child in node.expressions for each in _sets_of(child, rest)]
        case exp.Tuple():
            return [_joined(_joined(_sets_of(each, rest)) for each in node.expressions)]
        case exp.Paren():
            return _sets_of(node.this, rest)
        case _:
            return [(next(rest),)]


def _rolled_up(keys: _Sets) -> _Sets:
    """ROLLUP: all beginnings of the list of keys, the longest first."""
    return [_joined(keys[:count]) for count in range(len(keys), -1, -1)]


def _subsets(keys: _Sets) -> _Sets:
    """CUBE: all subsets of the keys."""
    return [
        _joined(key for key, kept in zip(keys, chosen, strict=True) if kept)
        for chosen in product((True, False), repeat=len(keys))
    ]


def _joined(sets: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """One set of all the keys, each once."""
    return tuple(dict.fromkeys(key for each in sets for key in each))


def aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregates of an expression that work on groups: not those over windows or inside subqueries."""
    if is_aggregate(node):
        yield node
    if isinstance(node, exp.Query):
        return
    for child in node.iter_expressions():
        yield from aggregates(child)


def refuse_aggregates(clause: exp.Expr, name: str, span: Callable[[exp.Expr], Span | None]) -> None:
    """Refuse an aggregate in a clause that is evaluated before the groups are made."""
    for found in aggregates(clause):
        raise MisplacedAggregate(str(found.this), name).at(span(clause))


def check_grouped(node: exp.Select, scope: Scope, span: Callable[[exp.Expr], Span | None]) -> None:
    """Check that outputs and HAVING consist of groups, aggregates and constants, if there are groups or aggregates."""
    group, having = node.args.get("group"), node.args.get("having")
    outputs = [_value(expression) for expression in node.expressions]
    if group is None and having is None and not any(True for output in outputs for _ in aggregates(output)):
        return
    if group is not None and group.args.get("all"):
        return
    keys = {_key(item, node) for item in group_items(group)} if group is not None else set()
    own = {source.alias for source in scope.sources}
    for expression in [*outputs, *([having.this] if having is not None else [])]:
        for column in _loose(expression, keys, own):
            raise UngroupedColumn(column.name).at(span(column))


def _loose(node: exp.Expr, keys: set[str], own: set[str]) -> Iterator[exp.Column]:
    """Columns of this query's sources that are neither in a group nor in an aggregate."""
    if is_aggregate(called(node)) or isinstance(node, exp.Query) or (keys and node.sql() in keys):
        return
    if isinstance(node, exp.Column):
        if node.table in own:
            yield node
        return
    for child in node.iter_expressions():
        yield from _loose(child, keys, own)


def _key(item: exp.Expr, node: exp.Select) -> str:
    """The text of a grouping key. `GROUP BY 2` and `GROUP BY alias` refer to an output."""
    if isinstance(item, exp.Literal) and item.name.isdigit() and 0 < int(item.name) <= len(node.expressions):
        return _value(node.expressions[int(item.name) - 1]).sql()
    if isinstance(item, exp.Column) and not item.table:
        for expression in node.expressions:
            if expression.alias == item.name:
                return _value(expression).sql()
    return item.sql()


def _value(expression: exp.Expr) -> exp.Expr:
    value: exp.Expr = expression.this if isinstance(expression, exp.Alias | exp.Aliases) else expression
    return value


def called(node: exp.Expr) -> exp.Expr:
    """The call itself, without FILTER, WITHIN GROUP or IGNORE NULLS around it."""
    while isinstance(node, AROUND):
        node = node.this
    return node


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a call of an aggregate that works on groups, not on a window."""
    if not isinstance(node, exp.Anonymous) or str(node.this).lower() not in AGGREGATES:
        return False
    parent = node.parent
    while isinstance(parent, AROUND):
        parent = parent.parent
    return not isinstance(parent, exp.Window)
