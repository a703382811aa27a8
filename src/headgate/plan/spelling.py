"""Names that were written for one catalog, as they are written for another that differs from it in names only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.catalog.catalog import Catalog
from headgate.catalog.errors import CatalogError
from headgate.catalog.names import SearchPath, find, type_name
from headgate.catalog.objects import ROOT, Namespace
from headgate.errors import InternalError
from headgate.schema.names import needs_quotes
from headgate.schema.types import Named, Type, map_named
from headgate.sql.statement import Kind, ObjectName
from headgate.text.cursor import Identifier


@dataclass(frozen=True, slots=True)
class Spelling:
    """The same objects ``before`` and ``after``. Names are found by ``path`` before and by ``path_after`` after."""

    before: Catalog
    after: Catalog
    path: SearchPath
    path_after: SearchPath

    def name(self, name: ObjectName, *kinds: Kind) -> ObjectName:
        """The name with every part that was renamed replaced, or the full name where that would find something else;
        as it is, where it meant nothing before."""
        id_ = _meant(self.before, self.path, name, kinds)
        if id_ is None:
            return name
        for parts in self._spellings(name, id_):
            found = ObjectName(parts, span=name.span)
            if _meant(self.after, self.path_after, found, kinds) == id_:
                return name if found == name else found
        raise InternalError(f"{self.after.shown(id_)} is not found by its full name")

    def _spellings(self, name: ObjectName, id_: int) -> Iterator[tuple[Identifier, ...]]:
        length, new = len(name.parts), self.after.path(id_)
        pairs = zip(name.parts, self.before.path(id_)[-length:], new[-length:], strict=True)
        yield tuple(part if was == is_ else spelled(is_) for part, was, is_ in pairs)
        yield tuple(spelled(part) for part in new[-length:])
        yield tuple(Identifier(part, quoted=True) for part in new)

    def type(self, type_: Type) -> Type:
        """The type with the types of the catalog that it mentions under their names of today."""
        return map_named(type_, self._named)

    def _named(self, named: Named) -> Type:
        written = type_name(named)
        found = self.name(written, Kind.TYPE)
        return (
            named
            if found is written
            else Named(*zip(*((p.name, p.quoted) for p in found.parts), strict=True))
        )


def renamed_path(before: Catalog, after: Catalog, path: SearchPath) -> SearchPath:
    """The same schemas, under their names of today."""

    def entry(database: str, schema: str) -> tuple[str, str]:
        above = before.exactly(ROOT, Namespace.DATABASE, database)
        found = above and before.exactly(above.id, Namespace.SCHEMA, schema)
        if not found:
            return database, schema
        first, second = after.path(found.id)
        return first, second

    return SearchPath(tuple(entry(*names) for names in path.entries))


def spelled(name: str) -> Identifier:
    """A name as it is written in a statement: in quotes where it must be."""
    return Identifier(name, quoted=needs_quotes(name))


def _meant(catalog: Catalog, path: SearchPath, name: ObjectName, kinds: tuple[Kind, ...]) -> int | None:
    try:
        found = find(catalog, path, name, *kinds)
    except CatalogError:
        return None
    return None if found is None else found.id
