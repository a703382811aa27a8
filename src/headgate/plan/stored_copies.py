"""Stored copies of sources. A topic does not keep old rows, so a materialized view that needs them again reads a copy.

A copy is an ordinary materialized view, `SELECT * FROM source`. The planner creates it where a view needs one and there is
none. All views over the source share it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import chain, count

from headgate.catalog.catalog import Catalog
from headgate.catalog.names import resolve_column
from headgate.catalog.objects import Dependency, DependencyKind, Growth, Object, definition_of
from headgate.errors import HeadgateError
from headgate.plan.chain import Chain, chain_of, source_key, valid_query
from headgate.plan.definitions import SinkDefinition, spark_name
from headgate.plan.relations import key_columns
from headgate.plan.sink_errors import DebeziumNeedsState, SinkKeyNotOfSource
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
from headgate.text.cursor import Identifier


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
    """The chain of a sink that needs old rows, over a stored copy if its source does not keep them. Raises DebeziumNeedsState
    or SinkKeyNotOfSource if there is none."""
    source = chain.source
    other_key = writes_other_key(catalog, chain, statement)
    if source.kind not in READ_KINDS or source.growth is not Growth.KEYED:
        return chain
    if statement.envelope != "DEBEZIUM" and not other_key:
        return chain
    copy = copies_among(catalog, catalog.objects).get(source.id)
    if copy is not None:
        return replace(chain, source=copy)
    relation, name = catalog.get(object_id(statement.relation)), statement.name.parts[-1].name
    if other_key:
        written, known = tuple(sink_key(catalog, relation, statement)), tuple(key_columns(source))
        raise SinkKeyNotOfSource(name, written, source.kind.value, source.name, known, source.id)
    raise DebeziumNeedsState(name, relation.kind.value, relation.name, source.id)


def writes_other_key(catalog: Catalog, chain: Chain, statement: CreateSink) -> bool:
    """Whether a sink writes the newest row of each key, and its key is unique but another one than that of its source: it has
    more columns, or its relation has several rows for a key of the source. Old rows then tell which keys are gone."""
    relation, source = catalog.get(object_id(statement.relation)), chain.source
    if (
        statement.envelope not in (None, "UPSERT")
        or Growth.KEYED is not relation.growth
        or Growth.APPEND is source.growth
    ):
        return False
    written, known = set(sink_key(catalog, relation, statement)), set(key_columns(relation))
    of_source = {ColumnRef(source.id, column.id) for column in source.columns if column.key}
    return known <= written and (written != known or source_key(catalog, relation) != of_source)


def sink_key(catalog: Catalog, relation: Object, statement: CreateSink) -> list[str]:
    """The columns of the sink's key. Raises UnknownColumn."""
    columns = () if statement.key is None else statement.key.columns
    return [resolve_column(catalog, relation, Identifier(each.name, each.quoted)).name for each in columns]


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


def made_copy(view: Object, source: Object) -> Object:
    """A copy as an object that the planner makes."""
    reads, copies = Dependency(source.id), Dependency(source.id, DependencyKind.COPIES)
    return replace(view, dependencies=tuple(copies if each == reads else each for each in view.dependencies))


def copies_left(catalog: Catalog, dropped: Collection[int]) -> tuple[Object, ...]:
    """The copies that the planner made for objects that are dropped, and that nothing else uses."""
    used = dict.fromkeys(need.on for id_ in dropped for need in catalog.get(id_).dependencies)
    return tuple(catalog.get(id_) for id_ in used if id_ not in dropped and _is_left(catalog, id_, dropped))


def _is_left(catalog: Catalog, id_: int, dropped: Collection[int]) -> bool:
    is_made = any(need.use is DependencyKind.COPIES for need in catalog.get(id_).dependencies)
    return is_made and all(user in dropped for user in catalog.users.get(id_, ()))


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
