"""Which way a sink runs, in real time or in micro-batches, and why.

Real time is Spark's mode of that name: a query that never ends hands every record on at once. It delivers at least once and
keeps no state, and everything that it computes runs on the JVM. It is the normal way of a sink with a key. After a crash it
repeats records, which a topic with keys absorbs, so a sink without a key runs so only if its statement asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import Growth, Object
from headgate.errors import joined
from headgate.plan.chain import Chain
from headgate.plan.definitions import PRESENT, Latency, SinkDefinition, SourceLayout, spark_name
from headgate.plan.sink_errors import RealTimeImpossible
from headgate.resolve.streams import READ_KINDS
from headgate.schema.encodings import Encoding, JsonEncoding, SchemaEncoding
from headgate.schema.written import SchemaFormat
from headgate.sql.query.functions import CLOCK
from headgate.sql.query.tree_sql import marked_sql
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind

JVM_ENCODINGS = frozenset({"AVRO", "JSON", "TEXT", "BYTES"})
"""What real time writes. Protobuf needs Python workers; JSON Schema was not tried."""

NORMAL = "it has a key, and all between its source and its topic runs on the JVM"
ASKED = "LATENCY says so"
NO_KEY = "it has no key, so that records would be repeated after a failure; LATENCY = 'real time' accepts that"


def choose_latency(
    catalog: Catalog, statement: CreateSink, sink: SinkDefinition, layout: SourceLayout | None, chain: Chain
) -> Latency:
    """The way of a sink. ``layout`` is that of its source, None over a materialized view. Raises RealTimeImpossible if its statement asks for real time and that cannot be."""
    asked = statement.with_options.latency
    if asked == "micro-batch":
        return Latency("micro-batch", ASKED)
    obstacle = next(obstacles(catalog, statement, sink, layout, chain), None)
    if asked == "real time":
        if obstacle is not None:
            raise RealTimeImpossible(sink.name, obstacle)
        return Latency("real time", ASKED)
    if obstacle is None and sink.envelope == "UPSERT":
        return Latency("real time", NORMAL)
    return Latency("micro-batch", obstacle or NO_KEY)


def obstacles(
    catalog: Catalog, statement: CreateSink, sink: SinkDefinition, layout: SourceLayout | None, chain: Chain
) -> Iterator[str]:
    """What real time cannot do of a sink, each as a clause."""
    if layout is None:
        yield "it is fed from the batches of a materialized view"
        return
    if sink.time is not None:
        yield f'Spark cannot set the time of a record, which is in column "{sink.time.column}"'
    if statement.with_options.delivery != "at least once":
        yield "real time delivers at least once"
    sides: Mapping[str, Encoding | None] = {"key": layout.key, "value": layout.value}
    for side, encoding in sides.items():
        if (words := _needs_python(encoding)) is not None:
            yield f'Python workers decode the {side} of source "{layout.name}", which is {words}'
    for side, written in (("key", sink.key), ("value", sink.value)):
        if written is not None and written.encoding not in JVM_ENCODINGS:
            yield f"its {side} is {written.encoding}, which real time does not write"
        elif written is not None and written.given:
            yield f"its {side} is written with a given schema, for which Python workers are needed"
        elif written is not None and side == "key" and written.prints_numbers:
            yield "its key has numbers of type real or double, whose texts Python workers write"
    if sink.on_error != "HALT":
        yield "rows that cannot be written are found batch by batch, which ON ERROR needs"
    yield from _clocks(catalog.get(sink.relation), chain)
    if chain.source.growth is Growth.KEYED and sink.envelope == "UPSERT" and not _is_one_pass(catalog, sink, chain):
        yield "a view between does more than filter and project, so that deletes need a join"


def _needs_python(encoding: Encoding | None) -> str | None:
    match encoding:
        case JsonEncoding():
            return "JSON"
        case SchemaEncoding(format=SchemaFormat.JSON):
            return "JSON Schema"
        case SchemaEncoding(format=SchemaFormat.PROTOBUF):
            return "Protobuf"
        case _:
            return None


def _clocks(relation: Object, chain: Chain) -> Iterator[str]:
    """A query that never ends has one time for all records between two of its boundaries."""
    for column, functions in zip(relation.columns, chain.unstable().columns, strict=False):
        if clock := sorted(functions & CLOCK):
            yield f'column "{column.name}" is computed by {joined(clock, "and")}, which stands still for a minute'


def _is_one_pass(catalog: Catalog, sink: SinkDefinition, chain: Chain) -> bool:
    """Whether every record alone says which key has a row, or none any more."""
    views: list[Object] = []
    relation = catalog.get(sink.relation)
    while relation.kind is Kind.VIEW:
        views.append(relation)
        (below,) = {d.on for d in relation.dependencies if catalog.get(d.on).kind in (Kind.VIEW, *READ_KINDS)}
        relation = catalog.get(below)
    trees = [(query.tree, [c.name for c in view.columns]) for query, view in zip(chain.queries, views, strict=True)]
    columns = [column.name for column in chain.source.columns]
    keys = () if sink.key is None else sink.key.columns
    return marked_sql(spark_name(chain.source.id), columns, trees[::-1], keys, PRESENT) is not None
