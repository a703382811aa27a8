"""How a materialized view is kept equal to its query: by the changes of what it reads, or by computing it anew.

`maintain` gives two queries, for the first batch and for all later ones. Both return the changes of the view's stored rows as
a signed bag. They name the versions of each relation as `tree_sql.version_name` does, and the stored rows `hg_stored`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from headgate.schema.render import spark_ddl, spark_identifier
from headgate.schema.types import Type
from headgate.sql.query import growth, tree as n
from headgate.sql.query.incremental import (
    WEIGHT,
    Obstacle,
    changes,
    groups_obstacle,
    has_map,
    is_determined,
    is_determined_window,
    obstacle,
    prepared,
    subquery_obstacle,
    types_of,
    weighted,
    with_inputs,
)
from headgate.sql.query.kept_groups import STORED, EndsInGroups, ends_in_groups, hidden_name, kept_groups
from headgate.sql.query.tree_sql import quoted, spark_sql, version_name

_WEIGHT = spark_identifier(WEIGHT.name)


@dataclass(frozen=True, slots=True)
class NodeNote:
    """How one operator of a query is kept, and why. ``instead`` says what to write so that it is kept by its changes."""

    operator: str
    how: Literal["incremental", "recomputed"]
    why: str
    instead: str = ""


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of the stored rows, with its type in the words of Spark. The view does not show a hidden one."""

    name: str
    type: str
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Maintenance:
    """``first``, ``changed`` and ``anew`` are Spark SQL. Their columns are those of ``stored``, and `WEIGHT`. ``anew`` gives the same as
    ``changed`` from all rows, of which it reads those versions that ``first`` reads, and the stored rows; it is empty where
    that is not possible, or no other way.

    ``first_reads`` and ``reads`` have the versions of relations, by their ids, that both name. ``reads_stored`` is whether
    ``changed`` names the stored rows of the view itself. ``grows`` says that stored rows only come.
    """

    incremental: bool
    first: str
    changed: str
    stored: tuple[StoredColumn, ...]
    first_reads: frozenset[tuple[int, n.Version]]
    reads: frozenset[tuple[int, n.Version]]
    reads_stored: bool
    grows: bool
    notes: tuple[NodeNote, ...]
    anew: str = ""


Columns = Sequence[tuple[str, Type]]
"""The names and types of a view's columns."""
Hidden = Mapping[n.Ref, Type]
"""The hidden columns of stored rows, with their types."""


def maintain(tree: n.Node, columns: Columns, growth_of: growth.GrowthOf) -> Maintenance:
    """How to keep a view with these columns. ``undetermined`` must have found nothing against the tree."""
    tree = _with_fixed_order(prepared(tree))
    ends = ends_in_groups(tree)
    notes = tuple(_notes(tree, None if ends is None else ends.groups))
    if any(note.how == "recomputed" for note in notes):
        return _recomputed(tree, columns, notes)
    return _by_rows(tree, columns, growth_of, notes) if ends is None else _by_groups(ends, columns, growth_of, notes)


def _by_rows(tree: n.Node, columns: Columns, growth_of: growth.GrowthOf, notes: tuple[NodeNote, ...]) -> Maintenance:
    """A view without groups at its end: the rows that come and go."""
    grows = _grows(tree, growth_of) and not any(isinstance(each, n.Aggregate) for each in n.walk(tree))
    made = changes(tree)
    stored = _stored_columns({}, columns)
    first, changed = (_stored_rows(each, {}, columns, consolidate=not grows) for each in (weighted(tree), made))
    anew = "" if grows else _anew(first, stored)
    return Maintenance(True, first, changed, stored, _reads(tree), _reads(made), False, grows, notes, anew)


