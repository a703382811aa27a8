"""FROM: relations, joins, subqueries and functions that return rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from headgate.errors import HeadgateError, Span
from headgate.schema.names import Found, find
from headgate.schema.render import print_type
from headgate.sql.errors import IncompatibleBranches, MalformedQuery, UnsupportedQuery, WrongColumnCount
from headgate.sql.query import scope as q
from headgate.sql.query.calls import columns_of, function_name
from headgate.sql.query.expressions import Expressions
from headgate.sql.query.operators import require_boolean
from headgate.sql.query.tree import RelationName
from headgate.sql.query.types import Typed, common_type
from headgate.text.cursor import Identifier

Query = Callable[[exp.Expr, q.Scope | None], tuple[q.Column, ...]]


class FromClause:
    """Finds the relations of a FROM clause, adds them to a scope, and rewrites the clause for Spark."""

    def __init__(self, expressions: Expressions, find_relation: q.FindRelation, query: Query) -> None:
        self.expressions = expressions
        self.find_relation = find_relation
        self.query = query
        self.relations: list[RelationName] = []

    def read(self, node: exp.Select, scope: q.Scope) -> None:
        """Add the sources of a SELECT to its scope, from left to right."""
        if from_ := node.args.get("from_"):
            scope.add(self._entry(from_, scope))
            self._own_joins(from_.this, scope)
        for join in node.args.get("joins") or ():
            self._join(join, scope)
        for lateral in node.args.get("laterals") or ():
            scope.add(self._noted(self._lateral(lateral, scope), lateral))

    def _own_joins(self, node: exp.Expr, scope: q.Scope) -> None:
        for join in node.args.get("joins") or ():
            self._join(join, scope)

    # joins

    def _join(self, join: exp.Join, scope: q.Scope) -> None:
        """Add the right side of a join. Sides that may lack a partner become nullable."""
        side, kind = join.side.upper(), join.kind.upper()
        _refuse_join(join, side)
        right = self._entry(join, scope)
        # A lateral join works row by row. Any other join needs all rows of both sides.
        lateral = isinstance(join.this, exp.Lateral | exp.Unnest)
        self.expressions.stateful = self.expressions.stateful or not lateral
        keeps_right = kind not in ("SEMI", "ANTI")
        merged = self._using(join, right, scope, side) if join.args.get("using") else None
        if side in ("RIGHT", "FULL"):
            scope.sources[:] = [source.nullable() for source in scope.sources]
        right = right.nullable() if side in ("LEFT", "FULL") and keeps_right else right
        if merged is not None and keeps_right:
            right = _merge(merged, right, scope)
        inner = q.Scope(scope.outer, [*scope.sources, right], scope.tables)
        if keeps_right:
            scope.add(right)
        if merged is None and (on := join.args.get("on")) is not None:
            require_boolean(self.expressions.visit(on, inner), "ON")

    def _using(self, join: exp.Join, right: q.Source, scope: q.Scope, side: str) -> q.Source:
        """Return the merged columns and replace USING by ON, so that the columns of both sides can still be named."""
        columns, merges, conditions = [], {}, []
        for name in (q.name_part(identifier_) for identifier_ in join.args["using"]):
            found = scope.column(name)
            if found is None:
                raise scope.unknown_column(name.name).at(self.expressions.span(join))
            source, left = found
            assert source is not None
            match find(left.name, True, (c.name for c in right.columns)):
                case Found(exact):
                    other = next(c for c in right.columns if c.name == exact)
                case _:
                    raise q.Scope(sources=[right]).unknown_column(left.name).at(self.expressions.span(join))
            _require_equal_types(left, other)
            conditions.append(exp.EQ(this=q.spark_column(source, left), expression=q.spark_column(right, other)))
            owners = source.merges.get(left.name, ((source.alias, left.ref),))
            owner = (right.alias, other.ref)
            merges[left.name] = {"RIGHT": (owner,), "FULL": (*owners, owner)}.get(side, owners)
            kept = other if side == "RIGHT" else left
            columns.append(replace(left, nullable=kept.nullable or side == "FULL"))
        join.set("using", None)
        join.set("on", exp.and_(*conditions))
        return q.Source(q.USING, tuple(columns), merges=merges)

    # sources

    def _entry(self, holder: exp.Expr, scope: q.Scope) -> q.Source:
        """The source that a FROM or a JOIN holds. The holder is needed because a source may replace its own node."""
        source = self._source(holder.this, scope)
        return self._noted(source, holder.this)

    def _noted(self, source: q.Source, node: exp.Expr) -> q.Source:
        """Give the columns of a source their refs, and note the source at its node for the tree."""
        columns = self.expressions.with_refs(source.columns)
        hidden = self.expressions.with_refs(source.hidden)
        known = q.notes(node).entry or q.FromEntry()
        entry = replace(known, alias=source.alias, columns=columns, hidden=hidden)
        q.note(node, replace(q.notes(node), entry=entry))
        return replace(source, columns=columns, hidden=hidden)

    def _source(self, node: exp.Expr, scope: q.Scope) -> q.Source:
        """The source that a node of FROM stands for."""
        if node.args.get("ordinality") or (isinstance(node, exp.Unnest) and node.args.get("offset")):
            hint = "Write LATERAL posexplode(array) AS t(position, element). Its positions begin with 0."
            raise UnsupportedQuery("WITH ORDINALITY", hint)
        match node:
            case exp.Table() if isinstance(node.this, exp.Anonymous):
                alias = node.args.get("alias") or exp.TableAlias()
                node.set("alias", alias)
                _refuse_columns(node.this, scope)
                return self._generated(node.this, alias, scope)
            case exp.Table():
                return self._table(node, scope)
            case exp.Subquery() if isinstance(node.this, exp.Table):
                raise UnsupportedQuery("a relation or a join in parentheses", "Leave the parentheses out.")
            case exp.Subquery() | exp.Values():
                inner = node.this if isinstance(node, exp.Subquery) else node
                return self._derived(node, self.query(inner, scope))
            case exp.Lateral():
                return self._lateral(node, scope)
            case exp.Unnest():
                return self._unnest(node, scope)
            case _:
                raise UnsupportedQuery(f"{type(node).__name__.upper()} in FROM")

    def _table(self, node: exp.Table, scope: q.Scope) -> q.Source:
        """A relation of the catalog or a table of WITH, under its alias or its own name."""
        for name, what in (("sample", "TABLESAMPLE"), ("pivots", "PIVOT")):
            if node.args.get(name):
                raise UnsupportedQuery(what)
        parts = tuple(q.name_part(part) for part in node.parts)
        span = q.written_span(self.expressions, node.parts)
        relation = scope.table(parts[0]) if len(parts) == 1 else None
        reference = None
        if relation is None:
            relation = self._found(node, parts)
            reference = self._add_reference(span, parts, relation)
        alias = node.args.get("alias")
        exact = len(parts) == 1 and parts[0].quoted
        called = relation.alias or relation.name.name
        last = parts[-1].name if exact else called
        named = alias is not None and alias.this is not None
        name = _alias_name(alias, "") if named else last
        columns = self.renamed(relation.columns, alias, f'"{name}"')
        self._point(node, relation, name, columns, span)
        return q.Source(
            name,
            columns,
            relation.hidden,
            hints=relation.hints,
            written=() if named else parts,
            reference=None if named else reference,
            withheld=relation.withheld,
        )

    def _add_reference(
        self, span: Span | None, parts: tuple[Identifier, ...], relation: q.Relation
    ) -> q.RelationReference | None:
        """Record where the query names the relation, so that a stored query can be printed with its new name."""
        if span is None:
            return None
        reference = q.RelationReference(span, parts, relation.name)
        self.expressions.references[span.start] = reference
        return reference

    def _found(self, node: exp.Table, parts: tuple[Identifier, ...]) -> q.Relation:
        """The relation that the catalog has for a name."""
        try:
            relation = self.find_relation(parts)
        except HeadgateError as error:
            raise error.at(self.expressions.span(node)) from error.__cause__
        self.relations.append(relation.name)
        return relation

    def _point(
        self, node: exp.Table, relation: q.Relation, name: str, columns: tuple[q.Column, ...], span: Span | None
    ) -> None:
        """Put the name of Spark's view. Columns are renamed in a subquery, because Spark's own column list would have
        to name the hidden ones too."""
        for part in ("db", "catalog"):
            node.set(part, None)
        node.set("this", q.identifier(relation.spark_name))
        node.set("alias", exp.TableAlias(this=q.identifier(name)))
        entry = q.FromEntry(relation=relation, span=span)
        q.note(node, q.Notes(entry=entry))
        if columns == relation.columns:
            return
        pairs = [*zip(relation.columns, columns, strict=True), *((c, c) for c in relation.hidden)]
        chosen = [
            exp.Alias(this=exp.column(q.identifier(old.name)), alias=q.identifier(new.name)) for old, new in pairs
        ]
        inner = exp.Table(this=q.identifier(relation.spark_name))
        select = exp.Select(expressions=chosen, from_=exp.From(this=inner))
        subquery = exp.Subquery(
            this=select, alias=exp.TableAlias(this=q.identifier(name)), joins=node.args.get("joins")
        )
        q.note(subquery, q.Notes(entry=entry))
        node.replace(subquery)

    def _derived(self, node: exp.Expr, columns: tuple[q.Column, ...]) -> q.Source:
        """A subquery or VALUES in FROM."""
        alias = node.args.get("alias")
        name = _alias_name(alias, "subquery")
        columns = self.renamed(columns, alias, "a subquery")
        made = exp.TableAlias(this=q.identifier(name))
        if alias is not None and alias.args.get("columns"):
            made.set("columns", [q.identifier(column.name) for column in columns])
        node.set("alias", made)
        return q.Source(name, columns)

    def _lateral(self, node: exp.Lateral, scope: q.Scope) -> q.Source:
        """LATERAL with a subquery, or with a function that returns rows."""
        inner, alias = node.this, node.args.get("alias")
        if isinstance(inner, exp.Subquery):
            return self._aliased(self.query(inner.this, scope), alias, "lateral")
        if not isinstance(inner, exp.Anonymous):
            hint = "Write LATERAL with a subquery or a function such as explode."
            raise UnsupportedQuery("this LATERAL", hint)
        return self._generated(inner, alias, scope, bool(node.args.get("outer")))

    def _unnest(self, node: exp.Unnest, scope: q.Scope) -> q.Source:
        """UNNEST of one array, which is Spark's explode."""
        if len(node.expressions) != 1:
            raise UnsupportedQuery("UNNEST of several arrays", "Write explode(arrays_zip(a, b)).")
        typed = self.expressions.visit(node.expressions[0], scope)
        return self._aliased(columns_of("explode", typed), node.args.get("alias"), "unnest")

    def _generated(self, call: exp.Anonymous, alias: exp.Expr | None, scope: q.Scope, outer: bool = False) -> q.Source:
        """A function that returns rows. If only Spark knows its columns, the statement must name them."""
        name, columns = self.rows_of(call, scope, outer)
        if not columns and alias is not None:
            columns = tuple(q.Column(q.name_part(c).name, None) for c in alias.args.get("columns") or ())
        if not columns:
            raise UnsupportedQuery(f"{name} without names of its columns", f"Write {name}(…) AS t(a, b, …).")
        return self._aliased(columns, alias, name)

    def rows_of(self, call: exp.Anonymous, scope: q.Scope, outer: bool = False) -> tuple[str, tuple[q.Column, ...]]:
        """The name and the columns of a function that returns rows. No columns if only Spark knows them."""
        name = function_name(call)
        call.set("this", name)
        arguments = [self.expressions.visit(argument, scope) for argument in list(call.expressions)]
        return name, columns_of(name, arguments[0] if arguments else Typed(None), outer)

    def _aliased(self, columns: tuple[q.Column, ...], alias: exp.Expr | None, what: str) -> q.Source:
        """A source with the alias and the column names that follow it."""
        name = _alias_name(alias, what)
        columns = self.renamed(columns, alias, what)
        if alias is not None:
            alias.set("this", q.identifier(name))
        return q.Source(name, columns)

    def renamed(self, columns: tuple[q.Column, ...], alias: exp.Expr | None, what: str) -> tuple[q.Column, ...]:
        """Rename columns by position, as the column list after an alias says."""
        names = [q.name_part(c) for c in (alias.args.get("columns") or ())] if alias is not None else []
        if len(names) > len(columns):
            raise WrongColumnCount(what, len(names), len(columns))
        if alias is not None and names:
            alias.set("columns", [q.identifier(name.name) for name in names])
        renamed = [replace(column, name=name.name) for name, column in zip(names, columns, strict=False)]
        return (*renamed, *columns[len(names) :])


