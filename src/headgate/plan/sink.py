"""Plans of sinks: the schemas that a sink publishes, its key and envelope, and how a row becomes a record."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from headgate.catalog.catalog import Catalog
from headgate.catalog.errors import UnknownColumn
from headgate.catalog.names import resolve_column
from headgate.catalog.objects import Column, Growth, Object
from headgate.errors import joined
from headgate.plan import sink_errors as errors
from headgate.plan.chain import Chain, chain_of, relation_growth, source_key
from headgate.plan.definitions import RecordEncoding, RecordTime, SinkDefinition, SinkEnvelope
from headgate.plan.encodings import format_words
from headgate.plan.errors import ColumnTwice
from headgate.plan.latency import choose_latency
from headgate.plan.publish.given import given_side, is_given, null_notices
from headgate.plan.publish.schemas import (
    check_bytes,
    check_format_options,
    json_schema_side,
    protobuf_side,
)
from headgate.plan.reading import source_layout
from headgate.plan.record_times import record_time
from headgate.plan.relations import fields_without_column, key_columns, key_field_hints, named_types
from headgate.plan.sink_docs import DocumentedTypes, documented_types
from headgate.plan.sink_options import (
    check_key_options,
    check_over_view,
    check_quarantine,
    headers_column,
    holds_map,
    is_unique,
    partition_by,
    registry_of,
)
from headgate.plan.sink_policies import without_pending
from headgate.plan.stored_copies import with_old_rows, writes_other_key
from headgate.resolve.statements import SparkTypes, kafka_server, object_id, topic_name
from headgate.schema.encodings import AFTER, BEFORE, change_event
from headgate.schema.formats.avro.published import published
from headgate.schema.formats.avro.read import load_tree
from headgate.schema.formats.avro.write import Path, to_avro
from headgate.schema.types import Record
from headgate.schema.written import WrittenSchema
from headgate.sql.formats import (
    BytesFormat,
    CsvFormat,
    Format,
    JsonFormat,
    PrimitiveFormat,
    TextFormat,
    format_of,
    frozen_schemas,
)
from headgate.sql.query.casts import expanded
from headgate.sql.query.functions import CLOCK, RANDOM
from headgate.sql.query.growth import Changing, Keyed
from headgate.sql.query.tree import ColumnRef, Unstable
from headgate.sql.registry_formats import RegistryFormat, Side, subject_name
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind
from headgate.text.cursor import Identifier


def subjects(sink: SinkDefinition) -> tuple[tuple[Side, str, WrittenSchema], ...]:
    """The schemas that a sink registers: side, subject and schema."""
    sides: tuple[tuple[Side, RecordEncoding | None], ...] = (("KEY", sink.key), ("VALUE", sink.value))
    return tuple(
        (side, subject_name(sink.topic, side), written)
        for side, encoding in sides
        if encoding is not None and not encoding.given and (written := encoding.written) is not None
    )


def reused(sink: SinkDefinition) -> tuple[tuple[Side, str, WrittenSchema], ...]:
    """The schemas that a sink is given by their ids, and registers for its topic: side, subject and schema."""
    sides: tuple[tuple[Side, RecordEncoding | None], ...] = (("KEY", sink.key), ("VALUE", sink.value))
    return tuple(
        (side, subject_name(sink.topic, side), replace(written, id=encoding.schema_id))
        for side, encoding in sides
        if encoding is not None
        and encoding.given
        and encoding.schema_id is not None
        and (written := encoding.written) is not None
    )


def single_schema(sink: SinkDefinition, statement: CreateSink) -> tuple[tuple[Side, str, WrittenSchema], ...]:
    """The schema of a single column that is generated and still to be registered: side, subject and schema."""
    schemas = frozen_schemas(statement.formats.value, "VALUE")
    written = sink.value.written
    if written is None or not any(schema.single and schema.known_id is None for schema in schemas):
        return ()
    return (("VALUE", subject_name(sink.topic, "VALUE"), written),)


def plan_sink(catalog: Catalog, statement: CreateSink) -> SinkDefinition:
    """The sink with the schemas that are frozen into its statement, and generated ones where there are none."""
    return with_own_schemas(plan_new_sink(catalog, statement)[0], statement)


def with_own_schemas(sink: SinkDefinition, statement: CreateSink) -> SinkDefinition:
    """The sink with the schemas that are frozen into its statement in place of those that its relation needs now."""

    def frozen(side: Side, encoding: RecordEncoding) -> RecordEncoding:
        own = next(iter(frozen_schemas(format_of(statement.formats, side), side)), None)
        return encoding if own is None else replace(encoding, schema=own.schema, schema_id=own.known_id)

    return replace(sink, value=frozen("VALUE", sink.value), key=None if sink.key is None else frozen("KEY", sink.key))


def plan_new_sink(
    catalog: Catalog,
    statement: CreateSink,
    ask: SparkTypes | None = None,
    *,
    comments: bool = True,
    owner: Kind = Kind.SINK,
) -> tuple[SinkDefinition, tuple[str, ...]]:
    """The sink with the schemas that its relation needs now, and what its creator should know. ``ask`` gives types that only
    Spark knows. ``comments`` says whether comments of the catalog are docs where the statement has none. ``owner`` is the kind
    of object that the notices are about: a hidden sink belongs to a stream or table of its name."""
    relation = catalog.get(object_id(statement.relation))
    name = statement.name.parts[-1].name
    _check_delivery(statement, name)
    check_key_options(statement, name)
    below = chain_of(catalog, relation.id)
    keys = _key(catalog, relation, statement)
    other_key = writes_other_key(catalog, below, statement)
    chain = with_old_rows(catalog, below, statement)
    check_over_view(chain, statement, name, is_copy=chain.source is not below.source)
    unstable = chain.unstable()
    if withheld := fields_without_column(relation):
        raise withheld[0]
    check_format_options(statement.formats)
    _check_rows(relation, name, unstable)
    old_events = statement.envelope == "DEBEZIUM" and chain.source.growth is not Growth.APPEND
    if not old_events:
        _check_growth(catalog, relation, statement, name)
    envelope = _envelope(statement, name, keys)
    if envelope == "UPSERT":
        _check_deterministic(relation, name, unstable, keys)
        _check_no_map(name, keys)
        if not other_key:
            _check_source_key(catalog, chain.source, relation, name)
            _check_unique(chain, relation, statement, name, keys)
    if statement.formats.key is not None and not keys:
        raise errors.KeyWithoutFormat(name)
    check_quarantine(chain, statement, envelope, name)
    key_format = statement.formats.key or statement.formats.value
    types = documented_types(catalog, relation, keys, statement.formats, "KEY", comments=comments)
    sink = SinkDefinition(
        name,
        relation.id,
        topic_name(statement.kafka),
        kafka_server(statement.kafka),
        _value(catalog, relation, statement, keys, name, comments=comments),
        _side(relation, key_format, "KEY", keys, name, types) if keys else None,
        envelope,
        registry_of(key_format) if keys else None,
        registry_of(statement.formats.value),
        partition_by(catalog, relation, statement, envelope, keys, ask),
        headers_column(catalog, relation, statement),
        statement.kafka.options.compression_type,
        statement.with_options.on_error,
        statement.with_options.delivery,
        old_events or other_key,
        _time(catalog, relation, statement, (owner.value, name)),
    )
    choose_latency(catalog, statement, sink, source_layout(chain.source), chain)
    return sink, tuple(_notices(relation, statement, sink, unstable, f'{owner} "{name}"'))


def _value(
    catalog: Catalog, relation: Object, statement: CreateSink, keys: Sequence[Column], name: str, *, comments: bool
) -> RecordEncoding:
    """The value side. Formats of one column do not hold the headers, all others have every column that is not pending."""
    format_, headers = statement.formats.value, headers_column(catalog, relation, statement)
    columns = [c for c in relation.columns if not _is_excluded_key(statement, c.name, keys)]
    if headers is not None and isinstance(format_, TextFormat | BytesFormat):
        columns = [c for c in columns if c.name != headers.column]
    columns = without_pending(columns, statement.pending)
    types = documented_types(catalog, relation, columns, statement.formats, "VALUE", comments=comments)
    made = _side(relation, format_, "VALUE", columns, name, types, as_event=statement.envelope == "DEBEZIUM")
    return replace(made, left_out=tuple(path for path in statement.pending if len(path) > 1))


def _time(catalog: Catalog, relation: Object, statement: CreateSink, who: tuple[str, str]) -> RecordTime | None:
    """The time of the records. Raises if the column has become another type than a time."""
    if statement.time is None:
        return None
    column = resolve_column(catalog, relation, statement.time.name)
    return record_time(who, column.name, expanded(column.type, named_types(catalog)), statement.time.format)


def _check_delivery(statement: CreateSink, name: str) -> None:
    """Spark's real-time mode writes records before its boundaries are committed, so it may repeat them."""
    if statement.with_options.delivery == "exactly once" and statement.with_options.latency == "real time":
        raise errors.ExactlyOnceInRealTime(name)


