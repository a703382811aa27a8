"""Expressions: each is given its type, and rewritten to what Spark understands, in one walk.

Names become exact (Spark runs case-sensitively, as our names are), marked functions get their names back, type
placeholders become Spark's types, and the operators that Spark does not have become its functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from headgate.errors import HeadgateError, near_names
from headgate.schema.names import Ambiguous, Found, find
from headgate.schema.render import print_type
from headgate.schema.types import (
    Array,
    Bigint,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Double,
    Field,
    Integer,
    Json,
    Map,
    Named,
    Record,
    Text,
    Timestamp,
    TimestampTz,
    Type,
)
from headgate.sql.query.errors import (
    IncompatibleBranches,
    NotARecord,
    UnknownField,
    UnknownFunction,
    UnsupportedQuery,
)
from headgate.sql.query.functions import result_of, spark_functions
from headgate.sql.query.normalise import FUNCTION_MARK, TYPE_MARK, Normalised
from headgate.sql.query.relation import Column, NamePart
from headgate.sql.query.scope import Scope, Source, qualified
from headgate.sql.query.spark_ddl import spark_ddl
from headgate.sql.query.typing import NULL, UNKNOWN, Typed, arithmetic, boolean, common, is_text

HIGHER_ORDER = frozenset(
    [
        "aggregate",
        "array_sort",
        "exists",
        "filter",
        "forall",
        "map_filter",
        "map_zip_with",
        "reduce",
        "transform",
        "transform_keys",
        "transform_values",
        "zip_with",
    ]
)
AGGREGATES = frozenset(
    [
        "any",
        "any_value",
        "approx_count_distinct",
        "approx_percentile",
        "array_agg",
        "avg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bool_and",
        "bool_or",
        "collect_list",
        "collect_set",
        "corr",
        "count",
        "count_if",
        "covar_pop",
        "covar_samp",
        "every",
        "first",
        "first_value",
        "grouping",
        "histogram_numeric",
        "kurtosis",
        "last",
        "last_value",
        "listagg",
        "max",
        "max_by",
        "mean",
        "median",
        "min",
        "min_by",
        "mode",
        "percentile",
        "percentile_approx",
        "percentile_cont",
        "percentile_disc",
        "regr_avgx",
        "regr_count",
        "regr_r2",
        "skewness",
        "some",
        "std",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "string_agg",
        "sum",
        "try_avg",
        "try_sum",
        "var_pop",
        "var_samp",
        "variance",
    ]
)
GENERATORS = frozenset(
    [
        "explode",
        "explode_outer",
        "posexplode",
        "posexplode_outer",
        "inline",
        "inline_outer",
        "stack",
        "json_tuple",
    ]
)
# Results that differ from one run to the next, so that a replayed batch would not compute the same rows.
NONDETERMINISTIC = frozenset(["rand", "random", "randn", "uuid", "shuffle", "monotonically_increasing_id"])

_ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "DIV"}
_COMPARISONS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike,
    exp.SimilarTo, exp.Between, exp.And, exp.Or, exp.Not, exp.Is,
)  # fmt: skip

_TYPED_LITERALS: dict[str, Type] = {"DATE": Date(), "TIMESTAMP": Timestamp(), "TIMESTAMPTZ": TimestampTz()}

Subquery = Callable[[exp.Expr, Scope], tuple[Column, ...]]


class Expressions:
    """Types and rewrites the expressions of one query. Collects what the caller must know about them."""

    def __init__(self, normalised: Normalised, resolve: Callable[[Named], Type], subquery: Subquery) -> None:
        self.normalised = normalised
        self.resolve = resolve
        self.subquery = subquery
        self.untyped: list[str] = []
        self.stateful = False

    def visit(self, node: exp.Expr, scope: Scope) -> Typed:
        """The type of an expression, which is rewritten in place."""
        for kinds, handle in _HANDLERS:
            if isinstance(node, kinds):
                try:
                    return handle(self, node, scope)
                except HeadgateError as error:
                    raise error.at(self.span(node)) from error.__cause__
        self.children(node, scope)
        return UNKNOWN

    def children(self, node: exp.Expr, scope: Scope) -> list[Typed]:
        return [self.visit(child, scope) for child in list(node.iter_expressions())]

    def span(self, node: exp.Expr) -> Any:
        """Where the node stands in the text as it was written, from the identifiers and functions below it."""
        found = [n.meta for n in node.find_all(exp.Identifier, exp.Anonymous) if "start" in n.meta]
        if not found:
            return None
        start = min(meta["start"] for meta in found)
        end = max(meta["end"] for meta in found) + 1
        return self.normalised.span(start, end)

    # names

    def column(self, node: exp.Column, scope: Scope) -> Typed:
        parts = [_part(identifier) for identifier in node.parts]
        source, column, fields = self._resolve(parts, scope)
        new = exp.column(exp.to_identifier(column.name, quoted=True))
        if source is not None:
            new.set("table", exp.to_identifier(source.alias, quoted=True))
        typed = Typed(column.type, column.nullable)
        replaced: exp.Expr = new
        for part in fields:
            field, typed = take_field(part, typed)
            replaced = exp.Dot(this=replaced, expression=exp.to_identifier(field, quoted=True))
        node.replace(replaced)
        return typed

    def _resolve(self, parts: list[NamePart], scope: Scope) -> tuple[Source | None, Column, list[NamePart]]:
        """alias.column[.field ..] if there is such an alias, otherwise column[.field ..]."""
        if len(parts) > 1 and (source := scope.source(parts[0])) is not None:
            return source, qualified(source, parts[1]), parts[2:]
        found = scope.column(parts[0])
        if found is None:
            raise scope.missing(parts[0].name) if len(parts) == 1 else scope.missing_alias(parts[0].name)
        return found[0], found[1], parts[1:]

    def dot(self, node: exp.Dot, scope: Scope) -> Typed:
        owner = self.visit(node.this, scope)
        if not isinstance(node.expression, exp.Identifier):
            raise UnsupportedQuery("a call after a dot")
        field, typed = take_field(_part(node.expression), owner)
        node.set("expression", exp.to_identifier(field, quoted=True))
        return typed

    def bare_identifier(self, node: exp.Identifier, scope: Scope) -> Typed:
        """Inside a lambda sqlglot leaves variables as identifiers."""
        column = scope.lambdas.get(node.name)
        return UNKNOWN if column is None else Typed(column.type, column.nullable)

    # literals

    def literal(self, node: exp.Literal, scope: Scope) -> Typed:
        if node.is_string:
            return Typed(Text(), False)
        text = node.name.lower()
        if text.isdigit():
            value = int(text)
            if value < 2**31:
                return Typed(Integer(), False, literal=value)
            return (
                Typed(Bigint(), False, literal=value)
                if value < 2**63
                else Typed(Decimal(len(text), 0), False)
            )
        if "e" in text:
            return Typed(Double(), False)
        whole, _, fraction = text.partition(".")
        return Typed(Decimal(max(1, len(whole.lstrip("0")) + len(fraction)), len(fraction)), False)

    def null(self, node: exp.Null, scope: Scope) -> Typed:
        return NULL

    # operators

    def paren(self, node: exp.Paren, scope: Scope) -> Typed:
        return self.visit(node.this, scope)

    def negative(self, node: exp.Neg, scope: Scope) -> Typed:
        typed = self.visit(node.this, scope)
        return Typed(typed.type, typed.nullable, literal=None if typed.literal is None else -typed.literal)

    def arithmetic(self, node: exp.Binary, scope: Scope) -> Typed:
        left, right = self.visit(node.this, scope), self.visit(node.expression, scope)
        for flag in ("typed", "safe"):  # Spark's division, not PostgreSQL's: 7 / 2 is 3.5
            node.set(flag, None)
        return arithmetic(_ARITHMETIC[type(node)], left, right)

    def comparison(self, node: exp.Expr, scope: Scope) -> Typed:
        typed = boolean(*self.children(node, scope))
        return Typed(Boolean(), False) if isinstance(node, exp.Is) else typed

    def null_safe(self, node: exp.Expr, scope: Scope) -> Typed:
        self.children(node, scope)
        return Typed(Boolean(), False)

    def membership(self, node: exp.In, scope: Scope) -> Typed:
        left = self.visit(node.this, scope)
        if query := node.args.get("query"):
            self.stateful = True
            columns = self.subquery(query.this if isinstance(query, exp.Subquery) else query, scope)
            return Typed(Boolean(), left.nullable or any(c.nullable for c in columns))
        return boolean(left, *(self.visit(e, scope) for e in list(node.expressions)))

    def concatenation(self, node: exp.DPipe, scope: Scope) -> Typed:
        left, right = self.visit(node.this, scope), self.visit(node.expression, scope)
        node.set("safe", None)
        nullable = left.nullable or right.nullable
        if isinstance(left.type, Bytes | Array) and isinstance(right.type, Bytes | Array):
            return Typed((common([left, right]) or UNKNOWN).type, nullable)
        return Typed(Text(), nullable)

    def case(self, node: exp.Case, scope: Scope) -> Typed:
        if node.this is not None:
            self.visit(node.this, scope)
        branches = []
        for branch in list(node.args["ifs"]):
            self.visit(branch.this, scope)
            branches.append(self.visit(branch.args["true"], scope))
        default = node.args.get("default")
        branches.append(NULL if default is None else self.visit(default, scope))
        return self._common("CASE", branches)

    def _common(self, what: str, branches: list[Typed]) -> Typed:
        shared = common(branches)
        if shared is None:
            known = [print_type(b.type) for b in branches if b.type is not None]
            raise IncompatibleBranches(what, known[0], next(k for k in known if k != known[0]))
        return shared

    # types

    def cast(self, node: exp.Cast, scope: Scope) -> Typed:
        to = node.args["to"]
        if to.this.value in _TYPED_LITERALS and isinstance(node.this, exp.Literal):
            return self._typed_literal(node, to.this.value)
        source = self.visit(node.this, scope)
        type_ = self._type(to)
        node.set("to", exp.DataType(this=exp.DType.USERDEFINED, kind=spark_ddl(type_)))
        parsed = is_text(source.type) and not is_text(type_)  # Spark holds that a text may parse to NULL
        nullable = source.nullable or parsed or isinstance(node, exp.TryCast)
        return Typed(type_, nullable)

    def _type(self, to: exp.Expr) -> Type:
        name = str(getattr(to.args.get("kind"), "name", ""))
        if not name.startswith(TYPE_MARK):
            raise UnsupportedQuery(f"a literal of type {to.sql()}", "Write a string and cast it with `::`.")
        return expanded(self.normalised.types[int(name.removeprefix(TYPE_MARK))], self.resolve)

    def _typed_literal(self, node: exp.Cast, kind: str) -> Typed:
        """DATE '2026-11-15' and its like, which sqlglot reads as casts. As literals Spark checks them at once."""
        type_ = _TYPED_LITERALS[kind]
        text = exp.Literal.string(node.this.name).sql(dialect="spark")
        node.replace(exp.Var(this=f"{spark_ddl(type_)} {text}"))
        return Typed(type_, False)

    def hexadecimal(self, node: exp.HexString, scope: Scope) -> Typed:
        return Typed(Bytes(), False)

    # json

    def json(self, node: exp.Expr, scope: Scope) -> Typed:
        """`->` gives JSON text, `->>` the text of a value. A chain becomes one look-up."""
        text = isinstance(node, exp.JSONExtractScalar)
        inner, path = node, ""
        while isinstance(inner.this, exp.JSONExtract | exp.JSONExtractScalar):
            path = json_step(inner.expression) + path
            inner = inner.this
        path = "$" + json_step(inner.expression) + path
        self.visit(inner.this, scope)
        owner = inner.this.copy()  # read again: a visit may replace its node
        node.replace(_get_json(owner, path) if text else _get_variant(owner, path))
        return Typed(Text() if text else Json())

    def bracket(self, node: exp.Bracket, scope: Scope) -> Typed:
        owner = self.visit(node.this, scope)
        for index in list(node.expressions):
            self.visit(index, scope)
        # sqlglot takes an array's first index for PostgreSQL's 1 and has subtracted it; ours are Spark's, from 0.
        node.set("expressions", [_shifted(index) for index in node.expressions])
        match owner.type:
            case Array(element, _):
                return Typed(element)
            case Map(value, _):
                return Typed(value)
            case _:
                return UNKNOWN

    def array(self, node: exp.Array, scope: Scope) -> Typed:
        shared = self._common("ARRAY", self.children(node, scope))
        return Typed(None if shared.type is None else Array(shared.type, shared.nullable), False)

    # functions

    def function(self, node: exp.Anonymous, scope: Scope) -> Typed:
        marked = str(node.this)
        name = marked.removeprefix(FUNCTION_MARK)
        lower = name.lower()
        node.set("this", name)
        if lower == "row":
            return self._row(node, scope)
        if lower not in spark_functions():
            raise UnknownFunction(name, near_names(lower, spark_functions()))
        arguments = self._arguments(node, lower, scope)
        if lower in AGGREGATES:
            self.stateful = True
        if lower in GENERATORS:
            return UNKNOWN
        result = self._known_result(lower, arguments, node)
        if result is None:
            self.untyped.append(lower)
            return UNKNOWN
        return result

    def _known_result(self, name: str, arguments: list[Typed], node: exp.Anonymous) -> Typed | None:
        match name:
            case "if" if len(arguments) == 3:
                return self._common("IF", arguments[1:])
            case "nvl2" if len(arguments) == 3:
                return self._common("NVL2", arguments[1:])
            case "struct":
                return Typed(_struct_type(node, arguments), False)
            case "named_struct":
                return Typed(_named_struct_type(node, arguments), False)
            case "map" if arguments:
                shared = self._common("MAP", arguments[1::2])
                return Typed(None if shared.type is None else Map(shared.type, shared.nullable), False)
            case "transform" if isinstance(arguments[0].type, Array):
                body = arguments[1]
                return Typed(
                    None if body.type is None else Array(body.type, body.nullable), arguments[0].nullable
                )
            case "percentile_approx" | "approx_percentile" if not isinstance(arguments[1].type, Array):
                return Typed(arguments[0].type)
            case _:
                return result_of(name, arguments)

    def _arguments(self, node: exp.Anonymous, name: str, scope: Scope) -> list[Typed]:
        arguments: list[Typed] = []
        for argument in list(node.expressions):
            if isinstance(argument, exp.Star):
                arguments.append(Typed(Bigint(), False))
            elif isinstance(argument, exp.Lambda) and name in HIGHER_ORDER:
                arguments.append(self._lambda(argument, arguments, scope))
            elif isinstance(argument, exp.Lambda):
                arguments.append(self.visit(_as_json(argument), scope))
            elif isinstance(argument, exp.Distinct):
                arguments.extend(self.children(argument, scope))
            else:
                arguments.append(self.visit(argument, scope))
        return arguments

    def _lambda(self, node: exp.Lambda, before: list[Typed], scope: Scope) -> Typed:
        """A lambda's body; its variables are the element of the array, or key and value of the map, before it."""
        inner = Scope(outer=scope, lambdas=dict(scope.lambdas))
        kinds = _variables(before[0].type if before else None)
        for variable, (type_, nullable) in zip(node.expressions, kinds, strict=False):
            inner.lambdas[variable.name] = Column(variable.name, type_, nullable)
        return self.visit(node.this, inner)

    def _row(self, node: exp.Anonymous, scope: Scope) -> Typed:
        arguments = self._arguments(node, "row", scope)
        node.set("this", "struct")
        fields = [
            Field(f"f{i + 1}", a.type, a.nullable) for i, a in enumerate(arguments) if a.type is not None
        ]
        return Typed(Record(tuple(fields)) if len(fields) == len(arguments) else None, False)

    def window(self, node: exp.Window, scope: Scope) -> Typed:
        typed = self.visit(node.this, scope)
        for part in ("partition_by", "order"):
            value = node.args.get(part)
            for child in value if isinstance(value, list) else [value] if value is not None else []:
                self.visit(child, scope)
        self.stateful = True
        return typed

    def first_child(self, node: exp.Expr, scope: Scope) -> Typed:
        """FILTER, WITHIN GROUP, ORDER BY inside a call: the type is that of the call."""
        return self.children(node, scope)[0]

    def ordered(self, node: exp.Ordered, scope: Scope) -> Typed:
        return self.visit(node.this, scope)

    def extract(self, node: exp.Extract, scope: Scope) -> Typed:
        typed = self.visit(node.expression, scope)
        part = node.this.name.lower()
        return Typed(Decimal(8, 6) if part.startswith("second") else Integer(), typed.nullable)

    def text_function(self, node: exp.Expr, scope: Scope) -> Typed:
        return Typed(Text(), any(t.nullable for t in self.children(node, scope)))

    def position(self, node: exp.Expr, scope: Scope) -> Typed:
        return Typed(Integer(), any(t.nullable for t in self.children(node, scope)))

    def now(self, node: exp.Expr, scope: Scope) -> Typed:
        return Typed(Date() if isinstance(node, exp.CurrentDate) else TimestampTz(), False)

    def time_zone(self, node: exp.AtTimeZone, scope: Scope) -> Typed:
        """An instant becomes the local time of a zone, a local time the instant that it is in that zone."""
        typed = self.visit(node.this, scope)
        zone = node.args["zone"]
        self.visit(zone, scope)
        utc = exp.Literal.string("UTC")
        operand = node.this.copy()
        if isinstance(typed.type, Timestamp):
            local = _call("convert_timezone", zone.copy(), utc, operand)
            node.replace(_cast(local, TimestampTz()))
            return Typed(TimestampTz(), typed.nullable)
        node.replace(_call("convert_timezone", utc, zone.copy(), _cast(operand, Timestamp())))
        return Typed(Timestamp(), typed.nullable)

    def scalar_subquery(self, node: exp.Subquery, scope: Scope) -> Typed:
        self.stateful = True
        columns = self.subquery(node.this, scope)
        return Typed(columns[0].type) if len(columns) == 1 else UNKNOWN

    def exists(self, node: exp.Exists, scope: Scope) -> Typed:
        self.stateful = True
        self.subquery(node.this, scope)
        return Typed(Boolean(), False)

    def alias(self, node: exp.Alias, scope: Scope) -> Typed:
        return self.visit(node.this, scope)

    def opaque(self, node: exp.Expr, scope: Scope) -> Typed:
        return UNKNOWN


