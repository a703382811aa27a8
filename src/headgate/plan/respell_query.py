"""A query's text with relations and types under their names of today, and nothing else of it changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.graph import type_by_path
from headgate.catalog.names import SearchPath
from headgate.catalog.objects import RELATIONS
from headgate.errors import HeadgateError, Span
from headgate.plan.relations import analyse_query, relation_id
from headgate.plan.spelling import Spelling, spelled
from headgate.plan.type_names import called_again
from headgate.plan.views import qualified
from headgate.schema.names import force_quotes
from headgate.schema.render import print_type
from headgate.schema.types import Named, Type, map_named
from headgate.sql.query.scope import AnalysedQuery, RelationReference
from headgate.sql.statement import ObjectName, Query
from headgate.text.cursor import Identifier

Quote = Callable[[str], str]


class Captured(Exception):
    """Written with the new name, the query would mean something else: an alias, a column or WITH has that name."""


def respell_query(text: str, spelling: Spelling) -> str:
    """The query under the new names, which is proved to mean what it meant. Raises Captured."""
    try:
        was = analyse_query(spelling.before, spelling.path, Query(text))
    except HeadgateError:  # it means nothing as it is
        return text
    for quote in (_where_needed, force_quotes):  # a word may be a name in statements and none in queries
        written = _replaced(text, _replacements(was, spelling, quote))
        try:
            is_ = analyse_query(spelling.after, spelling.path_after, Query(written))
        except HeadgateError:
            continue
        if _meaning(was, spelling.before) == _meaning(is_, spelling.after):
            return written
    raise Captured


def _replacements(query: AnalysedQuery, spelling: Spelling, quote: Quote) -> Iterator[tuple[Span, str]]:
    changed: dict[Span, tuple[Identifier, ...]] = {}  # place in FROM -> how the relation is written there now
    for reference in query.references:
        if reference.of is None and relation_id(reference.relation) is not None:
            written = ObjectName(tuple(Identifier(part.name, part.quoted) for part in reference.parts))
            found = spelling.name(written, *sorted(RELATIONS))
            if found != written:
                changed[reference.span] = found.parts
                yield reference.span, _text(found.parts, quote)
    for reference in query.references:
        if reference.of in changed:
            yield reference.span, _text(changed[reference.of][-len(reference.parts) :], quote)
    for place in query.types:
        type_ = spelling.type(place.type)
        if type_ != place.type:
            yield place.span, print_type(type_, full=True)


def with_ids(catalog: Catalog, path: SearchPath, text: str) -> str:
    """The query with the ids of relations and types in place of their names: equal where the same things are meant."""
    query = analyse_query(catalog, path, Query(text))
    names = [(m.span, f'"{_read(m)}"') for m in query.references]
    full = ((place.span, qualified(catalog, path, place.type)) for place in query.types)
    return _replaced(text, [*names, *((span, print_type(type_, full=True)) for span, type_ in full)])


def _meaning(query: AnalysedQuery, catalog: Catalog) -> object:
    """All that the names in a query decide, by ids."""
    places = {m.span: number for number, m in enumerate(query.references)}
    mentions = [(_read(m), None if m.of is None else places[m.of]) for m in query.references]
    columns = [replace(c, type=None if c.type is None else _by_id(c.type, catalog)) for c in query.columns]
    return columns, mentions, len(query.types)


def _by_id(type_: Type, catalog: Catalog) -> Type:
    def numbered(named: Named) -> Type:
        found = type_by_path(catalog, named.parts)
        return named if found is None else Named((str(found.id),))

    return map_named(called_again(type_), numbered)


def _read(reference: RelationReference) -> int | str:
    id_ = relation_id(reference.relation)
    return reference.relation if id_ is None else id_


def _where_needed(name: str) -> str:
    return force_quotes(name) if spelled(name).quoted else name


def _text(parts: Iterable[Identifier], quote: Quote) -> str:
    return ".".join(force_quotes(part.name) if part.quoted else quote(part.name) for part in parts)


def _replaced(text: str, replacements: Iterable[tuple[Span, str]]) -> str:
    for span, new in sorted(replacements, key=lambda place: place[0].start, reverse=True):
        text = text[: span.start] + new + text[span.end :]
    return text
