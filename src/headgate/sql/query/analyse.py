"""A query's text -> what it gives and the Spark SQL that gives it."""

from __future__ import annotations

import re
from collections.abc import Callable

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from headgate.errors import HeadgateError, Span
from headgate.schema.names import NotFound, find
from headgate.schema.render import print_type
from headgate.schema.types import Array, Integer, Map, Named, Record, Text, Type
from headgate.sql.query.deep import with_room
from headgate.sql.query.errors import (
    IncompatibleBranches,
    MalformedQuery,
    UnknownAlias,
    UnsupportedQuery,
    WrongColumnCount,
)
from headgate.sql.query.expressions import Expressions, take_field
from headgate.sql.query.normalise import FUNCTION_MARK, Normalised, normalise
from headgate.sql.query.relation import AnalysedQuery, Column, FindRelation, NamePart, Relation
from headgate.sql.query.scope import Scope, Source, qualified
from headgate.sql.query.typing import Typed, common


def analyse(
    text: str, find_relation: FindRelation, resolve: Callable[[Named], Type] | None = None
) -> AnalysedQuery:
    """Everything that can be known of a query without running it. Errors point into ``text``."""
    normalised = normalise(text)
    return with_room(_depth(normalised.text), lambda: _Analyser(normalised, find_relation, resolve).run())


def _depth(text: str) -> int:
    depth = most = 0
    for found in re.finditer(r"[()]|\bCASE\b|\bcase\b", text):
        depth += -1 if found[0] == ")" else found[0] == "("
        most = max(most, depth)
    return most + text.count("||") // 4


def parse(normalised: Normalised) -> exp.Expr:
    try:
        tree = sqlglot.parse_one(normalised.text, read="postgres")
    except ParseError as error:
        raise _malformed(error, normalised) from None
    except TokenError as error:
        raise MalformedQuery(str(error).splitlines()[0]) from None
    if not isinstance(tree, exp.Query | exp.Values):
        raise MalformedQuery("it is no SELECT, VALUES or WITH")
    return tree


def _malformed(error: ParseError, normalised: Normalised) -> HeadgateError:
    if not error.errors:
        return MalformedQuery(str(error).splitlines()[0])
    first = error.errors[0]
    # line and column are those of the last character of the token that was not understood
    lines = normalised.text.split("\n")
    line, column = int(first.get("line") or 1), int(first.get("col") or 1)
    end = sum(len(text) + 1 for text in lines[: line - 1]) + column
    highlight = first.get("highlight") or " "
    start = max(0, end - len(highlight))
    reason = str(first.get("description") or "").rstrip(".").lower().replace(FUNCTION_MARK, "")
    reason = re.sub(r"but got <token.*sentinel.*>", "but the query ends", reason)
    if highlight.strip() and "near" not in reason:
        reason += f' near "{highlight.replace(FUNCTION_MARK, "")}"'
    return MalformedQuery(reason).at(normalised.span(start, end))


def _no_named_types(named: Named) -> Type:
    raise UnsupportedQuery(f"type {'.'.join(named.parts)}")


