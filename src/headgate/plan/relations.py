"""Analyses of queries over the relations of the catalog, and the cache of these analyses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from headgate.catalog.catalog import Catalog, column_comment
from headgate.catalog.errors import CatalogError
from headgate.catalog.graph import named_types as type_names, type_by_path, upstream
from headgate.catalog.names import DEFAULT_PATH, SearchPath, resolve
from headgate.catalog.objects import ROOT, Column as CatalogColumn, Object
from headgate.catalog.system_tables import SYSTEM_RELATIONS, SystemRelation, system_relation
from headgate.errors import HeadgateError, InternalError, Span
from headgate.plan.definitions import spark_name, system_name
from headgate.plan.errors import ColumnNameTaken
from headgate.plan.reading import layout_of
from headgate.plan.source import key_fields_not_included
from headgate.resolve.statements import find_type, qualified_type
from headgate.resolve.streams import READ_KINDS
from headgate.schema.names import print_name
from headgate.schema.types import Array, CatalogEnum, CatalogRecord, Enum, Map, Named, Record, Type
from headgate.sql.query.casts import expanded
from headgate.sql.query.scope import AnalysedQuery, Column, FindRelation, Relation, RelationReference
from headgate.sql.query.select import analyse
from headgate.sql.query.tree import ColumnRef, RelationName, columns_used
from headgate.sql.sources import CreateSource
from headgate.sql.statement import RELATIONS, ObjectName, Query, Reference, WrittenType
from headgate.text.cursor import Identifier
from headgate.text.lexer import TokenKind, tokenize

LIMIT = 2000  # analyses that are kept; the oldest is dropped first

FindAgain = Callable[[Catalog], int]


@dataclass(slots=True)
class Names:
    """The names that an analysis looked up: for each, the id of the object that it meant and how to look it up again."""

    found: dict[object, tuple[int, FindAgain]] = field(default_factory=dict)

    def note(self, name: object, id_: int, again: FindAgain) -> None:
        self.found.setdefault(name, (id_, again))


@dataclass(frozen=True, slots=True)
class _Kept:
    """An analysis, and what it was made from."""

    analysed: AnalysedQuery
    names: tuple[tuple[int, FindAgain], ...]
    inputs: tuple[Object, ...]

    def holds(self, catalog: Catalog) -> bool:
        """Whether every name still means the same object, and no object has changed."""
        try:
            return all(_same(catalog, entry) for entry in self.inputs) and all(
                again(catalog) == id_ for id_, again in self.names
            )
        except CatalogError:
            return False


def kept_analysis(
    catalog: Catalog, path: SearchPath, query: Query, analyse: Callable[[Names], AnalysedQuery]
) -> AnalysedQuery:
    """The analysis of a query under a search path. ``analyse`` is called if there is none, or if it no longer holds."""
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
    """Keep the analysis of a query for the same query with ids in it too. Its names need no further check."""
    known = catalog.analyses.get((query, path))
    if isinstance(known, _Kept):
        catalog.analyses[resolved, DEFAULT_PATH] = _Kept(known.analysed, (), known.inputs)


def _same(catalog: Catalog, entry: Object) -> bool:
    now = catalog.objects.get(entry.id)
    return now is entry or now == entry


def _inputs(catalog: Catalog, ids: Iterable[int]) -> tuple[Object, ...]:
    """The objects with these ids, everything that they use, and the schemas that hold them.

    An analysis contains comments and types, which come from objects upstream.
    """
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


def query_relation(catalog: Catalog, relation: Object) -> Relation:
    """A relation of the catalog as a query sees it."""
    return Relation(
        RelationName(relation.name, relation.id),
        spark_name(relation.id),
        tuple(_column(catalog, relation, c) for c in relation.columns),
        hints=key_field_hints(relation),
        withheld=tuple((error.column, error) for error in fields_without_column(relation)),
    )


def _column(catalog: Catalog, relation: Object, column: CatalogColumn) -> Column:
    find = named_types(catalog)
    type_ = expanded(column.type, lambda named: _catalog_record(named.parts, find(named)))
    origin = ColumnRef(relation.id, column.id)
    return Column(column.name, type_, column.nullable, column_comment(catalog, column), origin)


def key_field_hints(relation: Object) -> tuple[tuple[str, str], ...]:
    """The fields of the key that a source does not include, each with a hint for a query that selects it."""
    if not isinstance(relation.definition, CreateSource):
        return ()
    hint = f'It is a field of the key, which source "{relation.name}" drops: add INCLUDE KEY to the source.'
    return tuple((name, hint) for name in key_fields_not_included(relation.definition))


def fields_without_column(relation: Object) -> tuple[ColumnNameTaken, ...]:
    """An error for each field of a source that has no column, raised by a query that selects all columns."""
    if relation.kind not in READ_KINDS or relation.definition is None:
        return ()
    found = layout_of(relation).without_column
    return tuple(ColumnNameTaken(relation.name, w.column, w.field, w.other, w.cure) for w in found)


def find_relation(catalog: Catalog, path: SearchPath, query: Query, names: Names) -> FindRelation:
    """Find a relation by the name in the query: by the id that a stored query has for it, or by the search path."""
    known = {_written(query, reference): reference for reference in query.references if reference.of is None}

    def find(parts: tuple[Identifier, ...]) -> Relation:
        written = ObjectName(tuple(Identifier(part.name, part.quoted) for part in parts))
        reference = known.get(written.parts)
        if reference is not None and (id_ := reference.name.id) is not None:
            names.note(written, id_, lambda _: id_)
            return replace(query_relation(catalog, catalog.get(id_)), alias=reference.called)
        system = system_relation(path, written if reference is None else reference.name)
        if system is not None:
            return _system(system)
        found = resolve(catalog, path, written, *RELATIONS)
        names.note(written, found.id, lambda now: resolve(now, path, written, *RELATIONS).id)
        return query_relation(catalog, found)

    return find


def _written(query: Query, reference: Reference) -> tuple[Identifier, ...]:
    tokens = tokenize(query.text[reference.start : reference.end])
    named = [token for token in tokens if token.kind in (TokenKind.WORD, TokenKind.QUOTED)]
    return tuple(Identifier(token.value, token.kind is TokenKind.QUOTED) for token in named)


def _system(system: SystemRelation) -> Relation:
    columns = [Column(f.name, f.type, f.nullable, f.doc) for f in system.columns.fields]
    shown = tuple(c for c in columns if c.name not in system.hidden)
    hidden = tuple(c for c in columns if c.name in system.hidden)
    name = RelationName(system.name, schema=system.schema)
    return Relation(name, system_name(f"{system.schema}.{system.name}"), shown, hidden)


def named_types(catalog: Catalog) -> Callable[[Named], Type]:
    def resolve_type(named: Named) -> Type:
        found = type_by_path(catalog, named.parts)
        if found is None:
            raise InternalError(f"type {print_name(named.parts)} is not in the catalog")
        return found.as_type()

    return resolve_type


def resolve_type_name(catalog: Catalog, path: SearchPath, query: Query, names: Names) -> Callable[[Named], Type]:
    """Find a type by the name in the query: by the full name that a stored query has for it, or by the search path."""
    known = {
        written: full
        for place in query.types
        for written, full in zip(type_names(place.written), type_names(place.type), strict=True)
    }

    def resolve_type(named: Named) -> Type:
        full = known.get(named.parts)
        found = find_type(catalog, path, named if full is None else Named(full))
        if full is None:
            names.note(named, found.id, lambda now: find_type(now, path, named).id)
        else:
            names.note(named, found.id, lambda _: found.id)
        return _catalog_record(catalog.path(found.id), found.as_type())

    return resolve_type


def _catalog_record(path: tuple[str, ...], definition: Type) -> Type:
    """The definition of the type with the full name ``path``. A record or an enum keeps that name, to be printed by it."""
    match definition:
        case Record():
            return CatalogRecord(definition.fields, definition.name, definition.doc, path)
        case Enum():
            return CatalogEnum(definition.symbols, definition.name, definition.default, definition.doc, path)
        case _:
            return definition


def with_type_names(type_: Type) -> Type:
    """The type of a query's column with the names of the catalog's types in place of their records and enums."""
    match type_:
        case CatalogRecord(path=path) | CatalogEnum(path=path):
            return Named(path)
        case Record(fields):
            return replace(type_, fields=tuple(replace(f, type=with_type_names(f.type)) for f in fields))
        case Array(element):
            return replace(type_, element=with_type_names(element))
        case Map(value):
            return replace(type_, value=with_type_names(value))
        case _:
            return type_


def analyse_query(catalog: Catalog, path: SearchPath, query: Query) -> AnalysedQuery:
    """The analysis of the query. Errors point into the statement that the query is part of."""

    def make(names: Names) -> AnalysedQuery:
        return _analyse(catalog, path, query, names)

    try:
        # What the names in a stored query mean does not depend on the search path.
        return kept_analysis(catalog, path if not query.references else DEFAULT_PATH, query, make)
    except HeadgateError as error:
        if error.span is not None:
            error.span = Span(error.span.start + query.span.start, error.span.end + query.span.start)
        raise


def _analyse(catalog: Catalog, path: SearchPath, query: Query, names: Names) -> AnalysedQuery:
    return analyse(
        query.text, find_relation(catalog, path, query, names), resolve_type_name(catalog, path, query, names)
    )


def sources_named(catalog: Catalog, path: SearchPath, query: Query) -> tuple[Object, ...]:
    """The sources below the relations that a query names. Those that were found count even if the analysis fails."""
    names = Names()
    with suppress(HeadgateError):
        _analyse(catalog, path, query, names)
    ids = [id_ for id_, _ in names.found.values()]
    found = {o.id: o for id_ in ids for o in (catalog.get(id_), *upstream(catalog, id_))}
    return tuple(o for o in found.values() if o.kind in READ_KINDS)


def resolved_query(catalog: Catalog, path: SearchPath, query: Query, analysed: AnalysedQuery) -> Query:
    """The query with the meaning of each name in it, as its analysis found it. The analysis is kept for it too."""
    references = tuple(
        Reference(r.span.start, r.span.end, *_meaning(r), None if r.of is None else r.of.start)
        for r in analysed.references
    )
    types = tuple(
        WrittenType(t.span.start, t.span.end, t.type, full)
        for t in analysed.types
        if (full := qualified_type(catalog, path, t.type)) != t.type or any(type_names(full))
    )
    resolved = replace(query, references=references, types=types)
    keep_for_resolved(catalog, path, query, resolved)
    return resolved


def _meaning(reference: RelationReference) -> tuple[ObjectName, str]:
    """The name with its id, and the relation's own name. A system relation has its full name and no id."""
    written = tuple(Identifier(part.name, part.quoted) for part in reference.parts)
    relation = reference.relation
    if relation.schema is None:
        return ObjectName(written, relation.id), relation.name
    full = (Identifier(relation.schema), Identifier(relation.name))
    return ObjectName(full if reference.of is None else written), relation.name


def relations_read(analysed: AnalysedQuery) -> tuple[int, ...]:
    """The ids of the catalog's own relations that a query reads."""
    return tuple(relation.id for relation in analysed.relations if relation.id is not None)


def system_relations_read(analysed: AnalysedQuery) -> tuple[str, ...]:
    """The system relations that a query reads, as `schema.table`."""
    return tuple(f"{r.schema}.{r.name}" for r in analysed.relations if r.schema is not None)


def names_hidden_columns(analysed: AnalysedQuery, name: str) -> bool:
    """Whether a query uses a hidden column of a system relation, given as `schema.table`. Most relations have none."""
    relation = next(r for r in SYSTEM_RELATIONS if f"{r.schema}.{r.name}" == name)
    return bool(relation.hidden) and not relation.hidden.isdisjoint(
        columns_used(analysed.tree, relation.schema, relation.name)
    )


def key_columns(relation: Object) -> Sequence[str]:
    return [c.name for c in relation.columns if c.key]
