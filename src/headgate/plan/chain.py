"""Chains without state: a source, views that are computed row by row, and what reads the last of them."""

from __future__ import annotations

from headgate.catalog.definitions import search_path_of, statement_of
from headgate.catalog.objects import Kind, Object
from headgate.catalog.snapshot import Catalog
from headgate.plan.errors import NotSupportedYet
from headgate.plan.relations import analyse_query, relations_read
from headgate.sql.ast.views import CreateView
from headgate.sql.query.relation import AnalysedQuery


def source_of(catalog: Catalog, relation_id: int) -> Object:
    """The one source at the beginning of a chain of views; anything else is not run as a chain yet."""
    relation = catalog.get(relation_id)
    while relation.kind is Kind.VIEW:
        analysed = view_query(catalog, relation)
        reads = relations_read(analysed)
        if not analysed.stateless or len(reads) != 1:
            raise NotSupportedYet("a sink over a view that is not computed row by row")
        relation = catalog.get(reads[0])
    if relation.kind is not Kind.SOURCE:
        raise NotSupportedYet(f"a sink over a {relation.kind}")
    return relation


def view_query(catalog: Catalog, view: Object) -> AnalysedQuery:
    """A view's query, analysed anew: names by the search path of its creation, columns as they are now."""
    return analyse_query(catalog, search_path_of(view), statement_of(view, CreateView).query)
