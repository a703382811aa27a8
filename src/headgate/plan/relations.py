"""The catalog's relations as queries see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.comments import column_comment
from headgate.catalog.graph import named_types as type_names
from headgate.catalog.graph import type_by_path, upstream
from headgate.catalog.information_schema import system_relation
from headgate.catalog.names import DEFAULT_PATH, SearchPath, resolve, type_name
from headgate.catalog.objects import Column as CatalogColumn
from headgate.catalog.objects import Object
from headgate.catalog.system_tables import SystemRelation
from headgate.errors import HeadgateError, InternalError, Span
from headgate.plan.analyses import Names, keep_for_resolved, kept_analysis
from headgate.plan.definitions import spark_name, system_name
from headgate.plan.errors import ColumnNameTaken
from headgate.plan.source import key_fields_not_included, plan_source
from headgate.resolve.statements import qualified_type
from headgate.schema.names import print_name
from headgate.schema.types import Array, CatalogRecord, Map, Named, Record, Type
from headgate.sql.query.casts import expanded
from headgate.sql.query.scope import AnalysedQuery, Column, FindRelation, Relation, RelationReference
from headgate.sql.query.select import analyse
from headgate.sql.query.tree import ColumnRef, RelationName
from headgate.sql.sources import CreateSource
from headgate.sql.statement import RELATIONS, Kind, ObjectName, Query, Reference, WrittenType
from headgate.text.cursor import Identifier
from headgate.text.lexer import TokenKind, tokenize


def query_relation(catalog: Catalog, relation: Object) -> Relation:
    """A relation of the catalog as a query sees it."""
    return Relation(
        RelationName(relation.name, relation.id),
        spark_name(relation.id),
        tuple(_column(catalog, relation, c) for c in relation.columns),
        hints=dropped_key(relation),
        withheld=tuple((error.column, error) for error in withheld_fields(relation)),
    )


def _column(catalog: Catalog, relation: Object, column: CatalogColumn) -> Column:
    find = named_types(catalog)
    type_ = expanded(column.type, lambda named: _catalog_record(named.parts, find(named)))
    origin = ColumnRef(relation.id, column.id)
    return Column(column.name, type_, column.nullable, column_comment(catalog, column), origin)


def dropped_key(relation: Object) -> tuple[tuple[str, str], ...]:
    """The fields of the key that a source does not include, each with a hint for whoever selects it."""
    if not isinstance(relation.definition, CreateSource):
        return ()
    hint = f'It is a field of the key, which source "{relation.name}" drops: add INCLUDE KEY to the source.'
    return tuple((name, hint) for name in key_fields_not_included(relation.definition))


def withheld_fields(relation: Object) -> tuple[ColumnNameTaken, ...]:
    """An error for each field of a source that has no column, for whoever selects all columns."""
    if not isinstance(relation.definition, CreateSource):
        return ()
    found = plan_source(relation.definition).withheld
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
    """For types named in a query: by the full name that a stored query has for it, or by the search path."""
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
    """The definition of the type at ``path`` of the catalog. A record knows that it is that type."""
    if not isinstance(definition, Record):
        return definition
    return CatalogRecord(definition.fields, definition.name, definition.doc, path)


def with_type_names(type_: Type) -> Type:
    """The type of a query's column with the names of the catalog's types in place of their records."""
    match type_:
        case CatalogRecord(path=path):
            return Named(path)
        case Record(fields):
            return replace(type_, fields=tuple(replace(f, type=with_type_names(f.type)) for f in fields))
        case Array(element):
            return replace(type_, element=with_type_names(element))
        case Map(value):
            return replace(type_, value=with_type_names(value))
        case _:
            return type_


def find_type(catalog: Catalog, path: SearchPath, named: Named) -> Object:
    """The type that a name in a statement means."""
    known = type_by_path(catalog, named.parts) if len(named.parts) == 3 else None
    return known or resolve(catalog, path, type_name(named), Kind.TYPE)


def analyse_query(catalog: Catalog, path: SearchPath, query: Query) -> AnalysedQuery:
    """What the query gives. Errors point into the statement that the query is part of."""

    def make(names: Names) -> AnalysedQuery:
        return analyse(
            query.text,
            find_relation(catalog, path, query, names),
            resolve_type_name(catalog, path, query, names),
        )

    try:
        # What the names in a stored query mean does not depend on the search path.
        return kept_analysis(catalog, path if not query.references else DEFAULT_PATH, query, make)
    except HeadgateError as error:
        if error.span is not None:
            error.span = Span(error.span.start + query.span.start, error.span.end + query.span.start)
        raise


def sources_named(catalog: Catalog, path: SearchPath, query: Query) -> tuple[Object, ...]:
    """The sources below the relations that a query names, also if the query cannot be analysed."""
    names = Names()
    with suppress(HeadgateError):
        analyse(
            query.text,
            find_relation(catalog, path, query, names),
            resolve_type_name(catalog, path, query, names),
        )
    ids = [id_ for id_, _ in names.found.values()]
    found = {o.id: o for id_ in ids for o in (catalog.get(id_), *upstream(catalog, id_))}
    return tuple(o for o in found.values() if o.kind is Kind.SOURCE)


def resolved_query(catalog: Catalog, path: SearchPath, query: Query, analysed: AnalysedQuery) -> Query:
    """The query with what each name in it means, as its analysis found it. The analysis is kept for it too."""
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
    """The name with its id, and the relation's own name."""
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


def key_columns(relation: Object) -> Sequence[str]:
    return [c.name for c in relation.columns if c.key]
