"""SUBSCRIBE and SELECT … EMIT CHANGES: whose changes a query gives."""

from __future__ import annotations

from headgate.catalog.catalog import Catalog
from headgate.catalog.names import DEFAULT_PATH
from headgate.plan.chain import chain_of
from headgate.plan.errors import NotSupportedYet
from headgate.plan.plans import FollowChanges
from headgate.plan.relations import analyse_query, relations_read
from headgate.sql.statement import Kind, ObjectName, Query, print_name


def follow_changes(catalog: Catalog, query: Query, *, snapshot: bool = True, limit: int | None = None) -> FollowChanges:
    """The plan of a resolved query that is computed row by row over one materialized view. Raises for others."""
    analysed = analyse_query(catalog, DEFAULT_PATH, query)
    reads = relations_read(analysed)
    if len(reads) != 1 or not analysed.row_by_row:
        raise NotSupportedYet("EMIT CHANGES of a query that is not computed row by row")
    source = chain_of(catalog, reads[0]).source
    if source.kind is not Kind.MATERIALIZED_VIEW:
        raise NotSupportedYet(f"the changes of a {source.kind}")
    return FollowChanges(query, source.id, snapshot, limit)


def all_of(relation: ObjectName) -> Query:
    """The query for all rows of a relation."""
    return Query(f"SELECT * FROM {print_name(relation)}")
