"""What a query reads and what it gives: relations with typed columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, TypeAlias

from sqlglot import exp

from headgate.errors import HeadgateError, Span, similar_names
from headgate.schema.names import Ambiguous, Found, find, print_name
from headgate.schema.render import print_type
from headgate.schema.types import Named, Record, Type
from headgate.sql.query.errors import (
    AmbiguousColumn,
    DuplicateAlias,
    NotARecord,
    UnknownAlias,
    UnknownColumn,
    UnknownField,
    UnsupportedQuery,
)
from headgate.sql.query.text import FUNCTION_MARK, Normalised
from headgate.sql.query.types import UNKNOWN, Typed


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation, or of a query's result. ``type`` is None where only Spark can tell it.

    ``null`` marks a column of a subquery that holds nothing but NULL, and takes the type that it meets.
    """

    name: str
    type: Type | None
    nullable: bool = True
    doc: str | None = None
    origin: tuple[str, str] | None = None  # relation and column that it is a plain projection of
    null: bool = False


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation as a query sees it.

    ``spark_name`` is the name of the view under which Spark knows it, ``hidden`` are columns that can be named but
    are no part of `*`, ``advice`` maps a name that is no column to what to do about it. ``called`` is what the query
    calls it without an alias; where it is empty, the last part of its name. ``withheld`` is what `*` ought to give and
    cannot: the error for each such name.
    """

    name: str
    spark_name: str
    columns: tuple[Column, ...]
    hidden: tuple[Column, ...] = ()
    advice: tuple[tuple[str, str], ...] = ()
    called: str = ""
    withheld: tuple[tuple[str, HeadgateError], ...] = ()


class NamePart(NamedTuple):
    name: str
    quoted: bool


FindRelation: TypeAlias = Callable[[tuple[NamePart, ...]], Relation]


@dataclass(frozen=True, slots=True)
class Mention:
    """A place where a query names a relation: in FROM, or before a column (``of`` is then the place in FROM).

    What goes by an alias, and what WITH defines, is not mentioned: only the names of relations themselves are.
    """

    span: Span
    parts: tuple[NamePart, ...]
    relation: str
    of: Span | None = None


@dataclass(frozen=True, slots=True)
class WrittenType:
    """A place where a query writes a type."""

    span: Span
    type: Type


@dataclass(frozen=True, slots=True)
class AnalysedQuery:
    """A query that is known to be sound, as far as can be told without Spark.

    ``untyped`` names the functions whose result type is not in our table: their columns have no type yet.
    ``stateless`` is true if every output row depends on one input row of one relation alone. ``mentions`` and ``types``
    tell in the order of the text where it names what the catalog holds.
    """

    columns: tuple[Column, ...]
    reads: tuple[str, ...]
    spark_sql: str
    stateless: bool
    untyped: tuple[str, ...] = ()
    mentions: tuple[Mention, ...] = ()
    types: tuple[WrittenType, ...] = ()


USING = ""  # alias of the source that holds what USING has merged; no name can be written like it


@dataclass(frozen=True, slots=True)
class Source:
    """One entry of a FROM: the alias it goes by and its columns.

    ``merged`` are columns that USING took out of `*`, ``merges`` says for a merged column whose they are, ``written``
    is the name of a relation without alias, so that `schema.relation.column` finds it, and ``mention`` its place.
    """

    alias: str
    columns: tuple[Column, ...]
    hidden: tuple[Column, ...] = ()
    merged: frozenset[str] = frozenset()
    advice: tuple[tuple[str, str], ...] = ()
    merges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    written: tuple[NamePart, ...] = ()
    mention: Mention | None = None
    withheld: tuple[tuple[str, HeadgateError], ...] = ()

    def every(self) -> tuple[Column, ...]:
        return self.columns + self.hidden

    def nullable(self) -> Source:
        """The source on the side of an outer join that may be missing."""
        return replace(
            self,
            columns=tuple(replace(c, nullable=True) for c in self.columns),
            hidden=tuple(replace(c, nullable=True) for c in self.hidden),
        )


@dataclass(slots=True)
class Scope:
    """The sources of one SELECT, its common table expressions, and the scope around it.

    ``outputs`` are the columns that the query gives: HAVING, GROUP BY and ORDER BY see them after its inputs.
    """

    outer: Scope | None = None
    sources: list[Source] = field(default_factory=list)
    tables: dict[str, Relation] = field(default_factory=dict)
    lambdas: dict[str, Column] = field(default_factory=dict)
    outputs: tuple[Column, ...] = ()

    def add(self, source: Source) -> None:
        if any(source.alias == other.alias for other in self.sources):
            raise DuplicateAlias(source.alias, "FROM")
        self.sources.append(source)

    def table(self, name: NamePart) -> Relation | None:
        """The common table expression of this name, of this or an outer query."""
        match find(name.name, name.quoted, self.tables):
            case Found(exact):
                return self.tables[exact]
        return self.outer.table(name) if self.outer else None

    def source(self, alias: NamePart) -> Source | None:
        match find(alias.name, alias.quoted, (s.alias for s in self.sources)):
            case Found(exact):
                return next(s for s in self.sources if s.alias == exact)
        return self.outer.source(alias) if self.outer else None

    def owner(self, parts: Sequence[NamePart]) -> tuple[Source, int] | None:
        """The source that the first parts of a dotted name mean, and how many of them do."""
        for used in range(min(3, len(parts) - 1), 1, -1):
            for source in self.chain():
                if _same_name(source.written[-used:], parts[:used]):
                    return source, used
        if len(parts) < 2 or self.variable(parts[0]) is not None:
            return None
        found = self.source(parts[0])
        return None if found is None else (found, 1)

    def variable(self, name: NamePart) -> Column | None:
        """The variable of a lambda that we are in."""
        match find(name.name, name.quoted, self.lambdas):
            case Found(exact):
                return self.lambdas[exact]
        return None

    def column(self, name: NamePart) -> tuple[Source | None, Column] | None:
        """The column that an unqualified name means: a lambda's variable, one of this scope, or of an outer one."""
        if (variable := self.variable(name)) is not None:
            return None, variable
        found = [(s, c) for s in self.sources for c in s.every() if c.name not in s.merged]
        match find(name.name, name.quoted, (c.name for _, c in found)):
            case Found(exact):
                same = [(source, c) for source, c in found if c.name == exact]
                if len(same) > 1:
                    raise AmbiguousColumn(exact, tuple(print_name((s.alias, exact)) for s, _ in same))
                return same[0]
            case Ambiguous(candidates):
                raise AmbiguousColumn(name.name, tuple(f'"{c}"' for c in candidates))
        if (output := self.output(name)) is not None:
            return None, output
        return self.outer.column(name) if self.outer else None

    def output(self, name: NamePart) -> Column | None:
        match find(name.name, name.quoted, (c.name for c in self.outputs)):
            case Found(exact):
                return next(c for c in self.outputs if c.name == exact)
        return None

    def seeing(self, outputs: tuple[Column, ...]) -> Scope:
        return Scope(self.outer, self.sources, self.tables, self.lambdas, outputs)

    def missing(self, name: str) -> UnknownColumn:
        every = [c.name for source in self.chain() for c in source.every()]
        advice = next((why for s in self.chain() for n, why in s.advice if n.lower() == name.lower()), None)
        aliases = tuple(dict.fromkeys(f'"{source.alias}"' for source in self.chain() if source.alias))
        return UnknownColumn(name, aliases, similar_names(name, every), advice)

    def missing_alias(self, alias: str) -> UnknownAlias:
        return UnknownAlias(alias, similar_names(alias, (source.alias for source in self.chain())))

    def chain(self) -> Iterator[Source]:
        scope: Scope | None = self
        while scope is not None:
            yield from scope.sources
            scope = scope.outer


