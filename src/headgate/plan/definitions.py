"""What the runtime is given: sources, sinks, queries and tasks in which every name is resolved. Data only.

`headgate.control.definitions` fills these classes by the planner; the runtime reads and writes with them. Neither side needs to know how the other works:
the runtime never sees a statement, and the planner never sees Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from headgate.plan.target_definitions import WrittenMaterialization
from headgate.schema.encodings import Encoding, fields_of
from headgate.schema.names import FieldNames, internal_name
from headgate.schema.types import Array, Bigint, Double, Map, Real, Record, Text, Timestamp, TimestampTz, Type
from headgate.schema.written import SchemaFormat, WrittenSchema

ConnectionRef: TypeAlias = int | str
"""A connection of the catalog by its id, or the plain address of a server."""

ErrorPolicy: TypeAlias = Literal["HALT", "QUARANTINE", "SKIP"]
SchemaChangePolicy: TypeAlias = Literal["PIN", "FOLLOW", "HALT"]
SourceEnvelope: TypeAlias = Literal["NONE", "UPSERT", "DEBEZIUM"]
SinkEnvelope: TypeAlias = Literal["NONE", "UPSERT", "DEBEZIUM"]
Delivery: TypeAlias = Literal["at least once", "exactly once"]
Compression: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]
RecordSide: TypeAlias = Literal["key", "value"]
Section: TypeAlias = Literal["key", "error", "value", "after", "metadata", "header"]


AFTER, OP = "after", "op"
"""Fields of a change event of Debezium: the row after the change, and the kind of change."""


# sources


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the value of a source's column comes from.

    ``section`` is the part of the record: its `key`, its `value`, Debezium's `after`, its `metadata`, a `header`, or
    `error`, which says why the value could not be decoded. ``name`` is the field, the metadata or the header; None
    stands for the whole section.
    """

    section: Section
    name: str | None = None
    as_bytes: bool = False


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of a source and where its value comes from. ``default`` is its value in records that lack the field, as JSON
    text; None stands for null."""

    name: str
    type: Type
    nullable: bool
    origin: Origin
    doc: str | None = None
    key: bool = False
    default: str | None = None


@dataclass(frozen=True, slots=True)
class SourceLayout:
    """How a record becomes a row of the source.

    The columns come in this order: key columns, the column of inline errors, value columns, metadata columns as written.
    For Debezium, the fields of `after` are the value columns, and those that form the key are marked. ``on_key_change`` is
    FOLLOW or HALT. A key that gains or loses fields halts under both.
    """

    name: str
    columns: tuple[SourceColumn, ...]
    value: Encoding
    key: Encoding | None
    envelope: SourceEnvelope
    on_error: ErrorPolicy
    on_schema_change: SchemaChangePolicy
    on_key_change: SchemaChangePolicy = "HALT"

    @property
    def key_in_value(self) -> bool:
        """Whether columns of the value are the key, as UPSERT (KEY (c, …)) says."""
        return any(c.key and c.origin.section == "value" for c in self.columns)

    @property
    def has_operation(self) -> bool:
        """Whether the events of Debezium say what kind of change they are."""
        return any(field.name == OP for field in fields_of(self.value) or ())

    @property
    def inline_errors(self) -> bool:
        """Whether a column says why a value could not be decoded."""
        return any(c.origin.section == "error" for c in self.columns)


@dataclass(frozen=True, slots=True)
class SourceDefinition:
    """A source, and where to read it.

    ``start_offsets`` holds the first offset of each partition as the statement gives them. Partitions that are not in it
    start at the earliest record. A registry is None if the format of that side needs none. ``kind`` is what the user created: a
    source, a stream or a table.
    """

    id: int
    name: str
    topic: str
    connection: ConnectionRef
    layout: SourceLayout
    key_registry: ConnectionRef | None = None
    value_registry: ConnectionRef | None = None
    start_offsets: Mapping[int, int] = field(default_factory=dict)
    kind: str = "source"


# queries


@dataclass(frozen=True, slots=True)
class ExpressionText:
    """An expression of a query: from ``start`` to ``end`` in its Spark SQL, and the text that the user wrote for it.

    ``column`` is the position of the output column that it is a part of; None for a condition and the like.
    """

    start: int
    end: int
    text: str
    column: int | None = None


@dataclass(frozen=True, slots=True)
class QueryDefinition:
    """A query as Spark SQL. It names each relation by `spark_name`, and each system relation by `system_name`.

    ``columns`` has the name of each column and its type, or None where only Spark knows the type. ``system_relations``
    are written as `schema.table`. ``with_hidden`` are those of them whose hidden columns the query names.
    ``expressions`` are for errors; what holds another expression comes before it.
    ``row_by_row`` is true if every output row depends on one row of one relation. ``limit`` is the number of rows that
    a LIMIT of the whole query allows.
    """

    sql: str
    columns: tuple[tuple[str, Type | None], ...]
    relations: tuple[int, ...] = ()
    system_relations: tuple[str, ...] = ()
    with_hidden: frozenset[str] = frozenset()
    expressions: tuple[ExpressionText, ...] = ()
    row_by_row: bool = False
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A view, and the names that its columns have in the catalog."""

    id: int
    name: str
    query: QueryDefinition
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column of the stored rows of a materialized view, with its type in the words of Spark. The view does not show a
    hidden one. ``default`` is its value in rows that were stored before it came, as JSON text; None stands for null."""

    name: str
    type: str
    hidden: bool = False
    default: str | None = None


@dataclass(frozen=True, slots=True)
class MaterializedDefinition:
    """A materialized view as others read it: what its storage holds. ``key`` are the names of its key columns, if it has
    a key. ``appends`` says that rows of the view only come, ``stored_grows`` that its stored rows do."""

    id: int
    name: str
    stored: tuple[StoredColumn, ...]
    key: tuple[str, ...] | None
    appends: bool
    stored_grows: bool


RelationDefinition: TypeAlias = SourceDefinition | ViewDefinition | MaterializedDefinition
Relations: TypeAlias = Mapping[int, RelationDefinition]
"""Every relation that a query reads, directly or through views, by its id."""


@dataclass(frozen=True, slots=True)
class SelectDefinition:
    """A SELECT, and all relations that it reads."""

    query: QueryDefinition
    relations: Relations


def spark_name(relation_id: int) -> str:
    """The temporary view under which Spark knows a relation. It stays the same when the relation is renamed."""
    return f"rel_{relation_id}"


def system_name(relation: str) -> str:
    """The temporary view under which Spark knows a system relation, given as `schema.table`."""
    return relation.replace(".", "_")


# sinks and tasks


@dataclass(frozen=True, slots=True)
class DefinitionName:
    """What a target was written with. ``keys`` differs if all keys must be written anew, because they come from another
    source or have other bytes; ``rows`` differs if a view between was replaced. Ledgers hold it as text."""

    keys: str
    rows: str

    @classmethod
    def of(cls, text: str) -> DefinitionName:
        keys, _, rows = text.rpartition("/")
        return cls(keys, rows)

    @property
    def text(self) -> str:
        return f"{self.keys}/{self.rows}"


PRESENT = internal_name("present")
"""The column of marked rows: whether the key has a row now. Otherwise it is deleted."""

OLD = internal_name("before")
"""The column of change events with the row before the change; NULL for a row that came."""

AT = internal_name("at")
"""The column of rows that tell where they come from: topic, partition, offset and timestamp of the record."""


def holds_floats(type_: Type) -> bool:
    match type_:
        case Real() | Double():
            return True
        case Array(inner) | Map(inner):
            return holds_floats(inner)
        case Record(fields):
            return any(holds_floats(field.type) for field in fields)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class RecordEncoding:
    """How columns become the key or the value of a record.

    ``record`` has one field per column, and no type by name. ``schema`` and ``schema_id`` are set for the formats of a
    registry. ``renames`` are the fields whose names in an Avro schema are not their SQL names, by their SQL names from the
    column on. ``as_event`` says that the record is the field `after` of a change event (`schema/encodings.py`), which the
    schema describes. ``left_out`` are fields inside columns that the record does not have.

    ``given`` says that somebody else wrote the schema: ``record`` is then a part of it, and rows are rewritten by name.
    ``references`` and ``message`` belong to such a schema. ``whole`` says that the one column is the whole key or value.
    ``delimiter`` is that of delimited text.
    """

    encoding: Literal["AVRO", "JSON SCHEMA", "PROTOBUF", "JSON", "TEXT", "BYTES", "PRIMITIVE", "DELIMITED"]
    columns: tuple[str, ...]
    record: Record
    schema: str | None = None
    schema_id: int | None = None
    renames: FieldNames = ()
    as_event: bool = False
    left_out: tuple[tuple[str, ...], ...] = ()
    given: bool = False
    references: tuple[tuple[str, str], ...] = ()
    message: str | None = None
    whole: bool = False
    delimiter: str = ","

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns in the schema."""
        renames = dict(self.renames)
        return tuple(renames.get((column,), column) for column in self.columns)

    @property
    def prints_numbers(self) -> bool:
        """Whether binary numbers are in it as texts, which have other digits in other versions of Java."""
        return self.encoding in ("JSON", "JSON SCHEMA", "DELIMITED") and holds_floats(self.record)

    @property
    def written(self) -> WrittenSchema | None:
        """The schema as it is registered; None if the format has none."""
        if self.schema is None:
            return None
        return WrittenSchema(self.schema, self.references, format=SchemaFormat.from_words(self.encoding))