_HANDLERS: tuple[tuple[Any, Callable[[Expressions, Any, Scope], Typed]], ...] = (
    (exp.Column, Expressions.column),
    (exp.Dot, Expressions.dot),
    (exp.Identifier, Expressions.bare_identifier),
    (exp.Literal, Expressions.literal),
    (exp.Boolean, lambda self, node, scope: Typed(Boolean(), False)),
    (exp.Null, Expressions.null),
    (exp.Paren, Expressions.paren),
    (exp.Neg, Expressions.negative),
    (tuple(_ARITHMETIC), Expressions.arithmetic),
    ((exp.NullSafeEQ, exp.NullSafeNEQ), Expressions.null_safe),
    (exp.In, Expressions.membership),
    (_COMPARISONS, Expressions.comparison),
    (exp.DPipe, Expressions.concatenation),
    (exp.Case, Expressions.case),
    (exp.Cast, Expressions.cast),
    ((exp.JSONExtract, exp.JSONExtractScalar), Expressions.json),
    (exp.Bracket, Expressions.bracket),
    (exp.Array, Expressions.array),
    (exp.Anonymous, Expressions.function),
    (exp.Window, Expressions.window),
    ((exp.Filter, exp.WithinGroup, exp.Order), Expressions.first_child),
    (exp.Ordered, Expressions.ordered),
    (exp.Extract, Expressions.extract),
    ((exp.Trim, exp.Substring), Expressions.text_function),
    (exp.StrPosition, Expressions.position),
    ((exp.CurrentDate, exp.CurrentTimestamp), Expressions.now),
    (exp.AtTimeZone, Expressions.time_zone),
    (exp.Subquery, Expressions.scalar_subquery),
    (exp.Exists, Expressions.exists),
    (exp.Alias, Expressions.alias),
    (exp.HexString, Expressions.hexadecimal),
    (exp.Interval, Expressions.opaque),
)


