"""`->` and `->>`: a part of a JSON value, as JSON or as text. A chain of them becomes one look-up."""

from __future__ import annotations

from sqlglot import exp

from headgate.schema.render import print_type
from headgate.schema.types import Json, Text
from headgate.sql.query.errors import NotJson, UnsupportedQuery
from headgate.sql.query.json_text import Step, part_as_json, part_as_text
from headgate.sql.query.scope import Scope
from headgate.sql.query.typing import Typed
from headgate.sql.query.visitor import Visitor


def json_access(visitor: Visitor, node: exp.Expr, scope: Scope) -> Typed:
    as_text = isinstance(node, exp.JSONExtractScalar)
    steps, inner = _steps(node.expression), node
    while isinstance(inner.this, exp.JSONExtract | exp.JSONExtractScalar):
        inner = inner.this
        if isinstance(inner, exp.JSONExtractScalar):
            raise NotJson("text")
        steps = _steps(inner.expression) + steps
    owner = visitor.visit(inner.this, scope)
    if owner.type is not None and not isinstance(owner.type, Json):
        raise NotJson(print_type(owner.type))
    operand = inner.this.copy()  # read again: a visit may replace its node
    node.replace(part_as_text(operand, steps) if as_text else part_as_json(operand, steps))
    return Typed(Text() if as_text else Json())


def _steps(key: exp.Expr) -> list[Step]:
    """The steps of a JSON path: a member by name, an element by number."""
    if isinstance(key, exp.JSONPath):
        return [_part(part) for part in key.expressions[1:]]
    if isinstance(key, exp.Literal):
        return [key.name if key.is_string else int(key.name)]
    raise UnsupportedQuery(
        "a JSON key that is not a literal", "Write the key as a string or a number from 0."
    )


def _part(part: exp.Expr) -> Step:
    found = part.this
    if isinstance(part, exp.JSONPathKey | exp.JSONPathSubscript) and isinstance(found, str | int):
        return found
    raise UnsupportedQuery("this JSON path", "Write one `->` for each member.")


def from_lambda(node: exp.Lambda) -> exp.Expr:
    """`f(a -> 'b')`: sqlglot takes every arrow in a call for a lambda's, and what follows the key for its body."""
    left = node.expressions[0]
    column = exp.column(left.copy()) if isinstance(left, exp.Identifier) else left.copy()
    body = exp.Paren(this=node.this.copy())
    key: exp.Expr = body.this
    while not isinstance(key, exp.Literal | exp.JSONPath) and isinstance(key.this, exp.Expr):
        key = key.this
    key.replace(exp.JSONExtract(this=column, expression=key.copy()))
    made: exp.Expr = body.this
    node.replace(made)
    return made