class _Analyser:
    def __init__(
        self, normalised: Normalised, find_relation: FindRelation, resolve: Callable[[Named], Type] | None
    ) -> None:
        self.normalised = normalised
        self.find_relation = find_relation
        self.reads: list[str] = []
        self.expressions = Expressions(normalised, resolve or _no_named_types, self.query)

    def run(self) -> AnalysedQuery:
        tree = parse(self.normalised)
        columns = self.query(tree, None)
        return AnalysedQuery(
            columns=columns,
            reads=tuple(dict.fromkeys(self.reads)),
            spark_sql=tree.sql(dialect="spark", comments=False),
            stateless=len(self.reads) == 1 and not self.expressions.stateful,
            untyped=tuple(dict.fromkeys(self.expressions.untyped)),
        )

    # queries

    def query(self, node: exp.Expr, outer: Scope | None) -> tuple[Column, ...]:
        scope = Scope(outer=outer)
        if with_ := node.args.get("with_"):
            self._common_tables(with_, scope)
        match node:
            case exp.Select():
                return self._select(node, scope)
            case exp.SetOperation():
                return self._set_operation(node, scope)
            case exp.Subquery():
                return self.query(node.this, scope)
            case exp.Values():
                return self._values(node, scope)
            case exp.Table():
                raise UnsupportedQuery("TABLE", "Write SELECT * FROM the relation.")
            case _:
                raise UnsupportedQuery(type(node).__name__.upper())

    def _common_tables(self, with_: exp.Expr, scope: Scope) -> None:
        if with_.args.get("recursive"):
            raise UnsupportedQuery("WITH RECURSIVE")
        for table in with_.expressions:
            name = _unmarked(table.args["alias"].this)
            columns = self.query(table.this, scope)
            columns = self._renamed(columns, table.args["alias"], f'"{name.name}"')
            table.args["alias"].set("this", exp.to_identifier(name.name, quoted=True))
            scope.tables[name.name] = Relation(name.name, name.name, columns)

    def _set_operation(self, node: exp.SetOperation, scope: Scope) -> tuple[Column, ...]:
        left, right = self.query(node.this, scope), self.query(node.expression, scope)
        what = type(node).__name__.upper()
        if len(left) != len(right):
            raise WrongColumnCount(f"the right side of {what}", len(left), len(right))
        self.expressions.stateful = True
        columns = tuple(self._merged(what, a, b) for a, b in zip(left, right, strict=True))
        self._order_and_limit(node, Scope(outer=scope, sources=[Source("", columns)]), columns)
        return columns

    def _merged(self, what: str, left: Column, right: Column) -> Column:
        shared = common([Typed(left.type, left.nullable), Typed(right.type, right.nullable)])
        if shared is None:
            assert left.type is not None
            assert right.type is not None
            raise IncompatibleBranches(
                f'column "{left.name}" of {what}', print_type(left.type), print_type(right.type)
            )
        return Column(left.name, shared.type, shared.nullable)

    def _values(self, node: exp.Values, scope: Scope) -> tuple[Column, ...]:
        rows = [
            [self.expressions.visit(value, scope) for value in list(row.expressions)]
            for row in node.expressions
        ]
        for row in rows:
            if len(row) != len(rows[0]):
                raise WrongColumnCount("a row of VALUES", len(rows[0]), len(row))
        columns = []
        for number, values in enumerate(zip(*rows, strict=True), start=1):
            shared = common(values)
            if shared is None:
                known = [print_type(v.type) for v in values if v.type is not None]
                raise IncompatibleBranches(f"column {number} of VALUES", known[0], known[-1])
            columns.append(Column(f"col{number}", shared.type, shared.nullable))
        return tuple(columns)

    def _select(self, node: exp.Select, scope: Scope) -> tuple[Column, ...]:
        self._refuse(node)
        self._from(node, scope)
        if where := node.args.get("where"):
            self.expressions.visit(where.this, scope)
        columns = self._projections(node, scope)
        self._grouping(node, scope, columns)
        for name in ("having", "qualify"):
            if clause := node.args.get(name):
                self._visit_with_outputs(clause, scope, columns)
        for window in node.args.get("windows") or ():
            self.expressions.visit(window, scope)
        self._order_and_limit(node, scope, columns)
        if node.args.get("distinct"):
            self.expressions.stateful = True
        return columns

    def _refuse(self, node: exp.Select) -> None:
        for name, what in (("into", "INTO"), ("locks", "FOR UPDATE"), ("pivots", "PIVOT")):
            if node.args.get(name):
                raise UnsupportedQuery(what)
        if not node.expressions:
            raise MalformedQuery("it has no columns")

    # FROM

    def _from(self, node: exp.Select, scope: Scope) -> None:
        if from_ := node.args.get("from_"):
            scope.add(self._source(from_.this, scope))
        for join in node.args.get("joins") or ():
            self._join(join, scope)
        for lateral in node.args.get("laterals") or ():
            scope.add(self._lateral(lateral, scope))

    def _join(self, join: exp.Join, scope: Scope) -> None:
        if join.args.get("method") == "NATURAL":
            raise UnsupportedQuery("NATURAL JOIN", "Write USING with the columns.")
        right = self._source(join.this, scope)
        lateral = isinstance(join.this, exp.Lateral | exp.Unnest)
        self.expressions.stateful = self.expressions.stateful or not lateral
        side, kind = join.side.upper(), join.kind.upper()
        if side in ("RIGHT", "FULL"):
            scope.sources[:] = [source.nullable() for source in scope.sources]
        right = right.nullable() if side in ("LEFT", "FULL") and kind not in ("SEMI", "ANTI") else right
        if using := join.args.get("using"):
            right = self._using(using, right, scope, side)
        inner = Scope(outer=scope.outer, sources=[*scope.sources, right], tables=scope.tables)
        if kind not in ("SEMI", "ANTI"):
            scope.add(right)
        if on := join.args.get("on"):
            self.expressions.visit(on, inner)

    def _using(self, using: list[exp.Expr], right: Source, scope: Scope, side: str) -> Source:
        merged = set()
        for index, identifier in enumerate(using):
            part = _unmarked(identifier)
            left = scope.column(part)
            if left is None:
                raise scope.missing(part.name)
            match find(left[1].name, True, (c.name for c in right.columns)):
                case NotFound():
                    raise Scope(sources=[right]).missing(left[1].name)
            using[index].replace(exp.to_identifier(left[1].name, quoted=True))
            merged.add(left[1].name)
        return Source(right.alias, right.columns, right.hidden, right.merged | merged, right.advice)

    def _source(self, node: exp.Expr, scope: Scope) -> Source:
        match node:
            case exp.Table() if isinstance(node.this, exp.Anonymous):
                return self._generated(node.this, node.args.get("alias"), scope)
            case exp.Table():
                return self._table(node, scope)
            case exp.Subquery():
                return self._derived(node, self.query(node.this, scope))
            case exp.Values():
                return self._derived(node, self._values(node, scope))
            case exp.Lateral():
                return self._lateral(node, scope)
            case exp.Unnest():
                typed = self.expressions.visit(node.expressions[0], scope)
                columns = _generated_columns("explode", typed)
                return self._aliased(columns, node.args.get("alias"), "unnest")
            case _:
                raise UnsupportedQuery(f"{type(node).__name__.upper()} in FROM")

    def _table(self, node: exp.Table, scope: Scope) -> Source:
        parts = tuple(_unmarked(part) for part in node.parts)
        relation = scope.table(parts[0]) if len(parts) == 1 else None
        span = self._span(node)
        if relation is None:
            try:
                relation = self.find_relation(parts)
            except HeadgateError as error:
                raise error.at(span) from error.__cause__
            self.reads.append(relation.name)
        alias = node.args.get("alias")
        name = _unmarked(alias.this).name if alias is not None and alias.this is not None else parts[-1].name
        if alias is None or alias.this is None:
            name = (
                relation.name.rpartition(".")[2].strip('"')
                if len(parts) > 1 or not parts[-1].quoted
                else name
            )
        columns = self._renamed(relation.columns, alias, f'"{name}"')
        for part in ("db", "catalog"):
            node.set(part, None)
        node.set("this", exp.to_identifier(relation.spark_name, quoted=True))
        node.set("alias", _table_alias(name, alias, columns))
        return Source(name, columns, relation.hidden, advice=relation.advice)

    def _derived(self, node: exp.Expr, columns: tuple[Column, ...]) -> Source:
        return self._aliased(columns, node.args.get("alias"), "a subquery", node)

    def _aliased(
        self,
        columns: tuple[Column, ...],
        alias: exp.Expr | None,
        what: str,
        node: exp.Expr | None = None,
    ) -> Source:
        name = (
            _unmarked(alias.this).name
            if alias is not None and alias.this is not None
            else f"_{what.split()[-1]}"
        )
        columns = self._renamed(columns, alias, what)
        if node is not None:
            node.set("alias", _table_alias(name, alias, columns))
        elif alias is not None:
            alias.set("this", exp.to_identifier(name, quoted=True))
        return Source(name, columns)

    def _lateral(self, node: exp.Lateral, scope: Scope) -> Source:
        inner = node.this
        alias = node.args.get("alias")
        if isinstance(inner, exp.Subquery):
            return self._aliased(self.query(inner.this, scope), alias, "LATERAL")
        if not isinstance(inner, exp.Anonymous):
            raise UnsupportedQuery(
                "this LATERAL", "Write LATERAL with a subquery or a function such as explode."
            )
        return self._generated(inner, alias, scope)

    def _generated(self, call: exp.Anonymous, alias: exp.Expr | None, scope: Scope) -> Source:
        name = str(call.this).removeprefix(FUNCTION_MARK).lower()
        call.set("this", name)
        arguments = [self.expressions.visit(argument, scope) for argument in list(call.expressions)]
        columns = _generated_columns(name, arguments[0] if arguments else Typed(None))
        if alias is not None and alias.args.get("columns") and columns == ():
            columns = tuple(Column(c.name, None) for c in alias.args["columns"])
        return self._aliased(columns, alias, name)

    def _renamed(self, columns: tuple[Column, ...], alias: exp.Expr | None, what: str) -> tuple[Column, ...]:
        """Columns under the names that a column list behind an alias gives them, by position."""
        names = [_unmarked(c) for c in (alias.args.get("columns") or ())] if alias is not None else []
        if len(names) > len(columns):
            raise WrongColumnCount(what, len(names), len(columns))
        if alias is not None and names:
            alias.set("columns", [exp.to_identifier(n.name, quoted=True) for n in names])
        renamed = [
            Column(n.name, c.type, c.nullable, c.doc, c.origin) for n, c in zip(names, columns, strict=False)
        ]
        return (*renamed, *columns[len(names) :])

    # SELECT list

    def _projections(self, node: exp.Select, scope: Scope) -> tuple[Column, ...]:
        columns: list[Column] = []
        written: list[exp.Expr] = []
        for projection in list(node.expressions):
            for expression, column in self._projection(projection, scope):
                written.append(expression)
                columns.append(column)
        node.set("expressions", written)
        return tuple(columns)

    def _projection(self, node: exp.Expr, scope: Scope) -> list[tuple[exp.Expr, Column]]:
        if isinstance(node, exp.Star):
            return self._star(node, scope.sources, scope)
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            return self._star(node.this, [self._star_owner(node, scope)], scope)
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Star):
            return self._record_star(node, scope)
        if isinstance(node, exp.Aliases):
            return self._several(node, scope)
        name = _output_name(node)
        plain = node.this if isinstance(node, exp.Alias) else node
        origin = self._origin(plain, scope)
        holder = exp.Paren(this=node)  # so that a node that replaces itself has a parent to do it in
        typed = self.expressions.visit(node, scope)
        value = holder.this.this if isinstance(holder.this, exp.Alias) else holder.this
        name = name or (origin.name if origin else _accessed_name(value)) or "?column?"
        column = Column(name, typed.type, typed.nullable, *_from_origin(origin))
        return [(_aliased_as(value, column.name), column)]

    def _origin(self, node: exp.Expr, scope: Scope) -> Column | None:
        """The column that a projection is nothing but, for its docs and its name."""
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Column) or len(node.parts) > 2:
            return None
        parts = [NamePart(p.name, bool(p.args.get("quoted"))) for p in node.parts]
        source = scope.source(parts[0]) if len(parts) == 2 else None
        if len(parts) == 2 and source is None:
            return None
        try:
            found = (source, qualified(source, parts[1])) if source else scope.column(parts[0])
        except HeadgateError:
            return None
        return found[1] if found else None

    def _star(self, star: exp.Star, sources: list[Source], scope: Scope) -> list[tuple[exp.Expr, Column]]:
        if not sources:
            raise UnknownAlias("*")
        left_out = {
            _unmarked(e).name.lower() for e in (star.args.get("except_") or star.args.get("except") or ())
        }
        chosen = [
            (_reference(source, column), column)
            for source in sources
            for column in source.columns
            if column.name not in source.merged and column.name.lower() not in left_out
        ]
        return [(_aliased_as(expression, column.name), column) for expression, column in chosen]

    def _star_owner(self, node: exp.Column, scope: Scope) -> Source:
        alias = NamePart(node.args["table"].name, bool(node.args["table"].args.get("quoted")))
        source = scope.source(alias)
        if source is None:
            raise scope.missing_alias(alias.name).at(self._span(node))
        return source

    def _record_star(self, node: exp.Dot, scope: Scope) -> list[tuple[exp.Expr, Column]]:
        holder = exp.Paren(this=node.this)
        typed = self.expressions.visit(node.this, scope)
        if not isinstance(typed.type, Record):
            raise UnsupportedQuery("(x).* of what is no record")
        chosen = []
        for field in typed.type.fields:
            name, inner = take_field(NamePart(field.name, True), typed)
            dot = exp.Dot(this=holder.this.copy(), expression=exp.to_identifier(name, quoted=True))
            chosen.append((_aliased_as(dot, name), Column(name, inner.type, inner.nullable, field.doc)))
        return chosen

    def _several(self, node: exp.Aliases, scope: Scope) -> list[tuple[exp.Expr, Column]]:
        """explode(m) AS (k, v): one expression, several columns."""
        call = node.this
        if not isinstance(call, exp.Anonymous):
            raise UnsupportedQuery("a list of aliases on what gives one column")
        source = self._generated(call, None, scope)
        names = [_unmarked(e) for e in node.expressions]
        if source.columns and len(source.columns) != len(names):
            raise WrongColumnCount("the list of aliases", len(source.columns), len(names))
        known = source.columns or tuple(Column(n.name, None) for n in names)
        node.set("expressions", [exp.to_identifier(n.name, quoted=True) for n in names])
        columns = [Column(n.name, c.type, c.nullable) for n, c in zip(names, known, strict=True)]
        return [(node, columns[0]), *((None, c) for c in columns[1:])]  # type: ignore[list-item]

    # the clauses after it

    def _grouping(self, node: exp.Select, scope: Scope, columns: tuple[Column, ...]) -> None:
        group = node.args.get("group")
        if group is not None:
            self.expressions.stateful = True
            self._visit_with_outputs(group, scope, columns)

    def _order_and_limit(self, node: exp.Expr, scope: Scope, columns: tuple[Column, ...]) -> None:
        for name in ("order", "sort", "cluster", "distribute"):
            if clause := node.args.get(name):
                self.expressions.stateful = True
                self._visit_with_outputs(clause, scope, columns)
        for name in ("limit", "offset"):
            if node.args.get(name):
                self.expressions.stateful = True

    def _visit_with_outputs(self, clause: exp.Expr, scope: Scope, columns: tuple[Column, ...]) -> None:
        """GROUP BY, HAVING and ORDER BY see the query's inputs, then its output columns by name."""
        for column in list(clause.find_all(exp.Column)):
            if len(column.parts) == 1 and not column.find_ancestor(exp.Subquery, exp.Exists):
                self._maybe_output(column, scope, columns, prefer_output=isinstance(clause, exp.Order))
        for child in list(clause.iter_expressions()):
            if not (isinstance(child, exp.Column) and child.meta.get("output")):
                self._visit_unless_output(child, scope)

    def _visit_unless_output(self, node: exp.Expr, scope: Scope) -> None:
        if isinstance(node, exp.Ordered | exp.Tuple | exp.Paren):
            for child in list(node.iter_expressions()):
                self._visit_unless_output(child, scope)
        elif not node.meta.get("output"):
            self.expressions.visit(node, scope)

    def _maybe_output(
        self, node: exp.Column, scope: Scope, columns: tuple[Column, ...], prefer_output: bool
    ) -> None:
        part = NamePart(node.name, bool(node.this.args.get("quoted")))
        outputs = [c.name for c in columns]
        match find(part.name, part.quoted, outputs):
            case NotFound():
                return
        if not prefer_output and scope.column(part) is not None:
            return
        exact = next(c for c in outputs if c == part.name or c.lower() == part.name.lower())
        node.set("this", exp.to_identifier(exact, quoted=True))
        node.meta["output"] = True

    def _span(self, node: exp.Expr) -> Span | None:
        span: Span | None = self.expressions.span(node)
        return span