def _refuse_join(join: exp.Join, side: str) -> None:
    """Refuse joins that sqlglot reads and that have no meaning here."""
    if (join.args.get("method") or "").upper() == "NATURAL":
        raise UnsupportedQuery("NATURAL JOIN", "Write USING with the columns.")
    if join.args.get("method"):
        raise UnsupportedQuery(f"{join.args['method'].upper()} JOIN")
    if join.kind.upper() not in _JOIN_KINDS:
        raise UnsupportedQuery(join.kind.upper(), "Write JOIN.")
    condition = join.args.get("on") or join.args.get("using")
    if isinstance(join.this, exp.Unnest) and (side or not _is_true(condition)):  # sqlglot would drop both for Spark
        hint = "Write LEFT JOIN LATERAL explode(array) AS t(element) ON …, or the condition in WHERE."
        raise UnsupportedQuery(f"{side} JOIN UNNEST" if side else "JOIN UNNEST with a condition", hint)
    if side and condition is None and not isinstance(join.this, exp.Lateral):
        raise MalformedQuery(f"{side} JOIN needs ON or USING")


def _refuse_columns(call: exp.Anonymous, scope: q.Scope) -> None:
    """Refuse columns of the relations before a function that returns rows: it sees them only after LATERAL."""
    before = q.Scope(sources=scope.sources)
    for column in call.find_all(exp.Column) if scope.sources else ():
        try:
            parts = [q.name_part(part) for part in column.parts]
            q.resolve(parts, before, before.owner(parts))
        except HeadgateError:
            continue
        name = function_name(call)
        raise UnsupportedQuery(f"a column as an argument of {name} without LATERAL", f"Write LATERAL {name}(…).")


