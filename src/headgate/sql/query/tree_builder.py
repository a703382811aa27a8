"""Build the relational tree of a query from sqlglot's tree, after the analysis has resolved and rewritten it for Spark.

By then every column carries its `Ref`, every call its type and every query its columns. The builder changes sqlglot's
nodes while it takes them apart, so it runs last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from sqlglot import exp
from sqlglot.transforms import any_to_exists

from headgate.errors import Span
from headgate.schema import types as t
from headgate.schema.render import spark_identifier
from headgate.sql.query import tree as n
from headgate.sql.query.calls import time_windows
from headgate.sql.query.clock import unstable_function
from headgate.sql.query.scope import Column, FromEntry, call, identifier, notes, text
from headgate.sql.query.tree_select import SelectBuilder, order_items, outermost, point_at_output, ref_column, ref_of
from headgate.sql.query.tree_sql import quoted, spark_sql
from headgate.sql.query.types import UNKNOWN, Typed, is_numeric


class TreeBuilder:
    """Builds one tree. ``span`` gives the position of a node in the text, ``ref`` a new column."""

    def __init__(self, span: Callable[[exp.Expr], Span | None], ref: Callable[[str], n.Ref]) -> None:
        self.span = span
        self.ref = ref
        self.common: dict[str, n.Node] = {}
        self.typed: dict[n.Ref, Typed] = {}
        self.unnamed: set[n.Ref] = set()  # columns for expressions that have no name in the query
        self.renamed: dict[n.Ref, n.Ref] = {}  # a column below an aggregate -> the key that has its values above

    def query(self, node: exp.Expr) -> n.Node:
        """The tree of a query or subquery. Tables of WITH are built once and shared."""
        if with_ := node.args.get("with_"):
            for table in with_.expressions:
                self.common[table.args["alias"].this.name] = self.query(table.this)
        columns = self._known(notes(node).columns)
        match node:
            case exp.Select():
                return SelectBuilder(self, node, columns).build()
            case exp.SetOperation():
                return self.ordered(node, self._set_operation(node, columns), columns)
            case exp.Values():
                return self._values(node, columns)
            case _:
                return self.ordered(node, self.query(node.this), columns)

    def _known(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """Remember the types of columns, which the expressions above them need."""
        for column in columns:
            self.typed[ref_of(column)] = Typed(column.type, column.nullable)
        return tuple(columns)

    def _set_operation(self, node: exp.SetOperation, columns: Sequence[Column]) -> n.Node:
        left, right = self.query(node.this), self.query(node.expression)
        operators: dict[type, n.SetOperator] = {exp.Intersect: "intersect", exp.Except: "except"}
        operator = operators.get(type(node), "union")
        return n.SetOperation(operator, not node.args.get("distinct"), left, right, tuple(map(ref_of, columns)))

    def _values(self, node: exp.Values, columns: Sequence[Column]) -> n.Node:
        rows = []
        for row in node.expressions:
            items = list(row.expressions) if isinstance(row, exp.Tuple) else [row]
            rows.append(tuple(self.expression(exp.Paren(this=item)) for item in items))
        return n.Values(tuple(map(ref_of, columns)), tuple(rows))

    def ordered(self, node: exp.Expr, below: n.Node, columns: Sequence[Column]) -> n.Node:
        """ORDER BY and LIMIT of a query whose order can only be by its own columns."""
        items = [exp.Paren(this=item) for item in order_items(node)]
        for item in items:
            point_at_output(item.this, columns)
        below = n.Sort(below, tuple(map(self.expression, items))) if items else below
        return self.limited(node, below)

    def limited(self, node: exp.Expr, below: n.Node) -> n.Node:
        """LIMIT, FETCH and OFFSET. LIMIT ALL is no limit."""
        limit, offset = node.args.get("limit"), node.args.get("offset")
        count = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit and limit.expression
        count = None if isinstance(count, exp.Var | exp.Column) else count
        if count is None and offset is None:
            return below
        counted = [
            None if each is None else self.expression(exp.Paren(this=each))
            for each in (count, offset and offset.expression)
        ]
        return n.Limit(below, *counted)

    # FROM

    def source(self, node: exp.Expr) -> n.Node:
        """An entry of FROM that stands for itself; a lateral one may use the columns before it."""
        entry = entry_of(node)
        columns = self._known((*entry.columns, *entry.hidden))
        refs = tuple(map(ref_of, columns))
        relation = entry.relation
        if relation is not None and relation.spark_name in self.common:
            return n.Subquery(self.common[relation.spark_name], entry.alias, refs)
        if relation is not None:
            bases = (*relation.columns, *relation.hidden)
            outputs = tuple(_scanned(c, base) for c, base in zip(columns, bases, strict=True))
            names = tuple(base.name for base in bases)
            return n.Scan(relation.name, relation.spark_name, names, outputs, entry.span)
        if (function := table_function(node)) is not None:
            return self.generate(n.ONE_ROW, node, function)
        inner = node.this if isinstance(node, exp.Subquery | exp.Lateral) else node
        inner = inner.this if isinstance(inner, exp.Subquery) and not notes(inner).columns else inner
        return n.Subquery(self.query(inner), entry.alias, refs)

    def generate(self, below: n.Node, node: exp.Expr, function: exp.Anonymous, outer: bool = False) -> n.Node:
        """A function that returns rows, in FROM."""
        columns = self._known(entry_of(node).columns)
        return self.generated(below, function, tuple(map(ref_of, columns)), outer)

    def generated(
        self, below: n.Node, function: exp.Anonymous, columns: tuple[n.Ref, ...], outer: bool = False
    ) -> n.Node:
        """The same with given columns, also in the SELECT list."""
        name = str(function.this).lower()
        made = self.expression(exp.Paren(this=function))
        return n.Generate(below, made, name, columns, outer, _unique(name, columns))

    def join(self, left: n.Node, join: exp.Join) -> n.Node:
        """A join. A function that returns rows needs none: it is a node above the left side."""
        function, kind = table_function(join.this), _join_kind(join)
        lateral = isinstance(join.this, exp.Lateral | exp.Unnest)
        on = join.args.get("on")
        if function is not None and lateral and kind in ("inner", "cross", "left"):
            plain = on is None or (isinstance(on, exp.Boolean) and on.this)
            if kind != "left" or plain:
                made = self.generate(left, join.this, function, kind == "left")
                return made if on is None or plain else self.filtered(made, on)
        right = self.source(join.this)
        pairs = [] if on is None else list(self._equal(on))
        condition = None if on is None else self.expression(exp.Paren(this=on))
        return n.Join(left, right, kind, condition, _oriented(pairs, left, right), lateral)

    def filtered(self, below: n.Node, condition: exp.Expr) -> n.Node:
        """A filter, with the equalities that growth derives keys from."""
        equal, constant = tuple(self._equal(condition)), tuple(self._constant(condition))
        return n.Filter(below, self.expression(exp.Paren(this=condition), Typed(t.Boolean())), equal, constant)

    def _equal(self, condition: exp.Expr) -> Iterator[tuple[n.Ref, n.Ref]]:
        """Columns that a condition makes equal."""
        for part in _conjuncts(condition):
            if isinstance(part, exp.EQ | exp.NullSafeEQ):
                left, right = (self._column(side) for side in (part.this, part.expression))
                if left is None or right is None or left == right:
                    continue
                if _same_values(self.typed[left].type, self.typed[right].type):
                    yield left, right

    def _constant(self, condition: exp.Expr) -> Iterator[n.Ref]:
        """Columns that a condition compares with a literal."""
        for part in _conjuncts(condition):
            if isinstance(part, exp.EQ) and isinstance(part.expression.unnest(), exp.Literal):
                column = self._column(part.this)
                if column is not None and _comparable(self.typed[column].type, part.expression.unnest()):
                    yield column

    def _column(self, node: exp.Expr) -> n.Ref | None:
        """The column that an expression is; None if it is more than a column."""
        node = node.unnest()
        ref = notes(node).ref if isinstance(node, exp.Column) else None
        return None if ref is None else self.renamed.get(ref, ref)

    # expressions

    def expression(self, holder: exp.Expr, typed: Typed | None = None) -> n.Expr:
        """The expression that the holder holds. It is changed in place; its subqueries become trees of their own."""
        node = holder.this
        plain = self._column(node)
        span = self.span(node)
        if plain is not None:
            known = typed or self.typed.get(plain, UNKNOWN)
            alone = frozenset((plain,))
            return n.Expr(quoted(plain), known.type, known.nullable, alone, span=span, column=plain)
        known = typed or notes(node).typed
        subqueries = tuple(self._subqueries(node))
        windows = time_windows(holder.this)
        uses, unstable = self._point(holder.this)
        for subquery in subqueries:
            uses |= n.outer_columns(subquery)
        if holder.find(exp.Any):  # sqlglot rewrites `x = ANY (array)` for Spark only inside a SELECT
            any_to_exists(exp.Select(expressions=[holder]))
        sql = holder.this.sql(dialect="spark", comments=False, copy=False).replace("${", "\\u0024{")
        return n.Expr(
            sql,
            known.type,
            known.nullable,
            frozenset(uses),
            frozenset(unstable),
            subqueries,
            span,
            literal=_literal(node),
            windows=windows,
        )

    def _subqueries(self, node: exp.Expr) -> Iterator[n.Node]:
        """Build the subqueries of an expression, and put the SQL of their trees where they stood."""
        for query in list(outermost(node, lambda each: isinstance(each, exp.Query))):
            tree = self.query(query.this if isinstance(query, exp.Subquery) else query)
            printed = exp.Var(this=spark_sql(tree))
            query.replace(exp.Paren(this=printed) if isinstance(query, exp.Subquery) else printed)
            yield tree

    def _point(self, node: exp.Expr) -> tuple[set[n.Ref], set[str]]:
        """Name the columns by their refs. Returns them, and the functions whose result may differ."""
        uses, unstable = set(), set()
        for each in list(node.walk()):
            if isinstance(each, exp.Column) and (ref := self._column(each)) is not None:
                uses.add(ref)
                each.replace(ref_column(ref))
            elif (name := unstable_function(each)) is not None:
                unstable.add(name)
        for each in list(node.find_all(exp.Anonymous)):
            if str(each.this).lower() in ("struct", "arrays_zip"):
                self._keep_field_names(each)
        return uses, unstable

    def _keep_field_names(self, made: exp.Anonymous) -> None:
        """struct and arrays_zip call their fields as the columns are called, which refs are not."""
        refs = [notes(each).ref if isinstance(each, exp.Column) else None for each in made.expressions]
        if str(made.this).lower() == "struct":
            for number, (each, ref) in enumerate(zip(made.expressions, refs, strict=True), start=1):
                if ref is not None:
                    name = f"col{number}" if ref in self.unnamed else ref.name
                    each.replace(exp.Alias(this=each.copy(), alias=identifier(name)))
        elif any(refs):
            fields = [
                (str(number), str(number)) if ref is None else (ref.name, str(ref)) for number, ref in enumerate(refs)
            ]
            element = exp.to_identifier("hg_zipped")
            pairs = [
                part for new, old in fields for part in (text(new), exp.Dot(this=element, expression=identifier(old)))
            ]
            body = exp.Lambda(this=call("named_struct", *pairs), expressions=[element.copy()])
            made.replace(call("transform", made.copy(), body))


def entry_of(node: exp.Expr) -> FromEntry:
    """What the analysis has noted at an entry of FROM."""
    entry = notes(node).entry
    assert entry is not None
    return entry


def table_function(node: exp.Expr) -> exp.Anonymous | None:
    """The function that an entry of FROM calls."""
    if isinstance(node, exp.Unnest):
        return call("explode", node.expressions[0])
    return node.this if isinstance(node.this, exp.Anonymous) else None


def _literal(node: exp.Expr) -> str | int | None:
    """The value of a string or whole number; None for any other expression."""
    node = node.unnest()
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return str(node.name)
    return int(node.name) if node.name.isdigit() else None


def _same_values(left: t.Type | None, right: t.Type | None) -> bool:
    """Whether equal values of these types are the same value: a cast may take two values for one."""
    whole = isinstance(left, t.Integer | t.Bigint) and isinstance(right, t.Integer | t.Bigint)
    return whole or (left is not None and left == right)


def _comparable(type_: t.Type | None, literal: exp.Literal) -> bool:
    """Whether Spark compares a column with a literal without a cast that takes several values for one."""
    return isinstance(type_, t.Text) if literal.is_string else is_numeric(type_)


def _scanned(column: Column, base: Column) -> n.Output:
    """A column of a scan, under its own name in Spark's view."""
    value = n.Expr(spark_identifier(base.name), column.type, column.nullable)
    return n.Output(ref_of(column), value, column.origin, column.doc)


