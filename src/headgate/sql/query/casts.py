"""Literals and casts: their types, and how they are written for Spark.

A literal has the type that Spark gives it. No cast is silent: a text that is not JSON, not a UUID or not a symbol of an
enum is an error, in the statement if it is a literal and otherwise in the row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from sqlglot import exp

from headgate.schema import types as t
from headgate.schema.render import print_type, spark_ddl
from headgate.schema.values import CAST_ERROR
from headgate.sql.errors import ImpossibleCast, MalformedQuery, UnsupportedQuery, WrongType
from headgate.sql.query.scope import Notes, Scope, Visitor, call, note, text
from headgate.sql.query.text import TYPE_MARK
from headgate.sql.query.types import Typed, is_numeric, is_text
from headgate.text.lexer import shortened

_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?\Z", re.ASCII)
# sqlglot reads DATE '…' as a cast with one of these types.
TYPED_LITERALS: dict[str, t.Type] = {"DATE": t.Date(), "TIMESTAMP": t.Timestamp(), "TIMESTAMPTZ": t.TimestampTz()}


def literal(_visitor: Visitor, node: exp.Literal, _scope: Scope) -> Typed:
    """The type of a number or a string, by Spark's rules."""
    if node.is_string:
        return Typed(t.Text(), False)
    written = node.name.lower()
    if not _NUMBER.match(written):
        raise MalformedQuery(f'"{shortened(node.name)}" is no number')
    if written.isdigit():
        return whole(int(written)) if len(written.lstrip("0")) <= t.MAX_PRECISION else _too_long()
    # A number with an exponent is a double, as in Spark.
    if "e" in written:
        return Typed(t.Double(), False) if float(written) != float("inf") else _too_long()
    before, _, after = written.partition(".")
    digits = max(1, len(before.lstrip("0")) + len(after))
    return Typed(t.Decimal(digits, len(after)), False) if digits <= t.MAX_PRECISION else _too_long()


def whole(value: int) -> Typed:
    """The type of a whole number: the smallest that holds it, as in Spark."""
    if -(2**31) <= value < 2**31:
        return Typed(t.Integer(), False, literal=value)
    if -(2**63) <= value < 2**63:
        return Typed(t.Bigint(), False, literal=value)
    return Typed(t.Decimal(len(str(abs(value))), 0), False, literal=value)


def _too_long() -> Typed:
    raise MalformedQuery(f"a number has at most {t.MAX_PRECISION} digits and fits into a double")


def negative(visitor: Visitor, node: exp.Neg, scope: Scope) -> Typed:
    """A number with a minus sign. The literal -2147483648 is an integer, although 2147483648 is none."""
    typed = visitor.visit(node.this, scope)
    if typed.type is not None and not is_numeric(typed.type):
        raise WrongType("-", "a number", print_type(typed.type))
    return Typed(typed.type, typed.nullable) if typed.literal is None else whole(-typed.literal)


def typed_literal(node: exp.Expr, type_: t.Type) -> Typed:
    """DATE '2026-11-15' and the like in the place of a node. As literals, Spark checks them when it analyses the query."""
    written = node.this.name if isinstance(node, exp.Cast) else node.name
    printed = exp.Var(this=f"{spark_ddl(type_)} {text(written).sql(dialect='spark')}")
    typed = Typed(type_, False)
    note(printed, Notes(typed=typed, literal=written))
    node.replace(printed)
    return typed


_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def cast(visitor: Visitor, node: exp.Cast, scope: Scope) -> Typed:
    """CAST, TRY_CAST and `::`. Spark does the cast, after a check where Spark would accept anything."""
    to = node.args["to"]
    kind = getattr(to.this, "value", None)
    if kind in TYPED_LITERALS and isinstance(node.this, exp.Literal):
        return typed_literal(node, TYPED_LITERALS[kind])  # sqlglot reads them as casts
    source = visitor.visit(node.this, scope)
    type_ = _written_type(visitor, to)
    lenient = isinstance(node, exp.TryCast)
    if source.type is not None and not castable(source.type, type_):
        raise ImpossibleCast(print_type(source.type), print_type(type_))
    node.set("to", _printed_type(type_))
    checked = _check_text(node, source, type_, lenient)
    # Spark holds that a text may parse to NULL. In ANSI mode it never does: it is an error, which a literal shows at once.
    parsed = is_text(source.type) and not is_text(type_) and not isinstance(node.this, exp.Literal)
    return Typed(type_, source.nullable or parsed or checked or lenient)


def cast_to(operand: exp.Expr, type_: t.Type) -> exp.Cast:
    """A cast for Spark to one of our types."""
    return exp.Cast(this=operand, to=_printed_type(type_))


def _printed_type(type_: t.Type) -> exp.DataType:
    """A type for Spark. Of sqlglot's types only this one is printed as it is; the others are compared with types that
    sqlglot parses each time."""
    return exp.PseudoType(this=spark_ddl(type_))