def qualified(source: Source, name: NamePart) -> Column:
    """A column of one source, by the rules of names."""
    match find(name.name, name.quoted, (c.name for c in source.every())):
        case Found(exact):
            return next(c for c in source.every() if c.name == exact)
        case Ambiguous(candidates):
            raise AmbiguousColumn(name.name, tuple(print_name((source.alias, c)) for c in candidates))
    raise Scope(sources=[source]).missing(name.name)


def _same_name(known: Sequence[NamePart], written: Sequence[NamePart]) -> bool:
    if len(known) != len(written):
        return False
    return all(
        a.name == b.name or (a.name.lower() == b.name.lower() and not (a.quoted or b.quoted))
        for a, b in zip(known, written, strict=True)
    )


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


def identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def name_part(node: exp.Expr) -> NamePart:
    """A name as it was written. One that stood before a parenthesis got a function's mark; here it is none."""
    return NamePart(node.name.removeprefix(FUNCTION_MARK), bool(node.args.get("quoted")))


def reference(source: Source | None, column: Column) -> exp.Expr:
    """The column as Spark finds it: exact and qualified; one that USING merged is the first side that is not NULL."""
    if source is None:
        return exp.column(identifier(column.name))
    owners = source.merges.get(column.name, (source.alias,))
    sides = [exp.column(identifier(column.name), table=identifier(owner)) for owner in owners]
    return sides[0] if len(sides) == 1 else call("coalesce", *sides)


