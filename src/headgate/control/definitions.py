"""Definitions of sources, queries and tasks for the runtime, made from the catalog.

Stored statements are planned for the runtime here. A view or sink that can no longer be planned, because a source below it
followed a schema change, raises here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from headgate.catalog.catalog import Catalog
from headgate.catalog.names import DEFAULT_PATH
from headgate.catalog.objects import Column, Growth, Object, definition_of
from headgate.catalog.system_tables import SYSTEM_RELATIONS
from headgate.plan import definitions as d
from headgate.plan.chain import chain_of, valid_query
from headgate.plan.errors import NotSupportedYet
from headgate.plan.impact import check_sink_schemas, needed_sink
from headgate.plan.materialized_views import KeptView, asserted_columns, materialized
from headgate.plan.relations import (
    analyse_query,
    names_hidden_columns,
    query_relation,
    relations_read,
    system_relations_read,
)
from headgate.plan.sink import with_own_schemas
from headgate.plan.source import plan_source
from headgate.resolve.statements import kafka_server, registry_server, topic_name
from headgate.runtime.errors import SinkCannotFollow
from headgate.schema.types import Field, Record
from headgate.sql.formats import Format
from headgate.sql.query.kept_groups import STORED
from headgate.sql.query.marked_sql import marked_sql
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.query.tree import ColumnRef, Version
from headgate.sql.query.tree_sql import version_name
from headgate.sql.registry_formats import RegistryFormat
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Kind, Query
from headgate.sql.views import CreateMaterializedView


def source_definition(source: Object) -> d.SourceDefinition:
    """How and where a source is read."""
    statement = definition_of(source, CreateSource)
    formats = statement.formats
    return d.SourceDefinition(
        source.id,
        source.name,
        topic_name(statement.kafka),
        kafka_server(statement.kafka),
        plan_source(statement),
        _registry(formats.key or formats.value),
        _registry(formats.value),
        _start_offsets(statement),
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


def task_definition(catalog: Catalog, sink: Object) -> d.TaskDefinition:
    """Everything that a sink's task needs. Raises SinkCannotFollow if the sink's schemas cannot hold its columns, and
    SinkKeyChanges if its keys would have other bytes."""
    needed = needed_sink(catalog, sink)
    planned = with_own_schemas(needed, definition_of(sink, CreateSink))
    if missing := check_sink_schemas(sink, needed, planned):
        raise SinkCannotFollow(sink.name, missing)
    relations = relation_definitions(catalog, [planned.relation])
    source = relations[chain_of(catalog, planned.relation).source.id]
    assert not isinstance(source, d.ViewDefinition)
    changes = not source.appends if isinstance(source, d.MaterializedDefinition) else source.layout.envelope != "NONE"
    key = _source_key(catalog, planned) if changes else {}
    definition = _definition_name(catalog, relations)
    one_pass = bool(key) and isinstance(source, d.SourceDefinition)
    marked = _marked_sql(catalog, planned.relation, relations, source, key) if one_pass else None
    return d.TaskDefinition(sink.id, sink.name, source, relations, planned, key, catalog.version, definition, marked)


def _marked_sql(
    catalog: Catalog,
    relation: int,
    relations: d.Relations,
    source: d.SourceDefinition | d.MaterializedDefinition,
    key: Iterable[str],
) -> str | None:
    """One query for all views between a sink and its source, lowest first."""
    views: list[d.ViewDefinition] = []
    while isinstance(view := relations[relation], d.ViewDefinition):
        views.insert(0, view)
        (relation,) = view.query.relations
    trees = [(valid_query(catalog, catalog.get(view.id)).tree, view.columns) for view in views]
    assert isinstance(source, d.SourceDefinition)
    columns = [column.name for column in source.layout.columns]
    return marked_sql(d.spark_name(source.id), columns, trees, tuple(key), d.PRESENT)


def _definition_name(catalog: Catalog, relations: Iterable[int]) -> str:
    """A name that changes when a view is replaced. It is made from the statements as written, which RENAME and schema
    changes do not touch."""
    written = [(id_, catalog.get(id_).statement) for id_ in sorted(relations)]
    views = [(id_, text) for id_, text in written if catalog.get(id_).kind is not Kind.SOURCE]
    return hashlib.sha256(repr(views).encode()).hexdigest()[:16]


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


def materialized_definition(view: Object, kept: KeptView) -> d.MaterializedDefinition:
    """A materialized view as others read it."""
    key = tuple(column.name for column in view.columns if column.key)
    made, keyed, appends = kept.maintenance, view.growth is Growth.KEYED, view.growth is Growth.APPEND
    stored = tuple(d.StoredColumn(column.name, column.type, column.hidden) for column in made.stored)
    return d.MaterializedDefinition(view.id, view.name, stored, key if keyed else None, appends, made.grows)


def version_reads(reads: Iterable[tuple[int, Version]]) -> tuple[d.VersionRead, ...]:
    """The versions of relations that a query names, with their names in Spark."""
    return tuple(
        d.VersionRead(id_, version, version_name(d.spark_name(id_), version)) for id_, version in sorted(reads)
    )


def view_task_definition(catalog: Catalog, view: Object) -> d.ViewTaskDefinition:
    """Everything that the task of a materialized view needs."""
    kept = materialized(catalog, view)
    made = kept.maintenance
    inputs = [_relation(catalog, entry) for entry in kept.inputs]
    analysed = valid_query(catalog, view)
    relations = relation_definitions(catalog, relations_read(analysed))
    return d.ViewTaskDefinition(
        view.id,
        view.name,
        materialized_definition(view, kept),
        made.first,
        made.changed,
        tuple(each for each in inputs if not isinstance(each, d.ViewDefinition)),
        version_reads(made.first_reads),
        version_reads(made.reads),
        STORED if made.reads_stored else None,
        relations,
        asserted_columns(definition_of(view, CreateMaterializedView), view.columns),
        catalog.version,
        _definition_name(catalog, [view.id, *relations]),
    )


def select_definition(catalog: Catalog, query: Query) -> d.SelectDefinition:
    """A resolved query, and all relations below it."""
    made = query_definition(analyse_query(catalog, DEFAULT_PATH, query))
    return d.SelectDefinition(made, relation_definitions(catalog, made.relations))


def relation_definitions(catalog: Catalog, ids: Iterable[int]) -> dict[int, d.RelationDefinition]:
    """These relations and all relations that they read, by id."""
    found: dict[int, d.RelationDefinition] = {}
    waiting = list(ids)
    while waiting:
        id_ = waiting.pop()
        if id_ not in found:
            found[id_] = _relation(catalog, catalog.get(id_))
            made = found[id_]
            waiting += made.query.relations if isinstance(made, d.ViewDefinition) else ()
    return found


def _relation(catalog: Catalog, relation: Object) -> d.RelationDefinition:
    match relation.kind:
        case Kind.SOURCE:
            return source_definition(relation)
        case Kind.VIEW:
            query = query_definition(valid_query(catalog, relation))
            return d.ViewDefinition(relation.id, relation.name, query, tuple(c.name for c in relation.columns))
        case Kind.MATERIALIZED_VIEW:
            return materialized_definition(relation, materialized(catalog, relation))
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