def _written_type(visitor: Visitor, to: exp.Expr) -> t.Type:
    """The type that a placeholder of the normalised text stands for."""
    name = str(getattr(to.args.get("kind"), "name", ""))
    if not name.startswith(TYPE_MARK):
        raise UnsupportedQuery(f"a literal of type {to.sql()}", "Write a string and cast it with `::`.")
    return expanded(visitor.normalised.types[int(name.removeprefix(TYPE_MARK))], visitor.resolve)


def expanded(type_: t.Type, resolve: Callable[[t.Named], t.Type]) -> t.Type:
    """Replace every named type by its definition."""
    return t.map_named(type_, lambda named: expanded(resolve(named), resolve))


def castable(source: t.Type, target: t.Type) -> bool:
    """Whether Spark has a cast between these types in ANSI mode, or we write one."""
    match source, target:
        case _ if source == target:
            return True
        case t.Array(), t.Array():
            return castable(source.element, target.element)
        case t.Map(), t.Map():
            return castable(source.value, target.value)
        case t.Record(), t.Record():
            pairs = zip(source.fields, target.fields, strict=False)
            return len(source.fields) == len(target.fields) and all(castable(a.type, b.type) for a, b in pairs)
        case ((t.Array() | t.Map() | t.Record()), _):
            return isinstance(target, t.Text | t.Json)
        case _, (t.Array() | t.Map() | t.Record()):
            return False
        case ((t.Text() | t.Enum() | t.Uuid() | t.Json()), _):
            return True
        case _, t.Json():
            return is_numeric(source) or isinstance(source, t.Boolean)
        case _, (t.Uuid() | t.Enum()):
            return False
        case _:
            return isinstance(target, (t.Text, *_TARGETS.get(type(source), ())))


_NUMBERS = (t.Integer, t.Bigint, t.Real, t.Double, t.Decimal)
# What Spark casts to what in ANSI mode, beside text, which everything can be cast to.
_TARGETS: dict[type, tuple[type, ...]] = {
    **dict.fromkeys(_NUMBERS, (*_NUMBERS, t.Boolean, t.TimestampTz)),
    t.Boolean: (t.Boolean, *_NUMBERS),
    t.Bytes: (t.Bytes,),
    t.Date: (t.Date, t.Timestamp, t.TimestampTz),
    t.Time: (t.Time,),
    t.Timestamp: (t.Date, t.Time, t.Timestamp, t.TimestampTz),
    t.TimestampTz: (t.Date, t.Time, t.Timestamp, t.TimestampTz, *_NUMBERS),
}


def _check_text(node: exp.Cast, source: Typed, type_: t.Type, lenient: bool) -> bool:
    """Cast to a type that is a string in Spark: the value becomes JSON, or is checked, now if it is a literal and
    otherwise in every row."""
    if isinstance(type_, t.Json) and isinstance(source.type, t.Array | t.Map | t.Record):
        node.replace(call("to_json", node.this.copy()))
        return True
    if not isinstance(source.type, t.Text) or not isinstance(type_, t.Json | t.Uuid | t.Enum):
        return False
    if isinstance(node.this, exp.Literal) and not lenient:
        if not _literal_fits(node.this.name, type_):
            raise WrongType("the cast", f"a text that is of type {print_type(type_)}", "another")
        return False
    bad: exp.Expr = exp.Null() if lenient else _refusal(type_)
    node.replace(call("if", _fits(node.this.copy(), type_), node.copy(), bad))
    return True


def _literal_fits(value: str, type_: t.Json | t.Uuid | t.Enum) -> bool:
    """Whether a literal is a value of the type. Python checks it, because Spark is not there yet."""
    match type_:
        case t.Json():
            try:
                json.loads(value)
            except (ValueError, RecursionError):
                return False
            return True
        case t.Uuid():
            return re.fullmatch(_UUID, value) is not None
        case t.Enum(symbols):
            return value in symbols


def _fits(operand: exp.Expr, type_: t.Json | t.Uuid | t.Enum) -> exp.Expr:
    """Cast NULL, which fits every type."""
    fits: exp.Expr
    match type_:
        case t.Json():
            fits = exp.Not(this=exp.Is(this=call("try_parse_json", operand), expression=exp.Null()))
        case t.Uuid():
            fits = exp.RegexpLike(this=operand, expression=text(_UUID))
        case t.Enum(symbols):
            fits = exp.In(this=operand, expressions=[text(symbol) for symbol in symbols])
    return exp.Or(this=exp.Is(this=operand.copy(), expression=exp.Null()), expression=exp.Paren(this=fits))


def _refusal(type_: t.Type) -> exp.Expr:
    """The error for a literal that cannot be cast. It does not quote the value, which may be a secret."""
    kind = type(type_).__name__.lower()
    return call("raise_error", text(f"{CAST_ERROR}{kind}"))
