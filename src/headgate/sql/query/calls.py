"""Calls of functions: arguments, lambdas, windows, and result types that a table of signatures cannot express."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headgate.errors import similar_names
from headgate.schema import types as t
from headgate.schema.render import print_type
from headgate.sql.errors import MisplacedFunction, UnknownFunction, UnsupportedQuery, WrongType
from headgate.sql.query import functions
from headgate.sql.query.clock import type_time_arguments
from headgate.sql.query.operators import from_lambda, row, shared_type
from headgate.sql.query.scope import Column, Notes, Scope, Visitor, all_columns, call, note, notes
from headgate.sql.query.text import FUNCTION_MARK
from headgate.sql.query.types import UNKNOWN, Typed
from headgate.text.cursor import Identifier

_AROUND_A_CALL = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


_OF_SEVERAL_ROWS = functions.AGGREGATES | functions.TIME_WINDOWS


def function_name(node: exp.Anonymous) -> str:
    """The name of a called function, without the mark that the normalised text gives it."""
    return node.name.removeprefix(FUNCTION_MARK).lower()


def time_windows(node: exp.Expr) -> frozenset[str]:
    """The calls of `window` and `session_window` in an expression, outside of its subqueries."""
    if isinstance(node, exp.Query):
        return frozenset()
    own = function_name(node) if isinstance(node, exp.Anonymous) else ""
    inner = (time_windows(child) for child in node.iter_expressions())
    return frozenset((own,)).intersection(functions.TIME_WINDOWS).union(*inner)


def function(visitor: Visitor, node: exp.Anonymous, scope: Scope) -> Typed:
    """A call of one of Spark's functions. A function that Spark lacks is an error here, with similar names."""
    name = function_name(node)
    if name == "row":
        return row(visitor, node, scope)
    if name not in functions.spark_functions():
        raise UnknownFunction(node.name.removeprefix(FUNCTION_MARK), similar_names(name, functions.spark_functions()))
    if name in functions.GENERATORS:
        raise MisplacedFunction(name, "gives rows", "Let it stand alone in SELECT, or write LATERAL VIEW.")
    if name in functions.WINDOWS and not _has_window(node):
        raise MisplacedFunction(name, "works on a window", "Write OVER (…) after it.")
    node.set("this", name)
    if name in ("struct", "map"):
        _with_plain_arguments(node, name)
    arguments = _arguments(visitor, node, name, scope)
    if len(arguments) == len(node.expressions):
        type_time_arguments(name, list(node.expressions), arguments)
    visitor.stateful = visitor.stateful or name in _OF_SEVERAL_ROWS
    typed = _known_result(name, arguments, node) or UNKNOWN
    note(node, Notes(typed=typed))
    return typed


def _with_plain_arguments(node: exp.Anonymous, name: str) -> None:
    """STRUCT(field := value) and MAP(key := value), as ksqlDB and INSERT have them: STRUCT(value AS field), MAP(key, value)."""
    made: list[exp.Expr] = []
    for argument in node.expressions:
        match argument:
            case exp.PropertyEQ(this=field, expression=value) if name == "struct":
                made.append(exp.Alias(this=value, alias=field))
            case exp.PropertyEQ(this=key, expression=value):
                made += [exp.Column(this=key) if isinstance(key, exp.Identifier) else key, value]
            case _:
                made.append(argument)
    node.set("expressions", made)


def _has_window(node: exp.Expr) -> bool:
    """Whether OVER follows the call, possibly after FILTER or IGNORE NULLS."""
    parent = node.parent
    while isinstance(parent, _AROUND_A_CALL):
        parent = parent.parent
    return isinstance(parent, exp.Window)


def _known_result(name: str, arguments: list[Typed], node: exp.Anonymous) -> Typed | None:
    """The result type of a call, by rules that the table of signatures cannot express, and otherwise by the table."""
    match name, arguments:
        case "if", [_, *branches] if len(branches) == 2:
            return shared_type("IF", branches)
        case "nvl2", [_, *branches] if len(branches) == 2:
            return shared_type("NVL2", branches)
        case "struct", _:
            return Typed(_struct_type(node, arguments), False)
        case "named_struct", _ if len(arguments) % 2 == 0:
            return Typed(_named_struct_type(node, arguments), False)
        case "map", [_, *_] if len(arguments) % 2 == 0 and isinstance(arguments[0].type, t.Text):
            shared = shared_type("MAP", arguments[1::2])
            return Typed(None if shared.type is None else t.Map(shared.type, shared.nullable), False)
        case (("percentile_approx" | "approx_percentile"), [value, at, *_]) if not isinstance(at.type, t.Array):
            return Typed(value.type)
        case _:
            return functions.result_of_lambda(name, arguments) or functions.result_type(name, arguments)


def _arguments(visitor: Visitor, node: exp.Anonymous, name: str, scope: Scope) -> list[Typed]:
    """Visit the arguments. A lambda needs the types of the arguments before it."""
    _expand_stars(node, name, scope)
    arguments: list[Typed] = []
    for argument in list(node.expressions):
        match argument:
            case exp.Star():
                arguments.append(Typed(t.Bigint(), False))
            case exp.Lambda() if name in functions.HIGHER_ORDER:
                arguments.append(_lambda(visitor, argument, name, arguments, scope))
            case exp.Lambda():
                arguments.append(visitor.visit(from_lambda(argument), scope))
            case exp.Distinct():
                _expand_stars(argument, "distinct", scope)
                arguments.extend(visitor.children(argument, scope))
            case exp.Kwarg():
                arguments.append(visitor.visit(argument.expression, scope))
            case _:
                arguments.append(visitor.visit(argument, scope))
    if name in functions.AGGREGATES and len(arguments) == len(node.expressions):
        for argument, typed in zip(node.expressions, arguments, strict=True):
            note(argument, replace(notes(argument), typed=typed))  # how an aggregate is kept depends on them
    return arguments


