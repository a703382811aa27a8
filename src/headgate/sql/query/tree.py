"""The relational tree of a query: what is read, filtered, joined, grouped and computed, node by node.

Every column of every node has a `Ref` that is unique within the tree, and expressions name columns by these, so that a
node can be understood, moved and printed without the names of the query around it. A correlated subquery
uses columns of the nodes around its expression.

`Stability` finds which functions with changing results, such as rand and now, the columns and the rows of a tree depend
on. A column depends on everything that it is computed from, including subqueries and other columns. The rows depend on
everything that decides which rows exist: conditions, groups, and the columns of DISTINCT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.errors import Span
from headgate.schema.types import Type

JoinKind: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti", "cross"]
SetOperator: TypeAlias = Literal["union", "intersect", "except"]
Version: TypeAlias = Literal["now", "before", "changes", "keys"]


@dataclass(frozen=True, slots=True)
class RelationName:
    """A relation that a query reads: an object of the catalog by its id, or a table of a system schema.

    A table that WITH defines has neither.
    """

    name: str
    id: int | None = None
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column of an object of the catalog, by the ids of both."""

    object: int
    column: int


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
    functions in it whose result may differ when it is computed again, such as rand or now. ``windows`` are its functions of
    windows of the time, for which Spark gives a row several times, or not at all where the time is NULL.
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
    windows: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Output:
    """A column that a node computes. ``origin`` is the column of the catalog that is passed on unchanged."""

    ref: Ref
    value: Expr
    origin: ColumnRef | None = None
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an aggregate or a window function, with the parts that decide how it can be kept up to date.

    ``ordered`` is a window function whose result depends on the order of rows that are equal in its ORDER BY, with all columns
    below behind those of its ORDER BY. ``settled`` says that the order of rows makes no difference to how an aggregate is used.
    """

    ref: Ref
    value: Expr
    function: str
    arguments: tuple[Expr, ...] = ()
    distinct: bool = False
    partition: tuple[Expr, ...] = ()
    ordered: Expr | None = None
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Scan:
    """Reads a relation. ``names`` are the relation's own names of its columns, in their order.

    ``version`` is for trees that keep a view up to date: the rows after a batch, those before it, what changed in it,
    or the keys of what changed.
    """

    relation: RelationName
    spark_name: str
    names: tuple[str, ...]
    columns: tuple[Output, ...]
    span: Span | None = None
    version: Version = "now"


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
    """Computes the columns of the result from those of its input. All other columns are dropped."""

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
    """``equal`` are pairs of a left and a right column that the condition compares. A lateral right side uses columns
    of the left."""

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
    """Each row once."""

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
    """At most ``count`` rows, after the first ``offset``."""

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
    Scan | Values | Filter | Project | Generate | Aggregate | Join | Window | Distinct | SetOperation | Sort | Limit
    | Subquery
)  # fmt: skip


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
    """The nodes directly below a node, from left to right."""
    match node:
        case Scan() | Values():
            return ()
        case Join() | SetOperation():
            return (node.left, node.right)
        case _:
            return (node.input,)


def expressions_of(node: Node) -> tuple[Expr, ...]:
    """The expressions that the node itself computes."""
    return tuple(found for name in node.__match_args__ for found in _expressions(getattr(node, name)))


def _expressions(value: object) -> Iterator[Expr]:
    """The expressions in the value of a node's field."""
    match value:
        case Expr():
            yield value
        case Output() | Call():
            yield value.value
        case tuple():
            for each in value:
                yield from _expressions(each)


def walk(node: Node) -> Iterator[Node]:
    """The node and all nodes below it, including those of subqueries in expressions."""
    yield node
    for expression in expressions_of(node):
        for subquery in expression.subqueries:
            yield from walk(subquery)
    for below in inputs_of(node):
        yield from walk(below)


def columns_used(node: Node, schema: str, table: str) -> frozenset[str]:
    """The columns of a system relation that the nodes above its scans use, by the relation's own names."""
    used: set[Ref] = set()
    names: dict[Ref, str] = {}
    for each in walk(node):
        if isinstance(each, Scan):
            if (each.relation.schema, each.relation.name) == (schema, table):
                names |= {output.ref: name for output, name in zip(each.columns, each.names, strict=True)}
        else:
            for expression in expressions_of(each):
                used |= expression.uses
    return frozenset(name for ref, name in names.items() if ref in used)