def _key(catalog: Catalog, relation: Object, statement: CreateSink) -> list[Column]:
    if statement.key is None:
        return []
    columns: list[Column] = []
    for identifier in statement.key.columns:
        column = _key_column(catalog, relation, Identifier(identifier.name, identifier.quoted))
        if column in columns:
            raise ColumnTwice(column.name, relation.name)
        columns.append(column)
    return columns


def _key_column(catalog: Catalog, relation: Object, identifier: Identifier) -> Column:
    try:
        return resolve_column(catalog, relation, identifier)
    except UnknownColumn as unknown:
        advice = {name.lower(): why for name, why in key_field_hints(relation)}
        hint = advice.get(identifier.name.lower())
        raise UnknownColumn(
            unknown.column, unknown.kind, unknown.name, unknown.similar, hint, unknown.columns
        ) from None


def _envelope(statement: CreateSink, name: str, keys: Sequence[Column]) -> SinkEnvelope:
    if statement.envelope == "UPSERT" and not keys:
        raise errors.SinkKeyMissing(name)
    if statement.envelope is not None:
        return statement.envelope
    return "UPSERT" if keys else "NONE"


def _check_growth(catalog: Catalog, relation: Object, statement: CreateSink, name: str) -> None:
    """A topic holds rows that are added, or the newest row of each key. Rows that change without a key fit neither."""
    found = relation_growth(catalog, relation)
    if isinstance(found, Changing):
        raise errors.SinkOverChanging(name, relation.kind.value, relation.name, found.why, found.keep, found.cure)
    if isinstance(found, Keyed) and statement.key is None and statement.envelope is None:
        raise errors.SinkNeedsKey(name, relation.kind.value, relation.name, tuple(key_columns(relation)))