def maintain_by_key(tree: n.Node, columns: Columns, key: Mapping[str, str], scan: n.Scan) -> Maintenance:
    """How to keep a view over a relation that gives the present rows of changed keys, and the keys, but no old rows.

    ``key`` has the column of the view for each column of the relation's key; the old rows of a key are found in the store.
    The changes of the relation are its present rows with the weight 1.
    """
    tree = prepared(tree)
    names = [name for name, _ in columns]
    on = " AND ".join(f"s.{spark_identifier(own)} <=> k.{spark_identifier(of)}" for of, own in key.items())
    old = ", ".join([*(f"s.{spark_identifier(name)}" for name in names), f"-s.{_WEIGHT} AS {_WEIGHT}"])
    went = f"SELECT {old} FROM {STORED} AS s LEFT SEMI JOIN {version_name(scan.spark_name, 'keys')} AS k ON {on}"
    changed = _consolidated(f"{_named(changes(tree), {}, columns)} UNION ALL {went}", names)
    first = _stored_rows(weighted(tree), {}, columns, consolidate=True)
    stored, notes = _stored_columns({}, columns), tuple(_notes(tree, None))
    reads = _reads(changes(tree)) | _reads(replace(scan, version="keys"))
    return Maintenance(True, first, changed, stored, _reads(tree), reads, True, False, notes)


def _by_groups(
    ends: EndsInGroups, columns: Columns, growth_of: growth.GrowthOf, notes: tuple[NodeNote, ...]
) -> Maintenance:
    kept = kept_groups(ends, [name for name, _ in columns], grows=_grows(ends.groups.input, growth_of))
    first, changed = (_stored_rows(each, kept.hidden, columns, consolidate=True) for each in (kept.first, kept.changed))
    stored = _stored_columns(kept.hidden, columns)
    how = "merged from the changes" if kept.merged else "the groups in which something changed are computed anew"
    reads, notes = (_reads(kept.first), _reads(kept.changed)), _with_reason(notes, ends, how)
    return Maintenance(True, first, changed, stored, *reads, True, False, notes, _anew(first, stored))


def _with_reason(notes: tuple[NodeNote, ...], ends: EndsInGroups, how: str) -> tuple[NodeNote, ...]:
    label = _label(ends.groups)
    return tuple(replace(note, why=how) if note.operator == label else note for note in notes)


def _recomputed(tree: n.Node, columns: Columns, notes: tuple[NodeNote, ...]) -> Maintenance:
    """The whole query, and the stored rows taken away from it."""
    now, stored, reads = _named(weighted(tree), {}, columns), _stored_columns({}, columns), _reads(tree)
    first = _consolidated(now, [name for name, _ in columns])
    return Maintenance(False, first, _anew(now, stored), stored, reads, reads, True, False, notes)


def _anew(now: str, stored: Sequence[StoredColumn]) -> str:
    """What differs between the rows that there are to be and the stored ones."""
    names = [column.name for column in stored]
    gone = ", ".join([*map(spark_identifier, names), f"-{_WEIGHT} AS {_WEIGHT}"])
    return _consolidated(f"{now} UNION ALL SELECT {gone} FROM {STORED}", names)


def _grows(tree: n.Node, growth_of: growth.GrowthOf) -> bool:
    return isinstance(growth.derive(tree, growth_of), growth.Append)


def _reads(tree: n.Node) -> frozenset[tuple[int, n.Version]]:
    scans = (each for each in n.walk(tree) if isinstance(each, n.Scan))
    return frozenset((scan.relation.id, scan.version) for scan in scans if scan.relation.id is not None)


# the SQL of stored rows


def _stored_columns(hidden: Hidden, columns: Columns) -> tuple[StoredColumn, ...]:
    own = [StoredColumn(hidden_name(ref), spark_ddl(type_), hidden=True) for ref, type_ in hidden.items()]
    return (*own, *(StoredColumn(name, spark_ddl(type_)) for name, type_ in columns))


def _stored_rows(tree: n.Node, hidden: Hidden, columns: Columns, *, consolidate: bool) -> str:
    rows = _named(tree, hidden, columns)
    return _consolidated(rows, [*map(hidden_name, hidden), *(name for name, _ in columns)]) if consolidate else rows


