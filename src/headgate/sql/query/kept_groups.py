"""The groups of a view whose query ends in a GROUP BY, or in a DISTINCT: their stored rows are changed by key.

The rows are stored with hidden columns: the key of the group, the parts from which its aggregates are made, and whether the
group passes HAVING and the filters above. Old rows are taken from the store, so that nothing is computed for them.

- *Merged* groups need only the changes of what is below: the parts of the changes are added to the stored parts.
- *Recomputed* groups are computed anew from all rows below, if something changed in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headgate.schema import types as t
from headgate.schema.render import spark_ddl
from headgate.sql.query import tree as n
from headgate.sql.query.incremental import (
    WEIGHT,
    both,
    changes,
    column,
    computed,
    in_groups,
    passed_on,
    touched_keys,
    weighted,
)
from headgate.sql.query.tree_sql import quoted

STORED = "hg_stored"
"""What Spark calls the stored rows of the view itself, before the batch. They have the column `WEIGHT`."""
COUNT, PRESENT = n.Ref("hg_count", 0), n.Ref("hg_present", 0)


@dataclass(frozen=True, slots=True)
class EndsInGroups:
    """A query that ends in groups, with only filters and projections above them, the lowest first."""

    groups: n.Aggregate
    above: tuple[n.Node, ...]
    columns: tuple[n.Ref, ...]


def ends_in_groups(tree: n.Node) -> EndsInGroups | None:
    """The groups that a query ends in; None if it does not."""
    above: list[n.Node] = []
    node = tree
    while isinstance(node, n.Filter | n.Project | n.Subquery):
        above.insert(0, node)
        node = node.input
    if not isinstance(node, n.Aggregate):
        return None
    return EndsInGroups(node, tuple(above), n.columns_of(tree))


@dataclass(frozen=True, slots=True)
class Part:
    """A value that is kept for each group. ``changed`` makes it from the changes, ``merged`` from two of its kind."""

    ref: n.Ref
    type: t.Type
    changed: str
    merged: str


@dataclass(frozen=True, slots=True)
class KeptGroups:
    """``first`` gives the stored rows after the first batch, ``changed`` their changes in a later one. Both have the hidden
    columns, those of the view and the weight. ``hidden`` has their types. ``merged`` is false for groups that are
    recomputed."""

    first: n.Node
    changed: n.Node
    hidden: Mapping[n.Ref, t.Type]
    merged: bool


def kept_groups(ends: EndsInGroups, names: Sequence[str], *, grows: bool) -> KeptGroups:
    """How to keep the groups. ``names`` are those of the view's columns. ``grows`` says that rows below only come."""
    groups = ends.groups
    if all(_is_merged(call, grows) for call in groups.calls):
        return _Merging(ends, names, grows).kept()
    hidden = {**_key_types(groups), PRESENT: t.Boolean()}
    stored = _stored(hidden, ends.columns, names)
    touched = touched_keys(groups)
    now = n.Aggregate(
        in_groups(groups.input, [key.value.sql for key in groups.keys], touched), groups.keys, groups.calls
    )
    went = in_groups(stored, [quoted(ref) for ref in _keys(groups)], touched)
    return KeptGroups(
        weighted(_rows(ends, groups, tuple(hidden))),
        both(weighted(_rows(ends, now, tuple(hidden))), _negated(went)),
        hidden,
        merged=False,
    )


def _keys(groups: n.Aggregate) -> tuple[n.Ref, ...]:
    """The hidden columns of the key."""
    return tuple(n.Ref("hg_key", -at) for at in range(1, len(groups.keys) + 1))


def _key_types(groups: n.Aggregate) -> dict[n.Ref, t.Type]:
    types = [key.value.type for key in groups.keys]
    return {ref: type_ for ref, type_ in zip(_keys(groups), types, strict=True) if type_ is not None}


def hidden_name(ref: n.Ref) -> str:
    """The name of a hidden column in the store."""
    return f"{ref.name}_{-ref.number}" if ref.number else ref.name


def _stored(hidden: Iterable[n.Ref], columns: Sequence[n.Ref], names: Sequence[str]) -> n.Node:
    """The stored rows of the view before the batch."""
    own = tuple(hidden)
    refs = (*own, *columns, WEIGHT)
    called = (*(hidden_name(ref) for ref in own), *names, WEIGHT.name)
    outputs = tuple(computed(ref, f"`{name.replace('`', '``')}`") for ref, name in zip(refs, called, strict=True))
    return n.Scan(n.RelationName(STORED), STORED, called, outputs)


