"""Scopes: which relations a name may mean at a place in a query, and the column that it does mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from headgate.errors import near_names
from headgate.schema.names import Ambiguous, Found, find, print_name
from headgate.sql.query.errors import AmbiguousColumn, DuplicateAlias, UnknownAlias, UnknownColumn
from headgate.sql.query.relation import Column, NamePart, Relation


@dataclass(frozen=True, slots=True)
class Source:
    """One entry of a FROM: the alias it goes by, its columns, and those that USING has merged away from `*`."""

    alias: str
    columns: tuple[Column, ...]
    hidden: tuple[Column, ...] = ()
    merged: frozenset[str] = frozenset()
    advice: tuple[tuple[str, str], ...] = ()

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
    """The sources of one SELECT, its common table expressions, and the scope around it."""

    outer: Scope | None = None
    sources: list[Source] = field(default_factory=list)
    tables: dict[str, Relation] = field(default_factory=dict)
    lambdas: dict[str, Column] = field(default_factory=dict)

    def add(self, source: Source) -> None:
        if any(source.alias == other.alias for other in self.sources):
            raise DuplicateAlias(source.alias)
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

    def column(self, name: NamePart) -> tuple[Source | None, Column] | None:
        """The column that an unqualified name means; lambda variables come first, then this scope, then outer ones."""
        if name.name in self.lambdas:
            return None, self.lambdas[name.name]
        found = [
            (source, c) for source in self.sources for c in source.every() if c.name not in source.merged
        ]
        match find(name.name, name.quoted, (c.name for _, c in found)):
            case Found(exact):
                same = [(source, c) for source, c in found if c.name == exact]
                if len(same) > 1:
                    raise AmbiguousColumn(exact, tuple(print_name((s.alias, exact)) for s, _ in same))
                return same[0]
            case Ambiguous(candidates):
                raise AmbiguousColumn(name.name, tuple(f'"{c}"' for c in candidates))
        return self.outer.column(name) if self.outer else None

    def missing(self, name: str) -> UnknownColumn:
        every = [c.name for source in self.chain() for c in source.every()]
        advice = next((why for s in self.chain() for n, why in s.advice if n.lower() == name.lower()), None)
        aliases = tuple(dict.fromkeys(f'"{source.alias}"' for source in self.chain()))
        return UnknownColumn(name, aliases, near_names(name, every), advice)

    def missing_alias(self, alias: str) -> UnknownAlias:
        return UnknownAlias(alias, near_names(alias, (source.alias for source in self.chain())))

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