def _expand_stars(node: exp.Expr, name: str, scope: Scope) -> None:
    """Replace every `*` except that of count(*) by columns, because Spark's `*` would include hidden ones."""
    if name == "count" and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Star):
        return
    expanded: list[exp.Expr] = []
    for argument in node.expressions:
        sources = scope.sources
        if isinstance(argument, exp.Column) and isinstance(argument.this, exp.Star):
            table = argument.args["table"]
            owner = scope.source(Identifier(table.name, bool(table.args.get("quoted"))))
            if owner is None:
                raise scope.unknown_alias(table.name)
            sources = [owner]
        elif not isinstance(argument, exp.Star):
            expanded.append(argument)
            continue
        expanded += [reference for reference, _ in all_columns(sources)]
    node.set("expressions", expanded)


def _lambda(visitor: Visitor, node: exp.Lambda, name: str, before: list[Typed], scope: Scope) -> Typed:
    """The type of a lambda's body, in a scope that knows its parameters."""
    inner = Scope(outer=scope, lambdas=dict(scope.lambdas))
    kinds = functions.lambda_parameter_types(name, before)
    for number, variable in enumerate(node.expressions):
        typed = kinds[number] if number < len(kinds) else UNKNOWN
        inner.lambdas[variable.name] = Column(variable.name, typed.type, typed.nullable)
    return visitor.visit(node.this, inner)


def window(visitor: Visitor, node: exp.Window, scope: Scope) -> Typed:
    """A call with OVER. Its type is that of the call."""
    typed = visitor.visit(node.this, scope)
    for part in ("partition_by", "order"):
        value = node.args.get(part)
        for child in value if isinstance(value, list) else [value] if value is not None else []:
            visitor.visit(child, scope)
    visitor.stateful = True
    return typed


def modifier(visitor: Visitor, node: exp.Expr, scope: Scope) -> Typed:
    """FILTER, WITHIN GROUP or IGNORE NULLS after a call, which do not change its type."""
    return visitor.children(node, scope)[0]


def order(visitor: Visitor, node: exp.Order, scope: Scope) -> Typed:
    """ORDER BY inside a window or after WITHIN GROUP."""
    if node.this is not None:
        raise UnsupportedQuery("ORDER BY inside a call", "Write WITHIN GROUP (ORDER BY …), or array_sort.")
    visitor.children(node, scope)
    return UNKNOWN


def extract(visitor: Visitor, node: exp.Extract, scope: Scope) -> Typed:
    """EXTRACT(part FROM moment). Seconds have a fraction, all other parts are whole."""
    typed = visitor.visit(node.expression, scope)
    if isinstance(typed.type, t.Array | t.Map | t.Record):
        raise WrongType("EXTRACT", "a date or a timestamp", print_type(typed.type))
    part = node.this.name.lower()
    return Typed(t.Decimal(8, 6) if part.startswith("second") else t.Integer(), typed.nullable)


def now(_visitor: Visitor, node: exp.Expr, _scope: Scope) -> Typed:
    """current_date and the like, which are written without parentheses."""
    match node:
        case exp.CurrentDate():
            return Typed(t.Date(), False)
        case exp.Localtimestamp():
            node.replace(call("localtimestamp"))
            return Typed(t.Timestamp(), False)
        case exp.CurrentUser():
            return Typed(t.Text(), False)
        case _:
            return Typed(t.TimestampTz(), False)


def _struct_type(node: exp.Anonymous, arguments: list[Typed]) -> t.Record | None:
    """The type of struct(…); None if only Spark knows the type of an argument."""
    fields = []
    for number, (argument, typed) in enumerate(zip(node.expressions, arguments, strict=True), start=1):
        if typed.type is None:
            return None
        plain = isinstance(argument, exp.Alias | exp.Column | exp.Dot)
        fields.append(t.Field(argument.alias_or_name if plain else f"col{number}", typed.type, typed.nullable))
    return t.Record(tuple(fields))


def _named_struct_type(node: exp.Anonymous, arguments: list[Typed]) -> t.Record | None:
    """The type of named_struct(name, value, …); None unless all names are literals."""
    names, values = node.expressions[::2], arguments[1::2]
    if not all(isinstance(n, exp.Literal) for n in names) or any(v.type is None for v in values):
        return None
    return t.Record(tuple(t.Field(n.name, v.type, v.nullable) for n, v in zip(names, values, strict=True) if v.type))


def columns_of(function: str, argument: Typed, outer: bool = False) -> tuple[Column, ...]:
    """The columns of a function that returns rows, or none if only Spark knows them.

    ``outer``: the function returns a row of NULLs instead of no row.
    """
    outer = outer or function.endswith("_outer")
    match function.removesuffix("_outer"), argument.type:
        case "explode", t.Array(element, nullable):
            return (Column("col", element, nullable or outer),)
        case "explode", t.Map(value, nullable):
            return (Column("key", t.Text(), outer), Column("value", value, nullable or outer))
        case "posexplode", t.Array(element, nullable):
            return (Column("pos", t.Integer(), outer), Column("col", element, nullable or outer))
        case "posexplode", t.Map(value, nullable):
            return (
                Column("pos", t.Integer(), outer),
                Column("key", t.Text(), outer),
                Column("value", value, nullable or outer),
            )
        case "inline", t.Array(t.Record(fields), nullable):
            return tuple(Column(f.name, f.type, f.nullable or nullable or outer, f.doc) for f in fields)
        case "range", _:
            return (Column("id", t.Bigint(), outer),)
        case _:
            return ()
