"""Plans of CREATE STREAM and CREATE TABLE … AS SELECT.

Such a stream has parts that nobody sees: a view with the query, and a sink that writes the rows of the view to the topic. The
stream itself reads the topic. A query with `*` gets a second view that names the columns, so that the stream keeps its columns
when a source follows a schema change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headgate.catalog.changes import Change, ObjectCreated, apply
from headgate.catalog.graph import COLUMNS
from headgate.catalog.names import find, parent_and_name
from headgate.catalog.objects import Column, Comment, Dependency, DependencyKind, Growth, Object
from headgate.plan import plans, streams
from headgate.plan.chain import chain_of, check_loops
from headgate.plan.definitions import SinkDefinition
from headgate.plan.errors import NotSupportedYet
from headgate.plan.impact import with_schemas_to_register
from headgate.plan.reading import layout_of, stream_layout
from headgate.plan.relations import named_types, query_relation, resolved_query
from headgate.plan.sink import plan_new_sink, reused, subjects
from headgate.plan.sink_docs import check_docs, types_named, with_frozen_docs, with_full_names
from headgate.plan.sink_options import SIDES
from headgate.plan.sink_policies import check_policies, undocumented
from headgate.plan.source import source_columns
from headgate.plan.views import derive_growth, query_dependencies, view_columns
from headgate.resolve import stream_errors as errors
from headgate.resolve.statements import Context, TakenSchema, resolve_names
from headgate.resolve.streams import (
    FORMAT_NAMES,
    REGISTRY,
    StreamSide,
    check_properties,
    check_side,
    connection_name,
    find_name,
    key_side,
    own_name,
    read_format,
    read_statement,
    source_over,
    topic_of,
    value_side,
)
from headgate.schema.names import force_quotes
from headgate.schema.types import Bigint, Bytes, Integer, Text, Type
from headgate.schema.written import SchemaFormat
from headgate.sql.connections import KafkaConnection, WriteOptions
from headgate.sql.formats import (
    BytesFormat,
    Format,
    Formats,
    JsonFormat,
    JsonInline,
    PrimitiveFormat,
    TextFormat,
)
from headgate.sql.query.casts import expanded
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.query.tree import ColumnRef
from headgate.sql.registry_formats import FrozenSchema, PendingId, RegistryFormat, Side, WriteFormatOptions
from headgate.sql.sinks import CreateSink, SinkKey, SinkOptions
from headgate.sql.statement import Kind, ObjectName, Query
from headgate.sql.streams import CreateStreamAs, StreamColumn, StreamFormat
from headgate.sql.views import CreateView
from headgate.text.cursor import Identifier
from headgate.text.lexer import tokenize

QUERY = "query"
"""What the hidden view with the query of a stream is called, behind its name."""

AskTypes = Callable[[AnalysedQuery], Sequence[Type]]


def plan_stream_as(statement: CreateStreamAs, context: Context, ask: AskTypes) -> plans.ChangeCatalog:
    """The stream with its parts, its topic and the schemas of the topic."""
    return _StreamPlanner(statement, context, ask).plan()


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

    def plan(self) -> plans.ChangeCatalog:
        statement, context = self.statement, self.context
        if statement.or_replace and find(self.catalog, context.path, statement.name, statement.kind) is not None:
            raise NotSupportedYet(f"CREATE OR REPLACE {statement.kind.words} … AS over an existing one")
        check_properties(statement)
        streams.refuse_later_features(statement)
        self.schema, self.name = parent_and_name(self.catalog, context.path, statement.name, statement.kind)
        parent_and_name(
            self.catalog, context.path, statement.name, Kind.SINK
        )  # raises if its part cannot have the name
        view = self._views()
        statement = self._with_columns(view)
        sink = self._sink(statement, view)
        statement = self._with_reading(statement, sink)
        part = self._add(Kind.SINK, self.name, sink.statement, self._sink_needs(sink, view))
        layout = stream_layout(statement)
        assert statement.reads is not None
        needs = (Dependency(part.id, DependencyKind.FILLED_BY), *streams.connections_of(statement.reads))
        stream = self._add(
            statement.kind, self.name, statement, needs, source_columns(layout), streams.growth_of(statement),
            Comment(imported=layout.doc),
        )  # fmt: skip
        check_loops(self.catalog, [part.id])
        assert stream.definition is not None
        return plans.ChangeCatalog(
            statement.words, tuple(self.made), tuple(self._effects(sink)), notices=self._notices(sink)
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
        if any(token.word == "*" for token in tokenize(self.statement.query.text)):
            names = ", ".join(force_quotes(column.name) for column in view.columns)
            full = ".".join(map(force_quotes, self.catalog.path(view.id)))
            view = self._view(COLUMNS, Query(f"SELECT {names} FROM {full}"))
        return view

    def _view(self, suffix: str, query: Query) -> Object:
        catalog, path = self.catalog, self.context.path
        analysed, needs = query_dependencies(catalog, path, query)
        columns = view_columns(analysed, (), self.who[1], self.ask(analysed))
        growth, columns = derive_growth(catalog, analysed, columns)
        name = f"{self.name} {suffix}"
        definition = CreateView(
            ObjectName((Identifier(name, quoted=True),)), resolved_query(catalog, path, query, analysed)
        )
        return self._add(Kind.VIEW, name, definition, needs, columns, growth)

    def _check_growth(self, view: Object) -> None:
        wanted = Growth.KEYED if self.statement.kind is Kind.TABLE else Growth.APPEND
        if view.growth is not wanted:
            raise errors.StreamOfOtherGrowth(*self.who, (view.growth or Growth.CHANGING).value)

    def _chain_source(self, view: Object) -> Object:
        try:
            return chain_of(self.catalog, view.id).source
        except NotSupportedYet:
            raise errors.StreamNeedsState(*self.who) from None

    # columns and formats

    def _with_columns(self, view: Object) -> CreateStreamAs:
        """The statement with the columns of the query, those of the key marked, and with a format for each side."""
        source = self._chain_source(view)
        keys = self._key_names(view, source)
        role = "PRIMARY KEY" if self.statement.kind is Kind.TABLE else "KEY"
        relation = query_relation(self.catalog, view)
        types = {c.name: expanded(c.type, named_types(self.catalog)) for c in relation.columns if c.type is not None}
        columns = tuple(
            StreamColumn(Identifier(name, quoted=True), type_, role if name in keys else None)  # type: ignore[arg-type]
            for name, type_ in types.items()
        )
        given = self.statement.properties
        key, value = _formats_of(source)
        if given.format is None:
            value_format = given.value_format or value
            key_format = given.key_format or (key if keys else None)
            given = replace(given, value_format=value_format, key_format=key_format)
        first = self.made[0]
        assert isinstance(first, ObjectCreated)
        assert isinstance(first.object.definition, CreateView)
        # With the meaning of its names, so that it is printed with the names of today.
        query = first.object.definition.query
        statement = replace(self.statement, query=query, projection=columns, settled=given)
        self._check_sides(statement, keys)
        return statement

    def _check_sides(self, statement: CreateStreamAs, keys: Sequence[str]) -> None:
        if statement.properties.key_schema_id is not None and not keys:
            raise errors.StreamWithoutKey(*self.who)
        for side in (key_side(statement), value_side(statement)):
            check_side(statement, side)
            if side.format is None and (side.side == "VALUE" or keys):
                raise errors.StreamFormatMissing(*self.who, side.word)
        whole = statement.properties.wrap_single_value is False
        if whole and statement.properties.value_schema_id is None:
            raise NotSupportedYet("wrap_single_value = false with AS and without value_schema_id")

    def _key_names(self, view: Object, source: Object) -> tuple[str, ...]:
        """The key columns: those of a table, those of PARTITION BY, or those that come from the key of the source."""
        if self.statement.kind is Kind.TABLE:
            if self.statement.partition_by:
                raise errors.PropertyWithoutMeaning(*self.who, "PARTITION BY", "the rows of a table have a key")
            return tuple(column.name for column in view.columns if column.key)
        names = [column.name for column in view.columns]
        found = []
        for expression in self.statement.partition_by:
            tokens = [token for token in tokenize(expression.text) if token.value]
            written = Identifier(tokens[0].value, quoted=tokens[0].kind.value == "quoted") if len(tokens) == 1 else None
            name = None if written is None else find_name(written, names)
            if name is None:
                raise errors.PartitionByNoColumn(*self.who, expression.text, tuple(names)).at(expression.span)
            found.append(name)
        return tuple(found) or self._inherited_key(view, source)

    def _inherited_key(self, view: Object, source: Object) -> tuple[str, ...]:
        layout = layout_of(source)
        of_key = {c.name for c in layout.columns if c.origin.section == "key"}
        ids = {c.id: c.name for c in source.columns if c.name in of_key}
        found = {column.name: ids[root.column] for column in view.columns
                 if (root := self._root(column.origin)) is not None and root.object == source.id and root.column in ids}  # fmt: skip
        return tuple(found) if of_key and set(found.values()) == of_key and len(found) == len(of_key) else ()

    def _root(self, ref: ColumnRef | None) -> ColumnRef | None:
        """The column of the source that a column is a plain projection of."""
        while ref is not None and (relation := self.catalog.get(ref.object)).kind is Kind.VIEW:
            column = relation.column(ref.column)
            ref = None if column is None else column.origin
        return ref

    # the sink

    def _sink(self, statement: CreateStreamAs, view: Object) -> _Sink:
        catalog, given = self.catalog, statement.properties
        keys = tuple(c.name.name for c in statement.columns if c.role is not None)
        config = None if given.retention_ms is None else (("retention.ms", str(given.retention_ms)),)
        made = CreateSink(
            statement.name,
            relation=ObjectName((Identifier(view.name, quoted=True),), view.id),
            kafka=KafkaConnection(
                connection_name(given.connection, "kafka"),
                WriteOptions(
                    topic=topic_of(statement), topic_partition_count=given.partitions,
                    topic_replication_factor=given.replicas, topic_config=config,
                ),
            ),
            formats=self._write_formats(statement, bool(keys)),
            key=SinkKey(tuple(Identifier(name, quoted=True) for name in keys)) if keys else None,
            envelope="UPSERT" if statement.kind is Kind.TABLE else "NONE",
            with_options=SinkOptions(
                key_in_value=not keys,
                on_error={"halt": "HALT", "quarantine": "QUARANTINE", "skip": "SKIP"}[given.on_error],  # type: ignore[arg-type]
            ),
        )  # fmt: skip
        sink = with_full_names(catalog, resolve_names(made, catalog, self.context.path))
        try:
            planned, notices = plan_new_sink(catalog, sink, self.context.answers.types)
        except errors.ColumnsNotInSchema as wrong:
            raise errors.ColumnsNotInSchema(
                *self.who, wrong.side, wrong.schema, wrong.problems, wrong.columns, wrong.fields
            ) from None
        check_docs(catalog, sink, planned)
        check_policies(planned.name, undocumented(catalog, self.schema, sink, planned, comments=True))
        sink = with_frozen_docs(catalog, sink, planned)
        register = tuple(
            (side, plans.RegisterSchema(planned.registry(SIDES[side]), subject, schema))
            for side, subject, schema in subjects(planned)
        )
        return _Sink(with_schemas_to_register(sink, planned, register), planned, register, notices)

    def _write_formats(self, statement: CreateStreamAs, has_key: bool) -> Formats:
        key, value = key_side(statement), value_side(statement)
        return Formats(self._write_format(statement, value), self._write_format(statement, key) if has_key else None)

    def _write_format(self, statement: CreateStreamAs, side: StreamSide) -> Format:
        match side.format:
            case "avro" | "protobuf" | "json_sr":
                return self._registry_format(statement, side)
            case "json":
                return JsonFormat()
            case "kafka":
                return self._primitive(side)
            case _:
                raise NotSupportedYet(f"the format {side.format} with AS")

    def _primitive(self, side: StreamSide) -> Format:
        if len(side.columns) != 1:
            raise errors.FormatOfOneColumn(*self.who, side.word, "kafka", len(side.columns))
        column = side.columns[0]
        match column.type:
            case Text():
                return TextFormat()
            case Bytes():
                return BytesFormat()
            case Integer():
                return PrimitiveFormat("integer")
            case Bigint():
                return PrimitiveFormat("bigint")
            case _:
                raise NotSupportedYet("the format kafka with AS for other columns than text, bytes, integer and bigint")

    def _registry_format(self, statement: CreateStreamAs, side: StreamSide) -> RegistryFormat:
        given = statement.properties
        names = (given.key_schema_full_name, given.value_schema_full_name)
        options = WriteFormatOptions()
        full = (side.full_name or streams.RECORD_NAMES[side.side]) if any(names) and side.schema_id is None else None
        if side.side == "KEY":
            options = replace(options, key_schema_id=side.schema_id, avro_key_fullname=full)
        else:
            options = replace(options, value_schema_id=side.schema_id, avro_value_fullname=full)
        assert side.format is not None
        message = side.full_name if side.format == "protobuf" and side.schema_id is not None else None
        registry = connection_name(given.registry, "registry")
        return RegistryFormat(
            REGISTRY[side.format], registry, options, frozen=self._given(statement, side), message=message
        )

    def _given(self, statement: CreateStreamAs, side: StreamSide) -> tuple[FrozenSchema, ...]:
        """The schema of the given id, as the registry returned it."""
        found: TakenSchema | None = next((s for s in self.context.answers.schemas if s[0] == side.side), None)
        if side.schema_id is None or found is None:
            return ()
        assert side.format is not None
        schema, wanted = found[1], SchemaFormat.from_words(REGISTRY[side.format])
        if schema.format is not wanted:
            raise errors.SchemaIdOfOtherFormat(
                *self.who,
                side.word,
                side.schema_id,
                schema.format.words,
                wanted.words,
                FORMAT_NAMES[schema.format.words],
            )
        return (FrozenSchema(side.side, side.schema_id, schema.text, schema.references),)

    # reading, and what must be done

    def _with_reading(self, statement: CreateStreamAs, sink: _Sink) -> CreateStreamAs:
        """The statement with the source that it is read as: with the schemas that are written."""
        pending: Mapping[Side, PendingId] = {side: effect.id for side, effect in sink.register}

        def reading(side: StreamSide) -> Format:
            format_ = read_format(statement, side)
            encoded = sink.planned.key if side.side == "KEY" else sink.planned.value
            if not isinstance(format_, RegistryFormat) or encoded is None or encoded.schema is None:
                return format_
            id_ = pending.get(side.side, encoded.schema_id)
            assert id_ is not None
            schema = FrozenSchema(side.side, id_, encoded.schema, encoded.references)
            return replace(format_, frozen=(schema,))

        key = key_side(statement)
        formats = Formats(reading(value_side(statement)), reading(key) if sink.planned.key is not None else None)
        reads = resolve_names(source_over(statement, formats), self.catalog, self.context.path)
        made = replace(statement, reads=reads)
        streams.check_full_names(made)
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
        """The notices of the sink, about the stream."""
        kind, name = self.who
        return tuple(text.replace(f'sink "{name}"', f'{kind} "{name}"') for text in sink.notices)


_DEFAULTS: Mapping[type[Format], StreamFormat] = {
    JsonInline: "json",
    JsonFormat: "json",
    TextFormat: "kafka",
    BytesFormat: "kafka",
    PrimitiveFormat: "kafka",
}


def _formats_of(source: Object) -> tuple[StreamFormat | None, StreamFormat | None]:
    """The formats of keys and values of the query's source, which a stream has unless it says otherwise."""

    def name(format_: Format | None) -> StreamFormat | None:
        if isinstance(format_, RegistryFormat):
            return FORMAT_NAMES[format_.kind]  # type: ignore[return-value]
        return None if format_ is None else _DEFAULTS.get(type(format_))

    formats = read_statement(source).formats
    return name(formats.key if formats.key is not None else formats.value), name(formats.value)