def take_field(part: NamePart, owner: Typed) -> tuple[str, Typed]:
    """The exact name and the type of a field of a record; a NULL record has NULL fields."""
    if owner.type is None:
        return part.name, UNKNOWN
    if not isinstance(owner.type, Record):
        raise NotARecord(part.name, print_type(owner.type))
    match find(part.name, part.quoted, (f.name for f in owner.type.fields)):
        case Found(exact):
            field = owner.type.field(exact)
            assert field is not None
            return exact, Typed(field.type, field.nullable or owner.nullable)
        case Ambiguous(candidates):
            raise UnknownField(part.name, "the record", candidates)
    raise UnknownField(part.name, "the record", near_names(part.name, (f.name for f in owner.type.fields)))


def expanded(type_: Type, resolve: Callable[[Named], Type]) -> Type:
    """The type with every named type replaced by what it stands for."""
    match type_:
        case Named():
            return expanded(resolve(type_), resolve)
        case Array(element, nullable):
            return Array(expanded(element, resolve), nullable)
        case Map(value, nullable):
            return Map(expanded(value, resolve), nullable)
        case Record(fields, name, doc):
            inner = tuple(Field(f.name, expanded(f.type, resolve), f.nullable, f.doc) for f in fields)
            return Record(inner, name, doc)
        case _:
            return type_


