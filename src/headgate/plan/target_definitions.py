"""What the runtime is given of a materialization: its fields, and the table or index that they are written to. Data only.

`plan.materializations` resolves the fields of a statement to `TargetField`s, the same for every kind of target. A table and an
index differ in what they make of them: a table has columns, an index has a mapping.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from headgate.schema.names import internal_name
from headgate.schema.types import Bigint, Boolean, Field, Integer, Record, Type

INDEX = "_index"
"""The column of a child table with the position in an array, from 0."""

NESTED = internal_name("nested_")
"""The beginning of the names under which the records of child tables are staged."""


@dataclass(frozen=True, slots=True)
class ValuePath:
    """Where a value is in a row: a column, fields of records in it, and then members of a JSON document.

    ``inside`` is None if the value has a type of its own. Otherwise the value that ``column`` and ``fields`` lead to is read as a JSON text,
    and ``inside`` are the members and positions that lead on into it; () stands for the whole text, which must be cast.
    """

    column: str
    fields: tuple[str, ...] = ()
    inside: tuple[str, ...] | None = None

    @property
    def tokens(self) -> tuple[str, ...]:
        """All steps from the row on, as a JSON pointer has them."""
        return (self.column, *self.fields, *(self.inside or ()))


@dataclass(frozen=True, slots=True)
class TargetField:
    """A field of a materialization.

    ``type`` is what the target holds. For an object it is a record of the types of ``fields``, which are then not empty.
    ``path`` is None for an object that only groups its fields, which have paths of their own. ``source`` is the type that the
    relation has at ``path``; it is json for everything inside a JSON document, whose values are cast one by one.
    ``native`` is a type in the target's own words. ``key`` marks the fields that hold the key of the relation.
    """

    name: str
    path: ValuePath | None
    type: Type
    source: Type | None
    nullable: bool
    native: str | None = None
    doc: str | None = None
    key: bool = False
    fields: tuple[TargetField, ...] = ()

    def leaves(self, above: tuple[TargetField, ...] = ()) -> Iterator[tuple[tuple[TargetField, ...], TargetField]]:
        """The fields that hold values, each with the objects around it, the outer ones first."""
        if not self.fields:
            yield above, self
        for field in self.fields:
            yield from field.leaves((*above, self))


Fields: TypeAlias = tuple[TargetField, ...]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table and the field that it holds.

    ``field`` is a leaf, or an object that is kept as one jsonb value. ``above`` are the objects around it. ``postgres`` is the type as
    PostgreSQL writes it, or as the statement gives it with AS. ``numbered`` says that the database counts the rows in it.
    """

    name: str
    field: TargetField
    above: Fields
    postgres: str
    nullable: bool
    numbered: bool = False

    @property
    def doc(self) -> str | None:
        return self.field.doc


@dataclass(frozen=True, slots=True)
class TableName:
    """The full name of a table."""

    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class ChildColumn:
    """A column of a child table, and the members that lead to its value in the JSON of the record."""

    column: TableColumn
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChildTable:
    """A table with one record of each row of another table, or with the records of an array (NESTED = TABLES).

    ``staged`` is how the value gets there: as one jsonb value under a name that no column of the parent has. ``columns`` are those
    that are not of the key.
    """

    table: TableName
    staged: TableColumn
    is_array: bool
    columns: tuple[ChildColumn, ...]

    def definition(self, parent: TableDefinition) -> TableDefinition:
        """The child as a table that can be made and widened. Its key is that of its parent, and the position in the array."""
        key = [column for column in parent.columns if column.name in parent.key]
        if self.is_array:
            index = TargetField(INDEX, None, Integer(), None, nullable=False, key=True)
            key.append(TableColumn(INDEX, index, (), "integer", nullable=False))
        return replace(
            parent,
            table=self.table,
            columns=(*key, *(one.column for one in self.columns)),
            key=tuple(column.name for column in key),
            doc=self.staged.field.doc,
            children=(),
        )


TargetErrorPolicy: TypeAlias = Literal["HALT", "QUARANTINE", "SKIP"]
IncompatibleChange: TypeAlias = Literal["BACKFILL", "DISABLE BINDING", "DISABLE TASK", "ABORT"]


SEQUENCE, DELETED = "_sequence", "_deleted"
"""Columns of a table of changes: their order, and whether a change deleted the row of its key."""


def _change_column(name: str, type_: Type, postgres: str, doc: str, *, numbered: bool = False) -> TableColumn:
    field = TargetField(name, None, type_, None, nullable=False, doc=doc)
    return TableColumn(name, field, (), postgres, nullable=False, numbered=numbered)


