"""Casts: what can be cast to what, and how Spark is told to. No cast is silent: a text that is no JSON, no UUID or no
symbol of the enum fails as a number would."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from sqlglot import exp

from headgate.schema.casts import CAST_ERROR
from headgate.schema.render import print_type
from headgate.schema.types import (
    Array,
    Bigint,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Double,
    Enum,
    Integer,
    Json,
    Map,
    Named,
    Real,
    Record,
    Text,
    Time,
    Timestamp,
    TimestampTz,
    Type,
    Uuid,
    map_named,
)
from headgate.sql.query.errors import ImpossibleCast, UnsupportedQuery, WrongType
from headgate.sql.query.literals import TYPED_LITERALS, typed_literal
from headgate.sql.query.normalise import TYPE_MARK
from headgate.sql.query.scope import Scope
from headgate.sql.query.spark_ddl import spark_ddl
from headgate.sql.query.typing import Typed, is_numeric, is_text
from headgate.sql.query.visitor import Visitor, call, text

_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def cast(visitor: Visitor, node: exp.Cast, scope: Scope) -> Typed:
    to = node.args["to"]
    kind = getattr(to.this, "value", None)
    if kind in TYPED_LITERALS and isinstance(node.this, exp.Literal):
        return typed_literal(node, kind)
    source = visitor.visit(node.this, scope)
    type_ = _written_type(visitor, to)
    lenient = isinstance(node, exp.TryCast)
    if source.type is not None and not castable(source.type, type_):
        raise ImpossibleCast(print_type(source.type), print_type(type_))
    node.set("to", exp.DataType(this=exp.DType.USERDEFINED, kind=spark_ddl(type_)))
    checked = _check_text(node, source, type_, lenient)
    parsed = is_text(source.type) and not is_text(type_)  # Spark holds that a text may parse to NULL
    return Typed(type_, source.nullable or parsed or checked or lenient)


def cast_to(operand: exp.Expr, type_: Type) -> exp.Cast:
    return exp.Cast(this=operand, to=exp.DataType(this=exp.DType.USERDEFINED, kind=spark_ddl(type_)))


def _written_type(visitor: Visitor, to: exp.Expr) -> Type:
    name = str(getattr(to.args.get("kind"), "name", ""))
    if not name.startswith(TYPE_MARK):
        raise UnsupportedQuery(f"a literal of type {to.sql()}", "Write a string and cast it with `::`.")
    return expanded(visitor.normalised.types[int(name.removeprefix(TYPE_MARK))], visitor.resolve)


def expanded(type_: Type, resolve: Callable[[Named], Type]) -> Type:
    """The type with every named type replaced by what it stands for."""
    return map_named(type_, lambda named: expanded(resolve(named), resolve))


def castable(source: Type, target: Type) -> bool:
    """Whether Spark, in ANSI mode, has a cast for values of these types, or we have one in its place."""
    match source, target:
        case _ if source == target:
            return True
        case Array(), Array():
            return castable(source.element, target.element)
        case Map(), Map():
            return castable(source.value, target.value)
        case Record(), Record():
            pairs = zip(source.fields, target.fields, strict=False)
            return len(source.fields) == len(target.fields) and all(
                castable(a.type, b.type) for a, b in pairs
            )
        case ((Array() | Map() | Record()), _):
            return isinstance(target, Text | Json)
        case _, (Array() | Map() | Record()):
            return False
        case ((Text() | Enum() | Uuid() | Json()), _):
            return True
        case _, Json():
            return is_numeric(source) or isinstance(source, Boolean)
        case _, (Uuid() | Enum()):
            return False
        case _:
            return isinstance(target, (Text, *_TARGETS.get(type(source), ())))


_NUMBERS = (Integer, Bigint, Real, Double, Decimal)
_TARGETS: dict[type, tuple[type, ...]] = {
    **dict.fromkeys(_NUMBERS, (*_NUMBERS, Boolean, TimestampTz)),
    Boolean: (Boolean, *_NUMBERS),
    Bytes: (Bytes,),
    Date: (Date, Timestamp, TimestampTz),
    Time: (Time,),
    Timestamp: (Date, Time, Timestamp, TimestampTz),
    TimestampTz: (Date, Time, Timestamp, TimestampTz, *_NUMBERS),
}


def _check_text(node: exp.Cast, source: Typed, type_: Type, lenient: bool) -> bool:
    """Types that are strings in Spark: what is cast to them is made JSON, or checked, now or in every row."""
    if isinstance(type_, Json) and isinstance(source.type, Array | Map | Record):
        node.replace(call("to_json", node.this.copy()))
        return True
    if not isinstance(source.type, Text) or not isinstance(type_, Json | Uuid | Enum):
        return False
    if isinstance(node.this, exp.Literal) and not lenient:
        if not _literal_fits(node.this.name, type_):
            raise WrongType("the cast", f"a text that is of type {print_type(type_)}", "another")
        return False
    bad: exp.Expr = exp.Null() if lenient else _refusal(type_)
    node.replace(call("if", _fits(node.this.copy(), type_), node.copy(), bad))
    return True


def _literal_fits(value: str, type_: Json | Uuid | Enum) -> bool:
    match type_:
        case Json():
            try:
                json.loads(value)
            except (ValueError, RecursionError):
                return False
            return True
        case Uuid():
            return re.fullmatch(_UUID, value) is not None
        case Enum(symbols):
            return value in symbols


def _fits(operand: exp.Expr, type_: Json | Uuid | Enum) -> exp.Expr:
    """NULL fits every type."""
    fits: exp.Expr
    match type_:
        case Json():
            fits = exp.Not(this=exp.Is(this=call("try_parse_json", operand), expression=exp.Null()))
        case Uuid():
            fits = exp.RegexpLike(this=operand, expression=text(_UUID))
        case Enum(symbols):
            fits = exp.In(this=operand, expressions=[text(symbol) for symbol in symbols])
    return exp.Or(this=exp.Is(this=operand.copy(), expression=exp.Null()), expression=exp.Paren(this=fits))


def _refusal(type_: Type) -> exp.Expr:
    """The value stays unsaid: it may be anything."""
    kind = type(type_).__name__.lower()
    return call("raise_error", text(f"{CAST_ERROR}{kind}"))