def _check_source_key(catalog: Catalog, source: Object, relation: Object, name: str) -> None:
    """A delete in a keyed source carries only the source's key, and so does an update by which rows of the relation go.

    A relation may have another key: that of the source and a position of posexplode, for example. An array that gets
    shorter then leaves positions behind that only a target with stored rows could find and delete.
    """
    if source.growth is not Growth.KEYED or relation.growth is not Growth.KEYED:
        return
    if source_key(catalog, relation) != {ColumnRef(source.id, c.id) for c in source.columns if c.key}:
        raise _key_not_of_source(name, key_columns(relation), source)


def _key_not_of_source(sink: str, key: Sequence[str], source: Object) -> errors.SinkKeyNotOfSource:
    return errors.SinkKeyNotOfSource(sink, tuple(key), source.kind.value, source.name, tuple(key_columns(source)))


def _check_rows(relation: Object, name: str, unstable: Unstable) -> None:
    """A sink computes a row once, when it arrives. A row that passes a filter only later would never be written."""
    if by_clock := sorted(unstable.rows & CLOCK):
        raise errors.ClockInFilter(name, relation.kind.value, relation.name, tuple(by_clock))


def _check_deterministic(relation: Object, name: str, unstable: Unstable, keys: Sequence[Column]) -> None:
    """A batch may have been written in part. When it is written again, it must have the same keys with the same rows."""
    found = {
        column.name: sorted(functions if column in keys else functions & RANDOM)
        for column, functions in zip(relation.columns, unstable.columns, strict=False)
    }
    columns = tuple(column for column, functions in found.items() if functions)
    used = {each for functions in found.values() for each in functions} | (unstable.rows & RANDOM)
    if used:
        raise errors.SinkNotDeterministic(name, relation.kind.value, relation.name, tuple(sorted(used)), columns)


def _notices(
    relation: Object, statement: CreateSink, sink: SinkDefinition, unstable: Unstable, owner: str
) -> Iterator[str]:
    for column, functions in zip(relation.columns, unstable.columns, strict=False):
        if clock := sorted(functions & CLOCK):
            yield (
                f'column "{column.name}" of {owner} is computed by {joined(clock, "and")}: a record has the time at '
                "which it was written, and another one if it is written again after a failure"
            )
    for encoded, section in ((sink.key, "key"), (sink.value, "value")):
        if encoded is not None:
            yield from null_notices(owner, encoded, section)
    if relation.growth is Growth.KEYED and sink.envelope == "NONE":
        whole = f'{relation.kind} "{relation.name}"'
        yield f"{owner} writes every change of {whole} as a record, and no deletes"
    if sink.envelope == "UPSERT" and sink.key is not None and statement.key is not None and not statement.key.enforced:
        key = ", ".join(sink.key.columns)
        yield f"key ({key}) of {owner} is not enforced: of two rows with the same key the later one replaces the other"


def _check_unique(chain: Chain, relation: Object, statement: CreateSink, name: str, keys: Sequence[Column]) -> None:
    """UPSERT needs a key that is unique in the relation, or NOT ENFORCED. Over a keyed source it must have that key: nobody
    could tell whether another row has the key of one that is gone."""
    given, enforced = {c.name for c in keys}, statement.key is not None and statement.key.enforced
    known = set(key_columns(relation)) if relation.growth is Growth.KEYED else set()
    deletes, source = chain.source.growth is Growth.KEYED, chain.source
    if deletes and given == known:
        return
    unique = known <= given if deletes else is_unique(chain, relation, given)
    if enforced and not unique:
        raise errors.SinkKeyNotUnique(name, tuple(c.name for c in keys), tuple(key_columns(relation)), deletes)
    if deletes:
        raise _key_not_of_source(name, [c.name for c in keys], source)


