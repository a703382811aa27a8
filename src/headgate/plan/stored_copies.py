"""Stored copies of sources. A topic does not keep old rows, so a materialized view that needs them again reads a copy.

A copy is an ordinary materialized view, `SELECT * FROM source`. The planner creates it where a view needs one and there is
none. All views over the source share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain, count

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import Dependency, DependencyKind, Growth, Object, definition_of
from headgate.errors import HeadgateError
from headgate.plan.chain import Chain, chain_of, valid_query
from headgate.plan.definitions import SinkDefinition, spark_name
from headgate.plan.sink_option_errors import DebeziumNeedsState
from headgate.resolve.statements import object_id
from headgate.resolve.streams import READ_KINDS
from headgate.schema.names import print_name
from headgate.sql.query import tree as n
from headgate.sql.query.incremental import with_inputs
from headgate.sql.query.tree import ColumnRef
from headgate.sql.script import parse_statement
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind
from headgate.sql.views import CreateMaterializedView


def copies_among(catalog: Catalog, ids: Iterable[int]) -> dict[int, Object]:
    """The copies of sources among some objects, by the id of the source; the oldest of several."""
    found: dict[int, Object] = {}
    for id_ in sorted(ids):
        entry = catalog.objects.get(id_)
        source = None if entry is None else _copied_source(catalog, entry)
        if entry is not None and source is not None:
            found.setdefault(source, entry)
    return found


def _copied_source(catalog: Catalog, view: Object) -> int | None:
    """The source of which a materialized view has all rows and columns, under their own names."""
    if view.kind is not Kind.MATERIALIZED_VIEW or definition_of(view, CreateMaterializedView).assert_not_null:
        return None
    try:
        tree = valid_query(catalog, view).tree
    except HeadgateError:  # it reads what has changed under it, so that it is no copy of anything now
        return None
    nodes = list(n.walk(tree))
    scans = [node for node in nodes if isinstance(node, n.Scan)]
    plain = all(isinstance(node, n.Scan | n.Project | n.Subquery | n.Sort) for node in nodes)
    if len(scans) != 1 or not plain or scans[0].relation.id is None:
        return None
    source = catalog.get(scans[0].relation.id)
    own = [(column.name, column.origin) for column in view.columns]
    copied = [(column.name, ColumnRef(source.id, column.id)) for column in source.columns]
    return source.id if source.kind in READ_KINDS and own == copied else None


def with_old_rows(catalog: Catalog, chain: Chain, statement: CreateSink) -> Chain:
    """The chain of a sink that writes change events, over a stored copy if its source does not keep the old rows. Raises
    DebeziumNeedsState if there is none."""
    source = chain.source
    if statement.envelope != "DEBEZIUM" or source.kind not in READ_KINDS or source.growth is not Growth.KEYED:
        return chain
    copy = copies_among(catalog, catalog.objects).get(source.id)
    if copy is None:
        relation = catalog.get(object_id(statement.relation))
        raise DebeziumNeedsState(statement.name.parts[-1].name, relation.kind.value, relation.name, source.id)
    return replace(chain, source=copy)


def reads_of_sink(catalog: Catalog, statement: CreateSink, sink: SinkDefinition) -> tuple[Dependency, ...]:
    """What a sink reads: its relation, and a stored copy that has the old rows."""
    ids = [sink.relation]
    if sink.old_rows:
        chain = chain_of(catalog, sink.relation)
        over = with_old_rows(catalog, chain, statement)
        ids += [over.source.id] if over.source is not chain.source else []
    return tuple(Dependency(id_, DependencyKind.READS) for id_ in ids)


def over_copies(tree: n.Node, copies: Mapping[int, Object]) -> n.Node:
    """The tree with copies in the place of their sources. Subqueries in expressions are text, and stay as they are."""
    if isinstance(tree, n.Scan):
        copy = None if tree.relation.id is None else copies.get(tree.relation.id)
        if copy is None:
            return tree
        return replace(tree, relation=n.RelationName(copy.name, copy.id), spark_name=spark_name(copy.id))
    return with_inputs(tree, [over_copies(each, copies) for each in n.inputs_of(tree)])


def copy_statement(catalog: Catalog, source: Object) -> CreateMaterializedView:
    """The statement that makes a copy, beside its source, under a name that is free."""
    *where, name = catalog.path(source.id)
    taken = {entry.name.lower() for entry in catalog.objects.values() if entry.parent == source.parent}
    names = chain([f"{name}_rows"], (f"{name}_rows{number}" for number in count(2)))
    free = next(each for each in names if each.lower() not in taken)
    text = f"CREATE MATERIALIZED VIEW {print_name((*where, free))} AS SELECT * FROM {print_name((*where, name))}"
    made = parse_statement(text)
    assert isinstance(made, CreateMaterializedView)
    return made