def _negated(stored: n.Node) -> n.Node:
    kept = [ref for ref in n.columns_of(stored) if ref != WEIGHT]
    return n.Project(stored, (*passed_on(kept), computed(WEIGHT, f"-{quoted(WEIGHT)}")))


def _rows(ends: EndsInGroups, groups: n.Node, hidden: Sequence[n.Ref]) -> n.Node:
    """The stored rows of groups, which have the columns of the query's own groups and the hidden ones but for key and mark."""
    keys = [
        n.Output(ref, key_column) for ref, key_column in zip(_keys(ends.groups), map(column, _refs(ends)), strict=True)
    ]
    own = n.columns_of(ends.groups)
    carried = [ref for ref in n.columns_of(groups) if ref not in own]
    below = n.Project(groups, (*passed_on(own), *keys, *passed_on(carried), computed(PRESENT, "true")))
    return _marked(ends.above, below, hidden, ends.columns)


def _refs(ends: EndsInGroups) -> list[n.Ref]:
    return [key.ref for key in ends.groups.keys]


def _marked(above: Sequence[n.Node], below: n.Node, hidden: Sequence[n.Ref], columns: Sequence[n.Ref]) -> n.Node:
    """The filters and projections above the groups. A row that does not pass is kept and marked, and nothing is computed
    for it."""
    mark = quoted(PRESENT)
    for node in above:
        match node:
            case n.Filter():
                passes = f"CASE WHEN {mark} THEN coalesce({node.condition.sql}, false) ELSE false END"
                kept = [ref for ref in n.columns_of(below) if ref != PRESENT]
                below = n.Project(below, (*passed_on(kept), computed(PRESENT, passes)))
            case n.Project():
                made = [computed(o.ref, f"CASE WHEN {mark} THEN {o.value.sql} END") for o in node.columns]
                below = n.Project(below, (*made, *passed_on(hidden)))
            case n.Subquery():
                renamed = zip(node.columns, n.columns_of(node.input), strict=True)
                below = n.Project(below, (*(n.Output(new, column(old)) for new, old in renamed), *passed_on(hidden)))
            case _:
                raise AssertionError("other nodes end the search for groups")
    return n.Project(below, passed_on((*hidden, *columns)))


# merging


def _is_merged(call: n.Call, grows: bool) -> bool:
    """Whether an aggregate can be made from its parts without looking at the rows of the group again.

    Spark adds bigints for avg as floating-point numbers, and rounds an avg of decimals twice, so both are computed anew. The
    smallest and the largest value are only found again among all rows if rows can go.
    """
    given = call.arguments[0].type if len(call.arguments) == 1 else None
    if call.distinct or not _is_plain(call):
        return False
    match call.function:
        case "count":
            return len(call.arguments) <= 1
        case "sum":
            return isinstance(given, t.Integer | t.Bigint | t.Decimal)
        case "avg" | "mean":
            return isinstance(given, t.Integer)
        case "min" | "max":
            return grows and given is not None
        case _:
            return False


def _is_plain(call: n.Call) -> bool:
    """Whether a call is nothing but the function and its arguments. A FILTER clause is not among the arguments."""
    arguments = ", ".join(argument.sql for argument in call.arguments)
    return call.value.sql.lower() == f"{call.function}({arguments})".lower()


