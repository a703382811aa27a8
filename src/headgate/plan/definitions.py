"""What the runtime is given: sources, sinks, queries and tasks in which every name is resolved. Data only.

`headgate.control.definitions` fills these classes by the planner; the runtime reads and writes with them. Neither side needs to know how the other works:
the runtime never sees a statement, and the planner never sees Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from headgate.schema.encodings import Encoding, fields_of
from headgate.schema.types import Record, Type

ConnectionRef: TypeAlias = int | str
"""A connection of the catalog by its id, or the plain address of a server."""

ErrorPolicy: TypeAlias = Literal["HALT", "QUARANTINE", "SKIP"]
SchemaChangePolicy: TypeAlias = Literal["PIN", "FOLLOW", "HALT"]
SourceEnvelope: TypeAlias = Literal["NONE", "UPSERT", "DEBEZIUM"]
SinkEnvelope: TypeAlias = Literal["NONE", "UPSERT"]
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
    start at the earliest record. A registry is None if the format of that side needs none.
    """

    id: int
    name: str
    topic: str
    connection: ConnectionRef
    layout: SourceLayout
    key_registry: ConnectionRef | None = None
    value_registry: ConnectionRef | None = None
    start_offsets: Mapping[int, int] = field(default_factory=dict)


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
    hidden one."""

    name: str
    type: str
    hidden: bool = False


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

PRESENT = "hg_present"
"""The column of marked rows: whether the key has a row now. Otherwise it is deleted."""


@dataclass(frozen=True, slots=True)
class RecordEncoding:
    """How columns become the key or the value of a record.

    ``record`` has one field per column. ``schema`` and ``schema_id`` are set for Avro, and ``names`` are the names of the
    columns in that schema.
    """

    encoding: Literal["AVRO", "JSON", "TEXT", "BYTES"]
    columns: tuple[str, ...]
    record: Record
    schema: str | None = None
    schema_id: int | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SinkDefinition:
    """A sink: the relation that it reads and the topic that it writes."""

    name: str
    relation: int
    topic: str
    connection: int
    registry: int | None
    value: RecordEncoding
    key: RecordEncoding | None
    envelope: SinkEnvelope


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """A sink with everything between its source, which may be a materialized view, and its topic.

    ``source_key`` maps each key column of an UPSERT sink over a keyed source to the column of the source that it comes
    from. It is empty for sinks that delete nothing. ``marked_sql`` is one query for the rows of such a sink over the marked
    rows of its source, marked as well; None if the views between do more than filter and project.
    ``catalog_version`` is the catalog's version that it was made from.
    ``definition`` differs if a view between was replaced; it stays when a source follows a schema change.
    """

    id: int
    name: str
    source: SourceDefinition | MaterializedDefinition
    relations: Relations
    sink: SinkDefinition
    source_key: Mapping[str, str] = field(default_factory=dict)
    catalog_version: int = 0
    definition: str = ""
    marked_sql: str | None = None


@dataclass(frozen=True, slots=True)
class VersionRead:
    """A version of a relation that a query names: its rows after a batch or before it, its signed changes, or the keys that
    changed. ``name`` is what the query calls it."""

    relation: int
    version: Literal["now", "before", "changes", "keys"]
    name: str


@dataclass(frozen=True, slots=True)
class ViewTaskDefinition:
    """A materialized view with everything that keeps it equal to its query.

    ``first`` and ``changed`` are Spark SQL for the changes of its stored rows in the first batch and in later ones
    (`headgate.sql.query.maintenance`). ``inputs`` are the relations whose changes it reads. ``first_reads`` and ``reads`` are
    the versions of relations that the two queries name. ``stored_name`` is what the second one calls the stored rows of the
    view itself; None if it does not read them. ``not_null`` are columns in which NULL is an error. ``definition`` differs if
    the query was replaced.
    """

    id: int
    name: str
    view: MaterializedDefinition
    first: str
    changed: str
    inputs: tuple[SourceDefinition | MaterializedDefinition, ...]
    first_reads: tuple[VersionRead, ...]
    reads: tuple[VersionRead, ...]
    stored_name: str | None
    relations: Relations
    not_null: tuple[str, ...] = ()
    catalog_version: int = 0
    definition: str = ""