def _named(tree: n.Node, hidden: Hidden, columns: Columns) -> str:
    """The rows of a tree under the names and types of the store."""
    refs = [*hidden, *(ref for ref in n.columns_of(tree) if ref not in hidden and ref != WEIGHT)]
    listed = [
        f"CAST({quoted(ref)} AS {stored.type}) AS {spark_identifier(stored.name)}"
        for ref, stored in zip(refs, _stored_columns(hidden, columns), strict=True)
    ]
    listed.append(f"CAST({quoted(WEIGHT)} AS BIGINT) AS {_WEIGHT}")
    return f"SELECT {', '.join(listed)} FROM ({spark_sql(tree)})"


def _consolidated(rows: str, names: Sequence[str]) -> str:
    """Each row once, with the sum of its weights, without those that came and went."""
    listed = ", ".join(map(spark_identifier, names))
    weight = f"sum({_WEIGHT})"
    return f"SELECT {listed}, {weight} AS {_WEIGHT} FROM ({rows}) GROUP BY {listed} HAVING {weight} <> 0"


# what the rows of a query do not determine


def undetermined(tree: n.Node, *, in_subquery: bool = False) -> Obstacle | None:
    """What makes two runs of a query over the same rows differ; None if nothing does.

    ``in_subquery`` is true for a query that is used inside an expression, whose SQL is fixed.
    """
    for node in _nodes(tree):
        found = _undetermined(node, in_subquery)
        inner = (s for expression in n.expressions_of(node) for s in expression.subqueries)
        for subquery in inner if found is None else ():
            found = found or undetermined(subquery, in_subquery=True)
        if found is not None:
            return found
    return None


def _nodes(tree: n.Node) -> Iterator[n.Node]:
    yield tree
    for below in n.inputs_of(tree):
        yield from _nodes(below)


def _undetermined(node: n.Node, in_subquery: bool) -> Obstacle | None:
    match node:
        case n.Aggregate():
            loose = [call.function for call in node.calls if not is_determined(call)]
            why, instead = "The result of {} depends on the order in which rows are read.", _OF_GROUPS
        case n.Window():
            loose = [
                call.function for call in node.calls if not (is_determined_window(call) or _is_ordered(call, node))
            ]
            loose += [call.function for call in node.calls if in_subquery and not is_determined_window(call)]
            why, instead = "The result of {} depends on the order of rows that are equal in ORDER BY.", {}
            if not in_subquery:
                instead = dict.fromkeys(loose, "Write ORDER BY, and a frame of ROWS if the function takes one.")
        case n.Limit():
            return _undetermined_limit(node, in_subquery)
        case _:
            return None
    return Obstacle(why.format(loose[0]), instead.get(loose[0], "")) if loose else None


# What to write for an aggregate whose result the rows do not determine.
_OF_GROUPS = {
    **dict.fromkeys(("collect_list", "collect_set", "array_agg"), "Write sort_array around it."),
    **dict.fromkeys(("listagg", "string_agg"), "Write WITHIN GROUP (ORDER BY …) after it, with the value itself."),
    **dict.fromkeys(("first", "first_value", "any_value", "last", "last_value"), "Write min or max."),
    **dict.fromkeys(("percentile_approx", "approx_percentile"), "Write percentile."),
    "max_by": "Write max(struct(y, x)).x for max_by(x, y): equal y are told apart by x then.",
    "min_by": "Write (min(struct(y, x)) FILTER (WHERE y IS NOT NULL)).x for min_by(x, y): equal y are told apart by x then.",
    "mode": "Write mode() WITHIN GROUP (ORDER BY …).",
}


def _is_ordered(call: n.Call, node: n.Window) -> bool:
    """Whether a window function is computed in the order of all columns, so that rows which it cannot tell apart are equal."""
    return call.ordered is not None and not any(map(has_map, types_of(node.input)))