def _check_no_map(name: str, keys: Sequence[Column]) -> None:
    if held := [c.name for c in keys if holds_map(c.type)]:
        raise errors.SinkKeyHoldsMap(name, held[0])


def _is_excluded_key(statement: CreateSink, column: str, keys: Sequence[Column]) -> bool:
    return not statement.with_options.key_in_value and any(k.name == column for k in keys)


def _side(
    relation: Object,
    format_: Format,
    side: Side,
    columns: Sequence[Column],
    sink: str,
    types: DocumentedTypes,
    *,
    as_event: bool = False,
) -> RecordEncoding:
    record = types.record(relation, columns)
    names, whole = tuple(c.name for c in columns), types.expanded(record)
    if isinstance(format_, RegistryFormat) and is_given(format_, side):
        if as_event:
            event = given_side(format_, side, change_event(whole), sink)
            return replace(event, columns=names, record=whole, as_event=True)
        return given_side(format_, side, whole, sink)
    match format_:
        case RegistryFormat(kind="AVRO"):
            encoding = _avro(format_, side, record, whole, types, as_event=as_event)
        case RegistryFormat(kind="JSON SCHEMA"):
            encoding = json_schema_side(format_, side, record, types.resolve, as_event=as_event)
        case RegistryFormat(kind="PROTOBUF"):
            encoding = protobuf_side(format_, side, whole, as_event=as_event)
        case JsonFormat(single=single):
            encoding = RecordEncoding("JSON", names, record, as_event=as_event, whole=single)
        case TextFormat() | BytesFormat():
            if as_event:
                raise errors.SinkFormatNeedsOneColumn(sink, format_words(format_), side.lower(), 2)
            encoding = _one_column(format_, side, record, sink)
        case PrimitiveFormat():
            encoding = RecordEncoding("PRIMITIVE", names, _never_null(record) if side == "VALUE" else record)
        case CsvFormat(delimiter=delimiter, types=types_) if types_:
            encoding = RecordEncoding("DELIMITED", names, record, delimiter=delimiter or ",")
        case _:
            raise errors.FormatNotWritten(sink, format_words(format_))
    return replace(encoding, record=types.expanded(encoding.record))


def _one_column(format_: TextFormat | BytesFormat, side: Side, record: Record, sink: str) -> RecordEncoding:
    """A value of these formats is never null: the record would be a tombstone."""
    word: Literal["TEXT", "BYTES"] = "TEXT" if isinstance(format_, TextFormat) else "BYTES"
    if len(record.fields) != 1:
        raise errors.SinkFormatNeedsOneColumn(sink, word, side.lower(), len(record.fields))
    if word == "BYTES":
        check_bytes(record, sink, side)
    if side == "VALUE":
        record = _never_null(record)
    return RecordEncoding(word, (record.fields[0].name,), record)


def _never_null(record: Record) -> Record:
    return replace(record, fields=tuple(replace(field, nullable=False) for field in record.fields))


def _avro(
    format_: RegistryFormat, side: Side, record: Record, whole: Record, types: DocumentedTypes, *, as_event: bool
) -> RecordEncoding:
    """The Avro side of a record; in ``whole`` the types of the catalog are replaced by their definitions. Types and fields
    keep the names that they have in the schema that is frozen into the statement."""
    options = format_.write_options
    full = options.avro_key_fullname if side == "KEY" else options.avro_value_fullname
    name = full if full is not None else ("row" if side == "KEY" else "envelope")
    written = change_event(record) if as_event else record
    names, fields = _published_names(written, format_, side, types, as_event=as_event)
    made = to_avro(
        written, name=name, null_defaults=options.null_defaults, names=names, fields=fields, resolve=types.resolve
    )
    renames = made.renames.items()
    if as_event:  # those of `before` are the same
        renames = {path[1:]: name for path, name in renames if path[0] == AFTER}.items()
    columns = tuple(field.name for field in record.fields)
    schema = json.dumps(made.json, ensure_ascii=False)
    return RecordEncoding("AVRO", columns, whole, schema, renames=tuple(renames), as_event=as_event)


def _published_names(
    written: Record, format_: RegistryFormat, side: Side, types: DocumentedTypes, *, as_event: bool
) -> tuple[Mapping[Path, str], Mapping[Path, str]]:
    """The names of types and of fields in the schema that is frozen into the statement. None if there is no such schema."""
    own = next(iter(frozen_schemas(format_, side)), None)
    if own is None:
        return {}, {}
    renames = dict(own.names)
    if as_event:
        renames = {(place, *path): name for place in (BEFORE, AFTER) for path, name in own.names}
    found = published(written, load_tree(own.schema), types.resolve, renames)
    return found.names, found.fields
