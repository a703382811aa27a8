"""Definitions of sources, queries and tasks for the runtime, made from the catalog.

Stored statements are planned for the runtime here. A view or sink that can no longer be planned, because a source below it
followed a schema change, raises here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.names import DEFAULT_PATH
from headgate.catalog.objects import Column, Growth, Object, definition_of
from headgate.catalog.system_tables import SYSTEM_RELATIONS
from headgate.plan import definitions as d
from headgate.plan.chain import chain_of, valid_query
from headgate.plan.errors import NotSupportedYet
from headgate.plan.exact_numbers import exact_read, read_fields, with_exact_fields
from headgate.plan.impact import check_sink_schemas, needed_sink
from headgate.plan.latency import choose_latency
from headgate.plan.materializations import existing_materialization
from headgate.plan.materialized_views import materialized, materialized_definition
from headgate.plan.reading import layout_of
from headgate.plan.relations import (
    analyse_query,
    key_columns,
    names_hidden_columns,
    query_relation,
    relations_read,
    system_relations_read,
)
from headgate.plan.sink import with_own_schemas
from headgate.plan.stored_copies import with_old_rows
from headgate.plan.target_definitions import Fields, OnDemandDefinition, TableDefinition
from headgate.resolve.statements import kafka_server, registry_server, topic_name
from headgate.resolve.streams import read_statement
from headgate.runtime.errors import SinkCannotFollow
from headgate.schema.render import print_type
from headgate.schema.types import Bigint, Decimal, Enum, Field, Integer, Record, Text, Type, Uuid, plain
from headgate.sql.formats import Format
from headgate.sql.materializations import CreateMaterialization
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.query.tree import ColumnRef
from headgate.sql.query.tree_sql import View, marked_sql, positioned_sql, view_sql
from headgate.sql.registry_formats import RegistryFormat
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Kind, Query


def source_definition(source: Object) -> d.SourceDefinition:
    """How and where a source is read."""
    statement = read_statement(source)
    formats = statement.formats
    return d.SourceDefinition(
        source.id,
        source.name,
        topic_name(statement.kafka),
        kafka_server(statement.kafka),
        layout_of(source),
        _registry(formats.key or formats.value),
        _registry(formats.value),
        _start_offsets(statement),
        source.kind.value,
    )


def _registry(format_: Format) -> d.ConnectionRef | None:
    if not isinstance(format_, RegistryFormat):
        return None
    return registry_server(format_.registry)


def _start_offsets(statement: CreateSource) -> dict[int, int]:
    """The first offset of each partition. Offsets that were frozen at creation are preferred to written ones."""
    options = statement.kafka.options
    given = options.start_offset if options.seed_offset is None else options.seed_offset
    return dict(enumerate(given)) if isinstance(given, tuple) else {}


def task_definition(catalog: Catalog, task: Object) -> d.TaskDefinition:
    """Everything that a task needs."""
    return materialization_task(catalog, task) if task.kind is Kind.MATERIALIZATION else sink_task(catalog, task)


def materialization_task(catalog: Catalog, entry: Object) -> d.TaskDefinition:
    """Everything that the task of a materialization needs. Raises whatever keeps its target from following its relation."""
    planned = existing_materialization(catalog, entry)
    assert not isinstance(planned, OnDemandDefinition), "no task runs for it"
    relation = catalog.get(planned.relation)
    chain = _chain(catalog, relation, [column.name for column in relation.columns if column.key], read_fields(planned))
    statement = definition_of(entry, CreateMaterialization)
    written = (statement.fields and statement.fields.sql(), statement.with_options.nested) if planned.merges else None
    keys = (chain.source.id, planned.key if planned.merges else (), statement.with_options.seed_backfill)
    rows = (planned.relation, _written_views(catalog, chain.relations), written) if planned.merges else ()
    name = d.DefinitionName(_hash(keys), _hash(rows)).text
    one = "a transaction of the target" if isinstance(planned, TableDefinition) else "some bulks of documents"
    latency = d.Latency("micro-batch", f"a batch is {one}")
    planned = with_exact_fields(planned, chain.fields)
    return d.TaskDefinition(
        entry.id, entry.name, chain.source, chain.relations, planned, chain.key, name, chain.marked, chain.positioned, latency,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Chain:
    """What lies between a source, or a materialized view, and a task, for the runtime."""

    source: d.SourceDefinition | d.MaterializedDefinition
    relations: d.Relations
    key: dict[str, str]
    marked: str | None
    positioned: str | None
    fields: Fields = ()


def _chain(catalog: Catalog, relation: Object, keys: Sequence[str], fields: Fields = ()) -> _Chain:
    """The chain below a relation that is written by these key columns, read so that these fields of it have every digit."""
    relations = relation_definitions(catalog, [relation.id])
    source = relations[chain_of(catalog, relation.id).source.id]
    assert not isinstance(source, d.ViewDefinition)
    by_name = {column.name: column for column in relation.columns}
    appends = source.appends if isinstance(source, d.MaterializedDefinition) else source.layout.envelope == "NONE"
    key = {} if appends else {k: _source_column(catalog, relation, by_name[k]).name for k in keys}
    if isinstance(source, d.MaterializedDefinition):
        return _Chain(source, relations, key, None, None, fields)
    views = _views(catalog, relation.id, relations)
    read = exact_read(source, [tree for _, tree in views], fields)
    source, trees = read.source, read.views
    relations |= _read_by(relations, source, [id_ for id_, _ in views], trees)
    columns = [column.name for column in source.layout.columns]
    marked = marked_sql(d.spark_name(source.id), columns, trees, tuple(key), d.PRESENT) if key else None
    positioned = positioned_sql(d.spark_name(source.id), [d.spark_name(id_) for id_, _ in views], trees, d.AT)
    return _Chain(source, relations, key, marked, positioned, read.fields)


def _read_by(
    relations: d.Relations, source: d.SourceDefinition, ids: Sequence[int], views: Sequence[View]
) -> dict[int, d.RelationDefinition]:
    """The source and the views over it as a task reads them, where that is not as everybody does."""
    made: dict[int, d.RelationDefinition] = {}
    if relations[source.id] == source:
        return made
    for id_, view in zip(ids, views, strict=True):
        known = relations[id_]
        assert isinstance(known, d.ViewDefinition)
        columns = tuple((name, None) for name in view[1])
        query = replace(known.query, sql=view_sql(view), columns=columns, expressions=())  # these are places in the SQL
        made[id_] = replace(known, query=query, columns=tuple(view[1]))
    return made | {source.id: source}


def exact_relations(
    catalog: Catalog, relation: int, relations: dict[int, d.RelationDefinition], fields: Fields
) -> tuple[dict[int, d.RelationDefinition], Fields]:
    """Relations that are read so that these fields of one of them have every digit, if it is a source or lies over one alone."""
    below = relations[relation]
    while isinstance(below, d.ViewDefinition) and len(below.query.relations) == 1:
        below = relations[below.query.relations[0]]
    if not isinstance(below, d.SourceDefinition):
        return relations, fields
    views = _views(catalog, relation, relations)
    read = exact_read(below, [tree for _, tree in views], fields)
    return relations | _read_by(relations, read.source, [id_ for id_, _ in views], read.views), read.fields


def sink_task(catalog: Catalog, sink: Object) -> d.TaskDefinition:
    """Everything that a sink's task needs. Raises SinkCannotFollow if the sink's schemas cannot hold its columns, and
    SinkKeyChanges if its keys would have other bytes."""
    needed = needed_sink(catalog, sink)
    statement = definition_of(sink, CreateSink)
    planned = with_own_schemas(needed, statement)
    if missing := check_sink_schemas(sink, needed, planned):
        raise SinkCannotFollow(sink.name, missing)
    below = with_old_rows(catalog, chain_of(catalog, planned.relation), statement)
    if below.source.kind is Kind.MATERIALIZED_VIEW:
        return _over_view(catalog, sink, planned, below.source)
    relation = catalog.get(planned.relation)
    keys = planned.key.columns if planned.envelope == "UPSERT" and planned.key is not None else ()
    chain = _chain(catalog, relation, keys)
    assert isinstance(chain.source, d.SourceDefinition)
    definition = _definition_name(catalog, planned, chain.source.id, chain.relations)
    latency = choose_latency(catalog, statement, planned, chain.source.layout, below)
    source = _from_snapshot(chain.source, sink)
    return d.TaskDefinition(
        sink.id, sink.name, source, chain.relations, planned, chain.key, definition, chain.marked, chain.positioned, latency,
    )  # fmt: skip


def _over_view(catalog: Catalog, sink: Object, planned: d.SinkDefinition, view: Object) -> d.TaskDefinition:
    """The task of a sink that is fed from the changes of a materialized view."""
    relations = relation_definitions(catalog, [planned.relation, view.id])
    source = relations[view.id]
    assert isinstance(source, d.MaterializedDefinition)
    key = {} if source.appends or planned.old_rows else _source_key(catalog, planned)
    event_key = _event_key(catalog.get(planned.relation), planned) if planned.old_rows else ()
    definition = _definition_name(catalog, planned, source.id, relations)
    latency = choose_latency(
        catalog, definition_of(sink, CreateSink), planned, None, chain_of(catalog, planned.relation)
    )
    return d.TaskDefinition(
        sink.id, sink.name, source, relations, planned, key, definition, latency=latency, event_key=event_key,
        view_start=_view_start(sink),
    )  # fmt: skip


def _view_start(sink: Object) -> tuple[int, int] | None:
    """Generation and batch of the view behind which a sink without a snapshot begins."""
    seed = definition_of(sink, CreateSink).with_options.seed_batch
    if seed is None:
        return None
    generation, number = (1, *seed)[-2:]
    return generation, number


def _event_key(relation: Object, planned: d.SinkDefinition) -> tuple[str, ...]:
    """The columns by which a row before a change and the row after it are one change."""
    if planned.envelope == "UPSERT" and planned.key is not None:
        return planned.key.columns
    return tuple(key_columns(relation)) if relation.growth is Growth.KEYED else ()


def _views(catalog: Catalog, relation: int, relations: d.Relations) -> list[tuple[int, View]]:
    """The views between a sink and its source, lowest first."""
    views: list[d.ViewDefinition] = []
    while isinstance(view := relations[relation], d.ViewDefinition):
        views.insert(0, view)
        (relation,) = view.query.relations
    return [(view.id, (valid_query(catalog, catalog.get(view.id)).tree, view.columns)) for view in views]


def _from_snapshot(source: d.SourceDefinition, sink: Object) -> d.SourceDefinition:
    """The source as a sink reads it: without a snapshot from where it ended when the sink was created."""
    seed = definition_of(sink, CreateSink).with_options.seed_offset
    if seed is None:
        return source
    starts = {p: max(offset, source.start_offsets.get(p, 0)) for p, offset in enumerate(seed)}
    return replace(source, start_offsets=starts)


def _definition_name(catalog: Catalog, sink: d.SinkDefinition, source: int, relations: Iterable[int]) -> str:
    """A name that changes when a view is replaced, and when the sink reads another relation or has other keys. It is made from
    the statements as written, which RENAME and schema changes do not touch."""
    views = _written_views(catalog, relations)
    keys = None if sink.key is None else sink.key.schema_id or sink.key.schema or _text_types(sink.key.record)
    return d.DefinitionName(_hash((source, keys)), _hash((sink.relation, views))).text


def _written_views(catalog: Catalog, relations: Iterable[int]) -> list[tuple[int, str]]:
    """The statements of the views among these relations, as they were written."""
    written = [(id_, catalog.get(id_).statement) for id_ in sorted(relations)]
    return [(id_, text) for id_, text in written if catalog.get(id_).kind is Kind.VIEW]


def _text_types(key: Record) -> tuple[str, ...]:
    """The types of a key without a schema, as far as they show in its text."""
    return tuple(_text_type(field.type) for field in key.fields)


def _text_type(type_: Type) -> str:
    match type_:
        case Integer() | Bigint():
            return "number"
        case Decimal():
            return f"decimal {type_.scale}"
        case Enum() | Uuid() | Text():
            return "text"
        case _:
            return print_type(plain(type_))


def _hash(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def _source_key(catalog: Catalog, sink: d.SinkDefinition) -> dict[str, str]:
    """Each key column of an UPSERT sink, and the column of the source that it comes from."""
    if sink.envelope != "UPSERT" or sink.key is None:
        return {}
    relation = catalog.get(sink.relation)
    columns = {column.name: column for column in relation.columns}
    return {name: _source_column(catalog, relation, columns[name]).name for name in sink.key.columns}


def _source_column(catalog: Catalog, relation: Object, column: Column) -> Column:
    """The column of the source, or of the materialized view, that a column is a plain projection of, through any number of
    views."""
    while relation.kind is Kind.VIEW and (above := _column(catalog, column.origin)) is not None:
        assert column.origin is not None
        relation, column = catalog.get(column.origin.object), above
    return column


def _column(catalog: Catalog, reference: ColumnRef | None) -> Column | None:
    return None if reference is None else catalog.get(reference.object).column(reference.column)


def select_definition(catalog: Catalog, query: Query) -> d.SelectDefinition:
    """A resolved query, and all relations below it."""
    made = query_definition(analyse_query(catalog, DEFAULT_PATH, query))
    return d.SelectDefinition(made, relation_definitions(catalog, made.relations))


def relation_definitions(
    catalog: Catalog, ids: Iterable[int], *, pinned: bool = False
) -> dict[int, d.RelationDefinition]:
    """These relations and all relations that they read, by id. With ``pinned`` their queries read the time of a batch."""
    found: dict[int, d.RelationDefinition] = {}
    waiting = list(ids)
    while waiting:
        id_ = waiting.pop()
        if id_ not in found:
            found[id_] = _relation(catalog, catalog.get(id_), pinned=pinned)
            made = found[id_]
            waiting += made.query.relations if isinstance(made, d.ViewDefinition) else ()
    return found


def _relation(catalog: Catalog, relation: Object, *, pinned: bool) -> d.RelationDefinition:
    match relation.kind:
        case Kind.SOURCE | Kind.STREAM | Kind.TABLE:
            return source_definition(relation)
        case Kind.VIEW:
            analysed = valid_query(catalog, relation)
            query = query_definition(analysed.pinned if pinned else analysed)
            return d.ViewDefinition(relation.id, relation.name, query, tuple(c.name for c in relation.columns))
        case Kind.MATERIALIZED_VIEW:
            return materialized_definition(catalog, relation, materialized(catalog, relation))
        case _:
            raise NotSupportedYet(f"reading a {relation.kind}")


def query_definition(analysed: AnalysedQuery) -> d.QueryDefinition:
    """What the runtime needs of an analysed query."""
    system = system_relations_read(analysed)
    return d.QueryDefinition(
        analysed.spark_sql,
        tuple((column.name, column.type) for column in analysed.columns),
        relations_read(analysed),
        system,
        frozenset(name for name in system if names_hidden_columns(analysed, name)),
        tuple(d.ExpressionText(w.start, w.end, w.text, w.column) for w in analysed.written),
        analysed.row_by_row,
        analysed.limit,
    )


def columns_read(catalog: Catalog, analysed: AnalysedQuery) -> dict[str, Record]:
    """The columns of every relation that a query names, by the name that the relation has in Spark."""
    found: dict[str, Record] = {}
    for id_ in relations_read(analysed):
        columns = query_relation(catalog, catalog.get(id_)).columns
        fields = tuple(Field(c.name, c.type, c.nullable) for c in columns if c.type is not None)
        found[d.spark_name(id_)] = Record(fields)
    for name in system_relations_read(analysed):
        relation = next(r for r in SYSTEM_RELATIONS if f"{r.schema}.{r.name}" == name)
        found[d.system_name(name)] = relation.columns
    return found
