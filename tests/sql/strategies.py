"""Statements for property tests: one strategy per statement class, in ``STATEMENTS``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from headgate.sql import (
    captures,
    connections,
    formats,
    materializations,
    objects,
    queries,
    registry_formats,
    show,
    sinks,
    sources,
    streams,
    subscribe,
    views,
)
from headgate.sql.options import ChangeOptions, Given, Interval, OptionRule, SecretReference, ValueKind, rules
from headgate.sql.statement import Expression, Kind, ObjectName, Query, Statement
from headgate.text.cursor import RESERVED, Identifier
from tests.schema.strategies import types as schema_types

# Keywords of the grammar that are free as names; the ones most likely to be mistaken for a clause.
SOFT_KEYWORDS = (
    "key", "value", "format", "topic", "source", "sink", "table", "view", "type", "schema", "if", "exists", "include",
    "envelope", "partition", "offset", "connection", "extended", "materialized", "collection", "object", "list", "map",
    "fields", "set", "to", "on", "is", "for", "in", "like", "emit", "changes", "seed", "strategy", "doc", "header",
    "headers", "binding", "cascade", "required", "recommended", "column", "secret", "primary", "json", "text", "enum",
)  # fmt: skip

plain_names = st.one_of(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True),
    st.sampled_from(SOFT_KEYWORDS),
    st.sampled_from(["naïve", "日本", "a$1"]),
).filter(lambda name: name.upper() not in RESERVED | {"POLICY", "DEFAULT"})
# Any text but NUL and halves of surrogate pairs, which no statement can hold.
texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=12)
quoted_names = texts.filter(bool)
identifiers = st.one_of(
    st.builds(Identifier, plain_names, st.just(False)), st.builds(Identifier, quoted_names, st.just(True))
)
numbers = st.integers(0, 10**9)
flags = st.booleans()


def some(items: SearchStrategy[Any], least: int = 1, most: int = 3) -> SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, min_size=least, max_size=most).map(tuple)


def names(parts: int = 3, least: int = 1) -> SearchStrategy[ObjectName]:
    return st.builds(ObjectName, some(identifiers, least, parts))


EXPRESSIONS = (
    "1", "-1.5e3", "'it''s'", "NULL", "a + b", "f(x, ')', \"y\"\";\")", "$$;)$$", "ARRAY[1, 2]", "x::text",
    "CASE WHEN a THEN (b) ELSE 'c' END", "doc ->> 'k'", "a -- not ; the ) end\n + 1", "a /* ; */ || b", "{a: 1}",
)  # fmt: skip
QUERIES = (
    "SELECT 1", "SELECT * FROM t", "WITH x AS (SELECT 1) SELECT * FROM x", "VALUES (1, 'a;b'), (2, NULL)",
    "(SELECT a FROM t) UNION ALL (SELECT b FROM u)", "SELECT emit changes FROM t",
    "SELECT row_number() OVER (PARTITION BY a ORDER BY b) FROM t", "SELECT ';', $q$;$q$ -- ;\nFROM \"semi;colon\"",
    "SELECT (key).f, a::point, `x` FROM s AS LOG WHERE a = ANY (ARRAY[1]) LIMIT 3",
)  # fmt: skip
expressions = st.sampled_from(EXPRESSIONS).map(Expression)
query_bodies = st.sampled_from(QUERIES).map(Query)


def values(rule: OptionRule) -> SearchStrategy[Any]:
    if rule.choices:
        return st.sampled_from(rule.choices)
    match rule.kind:
        case ValueKind.STRING | ValueKind.CHOICE:
            return texts
        case ValueKind.INTERVAL:
            return texts.map(Interval)
        case ValueKind.INTEGER:
            return st.integers(-5, 10**18)
        case ValueKind.TIMESTAMP:
            return numbers | st.just("2026-11-15T12:30:00Z")
        case ValueKind.BOOLEAN:
            return flags
        case ValueKind.SECRET:
            return texts | st.builds(SecretReference, names())
        case ValueKind.STRINGS:
            return some(texts)
        case ValueKind.OFFSETS:
            return numbers | some(numbers) | st.sampled_from(["EARLIEST", "LATEST"])
        case ValueKind.SEED_OFFSETS:
            return some(numbers)
        case ValueKind.MAP:
            return some(st.tuples(texts, texts), 0)
        case ValueKind.EXPRESSION:
            return expressions


def options(cls: type[Given], least: int = 0) -> SearchStrategy[Given]:
    """Options of a list, of which at least so many are given."""
    chosen = st.lists(st.sampled_from(rules(cls)), min_size=least, max_size=4, unique=True)
    return chosen.flatmap(lambda given: st.builds(cls, **{rule.field: values(rule) for rule in given}))


def kafkas(cls: type[Any]) -> SearchStrategy[Any]:
    return st.one_of(
        st.builds(connections.KafkaConnection, names(), options(cls, 1)),
        st.builds(connections.KafkaBroker, texts, texts, options(cls)),
    )


sides = st.sampled_from(["KEY", "VALUE"])
strategy_kinds = st.one_of(
    st.just(registry_formats.LatestStrategy()),
    st.builds(registry_formats.IdStrategy, numbers),
    st.builds(registry_formats.InlineStrategy, texts),
)
doc_targets = st.one_of(
    st.builds(registry_formats.DocTarget, st.none() | sides, names(), some(identifiers)),
    st.builds(registry_formats.DocTarget, st.none() | sides, names()),
)
docs = st.builds(registry_formats.DocOn, doc_targets, texts)
field_names = st.tuples(some(identifiers.map(lambda found: found.name)), texts)
seeds = st.builds(
    registry_formats.FrozenSchema,
    sides,
    numbers,
    texts,
    some(st.tuples(texts, texts), 0),
    st.booleans(),
    some(field_names, 0),
)
csv_formats = st.one_of(
    st.builds(formats.CsvFormat, numbers, st.none(), st.none() | texts),
    st.builds(formats.CsvFormat, st.none(), st.none() | some(identifiers), st.none() | texts),
)


def format_nodes(cls: type[registry_formats.FormatOptions]) -> SearchStrategy[formats.Format]:
    registry = st.one_of(names(), st.builds(registry_formats.RegistryUrl, texts))
    reads = cls is registry_formats.ReadFormatOptions
    strategies = st.builds(registry_formats.SchemaStrategy, sides, strategy_kinds)
    listed = {
        "registry": registry,
        "options": options(cls),
        "strategies": unique_by(strategies, lambda item: item.side) if reads else st.just(()),
        "docs": st.just(()) if reads else unique_by(docs, lambda item: item.target),
        "frozen": unique_by(seeds, lambda item: item.side),
    }
    return st.one_of(
        st.sampled_from([formats.TextFormat(), formats.BytesFormat(), formats.JsonFormat()]),
        csv_formats,
        st.builds(formats.RegexFormat, texts),
        st.builds(formats.AvroInline, texts, options(registry_formats.InlineFormatOptions)),
        st.builds(formats.ProtobufInline, texts, texts),
        st.builds(registry_formats.RegistryFormat, kind=st.sampled_from(["AVRO", "JSON SCHEMA"]), **listed),
        st.builds(registry_formats.RegistryFormat, kind=st.just("PROTOBUF"), message=st.none() | texts, **listed),
    )


def unique_by(items: SearchStrategy[Any], key: Callable[[Any], Any]) -> SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, max_size=2, unique_by=key).map(tuple)


def both_formats(cls: type[registry_formats.FormatOptions]) -> SearchStrategy[formats.Formats]:
    return st.builds(formats.Formats, format_nodes(cls), st.none() | format_nodes(cls))


read_formats = both_formats(registry_formats.ReadFormatOptions)
write_formats = both_formats(registry_formats.WriteFormatOptions)
kinds = st.sampled_from(list(Kind))
changes = options(ChangeOptions)
secret_values = st.one_of(
    st.builds(connections.SecretText, texts),
    st.builds(connections.SecretFromEnv, texts),
    st.builds(connections.SecretFromFile, texts),
)
includes = st.lists(
    st.one_of(
        st.builds(
            sources.IncludeMetadata,
            st.sampled_from(["KEY", "PARTITION", "OFFSET", "TIMESTAMP", "TOPIC", "HEADERS"]),
            st.none() | identifiers,
        ),
        st.builds(sources.IncludeHeader, texts, identifiers, flags),
    ),
    max_size=3,
    unique_by=lambda item: getattr(item, "what", item),
).map(tuple)
envelopes = st.one_of(
    st.sampled_from([None, sources.NoneEnvelope(), sources.DebeziumEnvelope()]),
    st.builds(sources.UpsertEnvelope, some(identifiers, 0), st.just(True), st.none() | identifiers),
    st.builds(sources.UpsertEnvelope, some(identifiers, 0)),
)
type_bodies = st.one_of(
    st.builds(objects.RecordBody, some(st.builds(objects.TypeField, identifiers, schema_types(), flags))),
    st.builds(objects.ListBody, schema_types()),
    st.builds(objects.MapBody, schema_types()),
    st.builds(objects.OtherBody, schema_types()),
)
registry_kinds = st.sampled_from(["AVRO", "PROTOBUF", "JSON SCHEMA"])
doc_changes = st.one_of(
    st.builds(sinks.AddDoc, docs), st.builds(sinks.DropDoc, doc_targets), st.just(sinks.RefreshDocs())
)
requirements = st.sampled_from([("FIELDS",), ("TYPES",), ("FIELDS", "TYPES"), ("TYPES", "FIELDS")])
scopes = st.one_of(
    st.none(),
    st.builds(sinks.PolicyScope, st.just(Kind.SCHEMA), names(2)),
    st.builds(sinks.PolicyScope, st.just(Kind.DATABASE), names(1)),
)
stream_columns = st.one_of(
    st.builds(
        streams.StreamColumn,
        identifiers,
        schema_types(),
        st.sampled_from([None, "KEY", "PRIMARY KEY", "HEADERS"]),
    ),
    st.builds(streams.StreamColumn, identifiers, schema_types(), st.just("HEADER"), texts),
)
# or_replace and if_not_exists, which exclude each other
replaces = st.sampled_from([(False, False), (True, False), (False, True)])
origins = st.one_of(
    st.builds(captures.CaptureKafka, kafkas(connections.ReadOptions), read_formats),
    st.builds(captures.CapturePostgres, names(), options(captures.TablesOptions, 1)),
    st.builds(captures.CaptureFiles, texts, format_nodes(registry_formats.ReadFormatOptions)),
    st.builds(captures.CaptureHttp, texts),
)
capture_targets = st.one_of(
    st.builds(captures.IntoCollection, names()),
    st.builds(captures.IntoBindings, some(st.builds(captures.Binding, texts, names()))),
    st.builds(captures.IntoSchema, names(2)),
)
materialization_targets = st.one_of(
    st.builds(materializations.PostgresTarget, names(), options(materializations.TableOptions, 1)),
    st.builds(materializations.ElasticsearchTarget, names(), options(materializations.IndexOptions, 1)),
    st.just(materializations.OnDemandTarget()),
)


def fields(types_: SearchStrategy[Any]) -> SearchStrategy[materializations.MaterializedField]:
    return st.builds(
        materializations.MaterializedField,
        identifiers,
        types_,
        st.none() | texts,
        flags,
        flags,
        st.none() | texts,
    )


field_trees = st.recursive(
    fields(schema_types()),
    lambda inner: fields(st.builds(materializations.ObjectType, some(inner))),
    max_leaves=4,
)
field_clauses = st.one_of(
    st.builds(materializations.FieldList, some(field_trees)),
    st.builds(
        materializations.RecommendedFields,
        st.none() | numbers.map(lambda number: number + 1),
        some(st.one_of(names(), st.builds(materializations.Pointer, texts)), 0),
    ),
)


def replaceable(cls: type[Statement], **given: SearchStrategy[Any]) -> SearchStrategy[Statement]:
    return replaces.flatmap(
        lambda pair: st.builds(cls, or_replace=st.just(pair[0]), if_not_exists=st.just(pair[1]), **given)
    )


def creates(cls: type[Statement], *given: SearchStrategy[Any]) -> SearchStrategy[Statement]:
    return st.builds(cls, *given, if_not_exists=flags)


def alters(cls: type[Statement], kind: Kind, *given: SearchStrategy[Any]) -> SearchStrategy[Statement]:
    return st.builds(cls, st.just(kind), names(), *given, if_exists=flags)


STATEMENTS: dict[type[Statement], SearchStrategy[Statement]] = {
    connections.CreateSecret: creates(connections.CreateSecret, names(), secret_values),
    connections.AlterSecret: alters(connections.AlterSecret, Kind.SECRET, secret_values),
    connections.CreateConnection: creates(
        connections.CreateConnection,
        names(),
        st.sampled_from(list(connections.CONNECTION_OPTIONS.values())).flatmap(lambda cls: options(cls, 1)),
        options(connections.ValidateOptions),
    ),
    connections.AlterConnection: alters(
        connections.AlterConnection,
        Kind.CONNECTION,
        options(connections.AnyConnectionOptions, 1),
        some(st.sampled_from(["PASSWORD", "SSL KEY"]), 0),
        options(connections.ValidateOptions),
    ),
    connections.ValidateConnection: st.builds(connections.ValidateConnection, names()),
    objects.CreateDatabase: creates(objects.CreateDatabase, names(1)),
    objects.CreateSchema: creates(objects.CreateSchema, names(2)),
    sources.CreateSource: creates(
        sources.CreateSource,
        names(),
        kafkas(connections.ReadOptions),
        read_formats,
        some(identifiers, 0),
        includes,
        envelopes,
        options(sources.SourceOptions),
    ),
    sources.AcceptSchemaChange: st.builds(
        sources.AcceptSchemaChange,
        st.sampled_from([Kind.SOURCE, Kind.STREAM, Kind.TABLE]),
        names(),
        changes,
        if_exists=flags,
    ),
    sources.RenameColumn: st.builds(
        sources.RenameColumn, st.just(Kind.SOURCE), names(), identifiers, identifiers, if_exists=flags
    ),
    objects.CreateType: creates(objects.CreateType, names(), type_bodies),
    views.CreateView: replaceable(
        views.CreateView, name=names(), query=query_bodies, columns=some(identifiers, 0), with_options=changes
    ),
    views.CreateMaterializedView: replaceable(
        views.CreateMaterializedView,
        name=names(),
        query=query_bodies,
        columns=some(identifiers, 0),
        assert_not_null=some(identifiers, 0),
        with_options=options(views.MaterializedViewOptions),
    ),
    sinks.CreateSink: creates(
        sinks.CreateSink,
        names(),
        names(),
        kafkas(connections.WriteOptions),
        write_formats,
        st.none() | st.builds(sinks.SinkKey, some(identifiers), flags),
        st.none() | identifiers,
        st.sampled_from([None, "UPSERT", "DEBEZIUM", "NONE"]),
        options(sinks.SinkOptions),
    ),
    sinks.AlterSinkDocs: alters(sinks.AlterSinkDocs, Kind.SINK, registry_kinds, some(doc_changes)),
    sinks.AlterSinkFrom: alters(sinks.AlterSinkFrom, Kind.SINK, names(), changes),
    sinks.CreateSinkPolicy: creates(sinks.CreateSinkPolicy, names(), registry_kinds, requirements, scopes),
    sinks.AlterSinkPolicy: alters(sinks.AlterSinkPolicy, Kind.SINK_POLICY, registry_kinds, requirements),
    streams.CreateStream: replaceable(
        streams.CreateStream,
        name=names(),
        columns=some(stream_columns, 0),
        properties=options(streams.StreamProperties),
    ),
    streams.CreateStreamAs: replaceable(
        streams.CreateStreamAs,
        name=names(),
        query=query_bodies,
        properties=options(streams.StreamProperties),
        partition_by=some(expressions, 0),
    ),
    streams.CreateTable: replaceable(
        streams.CreateTable,
        name=names(),
        columns=some(stream_columns, 0),
        properties=options(streams.StreamProperties),
    ),
    streams.CreateTableAs: replaceable(
        streams.CreateTableAs,
        name=names(),
        query=query_bodies,
        properties=options(streams.StreamProperties),
        partition_by=some(expressions, 0),
    ),
    captures.CreateCollection: st.builds(
        captures.CreateCollection,
        names(),
        some(texts),
        write_schema=st.none() | texts,
        read_schema=st.none() | texts,
        partition_by=some(texts, 0),
        with_options=options(captures.CollectionOptions),
        query=st.none() | query_bodies,
        if_not_exists=flags,
    )
    | st.builds(captures.CreateCollection, names(), some(texts), texts),
    captures.ResetCollection: alters(
        captures.ResetCollection, Kind.COLLECTION, some(texts, 0), some(texts, 0), changes
    ),
    captures.SetCollectionSchema: alters(
        captures.SetCollectionSchema, Kind.COLLECTION, texts, st.none() | texts, changes
    ),
    captures.CreateCapture: creates(
        captures.CreateCapture, names(), origins, capture_targets, options(captures.CaptureOptions)
    ),
    captures.DiscoverCapture: alters(captures.DiscoverCapture, Kind.CAPTURE),
    materializations.CreateMaterialization: creates(
        materializations.CreateMaterialization,
        names(),
        names(),
        materialization_targets,
        st.none() | field_clauses,
        options(materializations.MaterializationOptions),
    ),
    materializations.BackfillMaterialization: alters(materializations.BackfillMaterialization, Kind.MATERIALIZATION),
    materializations.SetMaterializationFields: alters(
        materializations.SetMaterializationFields, Kind.MATERIALIZATION, field_clauses, changes
    ),
    objects.CommentOn: st.one_of(
        st.builds(objects.CommentOn, kinds, names(), st.none() | texts),
        st.builds(objects.CommentOn, st.none(), names(4, 2), st.none() | texts, some(identifiers, 0)),
    ),
    objects.RenameObject: st.builds(objects.RenameObject, kinds, names(), identifiers, if_exists=flags),
    objects.ChangeTaskState: st.one_of(
        st.builds(
            objects.ChangeTaskState,
            st.sampled_from([Kind.SINK, Kind.MATERIALIZATION, Kind.MATERIALIZED_VIEW, Kind.STREAM, Kind.TABLE]),
            names(),
            st.sampled_from(["PAUSE", "RESUME"]),
            st.none(),
            if_exists=flags,
        ),
        st.builds(
            objects.ChangeTaskState,
            st.just(Kind.CAPTURE),
            names(),
            st.sampled_from(["PAUSE", "RESUME"]),
            st.none() | texts,
            if_exists=flags,
        ),
    ),
    objects.DropObject: st.one_of(
        st.builds(objects.DropObject, kinds, names(), flags, flags),
        st.builds(objects.DropObject, st.sampled_from([Kind.STREAM, Kind.TABLE]), names(), flags, flags, flags),
        st.builds(objects.DropObject, st.just(Kind.MATERIALIZATION), names(), flags, flags, st.just(False), flags),
    ),
    queries.InsertValues: st.builds(queries.InsertValues, names(), some(some(expressions)), some(identifiers, 0)),
    queries.InsertQuery: st.builds(
        queries.InsertQuery,
        names(),
        query_bodies.filter(lambda query: not query.text.startswith("VALUES")),
        some(identifiers, 0),
    ),
    queries.Select: st.one_of(
        st.builds(queries.Select, query_bodies),
        st.builds(queries.Select, query_bodies, st.just(True), st.none() | numbers),
    ),
    subscribe.Subscribe: st.builds(subscribe.Subscribe, names(), st.builds(subscribe.SubscribeOptions, st.booleans())),
    queries.SetSearchPath: st.builds(queries.SetSearchPath, some(names(2), 0)),
    queries.ShowSearchPath: st.just(queries.ShowSearchPath()),
    show.ShowObjects: st.builds(
        show.ShowObjects,
        st.sampled_from(get_args(show.Listing)),
        st.none() | names(2),
        st.none() | names(),
        st.none() | texts,
    ),
    show.ShowCreate: st.builds(show.ShowCreate, kinds, names()),
    show.ShowLineage: st.builds(show.ShowLineage, names(), st.none() | kinds),
    show.ShowCollectionSchema: st.builds(
        show.ShowCollectionSchema, st.sampled_from(["WRITE", "READ", "INFERRED"]), names()
    ),
    show.ShowSchemaHistory: st.builds(show.ShowSchemaHistory, names(), st.none() | kinds),
    show.Describe: st.builds(show.Describe, names(), st.none() | kinds, flags),
    show.ReplayQuarantine: st.builds(show.ReplayQuarantine, names(), st.none() | kinds),
    show.ExplainObject: st.builds(show.ExplainObject, kinds, names()),
    show.ExplainSubjectChange: st.builds(show.ExplainSubjectChange, texts, texts),
}
_created = st.one_of(STATEMENTS[views.CreateView], STATEMENTS[sinks.CreateSink], STATEMENTS[queries.Select])
_altered = st.one_of(STATEMENTS[objects.RenameObject], STATEMENTS[sources.AcceptSchemaChange])
STATEMENTS[show.Explain] = st.builds(show.Explain, st.one_of(_created, STATEMENTS[queries.InsertValues]))
STATEMENTS[show.ExplainChange] = st.builds(show.ExplainChange, _altered)
STATEMENTS[show.ExplainSchema] = st.builds(show.ExplainSchema, sides, st.one_of(names(), STATEMENTS[sinks.CreateSink]))

statements = st.sampled_from(list(STATEMENTS)).flatmap(STATEMENTS.__getitem__)
