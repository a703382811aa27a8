"""CREATE VIEW and CREATE TYPE: objects that are nothing but a definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.graph import blocking_users, type_dependencies
from headgate.catalog.names import SearchPath
from headgate.catalog.objects import Column, Comment, Dependency, DependencyKind, Growth, Object
from headgate.plan.columns import evolved_columns
from headgate.plan.errors import ColumnOfUnknownType, ColumnTwice, TooManyNames, ViewInUse
from headgate.plan.relations import analyse_query, find_type, origin_ref, relations_read
from headgate.plan.type_names import called_again
from headgate.schema.render import print_type
from headgate.schema.types import Array, Field, Map, Named, Type, map_named
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.statement import Query
from headgate.sql.types import CreateType, ListBody, MapBody, OtherBody, RecordBody
from headgate.text.cursor import Identifier


def view_columns(
    analysed: AnalysedQuery, names: Sequence[Identifier], view: str, asked: Sequence[Type] = ()
) -> tuple[Column, ...]:
    """The columns of a view, renamed by its list of names; each must have a type and a name of its own. ``asked`` are
    the types as Spark told them, for those that we do not know."""
    if len(names) > len(analysed.columns):
        raise TooManyNames(view, len(names), len(analysed.columns))
    columns: list[Column] = []
    for position, column in enumerate(analysed.columns):
        name = names[position].name if position < len(names) else column.name
        type_ = column.type or (asked[position] if asked else None)
        if type_ is None:
            raise ColumnOfUnknownType(name)
        if any(c.name == name for c in columns):
            raise ColumnTwice(name, view)
        printed = print_type(called_again(type_), full=True)
        columns.append(Column(position + 1, name, printed, column.nullable, origin=origin_ref(column)))
    return tuple(columns)


def replaced_columns(catalog: Catalog, old: Object, columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns of a view that replaces another: a column that keeps its name keeps its id, no id comes back.

    What others were planned with stays: as long as the view is used, its columns cannot become others.
    """
    users = tuple((o.kind.value, catalog.shown(o.id)) for o in blocking_users(catalog, old.id))
    if users and [_shape(c) for c in old.columns] != [_shape(c) for c in columns]:
        raise ViewInUse(old.name, users)
    return evolved_columns(old, columns)


def _shape(column: Column) -> tuple[str, str, bool]:
    return column.name, print_type(column.parsed), column.nullable


def derive_growth(
    catalog: Catalog, analysed: AnalysedQuery, columns: Sequence[Column]
) -> tuple[Growth, tuple[Column, ...]]:
    """Kind and key of a query over one relation row by row: those of the relation, if its key survives."""
    ids = relations_read(analysed)
    if not analysed.row_by_row or len(ids) != 1:
        return Growth.APPEND, tuple(columns)
    relation = catalog.get(ids[0])
    if relation.growth is not Growth.KEYED:
        return Growth.APPEND, tuple(columns)
    wanted = {c.id for c in relation.columns if c.key}
    kept: dict[int, int] = {}  # column of the relation -> the first of ours that shows it
    for column in columns:
        if column.origin is not None and column.origin.object == relation.id:
            kept.setdefault(column.origin.column, column.id)
    if not wanted <= kept.keys():
        return Growth.APPEND, tuple(columns)
    key = {kept[id_] for id_ in wanted}
    return Growth.KEYED, tuple(replace(c, key=c.id in key) for c in columns)


def query_dependencies(
    catalog: Catalog, path: SearchPath, query: Query
) -> tuple[AnalysedQuery, tuple[Dependency, ...]]:
    """The query, and what it needs: the relations that it reads, and the types that it or its result names."""
    analysed = analyse_query(catalog, path, query)
    reads = tuple(Dependency(id_, DependencyKind.READS) for id_ in relations_read(analysed))
    written = [qualified(catalog, path, place.type) for place in analysed.types]
    given = [called_again(column.type) for column in analysed.columns if column.type is not None]
    return analysed, (*reads, *type_dependencies(catalog, [*written, *given]))


def type_definition(
    catalog: Catalog, path: SearchPath, statement: CreateType
) -> tuple[tuple[Column, ...], str | None, tuple[Dependency, ...]]:
    """Columns of a record type, or the body of any other; and the types that it uses, by their full names."""
    match statement.body:
        case RecordBody(fields):
            typed = [Field(f.name.name, qualified(catalog, path, f.type), f.nullable) for f in fields]
            columns = tuple(
                Column(i, f.name, print_type(f.type, full=True), f.nullable, comment=Comment())
                for i, f in enumerate(typed, start=1)
            )
            return columns, None, type_dependencies(catalog, [f.type for f in typed])
        case ListBody(element):
            body: Type = Array(qualified(catalog, path, element))
        case MapBody(value):
            body = Map(qualified(catalog, path, value))
        case OtherBody(type_):
            body = qualified(catalog, path, type_)
    return (), print_type(body, full=True), type_dependencies(catalog, [body])


def qualified(catalog: Catalog, path: SearchPath, type_: Type) -> Type:
    """The type with every name in it replaced by the full name that it has in the catalog."""
    return map_named(type_, lambda named: Named(catalog.path(find_type(catalog, path, named).id)))
