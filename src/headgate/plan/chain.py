"""The queries of views as they are now, and what follows from them: growth, stability, and chains down to a source.

A chain is a source, or a materialized view, and views over it that are computed row by row. A sink can run it without keeping
rows. `check_loops` refuses a sink that would read its own records again, from its own topic or through other sources and sinks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from headgate.catalog.catalog import Catalog
from headgate.catalog.graph import downstream
from headgate.catalog.names import DEFAULT_PATH
from headgate.catalog.objects import Column, Dependency, DependencyKind, Growth, Object, definition_of
from headgate.errors import HeadgateError
from headgate.plan.errors import ColumnNameTaken, NotSupportedYet, ViewNoLongerValid, ViewNotRowByRow
from headgate.plan.relations import analyse_query, relations_read
from headgate.plan.sink_errors import SinkFeedsItself
from headgate.resolve.statements import TopicIds, kafka_server, object_id, topic_name
from headgate.resolve.streams import READ_KINDS, read_statement
from headgate.sql import connections
from headgate.sql.query import growth
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.query.tree import ColumnRef, RelationName, Stability, Unstable
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind
from headgate.sql.views import CreateMaterializedView, CreateView


@dataclass(frozen=True, slots=True)
class Chain:
    """A source or a materialized view, and the queries of the views over it, the last view first."""

    source: Object
    queries: tuple[AnalysedQuery, ...] = ()

    def unstable(self) -> Unstable:
        """The functions with changing results that the last relation depends on. A source has none, as its rows are stored."""
        found = Unstable()
        for query in reversed(self.queries):
            found = Stability(query.tree, lambda _, below=found: below).result  # type: ignore[misc]
        return found


def chain_of(catalog: Catalog, relation_id: int, task: str = "a sink") -> Chain:
    """The chain below a relation that ``task`` reads. Raises ViewNotRowByRow and NotSupportedYet for anything except views
    over one source or materialized view."""
    relation = catalog.get(relation_id)
    queries: list[AnalysedQuery] = []
    while relation.kind is Kind.VIEW:
        analysed = valid_query(catalog, relation)
        reads = relations_read(analysed)
        if not analysed.row_by_row or len(reads) != 1:
            raise ViewNotRowByRow(task, relation.name)
        queries.append(analysed)
        relation = catalog.get(reads[0])
    if relation.kind not in (*READ_KINDS, Kind.MATERIALIZED_VIEW):
        raise NotSupportedYet(f"{task} over a {relation.kind}")
    return Chain(relation, tuple(queries))


def view_query(catalog: Catalog, view: Object) -> AnalysedQuery:
    """The query of a view, materialized or not, analysed over the columns that its relations have now."""
    if view.kind is Kind.MATERIALIZED_VIEW:
        return analyse_query(catalog, DEFAULT_PATH, definition_of(view, CreateMaterializedView).query)
    return analyse_query(catalog, DEFAULT_PATH, definition_of(view, CreateView).query)


def valid_query(catalog: Catalog, view: Object) -> AnalysedQuery:
    """The query of a view. Raises ViewNoLongerValid if it does not return the view's columns any more, because a source
    followed a schema change that the view could not follow."""
    try:
        analysed = view_query(catalog, view)
    except HeadgateError as error:
        raise view_error(catalog, view, error) from error
    if wrong := _mismatch(analysed, view):
        raise ViewNoLongerValid(catalog.display_name(view.id), wrong)
    return analysed


def query_growth(catalog: Catalog, analysed: AnalysedQuery) -> growth.Growth:
    """The growth of a query, derived from its tree and from the relations that it reads."""

    def growth_of(read: RelationName) -> growth.Growth:
        if read.id is None:
            return growth.Changing("A system relation changes with every statement.")
        return relation_growth(catalog, catalog.get(read.id))

    return growth.derive(analysed.tree, growth_of, query_stability(catalog, analysed))


def query_stability(catalog: Catalog, analysed: AnalysedQuery) -> Stability:
    """The functions with changing results that a query depends on, directly or through the views that it reads."""

    def unstable_of(read: RelationName) -> Unstable:
        return Unstable() if read.id is None else relation_stability(catalog, catalog.get(read.id))

    return Stability(analysed.tree, unstable_of)


def relation_stability(catalog: Catalog, relation: Object) -> Unstable:
    """The functions with changing results that a relation depends on. Stored rows, as those of a source, have none."""
    if relation.kind is not Kind.VIEW:
        return Unstable()
    return query_stability(catalog, valid_query(catalog, relation)).result


def relation_growth(catalog: Catalog, relation: Object) -> growth.Growth:
    """The growth of a relation. For a changing view, the reason comes from its query."""
    match relation.growth:
        case Growth.KEYED:
            return growth.Keyed(tuple(at for at, column in enumerate(relation.columns) if column.key))
        case Growth.CHANGING if relation.kind in (Kind.VIEW, Kind.MATERIALIZED_VIEW):
            derived = query_growth(catalog, valid_query(catalog, relation))
            return derived if isinstance(derived, growth.Changing) else growth.Changing("No key is known.")
        case Growth.CHANGING:
            return growth.Changing("No key is known.")
        case _:
            return growth.Append()


def source_key(catalog: Catalog, relation: Object) -> set[ColumnRef | None]:
    """The columns of the source that the key columns of a relation are plain projections of; None for a computed one."""
    return {_root(catalog, ColumnRef(relation.id, column.id)) for column in relation.columns if column.key}


def source_key_columns(catalog: Catalog, source: Object, columns: Sequence[Column]) -> dict[str, str] | None:
    """For each column of a source's key the column, among some of a view, that is a plain projection of it; None if there is
    not one for each."""
    roots = {_root(catalog, column.origin): column.name for column in columns if column.origin is not None}
    keys = {column.name: ColumnRef(source.id, column.id) for column in source.columns if column.key}
    found = {name: roots[ref] for name, ref in keys.items() if ref in roots}
    return found if len(found) == len(keys) else None


def _root(catalog: Catalog, ref: ColumnRef) -> ColumnRef | None:
    while (relation := catalog.get(ref.object)).kind is Kind.VIEW:
        column = relation.column(ref.column)
        if column is None or column.origin is None:
            return None
        ref = column.origin
    return ref


def view_error(catalog: Catalog, view: Object, error: HeadgateError) -> ViewNoLongerValid:
    """The error of a view whose query fails now."""
    advice = error.hint() if isinstance(error, ColumnNameTaken) else None
    return ViewNoLongerValid(catalog.display_name(view.id), error.message(), advice or "")


def _mismatch(analysed: AnalysedQuery, view: Object) -> str | None:
    """Why the query does not return the columns of the view; None if it does."""
    names = [column.name for column in analysed.columns]
    if len(names) == len(view.columns):
        return changed_origin(view, [column.origin for column in analysed.columns])
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        return f'column "{twice}" appears twice'
    return f"its query gives {len(names)} columns instead of {len(view.columns)}"


def changed_origin(view: Object, origins: Sequence[ColumnRef | None]) -> str | None:
    """Names the first column of a view that would come from another column than before; None if there is none.

    A list of names inside a query goes by position, so a new column can shift the others.
    """
    for column, origin in zip(view.columns, origins, strict=True):
        if column.origin is not None and column.origin != origin:
            return f'column "{column.name}" would be another one'
    return None


LOCAL = ("localhost", "[::1]")

Addresses: TypeAlias = frozenset[str]


@dataclass(frozen=True, slots=True)
class Hop:
    """A sink that reads, over ``source``, what the sink ``after`` writes."""

    after: int
    source: Object
    topic: str


def check_loops(catalog: Catalog, sinks: Iterable[int], ids: TopicIds) -> None:
    """Raises SinkFeedsItself if one of these sinks would read records that it wrote."""
    for sink in sinks:
        if way := _path_to_itself(catalog, sink, ids):
            over = tuple(catalog.get(hop.after).name for hop in way[1:])
            source, topic = way[0].source, way[0].topic
            raise SinkFeedsItself(
                _owner_kind(catalog, sink).value, catalog.get(sink).name, source.kind.value, source.name, topic, over
            )


def _owner_kind(catalog: Catalog, sink: int) -> Kind:
    """What the user made: a sink, or the stream or table that the sink fills."""
    filled = Dependency(sink, DependencyKind.FILLED_BY)
    return next((o.kind for o in catalog.of_kind(Kind.STREAM, Kind.TABLE) if filled in o.dependencies), Kind.SINK)


def _path_to_itself(catalog: Catalog, start: int, ids: TopicIds) -> list[Hop]:
    """The hops from a sink through other sinks back to itself; empty if there is no such path."""
    hops: dict[int, Hop] = {}
    waiting = [start]
    while waiting and start not in hops:
        at = waiting.pop(0)
        topic, readers = _readers(catalog, catalog.get(at), ids)
        for source in readers:
            for sink in downstream(catalog, source.id):
                if sink.kind is Kind.SINK and sink.id not in hops:
                    hops[sink.id] = Hop(at, source, topic)
                    waiting.append(sink.id)
    if start not in hops:
        return []
    way = [hops[start]]
    while way[0].after != start:
        way.insert(0, hops[way[0].after])
    return way


def _readers(catalog: Catalog, sink: Object, ids: TopicIds) -> tuple[str, list[Object]]:
    """The topic that a sink writes, and the sources that read it. Topics of one name are the same if they have one id, or if
    their clusters share an address."""
    written = definition_of(sink, CreateSink).kafka
    topic = topic_name(written)
    sources = [(s, read_statement(s).kafka) for s in catalog.of_kind(*READ_KINDS)]
    same_name = [(source, kafka) for source, kafka in sources if topic_name(kafka) == topic]
    if not same_name:
        return topic, []
    brokers, id_ = _brokers(catalog, written), ids.get((kafka_server(written), topic))

    def is_same(kafka: connections.Kafka[connections.ReadOptions]) -> bool:
        read = ids.get((kafka_server(kafka), topic))
        return bool(id_ and id_ == read) or not brokers.isdisjoint(_brokers(catalog, kafka))

    return topic, [source for source, kafka in same_name if is_same(kafka)]


def _brokers(
    catalog: Catalog, kafka: connections.Kafka[connections.ReadOptions] | connections.Kafka[connections.WriteOptions]
) -> Addresses:
    """Every known address of the cluster. Connections that share one address lead to one cluster."""
    if isinstance(kafka, connections.KafkaConnection):
        known = _addresses(catalog.get(object_id(kafka.connection)))
    else:
        known = frozenset(_normalised(kafka.broker))
    others = [_addresses(other) for other in catalog.of_kind(Kind.CONNECTION)]
    while joined := [each for each in others if not known.isdisjoint(each) and not each <= known]:
        known = known.union(*joined)
    return known


def _addresses(connection: Object) -> Addresses:
    statement = connection.definition
    if not isinstance(statement, connections.CreateConnection) or not isinstance(
        statement.options, connections.KafkaConnectionOptions
    ):
        return frozenset()
    options = statement.options
    brokers = (*((options.broker,) if options.broker is not None else ()), *(options.brokers or ()))
    return frozenset(address for text in brokers for address in _normalised(text))


def _normalised(brokers: str) -> Iterator[str]:
    for each in brokers.split(","):
        address = each.strip().lower().rpartition("://")[2]
        host, _, port = address.rpartition(":")
        yield f"127.0.0.1:{port}" if host in LOCAL else address