_JOIN_KINDS = frozenset(("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI"))


def _is_true(condition: exp.Expr | list[exp.Expr] | None) -> bool:
    return condition is None or (isinstance(condition, exp.Boolean) and bool(condition.this))


def _require_equal_types(left: q.Column, right: q.Column) -> None:
    if left.type is not None and right.type is not None and common_type(left.type, right.type) is None:
        what = f'column "{left.name}" of USING'
        raise IncompatibleBranches(what, print_type(left.type), print_type(right.type))


def _merge(merged: q.Source, right: q.Source, scope: q.Scope) -> q.Source:
    """Put merged columns before all others, and remove them from what `*` takes from the two sides."""
    names = frozenset(merged.merges)
    sides = [replace(s, merged=s.merged | names) for s in scope.sources if s.alias != q.USING]
    before = next((s for s in scope.sources if s.alias == q.USING), q.Source(q.USING, ()))
    kept = tuple(c for c in before.columns if c.name not in names)
    every = q.Source(q.USING, (*merged.columns, *kept), merges={**before.merges, **merged.merges})
    scope.sources[:] = [every, *sides]
    return replace(right, merged=right.merged | names)


def _alias_name(alias: exp.Expr | None, what: str) -> str:
    """The name of an alias, or one that no user would write."""
    return q.name_part(alias.this).name if alias is not None and alias.this is not None else f"_{what}"