def _part(identifier: exp.Expr) -> NamePart:
    return NamePart(identifier.name, bool(identifier.args.get("quoted")))


def _variables(type_: Type | None) -> list[tuple[Type | None, bool]]:
    match type_:
        case Array(element, nullable):
            return [(element, nullable), (Integer(), False)]
        case Map(value, nullable):
            return [(Text(), False), (value, nullable)]
        case _:
            return [(None, True)] * 3


def _as_json(node: exp.Lambda) -> exp.Expr:
    """`a -> 'b'` as an argument: sqlglot takes every arrow in a call for a lambda."""
    left = node.expressions[0]
    column = exp.column(left.copy()) if isinstance(left, exp.Identifier) else left.copy()
    made = exp.JSONExtract(this=column, expression=node.this.copy())
    node.replace(made)
    return made


def json_step(key: exp.Expr) -> str:
    """One step of a JSON path: a member by name, an element by number."""
    if isinstance(key, exp.JSONPath):
        return "".join(_json_part(part) for part in key.expressions[1:])
    if isinstance(key, exp.Literal) and not key.is_string:
        return f"[{key.name}]"
    if isinstance(key, exp.Literal):
        return f"['{key.name}']"
    raise UnsupportedQuery("a JSON key that is not a literal", "Write the key as a string or a number.")