def _unmarked(identifier: exp.Expr) -> NamePart:
    """A name that stood before a parenthesis got a function's mark; here it is none."""
    return NamePart(identifier.name.removeprefix(FUNCTION_MARK), bool(identifier.args.get("quoted")))


def _reference(source: Source, column: Column) -> exp.Expr:
    table = exp.to_identifier(source.alias, quoted=True) if source.alias else None
    return exp.Column(this=exp.to_identifier(column.name, quoted=True), table=table)


def _aliased_as(expression: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=expression, alias=exp.to_identifier(name, quoted=True))


def _from_origin(origin: Column | None) -> tuple[str | None, tuple[str, str] | None]:
    return (None, None) if origin is None else (origin.doc, origin.origin)


def _accessed_name(value: exp.Expr) -> str | None:
    """A field gives its name to the column, an element the name of its array."""
    match value:
        case exp.Dot():
            return str(value.expression.name)
        case exp.Bracket():
            return _accessed_name(value.this)
        case exp.Column():
            return str(value.name)
        case _:
            return None


def _output_name(node: exp.Expr) -> str | None:
    """The name of an output column, as PostgreSQL gives it: alias, column, field, function; of a cast its operand's."""
    match node:
        case exp.Alias():
            return str(node.alias).removeprefix(FUNCTION_MARK)
        case exp.Column():
            return None
        case exp.Anonymous():
            return str(node.this).removeprefix(FUNCTION_MARK).lower()
        case exp.Cast() | exp.Paren() | exp.Window() | exp.Filter() | exp.WithinGroup():
            inner = node.this
            return str(inner.name) if isinstance(inner, exp.Column) else _output_name(inner)
        case exp.Case():
            return "case"
        case exp.CurrentDate():
            return "current_date"
        case exp.CurrentTimestamp():
            return "current_timestamp"
        case exp.Extract():
            return "extract"
        case exp.Exists():
            return "exists"
        case _:
            return None


def _table_alias(name: str, alias: exp.Expr | None, columns: tuple[Column, ...]) -> exp.TableAlias:
    made = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    if alias is not None and alias.args.get("columns"):
        made.set("columns", [exp.to_identifier(c.name, quoted=True) for c in columns])
    return made


def _generated_columns(name: str, argument: Typed) -> tuple[Column, ...]:
    """The columns of a table function, or none if they are not known."""
    outer = name.endswith("_outer")
    match name.removesuffix("_outer"), argument.type:
        case "explode", Array(element, nullable):
            return (Column("col", element, nullable or outer),)
        case "explode", Map(value, nullable):
            return (Column("key", Text(), outer), Column("value", value, nullable or outer))
        case "posexplode", Array(element, nullable):
            return (Column("pos", Integer(), outer), Column("col", element, nullable or outer))
        case "inline", Array(Record(fields), nullable):
            return tuple(Column(f.name, f.type, f.nullable or nullable or outer, f.doc) for f in fields)
        case _:
            return ()