def resolve(parts: list[NamePart], scope: Scope) -> tuple[Source | None, Column, list[NamePart]]:
    """alias.column[.field ..] if there is such an alias, otherwise column[.field ..]."""
    owner = scope.owner(parts)
    if owner is not None:
        source, used = owner
        return source, qualified(source, parts[used]), parts[used + 1 :]
    found = scope.column(parts[0])
    if found is None:
        raise scope.missing(parts[0].name) if len(parts) == 1 else scope.missing_alias(parts[0].name)
    return found[0], found[1], parts[1:]


def column(visitor: Visitor, node: exp.Column, scope: Scope) -> Typed:
    if isinstance(node.this, exp.Star):
        raise UnsupportedQuery("x.* inside an expression", "Name the columns.")
    parts = [name_part(part) for part in node.parts]
    source, found, fields = resolve(parts, scope)
    mention_owner(visitor, node, scope.owner(parts))
    typed = Typed(found.type, found.nullable, found.null)
    replaced = reference(source, found)
    if isinstance(replaced, exp.Column):  # for errors that are found later
        replaced.this.meta.update(node.parts[-1].meta)
    for part in fields:
        field, typed = take_field(part, typed)
        replaced = exp.Dot(this=replaced, expression=identifier(field))
    node.replace(replaced)
    return typed


def mention_owner(visitor: Visitor, node: exp.Column, owner: tuple[Source, int] | None) -> None:
    """Write down that the first parts of a dotted name are a relation's, if they are no alias."""
    if owner is None or owner[0].mention is None:
        return
    (source, used), parts = owner, node.parts
    span = written_span(visitor, parts[:used])
    if span is not None and source.mention is not None:
        names = tuple(name_part(part) for part in parts[:used])
        visitor.mentions[span.start] = Mention(span, names, source.mention.relation, of=source.mention.span)


def written_span(visitor: Visitor, parts: Sequence[exp.Expr]) -> Span | None:
    """From the first to the last part of a name; None if the name was not written."""
    spans = [visitor.span(part) for part in parts]
    first, last = spans[0], spans[-1]
    return Span(first.start, last.end) if first is not None and last is not None else None


def dot(visitor: Visitor, node: exp.Dot, scope: Scope) -> Typed:
    owner = visitor.visit(node.this, scope)
    if not isinstance(node.expression, exp.Identifier):
        raise UnsupportedQuery("a call after a dot")
    try:
        field, typed = take_field(name_part(node.expression), owner)
    except HeadgateError as error:
        raise error.at(visitor.span(node.expression)) from None
    node.set("expression", identifier(field))
    return typed


def variable(_visitor: Visitor, node: exp.Identifier, scope: Scope) -> Typed:
    """Inside a lambda sqlglot leaves its variables as identifiers."""
    found = scope.variable(NamePart(node.name, False))
    return UNKNOWN if found is None else Typed(found.type, found.nullable)


def take_field(part: NamePart, owner: Typed) -> tuple[str, Typed]:
    """The exact name and the type of a field of a record; a NULL record has NULL fields."""
    if owner.type is None:
        return part.name, UNKNOWN
    if not isinstance(owner.type, Record):
        raise NotARecord(part.name, print_type(owner.type))
    names = [field.name for field in owner.type.fields]
    match find(part.name, part.quoted, names):
        case Found(exact):
            field = owner.type.field(exact)
            assert field is not None
            return exact, Typed(field.type, field.nullable or owner.nullable, doc=field.doc)
        case Ambiguous(candidates):
            raise UnknownField(part.name, "the record", candidates)
    raise UnknownField(part.name, "the record", similar_names(part.name, names))


def every_column(sources: Sequence[Source]) -> list[tuple[exp.Expr, Column]]:
    """What `*` means over these sources; columns that USING merged are there once."""
    for source in sources:
        names = [column.name for column in source.columns]
        for name in names:
            if names.count(name) > 1:
                raise AmbiguousColumn(name, (f"one of {names.count(name)} columns of {source.alias}",))
    return [(reference(s, c), c) for s in sources for c in s.columns if c.name not in s.merged]
