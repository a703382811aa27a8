"""How the rows of a query come, and the key that tells them apart: derived from its tree, node by node.

Two questions are asked of every node. Does its result stay, only grow, or change when its inputs do? And which sets of
its columns are a key, that is, never equal in two rows at the same time? A result that does not change is *append*, one
that changes and has a key is *keyed*, and one that changes without a key is *changing*.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeAlias

from headgate.sql.query import tree as n
from headgate.sql.query.functions import CLOCK

# A join of relations with many keys has the product of them. A few are enough to find one that is kept.
MAX_KEYS = 8
# Generators that return exactly one row for each input row, so that a key is kept.
_ONE_ROW_EACH = frozenset({"json_tuple"})


@dataclass(frozen=True, slots=True)
class Append:
    """Rows are only added."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """Rows come, change and go, and the columns at these positions tell them apart. Without any there is at most one
    row."""

    key: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Changing:
    """Rows come and go, and no key is known.

    ``why`` is a sentence. ``keep`` are columns with which there would be a key; ``cure`` says more if that is not all.
    """

    why: str
    keep: tuple[str, ...] = ()
    cure: str = ""


Growth: TypeAlias = Append | Keyed | Changing
GrowthOf: TypeAlias = Callable[[n.RelationName], Growth]
"""The growth of a relation that the query reads."""


def derive(tree: n.Node, growth_of: GrowthOf, stability: n.Stability | None = None) -> Growth:
    """The growth of a query, with the positions of the key among its columns."""
    stability = stability or n.Stability(tree, lambda _: n.Unstable())
    facts = _Derivation(growth_of, stability).facts(tree)
    if facts.change is not Change.CHANGES:
        return Append()
    if facts.keys:
        key = facts.keys[0]
        return Keyed(tuple(at for at, ref in enumerate(n.columns_of(tree)) if ref in key))
    return facts.lost


class Change(enum.IntEnum):
    """What happens to a result when its inputs get new rows."""

    STAYS = 0
    GROWS = 1
    CHANGES = 2


Key: TypeAlias = frozenset[n.Ref]
_UNKNOWN = Changing("No key is known.")


@dataclass(frozen=True, slots=True)
class Facts:
    """``keys`` are keys of the result, the preferred one first. ``lost`` says why there is none.

    ``labels`` are columns that can only have these constants, with which UNION ALL can tell its sides apart.
    """

    change: Change
    keys: tuple[Key, ...] = ()
    lost: Changing = _UNKNOWN
    not_null: frozenset[n.Ref] = frozenset()
    labels: Mapping[n.Ref, frozenset[str | int]] = field(default_factory=dict)

    def changing(self, why: str) -> Facts:
        """The same rows, but they come and go, unless nothing below ever does."""
        return self if self.change is Change.STAYS else self.changed(why)

    def changed(self, why: str) -> Facts:
        """The same rows, but they come and go."""
        lost = Changing(why) if self.change is not Change.CHANGES else self.lost
        return replace(self, change=Change.CHANGES, lost=lost)

    def without_key(self, why: str, keep: Iterable[str] = ()) -> Facts:
        """The same rows, and no key is known any more. ``keep`` are columns with which there would be one."""
        return replace(self, keys=(), lost=Changing(why, tuple(keep)))


class _Derivation:
    """Derives the facts of every node from those of its inputs."""

    def __init__(self, growth_of: GrowthOf, stability: n.Stability) -> None:
        self.growth_of = growth_of
        self.stability = stability

    def facts(self, node: n.Node) -> Facts:
        match node:
            case n.Scan():
                return self._scan(node)
            case n.Values():
                return Facts(Change.STAYS, (frozenset(),) if len(node.rows) <= 1 else ())
            case n.Filter():
                return self._filter(node)
            case n.Project():
                return self._project(node)
            case n.Generate():
                return self._generate(node)
            case n.Aggregate():
                return self._aggregate(node)
            case n.Join():
                return self._join(node)
            case n.Window():
                return self._window(node)
            case n.Distinct():
                below = self.facts(node.input)
                return replace(below, keys=_bounded([*below.keys, frozenset(n.columns_of(node))]))
            case n.SetOperation():
                return self._set_operation(node)
            case n.Sort():
                return self.facts(node.input)
            case n.Limit():
                return self.facts(node.input).changing("LIMIT drops rows when others come.")
            case n.Subquery():
                return _renamed(self.facts(node.input), n.columns_of(node.input), node.columns)

    def _scan(self, node: n.Scan) -> Facts:
        """A relation brings its own growth and key."""
        not_null = frozenset(o.ref for o in node.columns if not o.value.nullable)
        match self.growth_of(node.relation):
            case Append():
                return Facts(Change.GROWS, not_null=not_null)
            case Keyed(positions):
                key = frozenset(node.columns[at].ref for at in positions)
                return Facts(Change.CHANGES, (key,), not_null=not_null)
            case Changing() as lost:
                return Facts(Change.CHANGES, lost=lost, not_null=not_null)

    def _affected(self, below: Facts, expressions: Iterable[n.Expr]) -> Facts:
        """The rows also change when a subquery of an expression does."""
        inner = [self.facts(s) for expression in expressions for s in expression.subqueries]
        if any(each.change is not Change.STAYS for each in inner):
            return below.changed("It depends on a subquery, whose rows change.")
        return below

    def _chosen(self, below: Facts, condition: n.Expr) -> Facts:
        """Rows that a condition chooses by the time go again; those that it chooses at random have no steady key."""
        unstable = self.stability.of(condition)
        if unstable & CLOCK:
            return below.changed("A condition depends on the time at which it is computed.")
        why = "A condition gives another result each time it is computed."
        return below.without_key(why) if unstable else below

    def _filter(self, node: n.Filter) -> Facts:
        """A filter keeps keys. A column that it fixes to a constant is not needed in a key."""
        below = self._chosen(self._affected(self.facts(node.input), (node.condition,)), node.condition)
        reduced = (key - frozenset(node.constant) for key in below.keys)
        below = replace(below, keys=_bounded([*below.keys, *reduced]))
        return _with_equal(below, node.equal)

    def _project(self, node: n.Project) -> Facts:
        """A key is kept if all its columns are passed on unchanged."""
        below = self._affected(self.facts(node.input), (o.value for o in node.columns))
        kept: dict[n.Ref, list[n.Ref]] = {}
        for output in node.columns:
            if output.value.column is not None:
                kept.setdefault(output.value.column, []).append(output.ref)
        firsts = {ref: made[0] for ref, made in kept.items()}
        keys = [frozenset(firsts[ref] for ref in key) for key in below.keys if key <= firsts.keys()]
        not_null = frozenset(o.ref for o in node.columns if not o.value.nullable)
        facts = replace(below, keys=tuple(keys), not_null=not_null, labels=_labels(node, below))
        if below.keys and not keys:
            names = _names(below.keys[0])
            return facts.without_key(f"Its key {_listed(names)} is not kept.", names)
        if keys and any(output.value.windows for output in node.columns):
            why = "window gives a row once for each window that it is in, or not at all where its time is NULL."
            return replace(facts, keys=(), lost=Changing(why, cure="Write it in GROUP BY."))
        return facts

    def _generate(self, node: n.Generate) -> Facts:
        """A function that returns several rows for one row needs a column that tells these apart."""
        below = self.facts(node.input)
        if node.function in _ONE_ROW_EACH or not below.keys:
            return below
        if node.unique:
            return replace(below, keys=_bounded(k | {ref} for k in below.keys for ref in node.unique))
        names = _names(below.keys[0])
        why = f"{node.function} gives several rows for one key {_listed(names)}."
        cure = f"Write posexplode, keep its position beside {_listed(names)}, and make it a MATERIALIZED VIEW."
        elements = node.function.removesuffix("_outer") in ("explode", "inline")
        return replace(below, keys=(), lost=Changing(why, names, cure if elements else ""))

    def _aggregate(self, node: n.Aggregate) -> Facts:
        """The grouping keys are a key: there is one row for each group."""
        below = self._affected(self.facts(node.input), n.expressions_of(node))
        not_null = frozenset(key.ref for key in node.keys if not key.value.nullable)
        key = frozenset(key.ref for key in node.keys)
        facts = replace(below, keys=(key,), not_null=not_null).changing("Its groups change.")
        if any(self.stability.of(each.value) for each in node.keys):
            return facts.without_key("It is grouped by what differs each time it is computed.")
        return facts if not node.sets else _with_sets(node, facts, key)

    def _window(self, node: n.Window) -> Facts:
        """The rows stay the same, but the results of the window functions change with their neighbours."""
        below = self._affected(self.facts(node.input), (call.value for call in node.calls))
        below = below.changing("The result of a window function changes when other rows come.")
        numbered = [_numbered(call) for call in node.calls]
        return replace(below, keys=_bounded([*below.keys, *(key for key in numbered if key is not None)]))

    def _set_operation(self, node: n.SetOperation) -> Facts:
        """UNION needs a column that tells its sides apart; INTERSECT and EXCEPT return rows of their left side."""
        left = _renamed(self.facts(node.left), n.columns_of(node.left), node.columns)
        right = _renamed(self.facts(node.right), n.columns_of(node.right), node.columns)
        change = max(left.change, right.change)
        whole = () if node.all else (frozenset(node.columns),)
        not_null = left.not_null & right.not_null
        match node.operator:
            case "union":
                apart, labels = _told_apart(node, left, right)
                return Facts(change, _bounded([*apart, *whole]), _SIDES, not_null, labels)
            case "intersect":
                lost = left.lost if left.lost is not _UNKNOWN else right.lost
                keys = _bounded([*left.keys, *right.keys, *whole])
                return Facts(change, keys, lost, left.not_null | right.not_null)
            case "except":
                left = replace(left, keys=_bounded([*left.keys, *whole]))
                why = "EXCEPT drops rows when they come on its right side."
                return left if right.change is Change.STAYS else left.changed(why)

    def _join(self, node: n.Join) -> Facts:
        """The facts of both sides, and what the condition adds."""
        left, right = self.facts(node.left), self.facts(node.right)
        facts = _joined(node, left, right)
        if node.on is None:
            return facts
        return self._chosen(self._affected(facts, (node.on,)), node.on)


_SIDES = Changing(
    "UNION ALL may have two rows of one key, one of each side.",
    cure="Give each side a column with a constant of its own, and keep it beside the keys of both.",
)


def _labels(node: n.Project, below: Facts) -> dict[n.Ref, frozenset[str | int]]:
    """The columns that can only have certain constants, after a projection."""
    constants = {o.ref: frozenset((o.value.literal,)) for o in node.columns if o.value.literal is not None}
    passed = {
        o.ref: below.labels[o.value.column]
        for o in node.columns
        if o.value.column is not None and o.value.column in below.labels
    }
    return {**constants, **passed}


def _told_apart(node: n.SetOperation, left: Facts, right: Facts) -> tuple[list[Key], dict[n.Ref, frozenset[str | int]]]:
    """The keys of a UNION whose sides have different constants in a column, and the constants of its columns."""
    both = {c: left.labels[c] | right.labels[c] for c in node.columns if c in left.labels and c in right.labels}
    apart = [
        column
        for column, constants in both.items()
        if not left.labels[column] & right.labels[column] and len({type(each) for each in constants}) == 1
    ]
    return [a | b | {column} for column in apart for a, b in product(left.keys, right.keys)], both


def _joined(node: n.Join, left: Facts, right: Facts) -> Facts:
    """The facts of a join before its condition is looked at."""
    both = max(left.change, right.change)
    match node.kind:
        case "semi":
            semi = left.changed("It depends on rows that change.") if both is Change.CHANGES else left
            return replace(semi, change=both)
        case "anti":
            why = "Rows go when a row that they are compared with comes."
            return left if right.change is Change.STAYS else left.changed(why)
        case "inner" | "cross":
            keys, lost = _joined_keys(node, left, right)
            return _with_equal(Facts(both, keys, lost, left.not_null | right.not_null), node.equal)
        case "left":
            change = left.change if right.change is Change.STAYS else Change.CHANGES
            return Facts(change, *_joined_keys(node, left, right, one_to_one="left"), left.not_null)
        case "right":
            change = right.change if left.change is Change.STAYS else Change.CHANGES
            return Facts(change, *_joined_keys(node, left, right, one_to_one="right"), right.not_null)
        case "full":
            change = both if both is Change.STAYS else Change.CHANGES
            return Facts(change, *_full_keys(left, right))


def _joined_keys(node: n.Join, left: Facts, right: Facts, one_to_one: str = "both") -> tuple[tuple[Key, ...], Changing]:
    """A row of the left side has at most one partner if a key of the right side is compared with its columns.

    ``one_to_one`` is the side whose own key may be enough: the side whose rows an outer join keeps.
    """
    keys: list[Key] = []
    if one_to_one in ("both", "left") and _compared(right, {b for _, b in node.equal}):
        keys += left.keys
    if one_to_one in ("both", "right") and _compared(left, {a for a, _ in node.equal}):
        keys += right.keys
    keys += [a | b for a, b in product(left.keys, right.keys)]
    return _bounded(keys), _missing(node, left, right)


def _full_keys(left: Facts, right: Facts) -> tuple[tuple[Key, ...], Changing]:
    """Both keys. One of them must have a column that is never NULL: otherwise a row without a partner on the left and
    one without a partner on the right may both have nothing but NULL."""
    told_apart = left.not_null | right.not_null
    keys = [a | b for a, b in product(left.keys, right.keys) if (a | b) & told_apart]
    return _bounded(keys), Changing("A FULL JOIN has rows without a partner, whose keys may be NULL.")


def _missing(node: n.Join, left: Facts, right: Facts) -> Changing:
    """Why a join has no key: the reason of the side that has none."""
    side, other = (left, node.left) if not left.keys else (right, node.right)
    if side.keys or side.lost is not _UNKNOWN:
        return side.lost
    return Changing(f"It joins {_called(other)}, which has no key.")


def _called(node: n.Node) -> str:
    """A node as an error names it."""
    match node:
        case n.Scan():
            return f'"{node.relation.name}"'
        case n.Subquery():
            return f'"{node.alias}"'
        case _:
            return "a relation"


def _compared(facts: Facts, columns: set[n.Ref]) -> bool:
    """Whether a key of a side is among the columns that the join compares."""
    return any(key <= columns for key in facts.keys)


def _with_equal(facts: Facts, equal: Sequence[tuple[n.Ref, n.Ref]]) -> Facts:
    """In a key, a column may be replaced by one that is equal to it."""
    keys = list(facts.keys)
    for a, b in equal:
        for key in list(keys):
            keys += [(key - {old}) | {new} for old, new in ((a, b), (b, a)) if old in key]
    return replace(facts, keys=_bounded(keys))


def _bounded(keys: Iterable[Key]) -> tuple[Key, ...]:
    """Each key once, without those that hold a key before them, and not too many."""
    known: list[Key] = []
    for key in keys:
        if not any(each <= key for each in known):
            known.append(key)
    return tuple(known[:MAX_KEYS])


def _numbered(call: n.Call) -> Key | None:
    """row_number() counts the rows of a partition: with the partition it is a key."""
    columns = [part.column for part in call.partition]
    if call.function != "row_number" or None in columns:
        return None
    return frozenset((*(c for c in columns if c is not None), call.ref))


def _with_sets(node: n.Aggregate, facts: Facts, key: Key) -> Facts:
    """A row of a smaller grouping set has NULL in the columns that the set lacks, as a group of NULLs has."""
    if len({frozenset(each) for each in node.sets}) < len(node.sets):
        return facts.without_key("A grouping set occurs twice.")
    facts = replace(facts, not_null=frozenset())
    if all(not each.value.nullable for each in node.keys):
        return facts
    ids = [c.ref for c in node.calls if c.function == "grouping_id" and not c.arguments]
    if ids:
        return replace(facts, keys=(key | {ids[0]},))
    why = "A group of NULLs is not told from a larger group without grouping_id()."
    return facts.without_key(why, (*_names(key), "grouping_id()"))


def _renamed(facts: Facts, old: Sequence[n.Ref], new: Sequence[n.Ref]) -> Facts:
    """The facts under other columns, which correspond by position."""
    names = dict(zip(old, new, strict=False))
    keys = tuple(frozenset(names[ref] for ref in key) for key in facts.keys)
    not_null = frozenset(names[ref] for ref in facts.not_null if ref in names)
    labels = {names[ref]: constants for ref, constants in facts.labels.items() if ref in names}
    return replace(facts, keys=keys, not_null=not_null, labels=labels)


def _names(key: Key) -> tuple[str, ...]:
    """The names of the columns of a key, in the order in which the query made them."""
    return tuple(ref.name for ref in sorted(key, key=lambda ref: ref.number))


def _listed(names: Sequence[str]) -> str:
    return f"({', '.join(names)})"
