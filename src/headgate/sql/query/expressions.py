"""Expressions: each is given its type, and rewritten to what Spark understands, in one walk.

Names become exact (Spark runs case-sensitively, as our names are), marked functions get their names back, type
placeholders become Spark's types, and the operators that Spark does not have become its functions. What is not in
the table of handlers is refused: sqlglot reads much that Spark would not, or would understand differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from sqlglot import exp

from headgate.errors import HeadgateError, Span
from headgate.schema import types as t
from headgate.sql.errors import UnsupportedQuery, WrongColumnCount
from headgate.sql.query import calls, casts, operators, scope as names
from headgate.sql.query.text import FUNCTION_MARK, Normalised
from headgate.sql.query.tree import Ref
from headgate.sql.query.types import NULL, UNKNOWN, Typed, field_of
from headgate.text.cursor import Identifier

Subquery = Callable[[exp.Expr, names.Scope], tuple[names.Column, ...]]
Handler = Callable[[Any, Any, names.Scope], Typed]


class Expressions:
    """Types and rewrites the expressions of one query, and collects what the caller needs to know about them."""

    def __init__(self, normalised: Normalised, resolve: Callable[[t.Named], t.Type], subquery: Subquery) -> None:
        self.normalised = normalised
        self.resolve = resolve
        self.subquery = subquery
        self.stateful = False
        self.references: dict[int, names.RelationReference] = {}
        self.columns_made = 0

    def ref(self, name: str) -> Ref:
        """A new column of the query's tree."""
        self.columns_made += 1
        return Ref(name, self.columns_made)

    def with_refs(self, columns: Iterable[names.Column]) -> tuple[names.Column, ...]:
        """The columns as new ones of the query's tree."""
        return tuple([column.with_ref(self.ref(column.name)) for column in columns])

    def visit(self, node: exp.Expr, scope: names.Scope) -> Typed:
        """Return the type of an expression and rewrite the expression for Spark in place."""
        handler = _HANDLERS.get(type(node), _unsupported)
        try:
            return handler(self, node, scope)
        except HeadgateError as error:
            if error.span is None:
                error.at(self.span(node))
            raise

    def children(self, node: exp.Expr, scope: names.Scope) -> list[Typed]:
        """Visit all operands. The list is copied, because a visit may replace its node."""
        return [self.visit(child, scope) for child in list(node.iter_expressions())]

    def span(self, node: exp.Expr) -> Span | None:
        """The span of the node in the text as it was written, from the identifiers and functions below it."""
        nodes = [node] if isinstance(node, exp.Identifier) else node.find_all(exp.Identifier, exp.Anonymous)
        found = [n.meta for n in nodes if "start" in n.meta]
        if not found:
            return None
        start = min(meta["start"] for meta in found)
        end = max(meta["end"] for meta in found) + 1
        return self.normalised.span(start, end)


def _always(typed: Typed) -> Handler:
    """The handler of expressions that all have the same type, whatever is in them."""
    return lambda _visitor, _node, _scope: typed


def _result(type_: t.Type) -> Handler:
    """The handler of operators and calls with a fixed result type. The result is nullable if an operand is."""

    def handler(visitor: Expressions, node: exp.Expr, scope: names.Scope) -> Typed:
        return Typed(type_, any(typed.nullable for typed in visitor.children(node, scope)))

    return handler


def _inner(visitor: Expressions, node: exp.Expr, scope: names.Scope) -> Typed:
    """The handler of what has the type of its operand: parentheses, aliases, directions of ORDER BY."""
    return visitor.visit(node.this, scope)


def _column(visitor: Expressions, node: exp.Column, scope: names.Scope) -> Typed:
    """A column, possibly followed by fields of a record: sqlglot reads `a.b.c` as one node."""
    if isinstance(node.this, exp.Star):
        raise UnsupportedQuery("x.* inside an expression", "Name the columns.")
    written = node.parts
    parts = [names.name_part(part) for part in written]
    owner = scope.owner(parts)
    source, found, fields = names.resolve(parts, scope, owner)
    names.record_reference(visitor, node, owner)
    typed = Typed(found.type, found.nullable, found.null, column=None if fields else found)
    replaced = names.spark_column(source, found)
    if isinstance(replaced, exp.Column):  # for errors that are found later
        replaced.this.meta.update(written[-1].meta)
    for part in fields:
        field, typed = field_of(part, typed)
        replaced = exp.Dot(this=replaced, expression=names.identifier(field))
    node.replace(replaced)
    return typed


def _dot(visitor: Expressions, node: exp.Dot, scope: names.Scope) -> Typed:
    """A field of an expression: `(x).field`."""
    owner = visitor.visit(node.this, scope)
    if not isinstance(node.expression, exp.Identifier):
        raise UnsupportedQuery("a call after a dot")
    try:
        field, typed = field_of(names.name_part(node.expression), owner)
    except HeadgateError as error:
        raise error.at(visitor.span(node.expression)) from None
    node.set("expression", names.identifier(field))
    return typed


def _variable(_visitor: Expressions, node: exp.Identifier, scope: names.Scope) -> Typed:
    """The parameter of a lambda, which sqlglot leaves as an identifier."""
    found = scope.variable(Identifier(node.name, False))
    return UNKNOWN if found is None else Typed(found.type, found.nullable)


def _scalar_subquery(visitor: Expressions, node: exp.Subquery, scope: names.Scope) -> Typed:
    """A subquery as a value. It may return no row, so the value may be NULL."""
    visitor.stateful = True
    columns = visitor.subquery(node.this, scope)
    if len(columns) != 1:
        raise WrongColumnCount("a subquery in an expression", 1, len(columns))
    return Typed(columns[0].type)


