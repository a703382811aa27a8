"""Plans of CREATE STREAM and CREATE TABLE … AS SELECT.

Such a stream has parts that nobody sees: a view with the query, and a sink that writes the rows of the view to the topic. The
stream itself reads the topic. The view is a materialized one if rows must be kept to answer the query: for GROUP BY, joins and
the like. A query with `*` gets a second view that names the columns, so that the stream keeps its columns when a source follows
a schema change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Literal

from headgate.catalog.changes import Change, DefinitionChanged, ObjectCreated, ObjectDropped, apply
from headgate.catalog.graph import COLUMNS, parts_of
from headgate.catalog.names import find, parent_and_name
from headgate.catalog.objects import Column, Comment, Dependency, DependencyKind, Growth, Object, definition_of
from headgate.errors import HeadgateError
from headgate.plan import plans, streams
from headgate.plan.chain import chain_of, check_loops, valid_query
from headgate.plan.definitions import RecordTime, SinkDefinition
from headgate.plan.errors import ViewNotRowByRow
from headgate.plan.impact import with_schemas_to_register
from headgate.plan.new_materialized_views import plan_materialized_view
from headgate.plan.partition_by import partition_columns
from headgate.plan.reading import ROWKEY, layout_of, stream_layout
from headgate.plan.record_times import stream_time, time_notices, topic_settings
from headgate.plan.relations import named_types, query_relation, relations_read, resolved_query
from headgate.plan.set_from import topic_notice
from headgate.plan.sink import plan_new_sink, reused, single_schema, subjects
from headgate.plan.sink_docs import check_docs, types_named, with_frozen_docs, with_full_names
from headgate.plan.sink_options import SIDES
from headgate.plan.sink_policies import check_policies, undocumented
from headgate.plan.source import source_columns
from headgate.plan.stream_formats import (
    check_sides,
    read_formats,
    with_formats,
    with_single_schema,
    write_formats,
)
from headgate.plan.views import derive_growth, plan_replacement, query_dependencies, view_columns
from headgate.resolve import stream_errors as errors
from headgate.resolve.statements import Context, resolve_names
from headgate.resolve.streams import (
    READ_KINDS,
    check_properties,
    connection_name,
    own_name,
    source_over,
    topic_of,
)
from headgate.resolve.time_errors import TimeNeedsNewTask
from headgate.schema.names import force_quotes
from headgate.schema.types import Type
from headgate.sql.connections import KafkaConnection, WriteOptions
from headgate.sql.errors import UnknownColumn
from headgate.sql.query.casts import expanded
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.query.tree import ColumnRef
from headgate.sql.registry_formats import RegistryFormat, Side
from headgate.sql.show import ExplainObject
from headgate.sql.sinks import CreateSink, SinkKey, SinkOptions, TimeColumn
from headgate.sql.statement import Expression, Kind, ObjectName, Query
from headgate.sql.streams import CreateStreamAs, StreamColumn
from headgate.sql.views import CreateMaterializedView, CreateView
from headgate.text.cursor import Identifier
from headgate.text.lexer import tokenize

QUERY = "query"
"""What the hidden view with the query of a stream is called, behind its name."""

AskTypes = Callable[[AnalysedQuery], Sequence[Type]]


def plan_stream_as(statement: CreateStreamAs, context: Context, ask: AskTypes) -> plans.ChangeCatalog:
    """The stream with its parts, its topic and the schemas of the topic."""
    return _StreamPlanner(statement, context, ask).plan()


def explain_stream_as(statement: CreateStreamAs, context: Context, ask: AskTypes) -> plans.Show:
    """EXPLAIN of the stream as if it were there."""
    planned = plan_stream_as(statement, context, ask)
    made = planned.changes[-1]
    assert isinstance(made, ObjectCreated)
    return plans.Show(ExplainObject(statement.kind, replace(statement.name, id=made.object.id)), planned.changes)


@dataclass(frozen=True, slots=True)
class _Sink:
    """The part that writes: its statement with all schemas, its definition, and what must be done for it."""

    statement: CreateSink
    planned: SinkDefinition
    register: tuple[tuple[Side, plans.RegisterSchema], ...]
    notices: tuple[str, ...]


class _StreamPlanner:
    """Plans one statement. ``catalog`` grows by the parts."""

    def __init__(self, statement: CreateStreamAs, context: Context, ask: AskTypes) -> None:
        self.statement = statement
        self.context = context
        self.ask = ask
        self.catalog = context.catalog
        self.who = own_name(statement)
        self.made: list[Change] = []
        self.partition_by: tuple[str, ...] = ()  # the key columns that PARTITION BY names
        self.more: tuple[str, ...] = ()  # notices of a hidden materialized view, and about a topic that stays
        self.query = statement.query  # with the meaning of its names, once the view is made
        found = find(self.catalog, context.path, statement.name, statement.kind) if statement.or_replace else None
        self.old = found
        self.parts = () if found is None else parts_of(self.catalog, found)

    def plan(self) -> plans.ChangeCatalog:
        statement = self.statement
        check_properties(statement)
        self._name()
        view = self._views()
        statement = self._with_columns(view)
        columns = {column.name.name: column.type for column in statement.projection}
        time = stream_time(statement, columns, self.context.answers.is_pattern)
        sink = self._sink(statement, view, time)
        statement = self._with_reading(statement, sink)
        self.more += tuple(time_notices(statement, time, by_task=True))
        part = self._put_sink(sink, view)
        layout = stream_layout(statement)
        assert statement.reads is not None
        needs = (Dependency(part, DependencyKind.FILLED_BY), *streams.connections_of(statement.reads))
        outside = tuple(self._effects(sink))
        if self.old is not None:
            replaced = self._replace(self.old, statement, needs, source_columns(layout))
            return replace(replaced, effects=outside, notices=self._notices(sink))
        self._add(
            statement.kind, self.name, statement, needs, source_columns(layout), streams.growth_of(statement),
            Comment(imported=layout.doc),
        )  # fmt: skip
        check_loops(self.catalog, [part], self.context.answers.topics)
        return plans.ChangeCatalog(statement.words, tuple(self.made), outside, notices=self._notices(sink))

    def _name(self) -> None:
        """Where the stream is, and what it is called. Raises if the name is taken by another stream, or by a sink."""
        catalog, path, statement = self.catalog, self.context.path, self.statement
        if self.old is not None:
            self.schema, self.name = self.old.parent, self.old.name
        else:
            self.schema, self.name = parent_and_name(catalog, path, statement.name, statement.kind)
        if not self.parts:
            parent_and_name(catalog, path, statement.name, Kind.SINK)

    def _put_sink(self, sink: _Sink, view: Object) -> int:
        """The id of the sink. That of a stream that is replaced goes on with the new query."""
        needs = self._sink_needs(sink, view)
        if not self.parts:
            return self._add(Kind.SINK, self.name, sink.statement, needs).id
        old = self.parts[0]
        assert isinstance(old.definition, CreateSink)
        self.more += (
            topic_notice(self.catalog, old, old.definition, sink.planned, sink.register, self.statement.kind),
        )
        change = DefinitionChanged(old.id, self.context.text, sink.statement, needs, (), None)
        self.made.append(change)
        self.catalog = apply(self.catalog, change)
        return change.id

    def _replace(
        self, old: Object, statement: CreateStreamAs, needs: tuple[Dependency, ...], columns: tuple[Column, ...]
    ) -> plans.ChangeCatalog:
        """The stream with its new parts, everything that reads it, and the end of its old views."""
        change = streams.redefined(old, self.context.text, statement, needs, columns)
        made = plan_replacement(self.catalog, change, self.context.answers.topics)
        after = apply(self.catalog, *made.changes)
        check_loops(after, [needs[0].on], self.context.answers.topics)
        kept = {part.id for part in parts_of(after, after.get(old.id))}
        dropped = (ObjectDropped(part.id) for part in self.parts if part.id not in kept)
        return plans.ChangeCatalog(
            streams.replacing(statement.words), (*self.made, *made.changes, *dropped), consequences=made.consequences
        )

    def _add(
        self,
        kind: Kind,
        name: str,
        definition: CreateView | CreateSink | CreateStreamAs,
        needs: Sequence[Dependency],
        columns: tuple[Column, ...] = (),
        growth: Growth | None = None,
        comment: Comment | None = None,
    ) -> Object:
        made = Object(
            self.catalog.next_id, kind, self.schema, name, self.context.now, self.context.text, definition, columns,
            growth, None, tuple(needs), comment or Comment(),
        )  # fmt: skip
        change = ObjectCreated(made)
        self.made.append(change)
        self.catalog = apply(self.catalog, change)
        return made

    # the query

    def _views(self) -> Object:
        """The hidden views; the last one has the columns of the stream."""
        view = self._view(QUERY, self.statement.query)
        self._check_growth(view)
        try:
            chain_of(self.catalog, view.id)
        except ViewNotRowByRow:
            view = self._materialized_view()
        assert isinstance(view.definition, CreateView | CreateMaterializedView)
        self.query = view.definition.query
        names = [column.name for column in view.columns]
        self.partition_by = partition_columns(self.statement.query, self.statement.partition_by, names)
        computed = self._computed_key(names)
        if computed is not None or _selects_all(self.statement.query):
            listed = ", ".join(
                [*map(force_quotes, names), *([] if computed is None else [f"{computed.text} AS {ROWKEY}"])]
            )
            full = ".".join(map(force_quotes, self.catalog.path(view.id)))
            view = self._columns_view(Query(f"SELECT {listed} FROM {full}"), names, computed)
        return view

    def _computed_key(self, names: Sequence[str]) -> Expression | None:
        """The expression of PARTITION BY that is no column of the query. It becomes the column ROWKEY."""
        computed = [
            e for e, name in zip(self.statement.partition_by, self.partition_by, strict=False) if name == ROWKEY
        ]
        computed = [expression for expression in computed if ROWKEY not in names]
        if len(computed) > 1:
            raise errors.PartitionByNoColumn(*self.who, computed[1].text, tuple(names)).at(computed[1].span)
        return computed[0] if computed else None

    def _columns_view(self, query: Query, names: Sequence[str], computed: Expression | None) -> Object:
        """The view that names the columns. Errors in an expression of PARTITION BY point at it."""
        try:
            return self._view(COLUMNS, query)
        except HeadgateError as error:
            if computed is None:
                raise
            if isinstance(error, UnknownColumn):
                raise errors.PartitionByNoColumn(*self.who, computed.text, tuple(names)).at(computed.span) from None
            error.span = computed.span
            raise

    def _view(self, suffix: str, query: Query) -> Object:
        catalog, path = self.catalog, self.context.path
        analysed, needs = query_dependencies(catalog, path, query)
        columns = view_columns(analysed, (), self.who[1], self.ask(analysed))
        growth, columns = derive_growth(catalog, analysed, columns)
        name = self._part_name(suffix)
        definition = CreateView(
            ObjectName((Identifier(name, quoted=True),)), resolved_query(catalog, path, query, analysed)
        )
        return self._add(Kind.VIEW, name, definition, needs, columns, growth)

    def _part_name(self, suffix: str) -> str:
        """The name of a hidden view. That of a stream that is replaced is still there when the new one is made."""
        names = chain([f"{self.name} {suffix}"], (f"{self.name} {number} {suffix}" for number in count(2)))
        taken = {each.name for each in self.context.catalog.children(self.schema)}
        return next(name for name in names if name not in taken)

    def _materialized_view(self) -> Object:
        """The hidden view as a materialized one, and before it stored copies of sources whose rows it needs again."""
        where = self.context.catalog.path(self.schema)
        name = ObjectName(tuple(Identifier(part, quoted=True) for part in (*where, self._part_name(QUERY))))
        planned = plan_materialized_view(CreateMaterializedView(name, self.statement.query), self.context)
        self.made = list(planned.changes)
        self.catalog = apply(self.context.catalog, *planned.changes)
        kind, own = self.who
        self.more = (f'{kind} "{own}" is filled from a materialized view that nobody else sees', *planned.notices)
        last = planned.changes[-1]
        assert isinstance(last, ObjectCreated)
        return last.object

    def _check_growth(self, view: Object) -> None:
        wanted = Growth.KEYED if self.statement.kind is Kind.TABLE else Growth.APPEND
        if view.growth is not wanted:
            raise errors.StreamOfOtherGrowth(*self.who, (view.growth or Growth.CHANGING).value)

    def _first_source(self, view: Object) -> Object | None:
        """The topic that the query reads first, from which formats and keys are taken; None if it reads no topic."""
        while view.kind not in READ_KINDS:
            reads = relations_read(valid_query(self.catalog, view))
            if not reads:
                return None
            view = self.catalog.get(reads[0])
        return view

    # columns and formats

    def _with_columns(self, view: Object) -> CreateStreamAs:
        """The statement with the columns of the query, those of the key marked, and with a format for each side."""
        source = self._first_source(view)
        keys = self._key_names(view, source)
        role = "PRIMARY KEY" if self.statement.kind is Kind.TABLE else "KEY"
        relation = query_relation(self.catalog, view)
        types = {c.name: expanded(c.type, named_types(self.catalog)) for c in relation.columns if c.type is not None}
        columns = tuple(
            StreamColumn(Identifier(name, quoted=True), type_, role if name in keys else None)  # type: ignore[arg-type]
            for name, type_ in types.items()
        )
        settled = with_formats(self.statement.properties, source, keys)
        statement = replace(self.statement, query=self.query, projection=columns, settled=settled)
        check_sides(statement, keys)
        return statement

    def _key_names(self, view: Object, source: Object | None) -> tuple[str, ...]:
        """The key columns: those of a table, those of PARTITION BY, or those that come from the key of the source."""
        if self.statement.kind is Kind.TABLE:
            if self.statement.partition_by:
                raise errors.PropertyWithoutMeaning(*self.who, "PARTITION BY", "the rows of a table have a key")
            return tuple(column.name for column in view.columns if column.key)
        if self.statement.partition_by:
            return self.partition_by
        return self._inherited_key(view, source)

    def _inherited_key(self, view: Object, source: Object | None) -> tuple[str, ...]:
        if source is None:
            return ()
        layout = layout_of(source)
        of_key = {c.name for c in layout.columns if c.origin.section == "key"}
        ids = {c.id: c.name for c in source.columns if c.name in of_key}
        found = {column.name: ids[root.column] for column in view.columns
                 if (root := self._root(column.origin)) is not None and root.object == source.id and root.column in ids}  # fmt: skip
        return tuple(found) if of_key and set(found.values()) == of_key and len(found) == len(of_key) else ()

    def _root(self, ref: ColumnRef | None) -> ColumnRef | None:
        """The column of the source that a column is a plain projection of."""
        while ref is not None and (relation := self.catalog.get(ref.object)).kind in _VIEWS:
            column = relation.column(ref.column)
            ref = None if column is None else column.origin
        return ref

    # the sink

    def _delivery(self, time: RecordTime | None) -> Literal["at least once", "exactly once"]:
        """Only the engine's own producer can set the time of a record, and it writes in transactions. The task of a stream that is
        replaced keeps the way in which its progress is stored."""
        if not self.parts:
            return "at least once" if time is None else "exactly once"
        before = definition_of(self.parts[0], CreateSink).with_options.delivery
        if time is not None and before == "at least once":
            raise TimeNeedsNewTask(*self.who)
        return before

    def _sink(self, statement: CreateStreamAs, view: Object, time: RecordTime | None) -> _Sink:
        catalog, given = self.catalog, statement.properties
        keys = tuple(c.name.name for c in statement.columns if c.role is not None)
        made = CreateSink(
            statement.name,
            relation=ObjectName((Identifier(view.name, quoted=True),), view.id),
            kafka=KafkaConnection(
                connection_name(given.connection, "kafka"),
                WriteOptions(
                    topic=topic_of(statement), topic_partition_count=given.partitions,
                    topic_replication_factor=given.replicas, topic_config=topic_settings(given) or None,
                ),
            ),
            formats=write_formats(statement, keys, self.context.answers.schemas),
            key=SinkKey(tuple(Identifier(name, quoted=True) for name in keys)) if keys else None,
            envelope="UPSERT" if statement.kind is Kind.TABLE else "NONE",
            with_options=SinkOptions(
                key_in_value=not keys,
                delivery=self._delivery(time),
                on_error={"halt": "HALT", "quarantine": "QUARANTINE", "skip": "SKIP"}[given.on_error],  # type: ignore[arg-type]
            ),
            time=None if time is None else TimeColumn(Identifier(time.column, quoted=True), time.format),
        )  # fmt: skip
        sink = with_single_schema(with_full_names(catalog, resolve_names(made, catalog, self.context.path)), statement)
        try:
            planned, notices = plan_new_sink(catalog, sink, self.context.answers.types, owner=statement.kind)
        except errors.ColumnsNotInSchema as wrong:
            raise errors.ColumnsNotInSchema(
                *self.who, wrong.side, wrong.schema, wrong.problems, wrong.columns, wrong.fields
            ) from None
        for encoded in filter(None, (planned.key, planned.value)):
            streams.check_names(self.statement, [path for path, _ in encoded.renames])
        check_docs(catalog, sink, planned)
        check_policies(planned.name, undocumented(catalog, self.schema, sink, planned, comments=True))
        sink = with_frozen_docs(catalog, sink, planned)
        generated, single = (
            tuple(
                (side, plans.RegisterSchema(planned.registry(SIDES[side]), subject, schema))
                for side, subject, schema in of
            )
            for of in (subjects(planned), single_schema(planned, sink))
        )
        frozen = with_schemas_to_register(sink, planned, generated)
        return _Sink(frozen, planned, (*generated, *single), notices)

    # reading, and what must be done

    def _with_reading(self, statement: CreateStreamAs, sink: _Sink) -> CreateStreamAs:
        """The statement with the source that it is read as: with the schemas that are written."""
        formats = read_formats(statement, sink.planned, {side: effect.id for side, effect in sink.register})
        reads = resolve_names(source_over(statement, formats), self.catalog, self.context.path)
        made = replace(statement, reads=reads)
        streams.check_full_names(made)
        self.more += tuple(streams.message_notices(made))
        return made

    def _sink_needs(self, sink: _Sink, view: Object) -> tuple[Dependency, ...]:
        names: list[ObjectName] = []
        if isinstance(sink.statement.kafka, KafkaConnection):
            names.append(sink.statement.kafka.connection)
        registries = [f.registry for f in sink.statement.formats.each() if isinstance(f, RegistryFormat)]
        names += [registry for registry in registries if isinstance(registry, ObjectName)]
        ids = dict.fromkeys(name.id for name in names if name.id is not None)
        types = types_named(self.catalog, sink.statement)
        return (
            Dependency(view.id, DependencyKind.READS),
            *(Dependency(id_, DependencyKind.CONNECTION) for id_ in ids),
            *(Dependency(id_, DependencyKind.TYPE) for id_ in types),
        )

    def _effects(self, sink: _Sink) -> Iterator[plans.Effect]:
        planned, options = sink.planned, sink.statement.kafka.options
        yield plans.CreateTopic(
            planned.connection, planned.topic, options.topic_partition_count, options.topic_replication_factor,
            options.topic_config or (),
        )  # fmt: skip
        for side, subject, schema in reused(planned):
            yield plans.ReuseSchema(planned.registry(SIDES[side]), subject, schema)
        yield from (effect for _, effect in sink.register)

    def _notices(self, sink: _Sink) -> tuple[str, ...]:
        return (*self.more, *sink.notices)


_VIEWS = (Kind.VIEW, Kind.MATERIALIZED_VIEW)


def _selects_all(query: Query) -> bool:
    """Whether the query may have `*` in the place of columns. In `count(*)` it stands alone in parentheses."""
    words = [token.word for token in tokenize(query.text)]
    return any(
        word == "*" and (before, after) != ("(", ")")
        for before, word, after in zip(words, words[1:], [*words[2:], ""], strict=False)
    )
