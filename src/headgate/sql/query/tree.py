"""The relational tree of a query: what is read, filtered, joined, grouped and computed, node by node.

Every column of every node has a `Ref` that is unique within the tree, and expressions name columns by these, so that a
node can be understood, moved and printed without the names of the query around it. A subquery of an expression may use
columns of the nodes around the expression: it is correlated then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.errors import Span
from headgate.schema.types import Type

JoinKind: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti", "cross"]
SetOperator: TypeAlias = Literal["union", "intersect", "except"]


@dataclass(frozen=True, slots=True)
class Ref:
    """A column of one node. The name is for people; the number makes it unique within the tree."""

    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name}#{self.number}"


@dataclass(frozen=True, slots=True)
class Expr:
    """An expression over the columns of the node below.

    ``sql`` is Spark SQL that names columns by their refs. ``type`` is None if only Spark knows it. ``unstable`` are the
    functions in it whose result may differ when it is computed again, such as rand or now.
    """

    sql: str
    type: Type | None = None
    nullable: bool = True
    uses: frozenset[Ref] = frozenset()
    unstable: frozenset[str] = frozenset()
    subqueries: tuple[Node, ...] = ()
    span: Span | None = None
    column: Ref | None = None  # set if the expression is nothing but this column
    literal: str | int | None = None  # set if it is nothing but this text or whole number

    @property
    def deterministic(self) -> bool:
        return not self.unstable


@dataclass(frozen=True, slots=True)
class Output:
    """A column that a node computes. ``origin`` is the relation and the column that are passed on unchanged."""

    ref: Ref
    value: Expr
    origin: tuple[str, str] | None = None
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an aggregate or a window function, with the parts that decide how it can be kept up to date."""

    ref: Ref
    value: Expr
    function: str
    arguments: tuple[Expr, ...] = ()
    distinct: bool = False
    partition: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Scan:
    """Reads a relation. ``relation`` is the name by which the caller of the analysis knows it, ``names`` are its own
    names of the columns, in their order."""

    relation: str
    spark_name: str
    names: tuple[str, ...]
    columns: tuple[Output, ...]
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Values:
    """Constant rows. SELECT without FROM reads one row without columns."""

    columns: tuple[Ref, ...]
    rows: tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """``equal`` are columns that the condition makes equal to each other, ``constant`` those that it fixes."""

    input: Node
    condition: Expr
    equal: tuple[tuple[Ref, Ref], ...] = ()
    constant: tuple[Ref, ...] = ()


@dataclass(frozen=True, slots=True)
class Project:
    input: Node
    columns: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class Generate:
    """Adds the columns of a function that returns rows, once for every row that it returns for an input row.

    ``outer`` keeps an input row for which the function returns none. ``unique`` are columns of which each tells the
    rows of one input row apart: a position, or the key of a map.
    """

    input: Node
    call: Expr
    function: str
    columns: tuple[Ref, ...]
    outer: bool = False
    unique: tuple[Ref, ...] = ()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row for each group, or one row in all if there are no keys.

    ``sets`` are the grouping sets, each as positions in ``keys``; empty if there is only the set of all keys.
    """

    input: Node
    keys: tuple[Output, ...]
    calls: tuple[Call, ...]
    sets: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Join:
    """``equal`` are pairs of a left and a right column that the condition compares. A lateral right side uses columns of the left."""

    left: Node
    right: Node
    kind: JoinKind
    on: Expr | None = None
    equal: tuple[tuple[Ref, Ref], ...] = ()
    lateral: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """Adds the results of window functions to every row."""

    input: Node
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Distinct:
    input: Node


@dataclass(frozen=True, slots=True)
class SetOperation:
    """Columns correspond by position; ``columns`` are those of the result."""

    operator: SetOperator
    all: bool
    left: Node
    right: Node
    columns: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Sort:
    """Orders the rows. Each expression ends in its direction, as in ORDER BY."""

    input: Node
    by: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    input: Node
    count: Expr | None
    offset: Expr | None


@dataclass(frozen=True, slots=True)
class Subquery:
    """A query in FROM, or a use of a table defined by WITH: the same rows, with columns of its own."""

    input: Node
    alias: str
    columns: tuple[Ref, ...]


Node: TypeAlias = (
    Scan
    | Values
    | Filter
    | Project
    | Generate
    | Aggregate
    | Join
    | Window
    | Distinct
    | SetOperation
    | Sort
    | Limit
    | Subquery
)


NO_ROWS = Values((), ())
ONE_ROW = Values((), ((),))  # what SELECT without FROM reads


def columns_of(node: Node) -> tuple[Ref, ...]:
    """The columns of a node's result, in order."""
    match node:
        case Scan() | Project():
            return tuple(output.ref for output in node.columns)
        case Values() | SetOperation() | Subquery():
            return node.columns
        case Filter() | Distinct() | Sort() | Limit():
            return columns_of(node.input)
        case Generate():
            return (*columns_of(node.input), *node.columns)
        case Aggregate():
            return (*(key.ref for key in node.keys), *(call.ref for call in node.calls))
        case Window():
            return (*columns_of(node.input), *(call.ref for call in node.calls))
        case Join():
            left = columns_of(node.left)
            return left if node.kind in ("semi", "anti") else (*left, *columns_of(node.right))


def inputs_of(node: Node) -> tuple[Node, ...]:
    match node:
        case Scan() | Values():
            return ()
        case Join() | SetOperation():
            return (node.left, node.right)
        case _:
            return (node.input,)


def expressions_of(node: Node) -> tuple[Expr, ...]:
    """The expressions that the node itself computes."""
    match node:
        case Scan() | Project():
            return tuple(output.value for output in node.columns)
        case Values():
            return tuple(value for row in node.rows for value in row)
        case Filter():
            return (node.condition,)
        case Generate():
            return (node.call,)
        case Aggregate():
            return (*(key.value for key in node.keys), *(call.value for call in node.calls))
        case Window():
            return tuple(call.value for call in node.calls)
        case Join():
            return () if node.on is None else (node.on,)
        case Sort():
            return node.by
        case Limit():
            return tuple(each for each in (node.count, node.offset) if each is not None)
        case Distinct() | SetOperation() | Subquery():
            return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, also those of subqueries in expressions."""
    yield node
    for expression in expressions_of(node):
        for subquery in expression.subqueries:
            yield from walk(subquery)
    for below in inputs_of(node):
        yield from walk(below)


def columns_used(node: Node, relation: str) -> frozenset[str]:
    """The columns of a relation that the nodes above its scans use, by the relation's own names."""
    used: set[Ref] = set()
    names: dict[Ref, str] = {}
    for each in walk(node):
        if isinstance(each, Scan):
            if each.relation == relation:
                names |= {output.ref: name for output, name in zip(each.columns, each.names, strict=True)}
        else:
            for expression in expressions_of(each):
                used |= expression.uses
    return frozenset(name for ref, name in names.items() if ref in used)


def outer_columns(node: Node) -> frozenset[Ref]:
    """The columns that the tree uses and does not have: those of the query around it."""
    made: set[Ref] = set()
    used: set[Ref] = set()
    for each in walk(node):
        made.update(columns_of(each))
        for expression in () if isinstance(each, Scan) else expressions_of(each):
            used |= expression.uses
    return frozenset(used - made)
