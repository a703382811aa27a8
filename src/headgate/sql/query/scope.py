"""What the names in a query mean: relations, sources of a FROM clause, scopes, columns and fields.

The classes at the top are what enters and leaves an analysis (`Relation`, `AnalysedQuery`). `Visitor` is what the
handlers of expressions need of the walk that calls them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias, TypeVar

from sqlglot import exp

from headgate.errors import HeadgateError, Span, if_few, similar_names
from headgate.schema.names import Ambiguous, Found, find, print_name
from headgate.schema.types import Named, Type
from headgate.sql import errors
from headgate.sql.query.text import FUNCTION_MARK, Normalised
from headgate.sql.query.tree import NO_ROWS, ColumnRef, Node, Ref, RelationName
from headgate.sql.query.types import UNKNOWN, Typed
from headgate.sql.query.written import WrittenExpression
from headgate.text.cursor import Identifier


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation or of a query's result. ``type`` is None if only Spark knows it.

    ``null`` marks a column of a subquery that holds nothing but NULL. It takes the type that the context wants.
    """

    name: str
    type: Type | None
    nullable: bool = True
    doc: str | None = None
    origin: ColumnRef | None = None  # the column of the catalog, if the query passes it on unchanged
    null: bool = False
    ref: Ref | None = field(default=None, compare=False)  # the column of the query's tree; None in a relation

    def with_ref(self, ref: Ref) -> Column:
        """The same column in a query's tree. `replace` takes twice as long, and a wide record has thousands of columns."""
        return Column(self.name, self.type, self.nullable, self.doc, self.origin, self.null, ref)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation as a query sees it.

    ``spark_name`` is the name of its view in Spark. ``hidden`` columns can be named but are not part of `*`. ``hints``
    map a name that is not a column to what the user can do about it. ``alias`` is its name in the query if the query
    gives none; empty means that of ``name``. ``withheld`` has an error for each field that `*` should return
    and cannot.
    """

    name: RelationName
    spark_name: str
    columns: tuple[Column, ...]
    hidden: tuple[Column, ...] = ()
    hints: tuple[tuple[str, str], ...] = ()
    alias: str = ""
    withheld: tuple[tuple[str, HeadgateError], ...] = ()


Item = TypeVar("Item")
FindRelation: TypeAlias = Callable[[tuple[Identifier, ...]], Relation]


@dataclass(frozen=True, slots=True)
class RelationReference:
    """A span of the text that names a relation: in FROM, or before a column (``of`` is then its span in FROM).

    Aliases and tables defined by WITH are no references, because the catalog does not know them.
    """

    span: Span
    parts: tuple[Identifier, ...]
    relation: RelationName
    of: Span | None = None


@dataclass(frozen=True, slots=True)
class TypeReference:
    """A span of the text that is a type."""

    span: Span
    type: Type


@dataclass(frozen=True, slots=True)
class AnalysedQuery:
    """A query that is valid as far as we can tell without Spark.

    ``relations`` are the relations that it reads, each once. A column without a type is the result of a
    function that is not in our table; Spark types it later. ``row_by_row`` is true if every output row depends on one
    input row of one relation. ``references`` and ``types`` are in the order of the text. ``tree`` is the same query
    node by node; its columns are those of the query, in their order. ``limit`` is the LIMIT of the whole query.
    """

    columns: tuple[Column, ...]
    relations: tuple[RelationName, ...]
    row_by_row: bool
    references: tuple[RelationReference, ...] = ()
    types: tuple[TypeReference, ...] = ()
    limit: int | None = None
    print_sql: Callable[[], str] = field(default=str, compare=False, repr=False)
    build_tree: Callable[[], Node] = field(default=lambda: NO_ROWS, compare=False, repr=False)
    find_written: Callable[[], tuple[WrittenExpression, ...]] = field(default=tuple, compare=False, repr=False)
    analyse_pinned: Callable[[], AnalysedQuery] | None = field(default=None, compare=False, repr=False)

    @property
    def spark_sql(self) -> str:
        """Printed when it is first asked for, because most analyses only need the columns."""
        return self.print_sql()

    @property
    def tree(self) -> Node:
        """Built when it is first asked for, as the Spark SQL."""
        return self.build_tree()

    @property
    def written(self) -> tuple[WrittenExpression, ...]:
        """The expressions as they were written, with their places in ``spark_sql``. Found when they are first asked for."""
        return self.find_written()

    @property
    def pinned(self) -> AnalysedQuery:
        """The same query, which takes the time of `now()` and the like from a relation of Spark's, `clock.NOW`."""
        return self if self.analyse_pinned is None else self.analyse_pinned()