def _undetermined_limit(node: n.Limit, in_subquery: bool) -> Obstacle | None:
    if not isinstance(node.input, n.Sort):
        return Obstacle("LIMIT without ORDER BY returns any rows.", "Add ORDER BY.")
    if any(map(has_map, types_of(node))):
        return Obstacle("LIMIT needs an order of all columns, and a map, or a value of unknown type, has none.")
    if in_subquery:
        return Obstacle("LIMIT in a subquery returns any of the rows that are equal in its ORDER BY.")
    return None


def _with_fixed_order(node: n.Node) -> n.Node:
    """ORDER BY of a LIMIT, and of a window function that needs it, orders by all columns at last. The rows that are equal then
    are the same."""
    if isinstance(node, n.Window):
        fixed = (
            call if is_determined_window(call) else replace(call, value=call.ordered or call.value)
            for call in node.calls
        )
        return replace(node, input=_with_fixed_order(node.input), calls=tuple(fixed))
    if isinstance(node, n.Limit) and isinstance(node.input, n.Sort):
        below = _with_fixed_order(node.input.input)
        rest = tuple(n.Expr(f"{quoted(ref)} NULLS LAST") for ref in n.columns_of(below))
        return replace(node, input=n.Sort(below, (*node.input.by, *rest)))
    return with_inputs(node, [_with_fixed_order(each) for each in n.inputs_of(node)])


def unstable_outside_conditions(tree: n.Node, unstable_of: Callable[[n.RelationName], n.Unstable]) -> n.Functions:
    """The functions with changing results that a query uses anywhere except in a condition of WHERE, HAVING or ON."""
    found = n.Stability(_without_conditions(tree), unstable_of).result
    return found.rows.union(*found.columns)


def _without_conditions(node: n.Node) -> n.Node:
    below = with_inputs(node, [_without_conditions(each) for each in n.inputs_of(node)])
    match below:
        case n.Filter():
            return replace(below, condition=n.Expr("true"))
        case n.Join():
            return replace(below, on=None)
        case _:
            return below


# views in the place of their names


def inlined(tree: n.Node, tree_of: Callable[[n.RelationName], n.Node | None]) -> n.Node:
    """The tree with the queries of plain views in the place of their scans. ``tree_of`` gives None for other relations."""
    if isinstance(tree, n.Scan):
        below = tree_of(tree.relation)
        if below is None:
            return tree
        columns = tuple(output.ref for output in tree.columns)
        return n.Subquery(inlined(below, tree_of), tree.relation.name, columns)
    return with_inputs(tree, [inlined(each, tree_of) for each in n.inputs_of(tree)])


# notes


def _notes(node: n.Node, ends: n.Aggregate | None) -> Iterator[NodeNote]:
    """A note for every operator, the last one that is computed first."""
    if isinstance(node, n.Aggregate) and node is ends:
        found = subquery_obstacle(node) or groups_obstacle(node)
    else:
        found = obstacle(node)
    if found is not None:
        yield NodeNote(_label(node), "recomputed", found.why, found.instead)
    elif not isinstance(node, n.Scan | n.Values | n.Subquery):
        yield NodeNote(_label(node), "incremental", _REASONS.get(type(node), "computed for the rows that changed"))
    for below in n.inputs_of(node):
        yield from _notes(below, ends)


_REASONS: dict[type[n.Node], str] = {
    n.Join: "the rows that changed on each side are joined with all rows of the other",
    n.Aggregate: "the groups in which something changed are computed anew",
}


def _label(node: n.Node) -> str:
    """An operator as a user knows it."""
    match node:
        case n.Aggregate():
            keys = ", ".join(key.ref.name for key in node.keys)
            return f"GROUP BY ({keys})" if keys else "aggregate of all rows"
        case n.Join():
            return f"{node.kind} join"
        case n.SetOperation():
            return f"{node.operator.upper()}{' ALL' if node.all else ''}"
        case n.Window():
            return f"window function {node.calls[0].function}"
        case n.Generate():
            return node.function
        case n.Limit():
            return "LIMIT"
        case n.Filter():
            return "filter"
        case _:
            return "projection"
