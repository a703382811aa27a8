"""What the handlers of expressions work with: the walk they are part of, and what it collects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sqlglot import exp

from headgate.errors import Span
from headgate.schema.types import Named, Type
from headgate.sql.query.normalise import Normalised
from headgate.sql.query.relation import Column, Mention
from headgate.sql.query.scope import Scope
from headgate.sql.query.typing import Typed


class Visitor(Protocol):
    """The walk over one query's expressions. ``untyped`` collects functions whose type only Spark knows,
    ``mentions`` the places that name relations, by where they begin."""

    normalised: Normalised
    resolve: Callable[[Named], Type]
    subquery: Callable[[exp.Expr, Scope], tuple[Column, ...]]
    untyped: list[str]
    stateful: bool
    mentions: dict[int, Mention]

    def visit(self, node: exp.Expr, scope: Scope) -> Typed:
        """The type of an expression, which is rewritten in place."""

    def span(self, node: exp.Expr) -> Span | None: ...

    def children(self, node: exp.Expr, scope: Scope) -> list[Typed]: ...


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


def text(value: str) -> exp.Literal:
    return exp.Literal.string(value)
