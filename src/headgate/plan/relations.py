"""The catalog's relations as queries see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headgate.catalog.catalog import Catalog
from headgate.catalog.comments import column_comment
from headgate.catalog.graph import type_by_path
from headgate.catalog.information_schema import system_relation
from headgate.catalog.names import SearchPath, resolve, type_name
from headgate.catalog.objects import RELATIONS, ColumnRef, Object
from headgate.catalog.objects import Column as CatalogColumn
from headgate.catalog.system_tables import SystemRelation
from headgate.errors import HeadgateError, InternalError, Span
from headgate.plan.definitions import spark_name
from headgate.plan.errors import ColumnNameTaken
from headgate.plan.type_names import looked_through
from headgate.schema.names import print_name
from headgate.schema.types import Named, Type
from headgate.sql.query.casts import expanded
from headgate.sql.query.scope import AnalysedQuery, Column, FindRelation, Relation
from headgate.sql.query.select import analyse
from headgate.sql.statement import Kind, ObjectName, Query
from headgate.text.cursor import Identifier

WITHHELD = "withheld"  # the fact of a source that tells of fields without a column
SYSTEM = "system."  # before the name of a system relation among those that a query reads


def query_relation(catalog: Catalog, relation: Object) -> Relation:
    """A relation of the catalog. Its name begins with its id, by which the query's caller finds it again, and ends in
    what the query calls it unless it gives it an alias."""
    columns = tuple(_column(catalog, relation, c) for c in relation.columns)
    name = f"{relation.id}.{relation.name}"
    return Relation(
        name,
        spark_name(relation.id),
        columns,
        hints=dropped_key(relation),
        alias=relation.name,
        withheld=tuple((error.column, error) for error in withheld_fields(relation)),
    )


def _column(catalog: Catalog, relation: Object, column: CatalogColumn) -> Column:
    find = named_types(catalog)
    type_ = expanded(column.parsed, lambda named: looked_through(named.parts, find(named)))
    origin = (str(relation.id), str(column.id))
    return Column(column.name, type_, column.nullable, column_comment(catalog, column), origin)


def dropped_key(relation: Object) -> tuple[tuple[str, str], ...]:
    """A source that drops its key says so to whoever selects a field of it."""
    if relation.kind is not Kind.SOURCE:
        return ()
    dropped = relation.purified_json().get("dropped_key")
    if not isinstance(dropped, list):
        return ()
    hint = f'It is a field of the key, which source "{relation.name}" drops: add INCLUDE KEY to the source.'
    return tuple((str(name), hint) for name in dropped)


def withheld_fields(relation: Object) -> tuple[ColumnNameTaken, ...]:
    """What a source that follows could not give a column: an error for whoever takes all its columns."""
    stored = relation.purified_json().get(WITHHELD) if relation.kind is Kind.SOURCE else None
    if not isinstance(stored, list):
        return ()
    return tuple(ColumnNameTaken(relation.name, *map(str, each)) for each in stored)


def find_relation(catalog: Catalog, path: SearchPath) -> FindRelation:
    def find(parts: tuple[Identifier, ...]) -> Relation:
        written = ObjectName(tuple(Identifier(part.name, part.quoted) for part in parts))
        system = system_relation(path, written)
        if system is not None:
            return _system(system)
        return query_relation(catalog, resolve(catalog, path, written, *sorted(RELATIONS)))

    return find


def _system(system: SystemRelation) -> Relation:
    columns = [Column(f.name, f.type, f.nullable, f.doc) for f in system.columns.fields]
    shown = tuple(c for c in columns if c.name not in system.hidden)
    hidden = tuple(c for c in columns if c.name in system.hidden)
    return Relation(f"{SYSTEM}{system.schema}.{system.name}", f"{system.schema}_{system.name}", shown, hidden)


def named_types(catalog: Catalog) -> Callable[[Named], Type]:
    def resolve_type(named: Named) -> Type:
        found = type_by_path(catalog, named.parts)
        if found is None:
            raise InternalError(f"type {print_name(named.parts)} is not in the catalog")
        return found.definition()

    return resolve_type


def resolve_type_name(catalog: Catalog, path: SearchPath) -> Callable[[Named], Type]:
    """For types named in a query: found by the search path, wherever the name was written."""

    def resolve_type(named: Named) -> Type:
        found = find_type(catalog, path, named)
        return looked_through(catalog.path(found.id), found.definition())

    return resolve_type


def find_type(catalog: Catalog, path: SearchPath, named: Named) -> Object:
    """The type that a name in a statement means."""
    known = type_by_path(catalog, named.parts) if len(named.parts) == 3 else None
    return known or resolve(catalog, path, type_name(named), Kind.TYPE)


def analyse_query(catalog: Catalog, path: SearchPath, query: Query) -> AnalysedQuery:
    """What the query gives. Errors point into the statement that the query is part of."""
    try:
        return analyse(query.text, find_relation(catalog, path), resolve_type_name(catalog, path))
    except HeadgateError as error:
        if error.span is not None:
            error.span = Span(error.span.start + query.span.start, error.span.end + query.span.start)
        raise


def relations_read(analysed: AnalysedQuery) -> tuple[int, ...]:
    """The ids of the catalog's own relations that a query reads."""
    return tuple(id_ for id_ in map(relation_id, analysed.relations) if id_ is not None)


def relation_id(name: str) -> int | None:
    """The id of a relation of the catalog, by the name that a query's caller gave it; None for a system relation."""
    return None if name.startswith(SYSTEM) else int(name.partition(".")[0])


def system_relations_read(analysed: AnalysedQuery) -> tuple[str, ...]:
    return tuple(name.removeprefix(SYSTEM) for name in analysed.relations if name.startswith(SYSTEM))


def origin_ref(column: Column) -> ColumnRef | None:
    if column.origin is None or not column.origin[0].isdigit():
        return None
    return ColumnRef(int(column.origin[0]), int(column.origin[1]))


def key_columns(relation: Object) -> Sequence[str]:
    return [c.name for c in relation.columns if c.key]