CHANGE_COLUMNS = (
    _change_column(SEQUENCE, Bigint(), "bigint", "the order of the changes", numbered=True),
    _change_column(DELETED, Boolean(), "boolean", "whether the change deleted the row of the key"),
)


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table that a materialization writes. ``key`` are the names of the columns that hold the key of the relation, if it has one.

    ``connection`` is the id of the connection. ``adopt`` allows it to write a table that Headgate did not make. ``fields`` are the
    same as those of ``columns`` and ``children``, as a tree. ``doc`` is the comment on the table. ``delta_updates`` says that the
    table has a row for every change of a key, and not the newest row of each key.
    """

    name: str
    relation: int
    connection: int
    table: TableName
    fields: Fields
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...]
    on_error: TargetErrorPolicy = "HALT"
    on_incompatible: IncompatibleChange | None = None
    adopt: bool = False
    doc: str | None = None
    children: tuple[ChildTable, ...] = ()
    delta_updates: bool = False

    @property
    def merges(self) -> bool:
        """Whether a row replaces the one with its key. Otherwise rows are appended."""
        return bool(self.key) and not self.delta_updates

    @property
    def as_made(self) -> TableDefinition:
        """The table with all columns that it has in the database, also those that hold no field."""
        return replace(self, columns=(*self.columns, *CHANGE_COLUMNS)) if self.delta_updates else self

    def all_columns(self) -> Iterator[tuple[str, TableColumn]]:
        """The columns of the table and of its child tables, each with a name that tells them apart."""
        yield from ((column.name, column) for column in self.as_made.columns)
        for child in self.children:
            yield from ((f"{child.table.name}.{one.column.name}", one.column) for one in child.columns)


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """An index that a materialization writes. ``key`` are the fields of the row whose values make the `_id`, in the order of the
    relation's key; () for an append relation, whose documents are identified by the position of their record. ``relation_name`` is
    what readers of the index are told."""

    name: str
    relation: int
    connection: int
    index: str
    fields: Fields
    key: tuple[str, ...]
    on_error: TargetErrorPolicy = "HALT"
    on_incompatible: IncompatibleChange | None = None
    adopt: bool = False
    doc: str | None = None
    relation_name: str = ""

    @property
    def merges(self) -> bool:
        """Whether a document replaces the one with its key. Otherwise documents are added."""
        return bool(self.key)

    @property
    def document(self) -> Record:
        """The type of a document."""
        return record_of(self.fields)


@dataclass(frozen=True, slots=True)
class OnDemandDefinition:
    """Rows that are computed when a client asks for them. ``key_columns`` are the columns of the relation's key and their types;
    () for a relation without a key."""

    name: str
    relation: int
    fields: Fields
    key_columns: tuple[tuple[str, Type], ...]
    on_error: TargetErrorPolicy = "HALT"
    doc: str | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return tuple(name for name, _ in self.key_columns)

    @property
    def row(self) -> Record:
        """The type of a row."""
        return record_of(self.fields)


WrittenMaterialization: TypeAlias = TableDefinition | IndexDefinition
"""A materialization whose target a task writes."""

MaterializationDefinition: TypeAlias = WrittenMaterialization | OnDemandDefinition

RowForm: TypeAlias = Literal["message", "json", "flat", "object"]
"""What a client gets for a row: the materialization's own message, a map of JSON texts by field, a map of texts by path, or one JSON
object."""


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A condition over the fields of a materialization. ``sql`` is a query of Spark over a view with these fields, which has the
    condition as its last column. ``fields`` are those that the condition uses."""

    sql: str
    fields: frozenset[str]


@dataclass(frozen=True, slots=True)
class OnDemandRows:
    """What a client asks of a materialization ON DEMAND.

    ``fields`` are those of the rows, in the order of the definition. ``key`` holds the values of one key, as texts of JSON without quotes, or
    bytes. ``descriptors`` is a serialized set of files; the first message of its first file is that of a row. It is empty for the form
    `object`.
    """

    definition: OnDemandDefinition
    form: RowForm
    fields: Fields
    filter: RowFilter | None = None
    limit: int | None = None
    key: tuple[str | bytes, ...] | None = None
    descriptors: bytes = b""


ON_DEMAND_VIEW = "hg_on_demand"
"""The view over which Spark computes a filter."""

ROW_COLUMNS = (internal_name("id"), internal_name("problem"), internal_name("unknown"))
"""Columns of that view besides the fields: the object's id, what is wrong with the row, and what is wrong with a value that the filter
uses."""


def record_of(fields: Fields) -> Record:
    """The fields as one record."""
    return Record(tuple(Field(f.name, f.type, f.nullable, f.doc) for f in fields))