@dataclass(frozen=True, slots=True)
class Notes:
    """What the analysis notes at a node of sqlglot, for the tree that is built afterwards.

    ``ref``: of a column. ``typed``: of a call. ``columns``: of a query. ``entry``: of an entry of FROM. ``literal``: the text of
    a literal with a type, such as DATE '2026-11-15'.
    """

    ref: Ref | None = None
    typed: Typed = UNKNOWN
    columns: tuple[Column, ...] = ()
    entry: FromEntry | None = None
    literal: str | None = None

    def __deepcopy__(self, _memo: object) -> Notes:
        return self  # sqlglot copies what is noted at a node with the node, and this never changes


def notes(node: exp.Expr) -> Notes:
    """What the analysis has noted at a node."""
    return node.meta.get("notes") or NO_NOTES


def note(node: exp.Expr, noted: Notes) -> None:
    """Replace what is noted at a node."""
    node.meta["notes"] = noted


NO_NOTES = Notes()

USING = ""  # alias of the source that holds the columns merged by USING; no user can write an empty name


@dataclass(frozen=True, slots=True)
class Source:
    """One entry of FROM: its alias and its columns.

    ``merged`` are the columns that USING removed from `*`. ``merges`` maps a merged column to the aliases that have it,
    with its ref in each.
    ``written`` is the name of a relation without an alias, so that `schema.relation.column` finds it, and ``reference``
    is where it stands.
    """

    alias: str
    columns: tuple[Column, ...]
    hidden: tuple[Column, ...] = ()
    merged: frozenset[str] = frozenset()
    hints: tuple[tuple[str, str], ...] = ()
    merges: Mapping[str, tuple[tuple[str, Ref | None], ...]] = field(default_factory=dict)
    written: tuple[Identifier, ...] = ()
    reference: RelationReference | None = None
    withheld: tuple[tuple[str, HeadgateError], ...] = ()
    _by_folded: dict[str, list[Column]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def all_columns(self) -> tuple[Column, ...]:
        """The columns that can be named, with those that are not part of `*`."""
        return self.columns + self.hidden

    def named(self, name: str) -> Sequence[Column]:
        """The columns that can be named and have this name in some case. A query may name thousands of a wide record."""
        if not self._by_folded:
            for column in self.all_columns():
                self._by_folded.setdefault(column.name.lower(), []).append(column)
        return self._by_folded.get(name.lower(), ())

    def nullable(self) -> Source:
        """The same source on the optional side of an outer join."""
        return replace(
            self,
            columns=tuple(replace(c, nullable=True) for c in self.columns),
            hidden=tuple(replace(c, nullable=True) for c in self.hidden),
        )


@dataclass(frozen=True, slots=True)
class FromEntry:
    """An entry of FROM as the tree needs it. ``relation`` is what it reads, unless it is a subquery or a function."""

    alias: str = ""
    columns: tuple[Column, ...] = ()
    hidden: tuple[Column, ...] = ()
    relation: Relation | None = None
    span: Span | None = None


@dataclass(slots=True)
class Scope:
    """The sources of one SELECT, its common table expressions, and the scope around it.

    ``outputs`` are the columns of the result. HAVING, GROUP BY and ORDER BY look for a name in the inputs first and
    then in these.
    """

    outer: Scope | None = None
    sources: list[Source] = field(default_factory=list)
    tables: dict[str, Relation] = field(default_factory=dict)
    lambdas: dict[str, Column] = field(default_factory=dict)
    outputs: tuple[Column, ...] = ()

    def add(self, source: Source) -> None:
        """Add a source. Its alias must be new in this scope, but may hide one of an outer scope."""
        if any(source.alias == other.alias for other in self.sources):
            raise errors.DuplicateAlias(source.alias, "FROM")
        self.sources.append(source)

    def table(self, name: Identifier) -> Relation | None:
        """The common table expression of this name, in this query or an outer one."""
        found = _named(name, self.tables.items())
        return found if found is not None or self.outer is None else self.outer.table(name)

    def source(self, alias: Identifier) -> Source | None:
        """The source with this alias, in this query or an outer one."""
        found = _named(alias, ((s.alias, s) for s in self.sources))
        return found if found is not None or self.outer is None else self.outer.source(alias)

    def owner(self, parts: Sequence[Identifier]) -> Owner | None:
        """The source that the first parts of a dotted name mean, and how many of them do."""
        for used in range(min(3, len(parts) - 1), 1, -1):
            for source in self.chain():
                if _same_name(source.written[-used:], parts[:used]):
                    return source, used
        if len(parts) < 2 or self.variable(parts[0]) is not None:
            return None
        found = self.source(parts[0])
        return None if found is None else (found, 1)

    def variable(self, name: Identifier) -> Column | None:
        """The parameter of an enclosing lambda."""
        return _named(name, self.lambdas.items())

    def column(self, name: Identifier) -> tuple[Source | None, Column] | None:
        """The column that an unqualified name means: a lambda's variable, one of this scope, or of an outer one."""
        if (variable := self.variable(name)) is not None:
            return None, variable
        found = [(s, c) for s in self.sources for c in s.named(name.name) if c.name not in s.merged]
        match find(name.name, name.quoted, (c.name for _, c in found)):
            case Found(exact):
                same = [(source, c) for source, c in found if c.name == exact]
                if len(same) > 1:
                    raise errors.AmbiguousColumn(exact, tuple(print_name((s.alias, exact)) for s, _ in same))
                return same[0]
            case Ambiguous(candidates):
                raise errors.AmbiguousColumn(name.name, tuple(f'"{c}"' for c in candidates))
        if (output := self.output(name)) is not None:
            return None, output
        return self.outer.column(name) if self.outer else None

    def output(self, name: Identifier) -> Column | None:
        """The column of the result with this name."""
        return _named(name, ((c.name, c) for c in self.outputs))

    def with_outputs(self, outputs: tuple[Column, ...]) -> Scope:
        """The same scope for clauses that can name columns of the result."""
        return Scope(self.outer, self.sources, self.tables, self.lambdas, outputs)

    def unknown_column(self, name: str) -> errors.UnknownColumn:
        """The error for a name that no source has, with similar names and with hints of the relations."""
        every = [c.name for source in self.chain() for c in source.all_columns()]
        advice = next((why for s in self.chain() for n, why in s.hints if n.lower() == name.lower()), None)
        aliases = tuple(dict.fromkeys(f'"{source.alias}"' for source in self.chain() if source.alias))
        return errors.UnknownColumn(name, aliases, similar_names(name, every), advice, if_few(every))

    def unknown_alias(self, alias: str) -> errors.UnknownAlias:
        return errors.UnknownAlias(alias, similar_names(alias, (source.alias for source in self.chain())))

    def chain(self) -> Iterator[Source]:
        """All sources that can be named here, those of the innermost query first."""
        scope: Scope | None = self
        while scope is not None:
            yield from scope.sources
            scope = scope.outer


def _named(name: Identifier, candidates: Iterable[tuple[str, Item]]) -> Item | None:
    """The one candidate that the name means, or None. The first counts if several have exactly this name."""
    listed = list(candidates)
    found = find(name.name, name.quoted, [key for key, _ in listed]) if listed else None
    return next(item for key, item in listed if key == found.name) if isinstance(found, Found) else None


def qualified(source: Source, name: Identifier) -> Column:
    """A column of one source, by the rules of names."""
    named = source.named(name.name)
    match find(name.name, name.quoted, (c.name for c in named)):
        case Found(exact):
            return next(c for c in named if c.name == exact)
        case Ambiguous(candidates):
            raise errors.AmbiguousColumn(name.name, tuple(print_name((source.alias, c)) for c in candidates))
    raise Scope(sources=[source]).unknown_column(name.name)


def _same_name(known: Sequence[Identifier], written: Sequence[Identifier]) -> bool:
    """Whether two dotted names are the same. A part in quotes must be equal, case included."""
    if len(known) != len(written):
        return False
    return all(
        a.name == b.name or (a.name.lower() == b.name.lower() and not (a.quoted or b.quoted))
        for a, b in zip(known, written, strict=True)
    )


class Visitor(Protocol):
    """The walk over the expressions of one query, as its handlers see it.

    A handler sets ``stateful`` if the result depends on more than one row, and adds to ``references``, which are keyed
    by their start offset.
    """

    normalised: Normalised
    resolve: Callable[[Named], Type]
    subquery: Callable[[exp.Expr, Scope], tuple[Column, ...]]
    stateful: bool
    references: dict[int, RelationReference]

    def visit(self, node: exp.Expr, scope: Scope) -> Typed:
        """Return the type of an expression and rewrite the expression for Spark in place."""

    def span(self, node: exp.Expr) -> Span | None: ...

    def ref(self, name: str) -> Ref: ...

    def children(self, node: exp.Expr, scope: Scope) -> list[Typed]: ...


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """A call of one of Spark's functions."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def text(value: str) -> exp.Literal:
    """A string literal."""
    return exp.Literal.string(value)


def identifier(name: str) -> exp.Identifier:
    """A name for Spark, always in quotes, so that it is taken exactly as it is."""
    return exp.Identifier(this=name, quoted=True)


def name_part(node: exp.Expr) -> Identifier:
    """A name as it was written, without the mark of a function that it got if a parenthesis follows it."""
    return Identifier(node.name.removeprefix(FUNCTION_MARK), bool(node.args.get("quoted")))


def spark_column(source: Source | None, column: Column) -> exp.Expr:
    """The column for Spark, with its exact name and source. A column merged by USING is the first one that is not
    NULL."""
    if source is None:
        return _referring(exp.Column(this=identifier(column.name)), column.ref)
    owners = source.merges.get(column.name, ((source.alias, column.ref),))
    sides = [_referring(exp.Column(this=identifier(column.name), table=identifier(a)), ref) for a, ref in owners]
    return sides[0] if len(sides) == 1 else call("coalesce", *sides)


def _referring(node: exp.Expr, ref: Ref | None) -> exp.Expr:
    """Note at a column which one it is, for the tree that is built at the end."""
    if ref is not None:
        note(node, Notes(ref))
    return node


Owner: TypeAlias = tuple[Source, int]
"""A source that the first parts of a dotted name mean, and how many of them do."""


def resolve(
    parts: list[Identifier], scope: Scope, owner: Owner | None
) -> tuple[Source | None, Column, list[Identifier]]:
    """Find the column of a dotted name: `alias.column[.field …]` if there is such an alias, otherwise `column[.field
    …]`.

    ``owner`` is that of the parts in the scope. Returns its source, the column, and the parts that are fields.
    """
    if owner is not None:
        source, used = owner
        return source, qualified(source, parts[used]), parts[used + 1 :]
    found = scope.column(parts[0])
    if found is None:
        raise scope.unknown_column(parts[0].name) if len(parts) == 1 else scope.unknown_alias(parts[0].name)
    return found[0], found[1], parts[1:]


def record_reference(visitor: Visitor, node: exp.Column, owner: Owner | None) -> None:
    """Record that the first parts of a dotted name are the name of a relation, unless they are an alias."""
    if owner is None or owner[0].reference is None:
        return
    (source, used), parts = owner, node.parts
    span = written_span(visitor, parts[:used])
    if span is not None and source.reference is not None:
        names = tuple(name_part(part) for part in parts[:used])
        visitor.references[span.start] = RelationReference(
            span, names, source.reference.relation, of=source.reference.span
        )


def written_span(visitor: Visitor, parts: Sequence[exp.Expr]) -> Span | None:
    """From the first to the last part of a name; None if the name was not written."""
    spans = [visitor.span(part) for part in parts]
    first, last = spans[0], spans[-1]
    return Span(first.start, last.end) if first is not None and last is not None else None


def all_columns(sources: Sequence[Source]) -> list[tuple[exp.Expr, Column]]:
    """The columns of `*` over these sources. A column merged by USING occurs once."""
    for source in sources:
        for name, count in Counter(column.name for column in source.columns).items():
            if count > 1:
                raise errors.AmbiguousColumn(name, (f"one of {count} columns of {source.alias}",))
    return [(spark_column(s, c), c) for s in sources for c in s.columns if c.name not in s.merged]