def outer_columns(node: Node) -> frozenset[Ref]:
    """The columns that the tree uses but does not contain. They belong to the query around it."""
    made: set[Ref] = set()
    used: set[Ref] = set()
    for each in walk(node):
        made.update(columns_of(each))
        for expression in () if isinstance(each, Scan) else expressions_of(each):
            used |= expression.uses
    return frozenset(used - made)


# Stability


Functions: TypeAlias = frozenset[str]
NONE: Functions = frozenset()


@dataclass(frozen=True, slots=True)
class Unstable:
    """The functions that each column of a relation depends on, and those that its rows depend on."""

    columns: tuple[Functions, ...] = ()
    rows: Functions = NONE


class Stability:
    """What every column and the rows of a tree depend on. ``unstable_of`` knows the relations that it reads."""

    def __init__(self, tree: Node, unstable_of: Callable[[RelationName], Unstable]) -> None:
        self.unstable_of = unstable_of
        self.columns: dict[Ref, Functions] = {}
        rows = self._rows(tree)
        self.result = Unstable(tuple(self.columns.get(ref, NONE) for ref in columns_of(tree)), rows)

    def of(self, expression: Expr) -> Functions:
        """The functions that the value of an expression depends on."""
        found = expression.unstable.union(*(self.columns.get(ref, NONE) for ref in expression.uses))
        for subquery in expression.subqueries:
            found |= self._rows(subquery) | self._any(columns_of(subquery))
        return found

    def _rows(self, node: Node) -> Functions:
        """The functions that the rows of a node depend on. Those of its columns are stored on the way, from the bottom up."""
        rows = NONE.union(*map(self._rows, inputs_of(node)))
        match node:
            case Scan():
                known = self.unstable_of(node.relation)
                for output, functions in zip(node.columns, known.columns, strict=False):
                    self.columns[output.ref] = functions
                return known.rows
            case Values():
                for position, ref in enumerate(node.columns):
                    self.columns[ref] = self._all(row[position] for row in node.rows)
            case Project():
                for output in node.columns:
                    self.columns[output.ref] = self.of(output.value)
            case Filter():
                return rows | self.of(node.condition)
            case Generate():
                made = self.of(node.call)
                self.columns |= dict.fromkeys(node.columns, made)
                return rows | made
            case Aggregate():
                for key in node.keys:
                    self.columns[key.ref] = self.of(key.value)
                for call in node.calls:
                    self.columns[call.ref] = self.of(call.value) | rows
                return rows | self._any(key.ref for key in node.keys)
            case Window():
                for call in node.calls:
                    self.columns[call.ref] = self.of(call.value) | rows
            case Join():
                return rows if node.on is None else rows | self.of(node.on)
            case Distinct():
                return rows | self._any(columns_of(node))
            case SetOperation():
                self._rename(columns_of(node.left), node.columns)
                self._rename(columns_of(node.right), node.columns)
                plain = node.all and node.operator == "union"
                return rows if plain else rows | self._any(node.columns)
            case Limit():
                by = node.input.by if isinstance(node.input, Sort) else ()
                return rows | self._all(by)
            case Subquery():
                self._rename(columns_of(node.input), node.columns)
            case Sort():
                pass
        return rows

    def _all(self, expressions: Iterable[Expr]) -> Functions:
        """The functions that any of the expressions depends on."""
        return NONE.union(*map(self.of, expressions))

    def _any(self, refs: Iterable[Ref]) -> Functions:
        """The functions that any of the columns depends on."""
        return NONE.union(*(self.columns.get(ref, NONE) for ref in refs))

    def _rename(self, old: Sequence[Ref], new: Sequence[Ref]) -> None:
        """The functions of each column of a UNION: those of the columns of both inputs at the same position."""
        for a, b in zip(old, new, strict=False):
            self.columns[b] = self.columns.get(b, NONE) | self.columns.get(a, NONE)