def _json_part(part: exp.Expr) -> str:
    return f"[{part.this}]" if isinstance(part, exp.JSONPathSubscript) else f"['{part.this}']"


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _cast(operand: exp.Expr, type_: Type) -> exp.Cast:
    return exp.Cast(this=operand, to=exp.DataType(this=exp.DType.USERDEFINED, kind=spark_ddl(type_)))


def _get_json(operand: exp.Expr, path: str) -> exp.Expr:
    return _call("get_json_object", operand, exp.Literal.string(path))


def _get_variant(operand: exp.Expr, path: str) -> exp.Expr:
    """get_json_object gives a string without its quotes, which is no JSON; a variant keeps them."""
    parsed = _call("parse_json", operand)
    return _call(
        "to_json", _call("try_variant_get", parsed, exp.Literal.string(path), exp.Literal.string("variant"))
    )


def _shifted(index: exp.Expr) -> exp.Expr:
    if isinstance(index, exp.Literal) and not index.is_string:
        return exp.Literal.number(int(index.name) + 1)
    if isinstance(index, exp.Neg) and isinstance(index.this, exp.Literal):
        value = 1 - int(index.this.name)
        return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))
    return index


def _struct_type(node: exp.Anonymous, arguments: list[Typed]) -> Type | None:
    fields = []
    for number, (argument, typed) in enumerate(zip(node.expressions, arguments, strict=True), start=1):
        if typed.type is None:
            return None
        plain = isinstance(argument, exp.Alias | exp.Column | exp.Dot)
        fields.append(Field(argument.alias_or_name if plain else f"col{number}", typed.type, typed.nullable))
    return Record(tuple(fields))


def _named_struct_type(node: exp.Anonymous, arguments: list[Typed]) -> Type | None:
    names = node.expressions[::2]
    values = arguments[1::2]
    if not all(isinstance(n, exp.Literal) for n in names) or any(v.type is None for v in values):
        return None
    return Record(
        tuple(Field(n.name, v.type, v.nullable) for n, v in zip(names, values, strict=True) if v.type)
    )