@dataclass(frozen=True, slots=True)
class PartitionBy:
    """An expression that chooses the partition of a record: Spark SQL over columns under other names.

    ``columns`` has pairs of the name in ``sql`` and the column of the relation.
    """

    sql: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RecordTime:
    """The column whose value is the time of a record. Milliseconds since 1970 if it is bigint; a text is written as ``format``, a
    pattern of Spark, says."""

    column: str
    type: Bigint | Timestamp | TimestampTz | Text
    format: str | None = None


@dataclass(frozen=True, slots=True)
class HeadersColumn:
    """The column with the headers of a record. A map has no header twice; a list of records has key and value."""

    column: str
    is_map: bool


@dataclass(frozen=True, slots=True)
class SinkDefinition:
    """A sink: the relation that it reads and the topic that it writes.

    A registry is None if the format of that side needs none. ``on_error`` is what happens to rows that cannot be encoded.
    ``old_rows`` says that the sink needs the rows before a change, which a materialized view knows: for change events, and for
    a key that is not that of the view. ``time`` is None if a record has the time at which it is written.
    """

    name: str
    relation: int
    topic: str
    connection: ConnectionRef
    value: RecordEncoding
    key: RecordEncoding | None
    envelope: SinkEnvelope
    key_registry: ConnectionRef | None = None
    value_registry: ConnectionRef | None = None
    partition_by: PartitionBy | None = None
    headers: HeadersColumn | None = None
    compression: Compression | None = None
    on_error: ErrorPolicy = "HALT"
    delivery: Delivery = "at least once"
    old_rows: bool = False
    time: RecordTime | None = None

    def registry(self, side: RecordSide) -> ConnectionRef:
        """The registry that has the schemas of a side, which must have one."""
        found = self.key_registry if side == "key" else self.value_registry
        assert found is not None, "the format of this side has no schema"
        return found