def _join_kind(join: exp.Join) -> n.JoinKind:
    side, kind = join.side.lower(), join.kind.lower()
    match side, kind:
        case _, "semi":
            return "semi"
        case _, "anti":
            return "anti"
        case (("left" | "right" | "full"), _):
            return side
        case _:
            return "cross" if join.args.get("on") is None else "inner"


def _oriented(pairs: Iterable[tuple[n.Ref, n.Ref]], left: n.Node, right: n.Node) -> tuple[tuple[n.Ref, n.Ref], ...]:
    """Equal columns as pairs of left and right. A pair of one side alone says nothing about the join."""
    on_left, on_right = set(n.columns_of(left)), set(n.columns_of(right))
    turned = [(b, a) if a in on_right else (a, b) for a, b in pairs]
    return tuple((a, b) for a, b in turned if a in on_left and b in on_right)


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that AND joins."""
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        yield from _conjuncts(condition.this)
        yield from _conjuncts(condition.expression)
    else:
        yield condition


def _unique(function: str, columns: tuple[n.Ref, ...]) -> tuple[n.Ref, ...]:
    """Columns that tell apart the rows that a function returns for one input row."""
    match function.removesuffix("_outer"), len(columns):
        case "posexplode", 3:
            return columns[:2]
        case (("posexplode" | "variant_explode" | "range"), _):
            return columns[:1]
        case "explode", 2:
            return columns[:1]
        case _:
            return ()
