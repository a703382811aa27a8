"""The nodes of one SELECT, in the order in which SQL computes its clauses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from headgate.sql.query import tree as n
from headgate.sql.query.grouping import called, group_items, grouping_sets, is_aggregate
from headgate.sql.query.scope import Column, Notes, identifier, note, notes
from headgate.sql.query.types import Typed

if TYPE_CHECKING:
    from headgate.sql.query.tree_builder import TreeBuilder

_OF_SINGLE_ROWS = frozenset(("row_number", "ntile", "lag", "lead"))
"""Window functions that have no frame."""


class SelectBuilder:
    """One SELECT: its clauses become nodes in the order in which SQL computes them."""

    def __init__(self, builder: TreeBuilder, node: exp.Select, columns: tuple[Column, ...]) -> None:
        self.builder = builder
        self.node = node
        self.columns = columns
        self.values: list[exp.Expr] = []  # one holder for each column; of a function that returns rows, for all
        self.by_ref: dict[n.Ref, exp.Expr] = {}
        self._read_outputs()

    def _read_outputs(self) -> None:
        """Detach the expressions of the SELECT list, each in a holder in which it can be replaced."""
        rest = list(self.columns)
        for expression in self.node.expressions:
            holder = exp.Paren(this=expression.this)
            self.values.append(holder)
            width = len(expression.expressions) if isinstance(expression, exp.Aliases) else 1
            for column in rest[:width]:
                self.by_ref[ref_of(column)] = holder
            del rest[:width]

    def build(self) -> n.Node:
        """The nodes from FROM up to LIMIT."""
        node, builder = self.node, self.builder
        below = self._from()
        if where := node.args.get("where"):
            below = builder.filtered(below, where.this)
        having, qualify = (self._clause(name) for name in ("having", "qualify"))
        order, above = self._order()
        slots = [*self.values, *having, *qualify, *([] if above else order)]
        keys = self._keys()
        if keys is not None or having or any(_aggregates(slot.this) for slot in slots):
            below = self._aggregate(below, keys or [], slots)
        for condition in having:
            below = builder.filtered(below, condition.this)
        below = self._generate(below)
        below = self._window(below, slots)
        for condition in qualify:
            below = builder.filtered(below, condition.this)
        if order and not above:
            below = builder.limited(node, n.Sort(below, tuple(map(builder.expression, order))))
        below = n.Project(below, tuple(self._outputs()))
        if node.args.get("distinct"):
            below = n.Distinct(below)
        if order and above:
            below = n.Sort(below, tuple(map(builder.expression, order)))
        return below if order and not above else builder.limited(node, below)

    def _from(self) -> n.Node:
        """FROM with its joins and LATERAL VIEWs; one row without columns if there is none."""
        from_ = self.node.args.get("from_")
        below: n.Node = n.ONE_ROW
        joins = list(self.node.args.get("joins") or ())
        if from_ is not None:
            below = self.builder.source(from_.this)
            joins = [*(from_.this.args.get("joins") or ()), *joins]
        for join in joins:
            below = self.builder.join(below, join)
        for lateral in self.node.args.get("laterals") or ():
            outer = bool(lateral.args.get("outer"))
            below = self.builder.generate(below, lateral, lateral.this, outer)
        return below

    def _clause(self, name: str) -> list[exp.Expr]:
        """The condition of HAVING or QUALIFY, with outputs replaced by what they compute."""
        clause = self.node.args.get(name)
        if clause is None:
            return []
        holder = exp.Paren(this=clause.this)
        self._expand(holder)
        return [holder]

    def _expand(self, holder: exp.Expr) -> None:
        """Replace the outputs that a clause names by what they compute."""
        for column in list(holder.find_all(exp.Column)):
            value = self._output(column)
            if value is not None:
                column.replace(exp.Paren(this=value.this.copy()))

    def _output(self, node: exp.Expr) -> exp.Expr | None:
        """The holder of the output that a node names; None if it names none."""
        ref = notes(node).ref
        return None if ref is None else self.by_ref.get(ref)

    def _order(self) -> tuple[list[exp.Expr], bool]:
        """The items of ORDER BY, and whether all are outputs: then the order is that of the result, otherwise of its
        rows before."""
        items: list[exp.Expr] = [exp.Paren(this=item) for item in order_items(self.node)]
        texts = {holder.this.sql(): ref for ref, holder in self.by_ref.items()} if items else {}
        for item in items:
            point_at_output(item.this, self.columns)
            value = item.this.this if isinstance(item.this, exp.Ordered) else item.this
            if (ref := texts.get(value.sql())) is not None and not isinstance(value, exp.Literal):
                value.replace(ref_column(ref))
        used = [notes(c).ref for item in items for c in item.find_all(exp.Column)]
        calls = any(_aggregates(item.this) or item.find(exp.Window) for item in items)
        above = not calls and all(ref in self.by_ref for ref in used if ref is not None)
        for item in [] if above else items:
            self._expand(item)
        return items, above

    # groups

    def _keys(self) -> list[exp.Expr] | None:
        """The expressions of GROUP BY; None if there is no GROUP BY. GROUP BY ALL takes the outputs without
        aggregates."""
        group = self.node.args.get("group")
        if group is None:
            return None
        if group.args.get("all"):
            return [exp.Paren(this=v.this.copy()) for v in self.values if not _aggregates(v.this)]
        return [self._key(item) for item in group_items(group)]

    def _key(self, item: exp.Expr) -> exp.Expr:
        """A key that is the position or the alias of an output stands for what the output computes."""
        if isinstance(item, exp.Literal) and item.name.isdigit():
            item = ref_column(ref_of(self.columns[int(item.name) - 1]))
        holder = exp.Paren(this=item.copy())
        value = self._output(item)
        return holder if value is None else exp.Paren(this=value.this.copy())

    def _aggregate(self, below: n.Node, items: list[exp.Expr], slots: list[exp.Expr]) -> n.Node:
        """The groups. Above them, keys and aggregates are columns."""
        builder = self.builder
        texts: dict[str, n.Ref] = {}
        positions: list[int] = []
        keys: list[n.Output] = []
        for item in items:
            text = item.this.sql()
            if text not in texts:
                value = item.copy()
                texts[text] = builder.ref(item.this.name if isinstance(item.this, exp.Column) else "key")
                plain = isinstance(item.this, exp.Column)
                builder.unnamed |= set() if plain else {texts[text]}
                typed = None if plain else self._type_of(text)
                keys.append(n.Output(texts[text], builder.expression(value, typed)))
                builder.typed[texts[text]] = Typed(keys[-1].value.type, keys[-1].value.nullable)
            positions.append([key.ref for key in keys].index(texts[text]))
        group = self.node.args.get("group")
        sets = () if group is None else grouping_sets(group, positions)
        calls = self._calls(slots, texts)
        for slot in slots:
            _replace_keys(slot, texts)
        for key in keys:
            if key.value.column is not None:
                builder.renamed[key.value.column] = key.ref
        return n.Aggregate(below, tuple(keys), tuple(calls), sets)

    def _type_of(self, text: str) -> Typed | None:
        """The type of an output that computes the same text."""
        for ref, holder in self.by_ref.items():
            if holder.this.sql() == text:
                return self.builder.typed[ref]
        return None

    def _calls(self, slots: list[exp.Expr], keys: dict[str, n.Ref]) -> list[n.Call]:
        """The aggregates of the clauses, each once. A column stands where each was."""
        made: dict[str, n.Call] = {}
        for slot in slots:
            for node in _aggregates(slot.this):
                text, settled = node.sql(), _is_settled(node)
                if text not in made:
                    made[text] = replace(self._call(node.copy(), keys), settled=settled)
                made[text] = replace(made[text], settled=made[text].settled and settled)
                node.replace(ref_column(made[text].ref))
        return list(made.values())

    def _call(self, node: exp.Expr, keys: dict[str, n.Ref]) -> n.Call:
        """One aggregate. grouping() is about keys, so its arguments are replaced by their columns."""
        function = called(node)
        name = str(function.this)
        if name in ("grouping", "grouping_id"):
            _replace_keys(exp.Paren(this=node), keys)
        return self._made(name, node, function)

    def _made(self, name: str, node: exp.Expr, function: exp.Expr, partition: Iterable[exp.Expr] = ()) -> n.Call:
        """A call with its arguments apart, which decide how its result can be kept up to date."""
        builder = self.builder
        arguments = list(function.expressions)
        distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
        if distinct:
            arguments = arguments[0].expressions
        given = tuple(builder.expression(exp.Paren(this=a.copy())) for a in arguments)
        parts = tuple(builder.expression(exp.Paren(this=p.copy())) for p in partition)
        value = builder.expression(exp.Paren(this=node), notes(function).typed)
        ref = builder.ref(name)
        builder.unnamed.add(ref)
        builder.typed[ref] = Typed(value.type, value.nullable)
        return n.Call(ref, value, name, given, distinct, parts)

    # functions that return rows, windows, outputs

    def _generate(self, below: n.Node) -> n.Node:
        """Functions that return rows in the SELECT list."""
        for expression, holder in zip(self.node.expressions, self.values, strict=True):
            if isinstance(expression, exp.Aliases):
                outputs = [ref for ref, value in self.by_ref.items() if value is holder]
                refs = tuple(self.builder.ref(output.name) for output in outputs)
                below = self.builder.generated(below, holder.this, refs)
                for output, ref in zip(outputs, refs, strict=True):
                    self.builder.typed[ref] = self.builder.typed[output]
                    self.by_ref[output] = exp.Paren(this=ref_column(ref))
        return below

    def _window(self, below: n.Node, slots: list[exp.Expr]) -> n.Node:
        """The window functions of all clauses. A column takes the place of each."""
        named = {w.this.name: w for w in self.node.args.get("windows") or ()}
        calls: list[n.Call] = []
        for slot in slots:
            for window in list(outermost(slot.this, lambda each: isinstance(each, exp.Window))):
                assert isinstance(window, exp.Window)
                _fill(window, named)
                function = called(window.this)
                partition = window.args.get("partition_by") or ()
                made = self._made(str(function.this), window.copy(), function, partition)
                calls.append(replace(made, ordered=self._ordered(window, str(function.this), below)))
                window.replace(ref_column(made.ref))
        return n.Window(below, tuple(calls)) if calls else below

    def _ordered(self, window: exp.Window, name: str, below: n.Node) -> n.Expr | None:
        """The call with an order of all columns, if that takes only the choice among equal rows from it: a frame of RANGE would
        have other rows."""
        spec, by = window.args.get("spec"), window.args.get("order")
        by_rows = spec is not None and str(spec.args.get("kind")).upper() == "ROWS"
        if by is None or not (by_rows or name in _OF_SINGLE_ROWS):
            return None
        whole = window.copy()
        for ref in n.columns_of(below):
            whole.args["order"].append("expressions", exp.Ordered(this=ref_column(ref), nulls_first=False))
        return self.builder.expression(exp.Paren(this=whole))

    def _outputs(self) -> Iterator[n.Output]:
        for column in self.columns:
            value = self.builder.expression(self.by_ref[ref_of(column)], Typed(column.type, column.nullable))
            yield n.Output(ref_of(column), value, column.origin, column.doc)


def ref_of(column: Column) -> n.Ref:
    """The ref of a column, which every column of a query has."""
    assert column.ref is not None
    return column.ref


def order_items(node: exp.Expr) -> list[exp.Expr]:
    """The items of ORDER BY, or of SORT BY and CLUSTER BY, which order the rows of one task."""
    clauses = [node.args[name] for name in ("order", "sort", "cluster") if node.args.get(name)]
    return [item for clause in clauses for item in clause.expressions]


def point_at_output(item: exp.Expr, columns: Sequence[Column]) -> None:
    """`ORDER BY 2`: the position of an output."""
    value = item.this if isinstance(item, exp.Ordered) else item
    if isinstance(value, exp.Literal) and value.name.isdigit() and not value.is_string:
        value.replace(ref_column(ref_of(columns[int(value.name) - 1])))


def ref_column(ref: n.Ref) -> exp.Column:
    """A column of sqlglot for a ref, named by it."""
    column = exp.column(identifier(str(ref)))
    note(column, Notes(ref))
    return column


def outermost(node: exp.Expr, found: Callable[[exp.Expr], bool]) -> Iterator[exp.Expr]:
    """The highest nodes of a kind; those inside subqueries belong to the subquery."""
    if found(node):
        yield node
    elif not isinstance(node, exp.Query):
        for child in list(node.iter_expressions()):
            yield from outermost(child, found)


def _aggregates(node: exp.Expr) -> list[exp.Expr]:
    """The outermost aggregates of an expression, with what surrounds each call."""
    return list(outermost(node, lambda each: is_aggregate(called(each))))


def _is_settled(node: exp.Expr) -> bool:
    """Whether the order in which rows are read makes no difference to an aggregate for which it would by itself: a list that is
    sorted or counted, a text whose parts are in their own order, or the smallest of the most frequent values."""
    function, within = called(node), None
    name = str(function.this).lower()
    if name in _LISTS:
        return _is_in_any_order(node)
    around = node
    while around is not function:
        within = around if isinstance(around, exp.WithinGroup) else within
        around = around.this
    if within is None or name not in ("mode", "listagg", "string_agg"):
        return False
    if not function.expressions:
        return name == "mode"
    given = function.expressions[0]
    value = given.expressions[0] if isinstance(given, exp.Distinct) else given
    first = within.expression.expressions[0]
    by = first.this if isinstance(first, exp.Ordered) else first
    return name != "mode" and bool(by.sql() == value.sql())


_LISTS = frozenset(("collect_list", "collect_set", "array_agg"))
_OF_ANY_ORDER = frozenset(
    ("sort_array", "size", "cardinality", "array_size", "array_max", "array_min", "array_contains")
)


def _is_in_any_order(node: exp.Expr) -> bool:
    """Whether a list is the argument of a function that has the same result for any order of its elements."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        node, parent = parent, parent.parent
    if not isinstance(parent, exp.Anonymous) or parent.expressions[0] is not node:
        return False
    name = str(parent.this).lower()
    return name in _OF_ANY_ORDER or (name == "array_sort" and len(parent.expressions) == 1)


def _replace_keys(holder: exp.Expr, keys: dict[str, n.Ref]) -> None:
    """Put a key's column in the place of every expression that is equal to the key."""
    for node in list(outermost(holder, lambda each: each is not holder and each.sql() in keys)):
        node.replace(ref_column(keys[node.sql()]))


def _fill(window: exp.Window, named: dict[str, exp.Expr]) -> None:
    """Write out `OVER w`."""
    name = window.args.get("alias")
    definition = named.get(name.name) if name is not None else None
    if definition is None:
        return
    window.set("alias", None)
    for part in ("partition_by", "order", "spec"):
        value = definition.args.get(part)
        if value and not window.args.get(part):
            window.set(part, [v.copy() for v in value] if isinstance(value, list) else value.copy())
