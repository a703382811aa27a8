"""Analyse a query: from its text to its columns, what it reads, and the Spark SQL that computes it.

In one walk over sqlglot's tree, names are found, expressions typed and rewritten for Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from threading import RLock
from typing import TypeVar

from sqlglot import exp

from headgate.schema.names import print_name
from headgate.schema.render import print_type
from headgate.schema.types import Named, Record, Text, Type
from headgate.sql import errors
from headgate.sql.query import scope as q, written
from headgate.sql.query.calls import function_name
from headgate.sql.query.casts import cast_to
from headgate.sql.query.clock import may_read_clock, pin_time, pinned_functions
from headgate.sql.query.expressions import Expressions, accessed_name, written_name
from headgate.sql.query.from_clause import FromClause
from headgate.sql.query.functions import GENERATORS
from headgate.sql.query.grouping import check_grouped, group_items, has_sets, refuse_aggregates
from headgate.sql.query.refused import refuse_foreign_parts
from headgate.sql.query.text import SHALLOW, Normalised, every_node, normalise, on_big_stack, parse, with_room
from headgate.sql.query.tree import Node, RelationName
from headgate.sql.query.tree_builder import TreeBuilder
from headgate.sql.query.types import Typed, common, fields_of
from headgate.text.cursor import Identifier

Projection = tuple[exp.Expr, tuple[q.Column, ...]]
Made = TypeVar("Made")


def analyse(
    text: str, find_relation: q.FindRelation, resolve: Callable[[Named], Type] | None = None, *, pinned: bool = False
) -> q.AnalysedQuery:
    """Return all that can be known of a query without running it. Spans of errors are offsets in ``text``. With ``pinned``
    it reads the time of `now()` from a relation."""
    normalised = normalise(text)
    return with_room(_depth(normalised.text), lambda: _Analyser(text, normalised, find_relation, resolve).run(pinned))


def _once(lock: RLock, make: Callable[[], Made]) -> Callable[[], Made]:
    """Make something when it is first asked for, and keep it. Threads that share an analysis wait for each other, because
    they work on one tree."""
    made: list[Made] = []

    def ask() -> Made:
        with lock:
            if not made:
                made.append(make())
            return made[0]

    return ask


def _depth(text: str) -> int:
    """A bound for how deep the tree of the query is, counted in its text, before anything recurses over it."""
    if (most := text.count("(") + text.count("||")) <= SHALLOW:
        return most
    depth = most = 0
    for found in re.finditer(r"[()]|\bCASE\b|\bcase\b", text):
        depth += -1 if found[0] == ")" else found[0] == "("
        most = max(most, depth)
    return most + text.count("||") // 4


def _no_named_types(named: Named) -> Type:
    """The resolver of a caller that has no catalog."""
    raise errors.UnsupportedQuery(f"type {print_name(named.parts)}")


class _Analyser:
    """One analysis. It walks sqlglot's tree once and changes it into Spark's query on the way."""

    def __init__(
        self, text: str, normalised: Normalised, find_relation: q.FindRelation, resolve: Callable[[Named], Type] | None
    ) -> None:
        self.text = text
        self.normalised = normalised
        self.find_relation = find_relation
        self.resolve = resolve
        self.expressions = Expressions(normalised, resolve or _no_named_types, self.query)
        self.from_clause = FromClause(self.expressions, find_relation, self.query)
        self.common_tables = 0

    def run(self, pinned: bool) -> q.AnalysedQuery:
        """Analyse the whole query. The Spark SQL and the relational tree are made later, only if somebody needs them."""
        tree = parse(self.normalised)
        nodes = every_node(tree)
        refuse_foreign_parts(nodes)
        written.mark_written(nodes, self.normalised)
        columns = self.query(tree, None)
        for number, column in enumerate(columns):
            if column.null:
                _make_text(tree, number)
        relations = self.from_clause.relations
        reads_clock = may_read_clock(self.normalised.text) and bool(pinned_functions(tree))
        if pinned:
            pin_time(tree)
        builder = TreeBuilder(self.expressions.span, self.expressions.ref)
        depth, lock = _depth(self.normalised.text), RLock()

        def find_written() -> tuple[written.WrittenExpression, ...]:
            sql = print_sql()
            return with_room(depth, lambda: written.written_expressions(tree, sql, self.text, len(columns)))

        def build_tree() -> Node:
            find_written_once()  # before the builder takes the tree apart
            return on_big_stack(lambda: builder.query(tree))

        print_sql = _once(lock, lambda: with_room(depth, lambda: written.spark_text(tree)))
        find_written_once = _once(lock, find_written)
        analyse_pinned = _once(lock, lambda: analyse(self.text, self.find_relation, self.resolve, pinned=True))
        return q.AnalysedQuery(
            columns=tuple(replace(c, type=Text(), null=False) if c.null else c for c in columns),
            relations=tuple(dict.fromkeys(relations)),
            row_by_row=len(relations) == 1 and not self.expressions.stateful,
            references=tuple(m for _, m in sorted(self.expressions.references.items())),
            types=tuple(map(q.TypeReference, self.normalised.type_spans, self.normalised.types)),
            limit=_limit(tree),
            print_sql=print_sql,
            build_tree=_once(lock, build_tree),
            find_written=find_written_once,
            analyse_pinned=analyse_pinned if reads_clock and not pinned else None,
        )

    def query(self, node: exp.Expr, outer: q.Scope | None) -> tuple[q.Column, ...]:
        """Analyse a query or a subquery and note its columns at its node."""
        columns = self._query(node, outer)
        q.note(node, replace(q.notes(node), columns=columns))
        return columns

    def _query(self, node: exp.Expr, outer: q.Scope | None) -> tuple[q.Column, ...]:
        scope = q.Scope(outer=outer)
        if with_ := node.args.get("with_"):
            self._common_tables(with_, scope)
        match node:
            case exp.Select():
                return self._select(node, scope)
            case exp.SetOperation():
                return self._set_operation(node, scope)
            case exp.Subquery():
                columns = self.query(node.this, scope)
                self._order_and_limit(node, q.Scope(outer=scope, outputs=columns))
                return columns
            case exp.Values():
                return self._values(node, scope)
            case exp.Table():
                raise errors.UnsupportedQuery("TABLE", "Write SELECT * FROM the relation.")
            case _:
                raise errors.UnsupportedQuery(type(node).__name__.upper())

    def _common_tables(self, with_: exp.Expr, scope: q.Scope) -> None:
        """Give every common table a unique name for Spark, because sqlglot moves those of subqueries to the top."""
        if with_.args.get("recursive"):
            raise errors.UnsupportedQuery("WITH RECURSIVE")
        for table in with_.expressions:
            alias = table.args["alias"]
            name = q.name_part(alias.this).name
            if name in scope.tables:
                raise errors.DuplicateAlias(name, "WITH")
            columns = self.from_clause.renamed(self.query(table.this, scope), alias, f'"{name}"')
            self.common_tables += 1
            spark_name = f"common_{self.common_tables}"
            alias.set("this", q.identifier(spark_name))
            if alias.args.get("columns"):
                alias.set("columns", [q.identifier(column.name) for column in columns])
            table.set("materialized", None)
            scope.tables[name] = q.Relation(RelationName(name), spark_name, columns)

    def _set_operation(self, node: exp.SetOperation, scope: q.Scope) -> tuple[q.Column, ...]:
        """UNION, INTERSECT and EXCEPT. Columns correspond by position and take the names of the left side."""
        left, right = self.query(node.this, scope), self.query(node.expression, scope)
        what = type(node).__name__.upper()
        if len(left) != len(right):
            raise errors.WrongColumnCount(f"the right side of {what}", len(left), len(right))
        self.expressions.stateful = True
        columns = self.expressions.with_refs(_merged(what, a, b) for a, b in zip(left, right, strict=True))
        self._order_and_limit(node, q.Scope(outer=scope, outputs=columns))
        return columns

    def _values(self, node: exp.Values, scope: q.Scope) -> tuple[q.Column, ...]:
        """VALUES. The columns are called col1, col2, … as in Spark."""
        rows = []
        for row in node.expressions:
            items = list(row.expressions) if isinstance(row, exp.Tuple) else [row]
            rows.append([self.expressions.visit(item, scope) for item in items])
        for values in rows:
            if len(values) != len(rows[0]):
                raise errors.WrongColumnCount("a row of VALUES", len(rows[0]), len(values))
        by_column = enumerate(zip(*rows, strict=True), start=1)
        return self.expressions.with_refs(_column_of_values(n, list(v)) for n, v in by_column)

    def _select(self, node: exp.Select, scope: q.Scope) -> tuple[q.Column, ...]:
        """One SELECT. Its clauses are analysed in the order in which names become visible."""
        _refuse(node)
        self.from_clause.read(node, scope)
        if where := node.args.get("where"):
            self.expressions.visit(where, scope)
            if self.expressions.stateful:  # as every query with an aggregate
                refuse_aggregates(where, "WHERE", self.expressions.span)
        columns = self._projections(node, scope)
        inner = scope.with_outputs(columns)
        columns = self._grouping(node, inner, columns)
        for name in ("having", "qualify"):
            if clause := node.args.get(name):
                self.expressions.visit(clause, inner)
        # WINDOW w AS (…) is seen by the whole SELECT, but names only columns of FROM.
        for window in node.args.get("windows") or ():
            self.expressions.visit(window, scope)
        if self.expressions.stateful or node.args.get("having"):
            check_grouped(node, scope, self.expressions.span)
        self._order_and_limit(node, inner)
        if node.args.get("distinct"):
            self.expressions.stateful = True
        return columns

    # SELECT list

    def _projections(self, node: exp.Select, scope: q.Scope) -> tuple[q.Column, ...]:
        found = [p for expression in list(node.expressions) for p in self._projection(expression, scope)]
        node.set("expressions", [expression for expression, _ in found])
        return self.expressions.with_refs(column for _, columns in found for column in columns)

    def _projection(self, node: exp.Expr, scope: q.Scope) -> list[Projection]:
        """What one item of the SELECT list computes. `*` stands for several items."""
        inner = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
        if isinstance(node, exp.Star):
            return _star(node, scope.sources)
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            return self._qualified_star(node, node.this, scope)
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Star):
            return self._record_star(node.this, scope)
        if isinstance(inner, exp.Anonymous) and function_name(inner) in GENERATORS:
            return [self._rows(node, inner, scope)]
        if isinstance(node, exp.Aliases):
            raise errors.UnsupportedQuery("a list of aliases on what gives one column")
        return [self._value(node, inner, scope)]

    def _value(self, node: exp.Expr, plain: exp.Expr, scope: q.Scope) -> Projection:
        """One expression with its name, its doc and where it comes from."""
        name, bare = written_name(node), plain.unnest()
        holder = exp.Paren(this=node)  # so that a node that replaces itself has a parent to do it in
        typed = self.expressions.visit(node, scope)
        value = holder.this.this if isinstance(holder.this, exp.Alias) else holder.this
        written.pass_mark(plain, value)
        if isinstance(bare, exp.Column) and (passed := typed.column) is not None:
            name, doc, came_from = name or passed.name, passed.doc, passed.origin
        else:
            name, came_from = name or accessed_name(value) or "?column?", None
            doc = typed.doc if isinstance(bare, exp.Column | exp.Dot) else None
        column = q.Column(name, typed.type, typed.nullable, doc, came_from, typed.null)
        return _aliased_as(value, name), (column,)

    def _qualified_star(self, node: exp.Column, star: exp.Star, scope: q.Scope) -> list[Projection]:
        """`alias.*`, or `record.*` if there is no such alias."""
        parts = node.parts[:-1]
        owner = scope.owner([*(q.name_part(part) for part in parts), Identifier("*", True)])
        if owner is not None and owner[1] == len(parts):
            q.record_reference(self.expressions, node, owner)
            return _star(star, [owner[0]])
        if owner is None and scope.column(q.name_part(parts[0])) is None:
            raise scope.unknown_alias(parts[0].name).at(self.expressions.span(node))
        names = ("this", "table", "db", "catalog")
        record = exp.Column(**{n: part.copy() for n, part in zip(names, reversed(parts), strict=False)})
        return self._record_star(record, scope)

    def _record_star(self, record: exp.Expr, scope: q.Scope) -> list[Projection]:
        """`record.*`: one column for each field."""
        holder = exp.Paren(this=record)
        typed = self.expressions.visit(record, scope)
        if not isinstance(typed.type, Record):
            raise errors.UnsupportedQuery("x.* of what is no record")
        chosen: list[Projection] = []
        for name, inner in fields_of(typed, typed.type):
            dot = exp.Dot(this=holder.this.copy(), expression=q.identifier(name))
            chosen.append((_aliased_as(dot, name), (q.Column(name, inner.type, inner.nullable, inner.doc),)))
        return chosen

    def _rows(self, node: exp.Expr, call: exp.Anonymous, scope: q.Scope) -> Projection:
        """`explode(m) AS (k, v)`: one expression with several columns."""
        function, columns = self.from_clause.rows_of(call, scope)
        match node:
            case exp.Aliases():
                names = [q.name_part(alias).name for alias in node.expressions]
            case exp.Alias():
                names = [node.alias]
            case _ if len(columns) == 1:
                names = [function]
            case _:
                names = [column.name for column in columns]
        if not names:
            raise errors.UnsupportedQuery(
                f"{function} without names of its columns", f"Write {function}(…) AS (a, b, …)."
            )
        if columns and len(columns) != len(names):
            raise errors.WrongColumnCount("the list of aliases", len(columns), len(names))
        known = columns or tuple(q.Column(name, None) for name in names)
        aliases = exp.Aliases(this=call.copy(), expressions=[q.identifier(name) for name in names])
        return aliases, tuple(replace(c, name=name) for name, c in zip(names, known, strict=True))

    # the clauses after it

    def _grouping(self, node: exp.Select, scope: q.Scope, columns: tuple[q.Column, ...]) -> tuple[q.Column, ...]:
        """GROUP BY. With grouping sets, every column of the result may be NULL."""
        group = node.args.get("group")
        if group is None:
            return columns
        self.expressions.stateful = True
        items = list(group_items(group))
        if not items and not group.args.get("all"):
            raise errors.MalformedQuery("GROUP BY names nothing")
        for item in items:
            if isinstance(item, exp.Literal):
                _require_position(item, "GROUP BY", columns)
                continue
            holder = exp.Paren(this=item) if item.parent is None else item.parent
            self.expressions.visit(item, scope)
            refuse_aggregates(holder, "GROUP BY", self.expressions.span)
        return tuple(replace(c, nullable=True) for c in columns) if has_sets(group) else columns

    def _order_and_limit(self, node: exp.Expr, scope: q.Scope) -> None:
        """ORDER BY and its like, LIMIT and OFFSET."""
        for name in ("order", "sort", "cluster", "distribute"):
            if clause := node.args.get(name):
                self.expressions.stateful = True
                for item in list(clause.expressions):
                    self._order_item(item, scope)
        for name in ("limit", "offset"):
            if clause := node.args.get(name):
                self.expressions.stateful = True
                if not isinstance(clause, exp.Fetch) and not isinstance(clause.expression, exp.Var | exp.Column):
                    self.expressions.visit(clause.expression, q.Scope())
                elif not isinstance(clause, exp.Fetch) and clause.expression.name.upper() != "ALL":
                    raise errors.MalformedQuery(f"{name.upper()} takes a number")

    def _order_item(self, item: exp.Expr, scope: q.Scope) -> None:
        """A name alone refers to an output, if there is one; inside an expression it refers to an input first."""
        value = item.this if isinstance(item, exp.Ordered) else item
        if isinstance(value, exp.Literal):
            _require_position(value, "ORDER BY", scope.outputs)
        if isinstance(value, exp.Column) and len(value.parts) == 1:
            output = scope.output(q.name_part(value.this))
            if output is not None:
                value.set("this", q.identifier(output.name))
                q.note(value, q.Notes(output.ref))
                return
        self.expressions.visit(item, scope)


def _limit(tree: exp.Expr) -> int | None:
    """The number of rows that a LIMIT of the whole query allows, if it is written as a number."""
    limit = tree.args.get("limit")
    count = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit and limit.expression
    return int(count.name) if isinstance(count, exp.Literal) and count.name.isdigit() else None


def _require_position(item: exp.Literal, clause: str, columns: tuple[q.Column, ...]) -> None:
    if item.name.isdigit() and not 1 <= int(item.name) <= len(columns):
        raise errors.MalformedQuery(f"{clause} {item.name} is no position among the {len(columns)} columns")


def _refuse(node: exp.Select) -> None:
    """Refuse clauses that sqlglot reads and that have no meaning here."""
    for name, what in (("into", "INTO"), ("locks", "FOR UPDATE"), ("pivots", "PIVOT")):
        if node.args.get(name):
            raise errors.UnsupportedQuery(what)
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        hint = "Number the rows with row_number() OVER (PARTITION BY …) and keep the first."
        raise errors.UnsupportedQuery("DISTINCT ON", hint)
    if not node.expressions:
        raise errors.MalformedQuery("it has no columns")


def _merged(what: str, left: q.Column, right: q.Column) -> q.Column:
    """A column of a set operation, with the common type of both sides."""
    shared = common([Typed(c.type, c.nullable, c.null) for c in (left, right)])
    if shared is None:
        assert left.type is not None
        assert right.type is not None
        types = print_type(left.type), print_type(right.type)
        raise errors.IncompatibleBranches(f'column "{left.name}" of {what}', *types)
    return q.Column(left.name, shared.type, shared.nullable, null=shared.null)


def _column_of_values(number: int, values: list[Typed]) -> q.Column:
    """A column of VALUES, with the common type of its rows."""
    shared = common(values)
    if shared is None:
        known = [print_type(v.type) for v in values if v.type is not None]
        other = next(k for k in known if k != known[0])
        raise errors.IncompatibleBranches(f"column {number} of VALUES", known[0], other)
    return q.Column(f"col{number}", shared.type, shared.nullable, null=shared.null)


def _star(star: exp.Star, sources: list[q.Source]) -> list[Projection]:
    """The columns of `*`, without those after EXCEPT. A field that has no column is an error, unless EXCEPT names
    it."""
    if not sources:
        raise errors.UnknownAlias("*")
    left_out = [q.name_part(e) for e in (star.args.get("except_") or star.args.get("except") or ())]
    known = q.all_columns(sources)
    for name in left_out:
        if not any(_leaves_out(name, column.name) for _, column in known):
            raise q.Scope(sources=sources).unknown_column(name.name)
    for column, withheld in (each for source in sources for each in source.withheld):
        if not any(_leaves_out(name, column) for name in left_out):
            raise withheld
    return [
        (_aliased_as(expression, column.name), (column,))
        for expression, column in known
        if not any(_leaves_out(name, column.name) for name in left_out)
    ]


def _leaves_out(name: Identifier, column: str) -> bool:
    """Whether a name after EXCEPT means the column."""
    return name.name == column or (not name.quoted and name.name.lower() == column.lower())


def _aliased_as(expression: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=expression, alias=q.identifier(name))


def _make_text(node: exp.Expr, number: int) -> None:
    """A column of nothing but NULL is text, as in PostgreSQL. Spark's type void cannot be stored or written."""
    match node:
        case exp.SetOperation():
            _make_text(node.this, number)
            _make_text(node.expression, number)
        case exp.Subquery():
            _make_text(node.this, number)
        case exp.Values():
            for row in node.expressions:
                row.expressions[number].replace(cast_to(row.expressions[number].copy(), Text()))
        case exp.Select():
            value = node.expressions[number].this
            value.replace(cast_to(value.copy(), Text()))
        case _:
            pass