def _exists(visitor: Expressions, node: exp.Exists, scope: names.Scope) -> Typed:
    """EXISTS (query), which is never NULL."""
    visitor.stateful = True
    visitor.subquery(node.this, scope)
    return Typed(t.Boolean(), False)


# What users of PostgreSQL are likely to write, with what to write instead.
_REFUSED: dict[type, tuple[str, str | None]] = {
    exp.SimilarTo: ("SIMILAR TO", "Write RLIKE with a regular expression."),
    exp.Placeholder: ("a parameter", None),
    exp.Parameter: ("a parameter", None),
    exp.JSONBExtract: ("#>", "Write one `->` for each member."),
    exp.JSONBExtractScalar: ("#>>", "Write `->` for each member and `->>` for the last."),
    exp.JSONBContains: ("?", "Write `(j -> 'key') IS NOT NULL`."),
    exp.ArrayContainsAll: ("@>", "Write array_contains or array_except."),
    exp.PropertyEQ: (":=", "Write `=>` to name an argument."),
    exp.Select: ("a query without parentheses", "Put it in parentheses."),
}


def _unsupported(_visitor: Expressions, node: exp.Expr, _scope: names.Scope) -> Typed:
    """Refuse what is in no table. The name of sqlglot's class is mostly SQL's own word for it."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()
    what, instead = _REFUSED.get(type(node), (words, None))
    raise UnsupportedQuery(what, instead)


# The names of output columns: where no alias names a column, PostgreSQL's rules do.

_NAMED: dict[type, str] = {
    exp.Case: "case",
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
    exp.Localtimestamp: "localtimestamp",
    exp.CurrentUser: "current_user",
    exp.Extract: "extract",
    exp.Exists: "exists",
    exp.Trim: "btrim",
    exp.Substring: "substring",
    exp.StrPosition: "position",
    exp.Array: "array",
}


_SAME_AS_INNER = (exp.Cast, exp.Paren, exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


def written_name(node: exp.Expr) -> str | None:
    """The name of an output column before names are resolved: its alias, its function, or the operand of a cast."""
    match node:
        case exp.Alias():
            return str(node.alias).removeprefix(FUNCTION_MARK)
        case exp.Anonymous():
            return str(node.name).removeprefix(FUNCTION_MARK).lower()
        case _ if isinstance(node, _SAME_AS_INNER):
            inner = node.this
            return str(inner.name) if isinstance(inner, exp.Column) else written_name(inner)
        case _:
            return _NAMED.get(type(node))


def accessed_name(value: exp.Expr) -> str | None:
    """The column takes the name of the accessed field, or of the array whose element it is."""
    match value:
        case exp.Dot():
            return str(value.expression.name)
        case exp.Bracket():
            return accessed_name(value.this)
        case exp.Column():
            return str(value.name)
        case _:
            return None


# By the exact class, because classes of sqlglot inherit from each other in ways that mean nothing here.
_HANDLERS: dict[type, Handler] = {
    exp.Column: _column,
    exp.Dot: _dot,
    exp.Identifier: _variable,
    exp.Literal: casts.literal,
    exp.Boolean: _always(Typed(t.Boolean(), False)),
    exp.Null: _always(NULL),
    exp.Interval: _always(Typed(None, False, interval=True)),
    exp.HexString: _always(Typed(t.Bytes(), False)),
    exp.Concat: _result(t.Text()),  # 'a' 'b' is one string
    exp.National: _result(t.Text()),
    exp.Neg: casts.negative,
    exp.Paren: _inner,
    **dict.fromkeys(operators.ARITHMETIC, operators.numbers),
    **dict.fromkeys(operators.BITWISE, operators.bits),
    **dict.fromkeys(operators.SHIFTS, operators.shift),
    **dict.fromkeys(operators.LOGIC, operators.logic),
    **dict.fromkeys(operators.COMPARISONS, operators.comparison),
    **dict.fromkeys(operators.MATCHES, operators.matches),
    exp.BitwiseNot: operators.same_type,
    exp.Pow: _result(t.Double()),  # a ^ b
    exp.RegexpILike: operators.matches_any_case,
    exp.Escape: _inner,
    exp.Is: operators.is_,
    exp.Any: operators.any_of,
    exp.All: operators.any_of,
    exp.In: operators.membership,
    exp.DPipe: operators.concatenation,
    exp.Case: operators.case,
    exp.Bracket: operators.bracket,
    exp.Array: operators.array,
    exp.Tuple: operators.row,
    exp.AtTimeZone: operators.time_zone,
    exp.Cast: casts.cast,
    exp.TryCast: casts.cast,
    exp.JSONExtract: operators.json_access,
    exp.JSONExtractScalar: operators.json_access,
    exp.Anonymous: calls.function,
    exp.Window: calls.window,
    exp.Filter: calls.modifier,
    exp.WithinGroup: calls.modifier,
    exp.IgnoreNulls: calls.modifier,
    exp.RespectNulls: calls.modifier,
    exp.Order: calls.order,
    exp.Extract: calls.extract,
    exp.Trim: _result(t.Text()),
    exp.Substring: _result(t.Text()),
    exp.StrPosition: _result(t.Integer()),
    exp.CurrentDate: calls.now,
    exp.CurrentTimestamp: calls.now,
    exp.Localtimestamp: calls.now,
    exp.CurrentUser: calls.now,
    exp.Where: operators.condition,
    exp.Having: operators.condition,
    exp.Qualify: operators.condition,
    exp.Ordered: _inner,
    exp.Alias: _inner,
    exp.Var: _always(UNKNOWN),
    exp.Subquery: _scalar_subquery,
    exp.Exists: _exists,
}
