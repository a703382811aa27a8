"""Analyses of queries, kept in the catalog's snapshots and used again while all that they were made from is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from headgate.catalog.catalog import Catalog
from headgate.catalog.errors import CatalogError
from headgate.catalog.graph import upstream
from headgate.catalog.names import DEFAULT_PATH, SearchPath
from headgate.catalog.objects import ROOT, Object
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.statement import Query

LIMIT = 2000  # analyses that are kept; the oldest goes first

FindAgain = Callable[[Catalog], int]


@dataclass(slots=True)
class Names:
    """The names that a query was analysed with: for each the object that it meant, and how to find it again."""

    found: dict[object, tuple[int, FindAgain]] = field(default_factory=dict)

    def note(self, name: object, id_: int, again: FindAgain) -> None:
        self.found.setdefault(name, (id_, again))


@dataclass(frozen=True, slots=True)
class _Kept:
    analysed: AnalysedQuery
    names: tuple[tuple[int, FindAgain], ...]
    inputs: tuple[Object, ...]

    def holds(self, catalog: Catalog) -> bool:
        """Whether every name still means the same object, and every object is as it was."""
        try:
            return all(_same(catalog, entry) for entry in self.inputs) and all(
                again(catalog) == id_ for id_, again in self.names
            )
        except CatalogError:
            return False


def kept_analysis(
    catalog: Catalog, path: SearchPath, query: Query, analyse: Callable[[Names], AnalysedQuery]
) -> AnalysedQuery:
    """The analysis of a query under a search path; ``analyse`` makes it and notes the names that it looks up."""
    key = (query, path)
    known = catalog.analyses.get(key)
    if isinstance(known, _Kept) and known.holds(catalog):
        return known.analysed
    names = Names()
    analysed = analyse(names)
    found = tuple(names.found.values())
    catalog.analyses.pop(key, None)
    catalog.analyses[key] = _Kept(analysed, found, _inputs(catalog, (id_ for id_, _ in found)))
    if len(catalog.analyses) > LIMIT:
        catalog.analyses.pop(next(iter(catalog.analyses)), None)
    return analysed


def keep_for_resolved(catalog: Catalog, path: SearchPath, query: Query, resolved: Query) -> None:
    """Keep the analysis of a query also for the same query with ids in it, whose names never mean anything else."""
    known = catalog.analyses.get((query, path))
    if isinstance(known, _Kept):
        catalog.analyses[resolved, DEFAULT_PATH] = _Kept(known.analysed, (), known.inputs)


def _same(catalog: Catalog, entry: Object) -> bool:
    now = catalog.objects.get(entry.id)
    return now is entry or now == entry


def _inputs(catalog: Catalog, ids: Iterable[int]) -> tuple[Object, ...]:
    """The objects, all that they use (comments and types come from there), and the schemas that they are in."""
    found: dict[int, Object] = {}
    for id_ in ids:
        for entry in (catalog.get(id_), *upstream(catalog, id_)):
            found[entry.id] = entry
    for parent in {entry.parent for entry in found.values()}:
        at = parent
        while at != ROOT and at not in found:
            found[at] = catalog.get(at)
            at = found[at].parent
    return tuple(found.values())