LatencyWay: TypeAlias = Literal["real time", "micro-batch"]


@dataclass(frozen=True, slots=True)
class Latency:
    """Which way a sink runs, and why, as a clause."""

    way: LatencyWay
    reason: str

    def __str__(self) -> str:
        return f"{self.way}: {self.reason}"


TargetDefinition: TypeAlias = SinkDefinition | WrittenMaterialization


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """A sink or a materialization, with everything between its source, which may be a materialized view, and its target.

    ``source_key`` maps each key column of an UPSERT sink over a keyed source to the column of the source that it comes
    from. It is empty for sinks that delete nothing. ``marked_sql`` is one query for the rows of such a sink over the marked
    rows of its source, marked as well; None if the views between do more than filter and project.
    ``positioned_sql`` is one query for the same rows, without marks, that passes on the column `AT` of the source's rows;
    None if the position of a row's record cannot be passed on.
    ``definition`` differs if a view between was replaced; it stays when a source follows a schema change.
    ``event_key`` are the columns by which change events find the row before a change; without any, a change of a row is two
    events. ``view_start`` is the generation and the batch of a materialized view behind which the task begins, if not with all its
    rows. ``latency`` is the way that was planned. While there are too few slots, a real-time task runs in micro-batches.
    """

    id: int
    name: str
    source: SourceDefinition | MaterializedDefinition
    relations: Relations
    sink: TargetDefinition
    source_key: Mapping[str, str] = field(default_factory=dict)
    definition: str = ""
    marked_sql: str | None = None
    positioned_sql: str | None = None
    latency: Latency = Latency("micro-batch", "nothing else was planned")
    event_key: tuple[str, ...] = ()
    view_start: tuple[int, int] | None = None
