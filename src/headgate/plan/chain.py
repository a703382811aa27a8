"""Chains without state: a source, views that are computed row by row, and what reads the last of them."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.catalog.catalog import Catalog
from headgate.catalog.definitions import search_path_of, statement_of
from headgate.catalog.objects import ColumnRef, Object
from headgate.errors import HeadgateError
from headgate.plan.errors import ColumnNameTaken, NotSupportedYet, ViewNoLongerValid
from headgate.plan.relations import analyse_query, origin_ref, relations_read
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.statement import Kind
from headgate.sql.views import CreateView


def source_of(catalog: Catalog, relation_id: int) -> Object:
    """The one source at the beginning of a chain of views; anything else is not run as a chain yet."""
    relation = catalog.get(relation_id)
    while relation.kind is Kind.VIEW:
        analysed = sound_query(catalog, relation)
        reads = relations_read(analysed)
        if not analysed.row_by_row or len(reads) != 1:
            raise NotSupportedYet("a sink over a view that is not computed row by row")
        relation = catalog.get(reads[0])
    if relation.kind is not Kind.SOURCE:
        raise NotSupportedYet(f"a sink over a {relation.kind}")
    return relation


def view_query(catalog: Catalog, view: Object) -> AnalysedQuery:
    """A view's query, analysed anew: names by the search path of its creation, columns as they are now."""
    return analyse_query(catalog, search_path_of(view), statement_of(view, CreateView).query)


def sound_query(catalog: Catalog, view: Object) -> AnalysedQuery:
    """A view's query, if it still gives the view's columns: a source may have followed a change that the view could not."""
    try:
        analysed = view_query(catalog, view)
    except HeadgateError as error:
        raise outgrown(catalog, view, error) from error
    if wrong := _misfit(analysed, view):
        raise ViewNoLongerValid(catalog.shown(view.id), wrong)
    return analysed


def outgrown(catalog: Catalog, view: Object, error: HeadgateError) -> ViewNoLongerValid:
    advice = error.hint() if isinstance(error, ColumnNameTaken) else None
    return ViewNoLongerValid(catalog.shown(view.id), error.message(), advice or "")


def _misfit(analysed: AnalysedQuery, view: Object) -> str | None:
    names = [column.name for column in analysed.columns]
    if len(names) == len(view.columns):
        return moved(view, [origin_ref(column) for column in analysed.columns])
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        return f'column "{twice}" appears twice'
    return f"its query gives {len(names)} columns instead of {len(view.columns)}"


def moved(view: Object, origins: Sequence[ColumnRef | None]) -> str | None:
    """What is wrong if one of a view's columns would be another column of what it reads: lists of names within a query
    go by position."""
    for column, origin in zip(view.columns, origins, strict=True):
        if column.origin is not None and column.origin != origin:
            return f'column "{column.name}" would be another one'
    return None
