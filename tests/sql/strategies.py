"""Statements for property tests: one strategy per statement class, in ``STATEMENTS``."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from headgate.sql import (
    captures,
    collections,
    connections,
    formats,
    kafka,
    materializations,
    objects,
    queries,
    registry_formats,
    show,
    sinks,
    sources,
    streams,
    types,
    views,
)
from headgate.sql.options import (
    CHANGE_OPTIONS,
    BooleanLiteral,
    Choice,
    ListLiteral,
    MapLiteral,
    NumberLiteral,
    Option,
    OptionRule,
    OptionTable,
    SecretReference,
    StringLiteral,
    Value,
    ValueKind,
)
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


def values(rule: OptionRule) -> SearchStrategy[Value]:
    match rule.kind:
        case ValueKind.STRING | ValueKind.INTERVAL:
            return (st.sampled_from(rule.choices) if rule.choices else texts).map(StringLiteral)
        case ValueKind.INTEGER:
            return st.integers(-5, 10**18).map(lambda n: NumberLiteral(str(n)))
        case ValueKind.TIMESTAMP:
            return st.one_of(
                numbers.map(lambda n: NumberLiteral(str(n))), st.just(StringLiteral("2026-11-15T12:30:00Z"))
            )
        case ValueKind.BOOLEAN:
            return flags.map(BooleanLiteral)
        case ValueKind.CHOICE:
            return st.sampled_from(rule.choices).map(Choice)
        case ValueKind.SECRET:
            return st.one_of(texts.map(StringLiteral), st.builds(SecretReference, names()))
        case ValueKind.STRINGS:
            return st.builds(ListLiteral, some(texts.map(StringLiteral)))
        case ValueKind.OFFSETS:
            offsets = some(numbers.map(lambda n: NumberLiteral(str(n))))
            return st.one_of(
                st.builds(ListLiteral, offsets), st.sampled_from([Choice("EARLIEST"), Choice("LATEST")])
            )
        case ValueKind.SEED_OFFSETS:
            return st.builds(ListLiteral, some(numbers.map(lambda n: NumberLiteral(str(n)))))
        case ValueKind.MAP:
            return st.builds(MapLiteral, some(st.tuples(texts, texts), 0))
        case ValueKind.EXPRESSION:
            return expressions


def one_option(rule: OptionRule) -> SearchStrategy[Option]:
    return st.builds(Option, st.just(rule.name), values(rule))


def options(table: OptionTable, least: int = 0) -> SearchStrategy[tuple[Option, ...]]:
    rules = st.lists(st.sampled_from(table.rules), min_size=least, max_size=4, unique=True)
    return rules.flatmap(lambda chosen: st.tuples(*[one_option(rule) for rule in chosen]))


def kafkas(table: OptionTable) -> SearchStrategy[kafka.Kafka]:
    return st.one_of(
        st.builds(kafka.KafkaConnection, names(), options(table, 1)),
        st.builds(kafka.KafkaBroker, texts, texts, options(table)),
    )


sides = st.sampled_from(["KEY", "VALUE"])
strategy_kinds = st.one_of(
    st.just(registry_formats.LatestStrategy()),
    st.builds(registry_formats.IdStrategy, numbers),
    st.builds(registry_formats.InlineStrategy, texts),
)
doc_targets = st.one_of(
    st.builds(registry_formats.DocTarget, st.none() | sides, st.just("COLUMN"), names(4, 2)),
    st.builds(registry_formats.DocTarget, st.none() | sides, st.just("TYPE"), names()),
)
docs = st.builds(registry_formats.DocOn, doc_targets, texts)
seeds = st.builds(registry_formats.FrozenSchema, sides, numbers, texts, some(st.tuples(texts, texts), 0))
csv_formats = st.one_of(
    st.builds(formats.CsvFormat, numbers, st.none(), st.none() | texts),
    st.builds(formats.CsvFormat, st.none(), st.none() | some(identifiers), st.none() | texts),
)


def format_options(table: OptionTable) -> SearchStrategy[tuple[registry_formats.FormatOption, ...]]:
    reads = table is registry_formats.READ_FORMAT_OPTIONS
    special = st.builds(registry_formats.SchemaStrategy, sides, strategy_kinds) if reads else docs
    plain = st.sampled_from(table.rules).flatmap(one_option)
    any_option: SearchStrategy[registry_formats.FormatOption] = st.one_of(special, seeds, plain)
    return st.lists(any_option, max_size=4, unique_by=lambda o: registry_formats.identity(o)[0]).map(tuple)


def format_nodes(table: OptionTable) -> SearchStrategy[formats.Format]:
    registry = st.one_of(names(), st.builds(registry_formats.RegistryUrl, texts))
    return st.one_of(
        st.sampled_from([formats.TextFormat(), formats.BytesFormat(), formats.JsonFormat()]),
        csv_formats,
        st.builds(formats.RegexFormat, texts),
        st.builds(formats.AvroInline, texts, options(formats.TABLES["inline option"])),
        st.builds(formats.ProtobufInline, texts, texts),
        st.builds(
            registry_formats.RegistryFormat,
            st.sampled_from(["AVRO", "JSON SCHEMA"]),
            registry,
            format_options(table),
            st.none(),
        ),
        st.builds(
            registry_formats.RegistryFormat,
            st.just("PROTOBUF"),
            registry,
            format_options(table),
            st.none() | texts,
        ),
    )


def both_formats(table: OptionTable) -> SearchStrategy[formats.Formats]:
    return st.builds(formats.Formats, format_nodes(table), st.none() | format_nodes(table))


read_formats = both_formats(registry_formats.READ_FORMAT_OPTIONS)
write_formats = both_formats(registry_formats.WRITE_FORMAT_OPTIONS)
kinds = st.sampled_from(list(Kind))
changes = options(CHANGE_OPTIONS)
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
    st.builds(types.RecordBody, some(st.builds(types.TypeField, identifiers, schema_types(), flags))),
    st.builds(types.ListBody, schema_types()),
    st.builds(types.MapBody, schema_types()),
    st.builds(types.OtherBody, schema_types()),
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
    st.builds(captures.CaptureKafka, kafkas(kafka.READ_OPTIONS), read_formats),
    st.builds(captures.CapturePostgres, names(), options(captures.TABLES_OPTIONS, 1)),
    st.builds(captures.CaptureFiles, texts, format_nodes(registry_formats.READ_FORMAT_OPTIONS)),
    st.builds(captures.CaptureHttp, texts),
)
capture_targets = st.one_of(
    st.builds(captures.IntoCollection, names()),
    st.builds(captures.IntoBindings, some(st.builds(captures.Binding, texts, names()))),
    st.builds(captures.IntoSchema, names(2)),
)
materialization_targets = st.one_of(
    st.builds(materializations.PostgresTarget, names(), options(materializations.TABLE_OPTIONS, 1)),
    st.builds(materializations.ElasticsearchTarget, names(), options(materializations.INDEX_OPTIONS, 1)),
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
        st.none() | numbers,
        some(st.one_of(names(), st.builds(materializations.Pointer, texts)), 0),
    ),
)


def replaceable(cls: type[Statement], **given: SearchStrategy[Any]) -> SearchStrategy[Statement]:
    return replaces.flatmap(
        lambda pair: st.builds(cls, or_replace=st.just(pair[0]), if_not_exists=st.just(pair[1]), **given)
    )


STATEMENTS: dict[type[Statement], SearchStrategy[Statement]] = {
    connections.CreateSecret: st.builds(connections.CreateSecret, names(), secret_values, flags),
    connections.AlterSecret: st.builds(connections.AlterSecret, names(), secret_values, flags),
    connections.CreateConnection: st.sampled_from(list(connections.CONNECTION_OPTIONS.items())).flatmap(
        lambda kind: st.builds(
            connections.CreateConnection,
            names(),
            st.just(kind[0]),
            options(kind[1], 1),
            options(connections.VALIDATE_OPTIONS),
            flags,
        )
    ),
    connections.AlterConnection: st.builds(
        connections.AlterConnection,
        names(),
        options(connections.TABLES["connection option"], 1),
        some(st.sampled_from(["PASSWORD", "SSL KEY"]), 0),
        options(connections.VALIDATE_OPTIONS),
        flags,
    ),
    connections.ValidateConnection: st.builds(connections.ValidateConnection, names()),
    objects.CreateDatabase: st.builds(objects.CreateDatabase, names(1), flags),
    objects.CreateSchema: st.builds(objects.CreateSchema, names(2), flags),
    sources.CreateSource: st.builds(
        sources.CreateSource,
        names(),
        kafkas(kafka.READ_OPTIONS),
        read_formats,
        some(identifiers, 0),
        includes,
        envelopes,
        options(sources.SOURCE_OPTIONS),
        flags,
    ),
    sources.AcceptSchemaChange: st.builds(
        sources.AcceptSchemaChange,
        st.sampled_from([Kind.SOURCE, Kind.STREAM, Kind.TABLE]),
        names(),
        changes,
        flags,
    ),
    types.CreateType: st.builds(types.CreateType, names(), type_bodies, flags),
    views.CreateView: replaceable(
        views.CreateView, name=names(), query=query_bodies, columns=some(identifiers, 0), with_options=changes
    ),
    views.CreateMaterializedView: replaceable(
        views.CreateMaterializedView,
        name=names(),
        query=query_bodies,
        columns=some(identifiers, 0),
        assert_not_null=some(identifiers, 0),
        with_options=options(views.VIEW_OPTIONS),
    ),
    sinks.CreateSink: st.builds(
        sinks.CreateSink,
        st.none() | names(),
        names(),
        kafkas(kafka.WRITE_OPTIONS),
        write_formats,
        st.none() | st.builds(sinks.SinkKey, some(identifiers), flags),
        st.none() | identifiers,
        st.sampled_from([None, "UPSERT", "DEBEZIUM", "NONE"]),
        options(sinks.SINK_OPTIONS),
        flags,
    ),
    sinks.AlterSinkDocs: st.builds(sinks.AlterSinkDocs, names(), registry_kinds, some(doc_changes), flags),
    sinks.AlterSinkFrom: st.builds(sinks.AlterSinkFrom, names(), names(), changes, flags),
    sinks.CreateSinkPolicy: st.builds(
        sinks.CreateSinkPolicy, names(), registry_kinds, requirements, scopes, flags
    ),
    sinks.AlterSinkPolicy: st.builds(sinks.AlterSinkPolicy, names(), registry_kinds, requirements, flags),
    streams.CreateStream: replaceable(
        streams.CreateStream,
        kind=st.sampled_from([Kind.STREAM, Kind.TABLE]),
        name=names(),
        columns=some(stream_columns, 0),
        properties=options(streams.PROPERTIES),
    ),
    streams.CreateStreamAs: replaceable(
        streams.CreateStreamAs,
        kind=st.sampled_from([Kind.STREAM, Kind.TABLE]),
        name=names(),
        query=query_bodies,
        properties=options(streams.PROPERTIES),
        partition_by=some(expressions, 0),
    ),
    collections.CreateCollection: st.builds(
        collections.CreateCollection,
        names(),
        some(texts),
        write_schema=st.none() | texts,
        read_schema=st.none() | texts,
        partition_by=some(texts, 0),
        with_options=options(collections.COLLECTION_OPTIONS),
        query=st.none() | query_bodies,
        if_not_exists=flags,
    )
    | st.builds(collections.CreateCollection, names(), some(texts), texts),
    collections.ResetCollection: st.builds(
        collections.ResetCollection, names(), some(texts, 0), some(texts, 0), changes, flags
    ),
    collections.SetCollectionSchema: st.builds(
        collections.SetCollectionSchema, names(), texts, st.none() | texts, changes, flags
    ),
    captures.CreateCapture: st.builds(
        captures.CreateCapture, names(), origins, capture_targets, options(captures.CAPTURE_OPTIONS), flags
    ),
    captures.DiscoverCapture: st.builds(captures.DiscoverCapture, names(), flags),
    materializations.CreateMaterialization: st.builds(
        materializations.CreateMaterialization,
        names(),
        names(),
        materialization_targets,
        st.none() | field_clauses,
        options(materializations.MATERIALIZATION_OPTIONS),
        flags,
    ),
    materializations.BackfillMaterialization: st.builds(
        materializations.BackfillMaterialization, names(), flags
    ),
    materializations.SetMaterializationFields: st.builds(
        materializations.SetMaterializationFields, names(), field_clauses, changes, flags
    ),
    objects.CommentOn: st.one_of(
        st.builds(objects.CommentOn, kinds, names(), st.none() | texts),
        st.builds(objects.CommentOn, st.none(), names(4, 2), st.none() | texts),
    ),
    objects.RenameObject: st.builds(objects.RenameObject, kinds, names(), identifiers, flags),
    objects.ChangeTaskState: st.one_of(
        st.builds(
            objects.ChangeTaskState,
            st.sampled_from(
                [Kind.SINK, Kind.MATERIALIZATION, Kind.MATERIALIZED_VIEW, Kind.STREAM, Kind.TABLE]
            ),
            names(),
            st.sampled_from(["PAUSE", "RESUME"]),
            st.none(),
            flags,
        ),
        st.builds(
            objects.ChangeTaskState,
            st.just(Kind.CAPTURE),
            names(),
            st.sampled_from(["PAUSE", "RESUME"]),
            st.none() | texts,
            flags,
        ),
    ),
    objects.DropObject: st.one_of(
        st.builds(objects.DropObject, kinds, names(), flags, flags),
        st.builds(
            objects.DropObject, st.sampled_from([Kind.STREAM, Kind.TABLE]), names(), flags, flags, flags
        ),
        st.builds(
            objects.DropObject, st.just(Kind.MATERIALIZATION), names(), flags, flags, st.just(False), flags
        ),
    ),
    queries.InsertValues: st.builds(
        queries.InsertValues, names(), some(some(expressions)), some(identifiers, 0)
    ),
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
    queries.Subscribe: st.builds(queries.Subscribe, names()),
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
STATEMENTS[show.ExplainSchema] = st.builds(
    show.ExplainSchema, sides, st.one_of(names(), STATEMENTS[sinks.CreateSink])
)

statements = st.sampled_from(list(STATEMENTS)).flatmap(STATEMENTS.__getitem__)