class _Merging:
    """Groups whose parts are merged."""

    def __init__(self, ends: EndsInGroups, names: Sequence[str], grows: bool) -> None:
        self.ends = ends
        self.names = names
        self.grows = grows
        self.weight = quoted(WEIGHT)
        self.parts: dict[tuple[str, str], Part] = {}
        self.values = {call.ref: self._value(call) for call in ends.groups.calls}

    def kept(self) -> KeptGroups:
        keys = _keys(self.ends.groups)
        kept = {COUNT: t.Bigint(), **{part.ref: part.type for part in self.parts.values()}}
        types = {**_key_types(self.ends.groups), **kept, PRESENT: t.Boolean()}
        parts, hidden = tuple(kept), tuple(types)
        stored = _stored(hidden, self.ends.columns, self.names)
        changed = self._parts(changes(self.ends.groups.input))
        touched = n.Project(changed, tuple(n.Output(_touched(ref), column(ref)) for ref in keys))
        went = in_groups(stored, [quoted(ref) for ref in keys], touched)
        old = n.Project(went, passed_on((*keys, *parts)))
        merged = self._merged(both(changed, old), keys)
        return KeptGroups(
            weighted(_rows(self.ends, self._finished(self._parts(weighted(self.ends.groups.input)), keys), hidden)),
            both(weighted(_rows(self.ends, self._finished(merged, keys), hidden)), _negated(went)),
            types,
            merged=True,
        )

    def _parts(self, signed: n.Node) -> n.Node:
        """The parts of each group of signed rows."""
        groups = self.ends.groups
        keys = tuple(n.Output(ref, key.value) for ref, key in zip(_keys(groups), groups.keys, strict=True))
        count = n.Call(COUNT, n.Expr(f"coalesce(sum({self.weight}), 0)"), "sum")
        calls = [n.Call(part.ref, n.Expr(part.changed), "") for part in self.parts.values()]
        return n.Aggregate(signed, keys, (count, *calls))

    def _merged(self, parts: n.Node, keys: Sequence[n.Ref]) -> n.Node:
        """The parts of each group, added up. Spark's sum is exact where + would lose digits of a long decimal."""
        renamed = n.Subquery(parts, "parts", tuple(_touched(ref) for ref in n.columns_of(parts)))
        outputs = tuple(n.Output(ref, column(_touched(ref))) for ref in keys)
        count = n.Call(COUNT, n.Expr(f"sum({quoted(_touched(COUNT))})"), "sum")
        calls = [n.Call(part.ref, n.Expr(part.merged), "") for part in self.parts.values()]
        return n.Aggregate(renamed, outputs, (count, *calls))

    def _finished(self, parts: n.Node, keys: Sequence[n.Ref]) -> n.Node:
        """The columns of the query's own groups, and the parts. A group without rows is gone, unless there is only one."""
        if keys:
            parts = n.Filter(parts, n.Expr(f"{quoted(COUNT)} > 0"))
        groups = self.ends.groups
        own = [n.Output(key.ref, column(ref)) for key, ref in zip(groups.keys, keys, strict=True)]
        calls = [computed(ref, sql) for ref, sql in self.values.items()]
        carried = passed_on((COUNT, *(part.ref for part in self.parts.values())))
        return n.Project(parts, (*own, *calls, *carried))

    # the parts of each aggregate

    def _value(self, call: n.Call) -> str:
        """The result of an aggregate, made from its parts."""
        given = call.arguments[0] if call.arguments and call.arguments[0].sql != "*" else None
        if given is None:
            return quoted(COUNT)
        match call.function:
            case "count":
                return self._count(given)
            case "min" | "max":
                return self._part(call.function, given, f"{call.function}({given.sql})", call.function, given.type)
        count, total = self._count(given), self._sum(given)
        if call.function == "sum":
            assert call.value.type is not None
            return f"CASE WHEN {count} > 0 THEN CAST({total} AS {spark_ddl(call.value.type)}) END"
        return f"CASE WHEN {count} > 0 THEN CAST({total} AS DOUBLE) / CAST({count} AS DOUBLE) END"

    def _count(self, given: n.Expr) -> str:
        weights = f"CASE WHEN ({given.sql}) IS NOT NULL THEN {self.weight} ELSE 0 END"
        return self._part("count", given, f"coalesce(sum({weights}), 0)", "sum", t.Bigint())

    def _sum(self, given: n.Expr) -> str:
        """A sum of whole numbers is kept as a decimal where rows go: the smallest bigint cannot be negated."""
        value, type_ = given.sql, _sum_type(given.type, self.grows)
        if not self.grows:
            plain = value if isinstance(given.type, t.Decimal) else f"CAST({value} AS DECIMAL(20, 0))"
            value = f"CASE WHEN {self.weight} < 0 THEN -({plain}) ELSE {plain} END"
        nothing = f"CAST(0 AS {spark_ddl(type_)})"  # a plain 0 would cost a decimal of 38 digits some of its scale
        return self._part("sum", given, f"coalesce(sum({value}), {nothing})", "sum", type_)

    def _part(self, kind: str, given: n.Expr, changed: str, merge: str, type_: t.Type | None) -> str:
        """The column of a part, which is kept once for all aggregates that need it."""
        assert type_ is not None
        ref = n.Ref("hg_part", -1 - len(self.parts))
        ddl = spark_ddl(type_)
        merged = f"CAST({merge}({quoted(_touched(ref))}) AS {ddl})"
        part = self.parts.setdefault((kind, given.sql), Part(ref, type_, f"CAST({changed} AS {ddl})", merged))
        return quoted(part.ref)


def _sum_type(given: t.Type | None, grows: bool) -> t.Type:
    if isinstance(given, t.Decimal):
        return t.Decimal(min(38, given.precision + 10), given.scale)
    return t.Bigint() if grows else t.Decimal(38, 0)


def _touched(ref: n.Ref) -> n.Ref:
    """Another name for a column, so that two nodes that are joined or grouped do not have the same."""
    return n.Ref(f"{ref.name}_touched", ref.number)
