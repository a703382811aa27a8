"""Literals of a query and their types, which are Spark's."""

from __future__ import annotations

import re

from sqlglot import exp

from headgate.schema.render import print_type
from headgate.schema.types import (
    MAX_PRECISION,
    Bigint,
    Bytes,
    Date,
    Decimal,
    Double,
    Integer,
    Text,
    Timestamp,
    TimestampTz,
    Type,
)
from headgate.sql.query.errors import MalformedQuery, WrongType
from headgate.sql.query.scope import Scope
from headgate.sql.query.spark_ddl import spark_ddl
from headgate.sql.query.typing import NULL, Typed, is_numeric
from headgate.sql.query.visitor import Visitor, text
from headgate.text.lexer import shortened

_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?\Z", re.ASCII)
TYPED_LITERALS: dict[str, Type] = {"DATE": Date(), "TIMESTAMP": Timestamp(), "TIMESTAMPTZ": TimestampTz()}


def literal(_visitor: Visitor, node: exp.Literal, _scope: Scope) -> Typed:
    if node.is_string:
        return Typed(Text(), False)
    written = node.name.lower()
    if not _NUMBER.match(written):
        raise MalformedQuery(f'"{shortened(node.name)}" is no number')
    if written.isdigit():
        return whole(int(written)) if len(written.lstrip("0")) <= MAX_PRECISION else _too_long()
    if "e" in written:
        return Typed(Double(), False) if float(written) != float("inf") else _too_long()
    before, _, after = written.partition(".")
    digits = max(1, len(before.lstrip("0")) + len(after))
    return Typed(Decimal(digits, len(after)), False) if digits <= MAX_PRECISION else _too_long()


def whole(value: int) -> Typed:
    """A whole number: of the smallest type that holds it, as Spark has it."""
    if -(2**31) <= value < 2**31:
        return Typed(Integer(), False, literal=value)
    if -(2**63) <= value < 2**63:
        return Typed(Bigint(), False, literal=value)
    return Typed(Decimal(len(str(abs(value))), 0), False, literal=value)


def _too_long() -> Typed:
    raise MalformedQuery(f"a number has at most {MAX_PRECISION} digits and fits into a double")


def negative(visitor: Visitor, node: exp.Neg, scope: Scope) -> Typed:
    typed = visitor.visit(node.this, scope)
    if typed.type is not None and not is_numeric(typed.type):
        raise WrongType("-", "a number", print_type(typed.type))
    return Typed(typed.type, typed.nullable) if typed.literal is None else whole(-typed.literal)


def null(_visitor: Visitor, _node: exp.Null, _scope: Scope) -> Typed:
    return NULL


def some_text(visitor: Visitor, node: exp.Expr, scope: Scope) -> Typed:
    """'a' 'b', which is one string, and N'x'."""
    return Typed(Text(), any(typed.nullable for typed in visitor.children(node, scope)))


def hexadecimal(_visitor: Visitor, _node: exp.HexString, _scope: Scope) -> Typed:
    return Typed(Bytes(), False)


def interval(_visitor: Visitor, _node: exp.Interval, _scope: Scope) -> Typed:
    return Typed(None, False, interval=True)


def typed_literal(node: exp.Cast, kind: str) -> Typed:
    """DATE '2026-11-15' and its like, which sqlglot reads as casts. As literals Spark checks them at once."""
    type_ = TYPED_LITERALS[kind]
    written = text(node.this.name).sql(dialect="spark")
    node.replace(exp.Var(this=f"{spark_ddl(type_)} {written}"))
    return Typed(type_, False)
