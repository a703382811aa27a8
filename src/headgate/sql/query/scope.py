"""Scopes: which relations a name may mean at a place in a query, and the column that it does mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headgate.errors import HeadgateError, similar_names
from headgate.schema.names import Ambiguous, Found, find, print_name
from headgate.sql.query.errors import AmbiguousColumn, DuplicateAlias, UnknownAlias, UnknownColumn
from headgate.sql.query.relation import Column, Mention, NamePart, Relation

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
