"""Options of a sink: where it writes, which partition a record goes to, its headers, and what proves its key unique."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.catalog.catalog import Catalog
from headgate.catalog.names import DEFAULT_PATH, resolve_column
from headgate.catalog.objects import Column, Object
from headgate.errors import HeadgateError, Span, joined
from headgate.plan import sink_errors as errors
from headgate.plan.chain import Chain
from headgate.plan.definitions import AT, ConnectionRef, HeadersColumn, PartitionBy, RecordSide, SinkEnvelope
from headgate.plan.reading import source_layout
from headgate.plan.relations import Names, named_types, query_relation, resolve_type_name
from headgate.resolve.statements import SparkTypes, registry_server
from headgate.schema.render import print_type
from headgate.schema.types import Array, Bigint, Bytes, Integer, Map, Record, Text, Type
from headgate.sql.formats import Format, format_of
from headgate.sql.query import growth, tree as n
from headgate.sql.query.casts import expanded
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.query.select import analyse
from headgate.sql.query.tree_sql import generates_rows, positioned_sql
from headgate.sql.registry_formats import RegistryFormat, Side, WriteFormatOptions
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Expression, Kind, Query, print_identifier
from headgate.text.cursor import Identifier

SIDES: Mapping[Side, RecordSide] = {"KEY": "key", "VALUE": "value"}
"""The sides of a record as statements write them, and as the runtime calls them."""

# registries


def registry_of(format_: Format) -> ConnectionRef | None:
    """The registry of a format; None if it has none."""
    return registry_server(format_.registry) if isinstance(format_, RegistryFormat) else None


# options that need a key


def check_key_options(statement: CreateSink, name: str) -> None:
    """Raises for an option about the key of a sink that has none, and for a name of one side alone."""
    options = _write_options(statement, "KEY")
    if statement.key is None:
        given = {
            "KEY IN VALUE": not statement.with_options.key_in_value,
            "AVRO KEY FULLNAME": options is not None and options.avro_key_fullname is not None,
            "KEY COMPATIBILITY LEVEL": options is not None and options.key_compatibility_level is not None,
            "KEY SCHEMA ID": options is not None and options.key_schema_id is not None,
        }
        for option in (option for option, is_given in given.items() if is_given):
            raise errors.OptionWithoutKey(name, option)
        return
    values = _write_options(statement, "VALUE")
    given_ids = (options and options.key_schema_id, values and values.value_schema_id)
    if options is not None and values is not None and not any(given_ids):  # a given schema has its own name
        names = {"AVRO KEY FULLNAME": options.avro_key_fullname, "AVRO VALUE FULLNAME": values.avro_value_fullname}
        given_names = [option for option, full in names.items() if full is not None]
        if len(given_names) == 1:
            (missing,) = names.keys() - set(given_names)
            raise errors.FullnameOfOneSide(name, given_names[0], missing)


def _write_options(statement: CreateSink, side: Side) -> WriteFormatOptions | None:
    format_ = format_of(statement.formats, side)
    return format_.write_options if isinstance(format_, RegistryFormat) else None


# the partition

_BEFORE, _AFTER = "SELECT (", "\n) AS partition FROM "


def partition_by(
    catalog: Catalog, relation: Object, statement: CreateSink, envelope: SinkEnvelope, keys: Sequence[Column],
    ask: SparkTypes | None = None,
) -> PartitionBy | None:  # fmt: skip
    """The expression of PARTITION BY over the columns of the relation. ``ask`` gives a type that only Spark knows; without it
    such a type is not checked."""
    expression = statement.kafka.options.partition_by
    if expression is None:
        return None
    name = statement.name.parts[-1].name
    analysed = _analysed(catalog, relation, expression, statement.relation.parts[-1].name)
    value, columns = _computed(analysed, name)
    type_ = value.type if value.type is not None or ask is None else ask(catalog, analysed)[0]
    if type_ is not None and not isinstance(type_, Integer | Bigint):
        raise errors.PartitionByNotInteger(name, print_type(type_)).at(expression.span)
    others = sorted({column for _, column in columns} - {key.name for key in keys})
    if keys and others and envelope != "NONE":
        raise errors.PartitionByNotKey(name, tuple(others), tuple(k.name for k in keys)).at(expression.span)
    return PartitionBy(value.sql, columns)


def _analysed(catalog: Catalog, relation: Object, expression: Expression, written: str) -> AnalysedQuery:
    """The expression as a query over the relation. Errors point into the statement. ``written`` is the relation's name in the
    statement, by which the expression may call it, also after the relation is renamed."""
    text = f"{_BEFORE}{expression.text}{_AFTER}r AS {print_identifier(Identifier(written, quoted=True))}"
    types = resolve_type_name(catalog, DEFAULT_PATH, Query(text), Names())
    try:
        return analyse(text, lambda _: query_relation(catalog, relation), types)
    except HeadgateError as error:
        if error.span is not None:
            shift = expression.span.start - len(_BEFORE)
            error.span = Span(error.span.start + shift, error.span.end + shift)
        raise


def _computed(analysed: AnalysedQuery, sink: str) -> tuple[n.Expr, tuple[tuple[str, str], ...]]:
    """The expression, and the columns that it uses: each with its name in the expression."""
    match analysed.tree:
        case n.Project(n.Scan() as scan, (output,)) if not output.value.subqueries:
            value = output.value
        case _:
            raise errors.PartitionByNotFixed(sink, "it reads other rows")
    if value.unstable:
        raise errors.PartitionByNotFixed(
            sink, f"{joined(sorted(value.unstable), 'and')} gives another result each time"
        )
    names = zip(scan.names, scan.columns, strict=True)
    return value, tuple((str(made.ref), name) for name, made in names if made.ref in value.uses)


# headers


def headers_column(catalog: Catalog, relation: Object, statement: CreateSink) -> HeadersColumn | None:
    """The column of HEADERS. Raises for a column that does not exist or has another type."""
    if statement.headers is None:
        return None
    column = resolve_column(catalog, relation, Identifier(statement.headers.name, statement.headers.quoted))
    match expanded(column.type, named_types(catalog)):
        case Map(value=Text() | Bytes()):
            return HeadersColumn(column.name, is_map=True)
        case Array(element=Record() as record) if _is_header(record):
            return HeadersColumn(column.name, is_map=False)
        case other:
            raise errors.HeadersOfOtherType(statement.name.parts[-1].name, column.name, print_type(other))


def _is_header(record: Record) -> bool:
    types = {field.name: field.type for field in record.fields}
    return (
        list(types) == ["key", "value"] and isinstance(types["key"], Text) and isinstance(types["value"], Text | Bytes)
    )


# what happens to rows that cannot be encoded


def check_over_view(chain: Chain, statement: CreateSink, name: str, *, is_copy: bool) -> None:
    """Raises for options that a sink over a materialized view cannot have. ``is_copy`` says that the view is a stored copy of the
    source that the sink reads."""
    if chain.source.kind is not Kind.MATERIALIZED_VIEW:
        return
    if not statement.with_options.snapshot and is_copy:
        raise errors.SnapshotOfCopy(name, chain.source.name)
    if statement.with_options.on_error == "QUARANTINE":
        raise errors.SinkCannotQuarantine(name, "it reads a materialized view, and a row of it is no record")


def check_quarantine(chain: Chain, statement: CreateSink, envelope: SinkEnvelope, name: str) -> None:
    """Raises if rows cannot be set aside by the position of their records and sent through again."""
    if statement.with_options.on_error != "QUARANTINE":
        return
    views = [(query.tree, [column.name for column in query.columns]) for query in reversed(chain.queries)]
    names = [f"v{number}" for number in range(len(views))]
    if positioned_sql("source", names, views, AT) is None:
        raise errors.SinkCannotQuarantine(name, "a row may come from several records")
    if envelope != "UPSERT" and generates_rows(views):
        raise errors.SinkCannotQuarantine(
            name, "a record may give several rows, and some of them would be written twice"
        )


# keys


def holds_map(type_: Type) -> bool:
    match type_:
        case Map():
            return True
        case Array():
            return holds_map(type_.element)
        case Record():
            return any(holds_map(field.type) for field in type_.fields)
        case _:
            return False


def is_unique(chain: Chain, relation: Object, key: set[str]) -> bool:
    """Whether the columns tell the rows of an append relation apart: if they hold partition and offset of the record, and of
    a record that gives several rows the position of each. It is derived from the queries as for a keyed source."""
    positions = _record_position(chain.source)
    if not positions:
        return False
    found: growth.Growth = growth.Keyed(positions)
    for query in reversed(chain.queries):
        found = growth.derive(query.tree, lambda _, below=found: below)  # type: ignore[misc]
    return isinstance(found, growth.Keyed) and {relation.columns[at].name for at in found.key} <= key


def _record_position(source: Object) -> tuple[int, ...]:
    """The columns of a source with the partition and the offset of its records; empty if one of them is missing."""
    layout = source_layout(source)
    if layout is None:
        return ()
    metadata = {c.origin.name: c.name for c in layout.columns if c.origin.section == "metadata"}
    names = [metadata.get("PARTITION"), metadata.get("OFFSET")]
    positions = [at for at, column in enumerate(source.columns) if column.name in names]
    return tuple(positions) if None not in names else ()
