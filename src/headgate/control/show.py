"""SHOW, DESCRIBE and EXPLAIN: answered from the catalog and the store, without Spark. The statements are resolved.

Only DESCRIBE EXTENDED of a stream or table asks outside, for the versions of its schemas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import assert_never, cast

from headgate.catalog.catalog import Catalog, column_comment, field_comment, object_comment
from headgate.catalog.changes import apply
from headgate.catalog.graph import hidden_parts, parts_of, upstream, without_aliases
from headgate.catalog.names import DEFAULT_PATH, SearchPath, is_name_of
from headgate.catalog.objects import Column, DependencyKind, Object, definition_of
from headgate.catalog.positions import KafkaPosition
from headgate.catalog.store.reader import SqliteReader
from headgate.catalog.system_tables import SYSTEM_RELATIONS
from headgate.connectors.connections import Clients
from headgate.control.describe import described, mapping, materialized_columns, stream_properties
from headgate.control.sessions import ResultColumns, ResultRows
from headgate.plan.chain import chain_of, valid_query
from headgate.plan.definitions import SinkDefinition
from headgate.plan.errors import NotSupportedYet
from headgate.plan.latency import choose_latency
from headgate.plan.materializations import existing_materialization, plan_materialization
from headgate.plan.materialized_views import KeptView, explanation, materialized
from headgate.plan.new_materialized_views import plan_materialized_view, with_copy_for_sink
from headgate.plan.plans import ShowStatement
from headgate.plan.reading import source_layout
from headgate.plan.relations import analyse_query, fields_without_column, relations_read, system_relations_read
from headgate.plan.sink import plan_sink
from headgate.plan.sink_doc_changes import published_schemas
from headgate.plan.sink_errors import SideWithoutSchema
from headgate.plan.source import present_field_names
from headgate.plan.stored_copies import reads_of_sink, with_old_rows
from headgate.plan.target_definitions import MaterializationDefinition, OnDemandDefinition
from headgate.resolve.definitions import with_current_names
from headgate.resolve.statements import Context, object_id, topic_name
from headgate.resolve.streams import READ_KINDS, read_statement
from headgate.runtime.values import Json
from headgate.schema.names import Found, find, print_name
from headgate.schema.render import print_type
from headgate.schema.types import inner_fields
from headgate.sql import show as s
from headgate.sql.materializations import CreateMaterialization
from headgate.sql.queries import Select, ShowSearchPath
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Kind, ObjectName, print_statement
from headgate.sql.views import CreateMaterializedView, CreateView

# SHOW of one of these is a short form of a query over the system table of that name. QUARANTINE is planned as a query.
_SYSTEM_LISTINGS = {"TASKS", "EVENTS", "HISTORY", "COMMENTS", "DEPENDENCIES", "OBJECTS"}

_NAME_COLUMNS = {"name", "object", "task"}  # columns of system tables that name the object of a row

Table = tuple[ResultColumns, ResultRows]


def show(statement: ShowStatement, catalog: Catalog, path: SearchPath, reader: SqliteReader, clients: Clients) -> Table:
    """The answer to a statement that only reads the catalog and the store."""
    match statement:
        case s.ShowObjects():
            return _show(statement, catalog, reader)
        case s.ShowCreate():
            return _show_create(statement, catalog)
        case s.ShowLineage():
            return _lineage(statement, catalog)
        case ShowSearchPath():
            names = ", ".join(f"{database}.{schema}" for database, schema in path.entries)
            return _table(["search_path"], [[names]])
        case s.Describe():
            return _describe(statement, catalog, reader, clients)
        case s.Explain():
            return _explain(statement, catalog, path)
        case s.ExplainObject(kind=Kind.MATERIALIZATION):
            return _explain_materialization(
                existing_materialization(catalog, catalog.get(object_id(statement.name))), catalog
            )
        case s.ExplainObject():
            entry = catalog.get(object_id(statement.name))
            if entry.kind is Kind.MATERIALIZED_VIEW:
                return _with_notice(_explain_view(catalog, entry), entry, reader)
            if entry.kind in READ_KINDS:
                return _explain_stream(catalog, entry)
            return _explain_sink(definition_of(entry, CreateSink), catalog)
        case s.ExplainSchema():
            return _explain_schema(statement, catalog, path)
        case _:
            assert_never(statement)


def _table(names: Sequence[str], rows: Iterable[Sequence[Json]], types: Sequence[str] | None = None) -> Table:
    kinds = types or ["text"] * len(names)
    columns = ResultColumns(tuple(zip(names, kinds, strict=True)))
    return columns, ResultRows(tuple(tuple(row) for row in rows))


# SHOW


def _show(statement: s.ShowObjects, catalog: Catalog, reader: SqliteReader) -> Table:
    if statement.what in _SYSTEM_LISTINGS:
        return _system_table(statement, catalog, reader)
    kind = s.LISTED_KINDS[statement.what]
    within = object_id(statement.within) if statement.within else None
    hidden = hidden_parts(catalog)
    found = [o for o in catalog.of_kind(kind) if o.id not in hidden and (within is None or o.parent == within)]
    rows = [
        [o.name, ".".join(catalog.path(o.id)[:-1]), object_comment(o)]
        for o in sorted(found, key=lambda o: o.name)
        if _like(o.name, statement.like)
    ]
    return _table(["name", "schema", "comment"], cast("list[list[Json]]", rows))


def _system_table(statement: s.ShowObjects, catalog: Catalog, reader: SqliteReader) -> Table:
    name = statement.what.lower()
    relation = next(r for r in SYSTEM_RELATIONS if (r.schema, r.name) == ("headgate_catalog", name))
    shown = [f for f in relation.columns.fields if f.name not in relation.hidden]
    positions = [relation.columns.fields.index(f) for f in shown]
    rows: list[list[Json]] = []
    for row in relation.read(catalog, reader).rows:
        values = [_json_value(row[p]) for p in positions]
        about = [v for f, v in zip(shown, values, strict=True) if f.name in _NAME_COLUMNS]
        if statement.subject is None or any(is_name_of(statement.subject, str(name)) for name in about):
            rows.append(values)
    if "name" in (f.name for f in shown):
        at = [f.name for f in shown].index("name")
        shown = [shown[at], *shown[:at], *shown[at + 1 :]]
        rows = [[r[at], *r[:at], *r[at + 1 :]] for r in rows if _like(str(r[at]), statement.like)]
    return _table([f.name for f in shown], rows, [print_type(f.type) for f in shown])


def _json_value(value: object) -> Json:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            text = value.astimezone(UTC).replace(tzinfo=None).isoformat()
            return (text.rstrip("0").rstrip(".") if "." in text else text) + "Z"
        case bytes():
            return value.hex()
        case _:
            return str(value)


def _like(name: str, pattern: str | None) -> bool:
    if pattern is None:
        return True
    regex = "".join(".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
    return re.fullmatch(regex, name, re.I | re.S) is not None


def _show_create(statement: s.ShowCreate, catalog: Catalog) -> Table:
    found = catalog.get(object_id(statement.name))
    return _table(["name", "create_sql"], [[catalog.display_name(found.id), create_sql(catalog, found)]])


def create_sql(catalog: Catalog, entry: Object) -> str:
    """The definition of the object as a statement, with the names of today. Secrets are never printed."""
    if entry.kind in (Kind.DATABASE, Kind.SCHEMA):
        return f"CREATE {entry.kind.words} {print_name((entry.name,))};"
    statement = entry.definition
    if statement is None:
        return entry.statement
    return print_statement(with_current_names(catalog, entry, statement))


def _lineage(statement: s.ShowLineage, catalog: Catalog) -> Table:
    start = catalog.get(object_id(statement.name))
    rows = []
    for entry in [start, *upstream(catalog, start.id)]:
        rows += [
            [catalog.display_name(entry.id), catalog.display_name(on), entry.kind.value]
            for on in dict.fromkeys(d.on for d in entry.dependencies)
        ]
    return _table(["object", "depends_on", "kind"], rows)


# DESCRIBE

_DESCRIBE = (["name", "type", "nullable", "key", "comment"], ["text", "text", "boolean", "boolean", "text"])


def _describe(statement: s.Describe, catalog: Catalog, reader: SqliteReader, clients: Clients) -> Table:
    if statement.name.id is None:
        return _describe_system(statement.name)
    found = catalog.get(statement.name.id)
    if statement.extended:
        return _describe_extended(found, catalog, reader, clients)
    rows: list[list[Json]] = [
        [c.name, print_type(c.type), c.nullable, c.key, column_comment(catalog, c)] for c in _columns(found, catalog)
    ]
    if found.kind is Kind.TYPE and found.body is not None:  # a list, a map, an enum or another name of a type
        rows = [[found.name, print_type(found.body), True, False, object_comment(found)]]
    return _table(_DESCRIBE[0], rows, _DESCRIBE[1])


def _columns(found: Object, catalog: Catalog) -> tuple[Column, ...]:
    """The columns of the object. For a sink: the columns of its relation, with the sink's KEY. Does not plan the sink,
    because DESCRIBE must work for a sink that cannot be planned."""
    if found.kind is Kind.MATERIALIZATION:
        return materialized_columns(catalog, found)
    if found.kind is not Kind.SINK:
        return found.columns
    relation = catalog.get(next(d.on for d in found.dependencies if d.use is DependencyKind.READS))
    key = definition_of(found, CreateSink).key
    names = [column.name for column in relation.columns]
    named = [find(one.name, one.quoted, names) for one in (key.columns if key else ())]
    keys = {each.name for each in named if isinstance(each, Found)}
    return tuple(replace(c, key=c.name in keys) for c in relation.columns)


def _describe_system(name: ObjectName) -> Table:
    schema, table = (part.name for part in name.parts)
    system = next(r for r in SYSTEM_RELATIONS if (r.schema, r.name) == (schema, table))
    rows: list[list[Json]] = [[f.name, print_type(f.type), f.nullable, False, f.doc] for f in system.columns.fields]
    return _table(_DESCRIBE[0], rows, _DESCRIBE[1])


def _describe_extended(found: Object, catalog: Catalog, reader: SqliteReader, clients: Clients) -> Table:
    columns = _columns(found, catalog)
    rows: list[list[Json]] = [
        ["name", catalog.display_name(found.id)],
        ["kind", found.kind.value],
        ["comment", object_comment(found)],
        ["created", _json_value(found.created)],
        ["rows come by", found.growth.value if found.growth else None],
        ["key", ", ".join(c.name for c in columns if c.key) or None],
    ]
    for column in columns:
        nullable = "" if column.nullable else " not null"
        rows.append([f"column {column.name}", f"{print_type(column.type)}{nullable}"])
    for column in columns:
        for path, field in inner_fields(without_aliases(catalog, column.type)):
            if (comment := field_comment(catalog, column, path, field.doc)) is not None:
                rows.append([f"comment on field {print_name((column.name, *path))}", comment.text])
    if isinstance(found.definition, CreateSource):
        present = present_field_names(found.definition)
        rows += [[f"field of column {name}", field] for name, field in present.items()]
    rows += list(stream_properties(found, clients))
    rows += [
        ["without a column", f'{w.field}, because column "{w.column}" is {w.other}']
        for w in fields_without_column(found)
    ]
    if found.kind is Kind.MATERIALIZATION:
        rows += [[name, value] for name, value in mapping(catalog, found)]
    rows += [[d.use.value, catalog.display_name(d.on)] for d in found.dependencies]
    rows += list(_task_properties(found, reader))
    rows.append(["statement", create_sql(catalog, found)])
    return _table(["property", "value"], rows)


def _task_properties(found: Object, reader: SqliteReader) -> Iterator[list[Json]]:
    status = next((status for status in reader.statuses() if status.task == found.id), None)
    if status is not None:
        yield ["state", status.state.value]
        yield ["error", status.error]
        yield ["rows", status.rows]
        yield ["lag", status.lag]
        if status.stored_bytes is not None:
            yield ["stored bytes", status.stored_bytes]
        yield ["last commit", _json_value(status.last_commit)]
    ledger = reader.ledger(found.id)
    for position in ledger.positions.values() if ledger else ():
        if isinstance(position, KafkaPosition):
            for partition, offset in position.by_partition.items():
                yield [f"offset of {position.topic} partition {partition}", offset]


# EXPLAIN


def _explain(statement: s.Explain, catalog: Catalog, path: SearchPath) -> Table:
    inner = statement.statement
    if isinstance(inner, CreateSink):
        return _explain_sink(inner, _with_copy(inner, catalog, path))
    if isinstance(inner, CreateMaterialization):
        return _explain_materialization(plan_materialization(catalog, inner), catalog)
    if isinstance(inner, CreateMaterializedView):
        return _explain_new_view(inner, catalog, path)
    if not isinstance(inner, Select | CreateView):
        raise NotSupportedYet("EXPLAIN of this statement")
    analysed = analyse_query(catalog, DEFAULT_PATH, inner.query)
    return _table(["plan"], [[line] for line in _query_lines(catalog, analysed)])


def _explain_new_view(statement: CreateMaterializedView, catalog: Catalog, path: SearchPath) -> Table:
    """How a materialized view would be kept, with what would be created beside it."""
    made = plan_materialized_view(statement, Context(catalog, path, datetime.now(UTC)))
    after = apply(catalog, *made.changes)
    return _explain_view(after, after.get(after.next_id - 1))


def _explain_view(catalog: Catalog, view: Object) -> Table:
    """How a materialized view is kept."""
    lines = list(_query_lines(catalog, valid_query(catalog, view)))
    lines[1:2] = _kept_lines(catalog, view, materialized(catalog, view))
    return _table(["plan"], [[line] for line in lines])


def _with_notice(plan: Table, view: Object, reader: SqliteReader) -> Table:
    """What its task has measured, if it runs."""
    told = [status.notice for status in reader.statuses() if status.task == view.id and status.notice is not None]
    names, rows = plan
    return names, ResultRows((*rows.rows, *((line,) for line in told)))


def _explain_stream(catalog: Catalog, stream: Object) -> Table:
    """What a stream or table reads, and how its parts fill its topic if it was made by AS."""
    lines = [f"reads topic {topic_name(read_statement(stream).kafka)}"]
    for part in parts_of(catalog, stream):
        if part.kind is Kind.SINK:
            lines.append("filled by a sink, which")
            _, told = _explain_sink(definition_of(part, CreateSink), catalog)
        elif part.kind is Kind.MATERIALIZED_VIEW:
            lines.append(f"from materialized view {part.name}, which")
            _, told = _explain_view(catalog, part)
        else:
            lines.append(f"from view {part.name}, which")
            _, told = _table(["plan"], [[line] for line in _query_lines(catalog, valid_query(catalog, part))])
        lines += [f"  {row[0]}" for row in told.rows]
    return _table(["plan"], [[line] for line in lines])


def _kept_lines(catalog: Catalog, view: Object, kept: KeptView) -> Iterator[str]:
    """The kind and the key of a materialized view, and how each of its operators is kept."""
    key = ", ".join(column.name for column in view.columns if column.key)
    yield f"rows come by {view.growth}{f' ({key})' if key else ''}"
    yield "kept by the changes of what it reads" if kept.maintenance.incremental else "computed anew with every batch"
    yield from explanation(kept, catalog.display_name)


def _query_lines(catalog: Catalog, analysed: AnalysedQuery) -> Iterator[str]:
    names = [catalog.display_name(id_) for id_ in relations_read(analysed)]
    reads = ", ".join([*names, *system_relations_read(analysed)])
    yield f"reads {reads}" if reads else "reads nothing"
    yield "row by row, nothing is stored" if analysed.row_by_row else "over all rows at once"
    for c in analysed.columns:
        yield f"gives {c.name} {print_type(c.type) if c.type else '?'}{'' if c.nullable else ' not null'}"
    yield f"spark: {analysed.spark_sql}"


WAYS = {"micro-batch": "micro-batches", "real time": "real time while slots are free"}


def _explain_sink(statement: CreateSink, catalog: Catalog) -> Table:
    """What a sink reads and writes, and whether it runs in real time. A running task may have too few slots for that, which is
    told in its notice."""
    planned, chain = plan_sink(catalog, statement), chain_of(catalog, object_id(statement.relation))
    chain = with_old_rows(catalog, chain, statement)
    latency = choose_latency(catalog, statement, planned, source_layout(chain.source), chain)
    keys = f" by {', '.join(planned.key.columns)}" if planned.key is not None and planned.envelope == "UPSERT" else ""
    how = "one record for each row" if planned.envelope == "NONE" else f"{planned.envelope.lower()}{keys}"
    lines = [
        f"reads {catalog.display_name(planned.relation)}{_old_rows(catalog, statement, planned)}",
        f"writes topic {planned.topic}, {how}",
        f"runs in {WAYS[latency.way]}, because {latency.reason}",
    ]
    if planned.time is not None:
        lines.append(f"records have the time of column {planned.time.column}, and are written in transactions")
    return _table(["plan"], [[line] for line in lines])


def _explain_materialization(planned: MaterializationDefinition, catalog: Catalog) -> Table:
    """What a materialization reads and writes, and where each of its fields comes from."""
    lines = [f"reads {catalog.display_name(planned.relation)}", _way_of_writing(planned)]
    return _table(["plan"], [[line] for line in [*lines, *(f"{name}: {value}" for name, value in described(planned))]])


def _way_of_writing(planned: MaterializationDefinition) -> str:
    if isinstance(planned, OnDemandDefinition):
        return "rows are computed when a client asks for them"
    keys = ", ".join(planned.key)
    if planned.merges:
        return f"the target is merged by key {keys}"
    return (
        f"the target is appended to, with a row for every change of key {keys}" if keys else "the target is appended to"
    )


def _old_rows(catalog: Catalog, statement: CreateSink, sink: SinkDefinition) -> str:
    """Where a sink finds the rows before a change, if not in its relation."""
    reads = [dependency.on for dependency in reads_of_sink(catalog, statement, sink)][1:]
    return f", and its old rows from materialized view {catalog.display_name(reads[0])}" if reads else ""


def _with_copy(statement: CreateSink, catalog: Catalog, path: SearchPath) -> Catalog:
    return with_copy_for_sink(statement, Context(catalog, path, datetime.now(UTC)))


def _explain_schema(statement: s.ExplainSchema, catalog: Catalog, path: SearchPath) -> Table:
    """The schema that a sink publishes. The registry is not asked."""
    sink = statement.sink
    if isinstance(sink, ObjectName):
        sink = definition_of(catalog.get(object_id(sink)), CreateSink)
    else:
        catalog = _with_copy(sink, catalog, path)
    planned = plan_sink(catalog, sink)
    side = planned.key if statement.side == "KEY" else planned.value
    if side is None or side.schema is None:
        raise SideWithoutSchema(planned.name, statement.side.lower())
    schema = side.schema
    if statement.side == "KEY":  # its records keep the schema of the first version, whatever docs came later
        schema = next((effect.schema.text for of, effect in published_schemas(catalog, sink) if of == "KEY"), schema)
    return _table(["schema"], [[schema]])
