"""What a catalog holds: objects of every kind, their columns, comments and dependencies. Frozen values only.

Objects and columns are identified by their ids, which are never used twice. Names can change. Databases and schemas are
objects too: the parent of a schema is its database, the parent of any other object is its schema, a database has none.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from headgate.errors import InternalError
from headgate.schema.types import Field, Record, Type
from headgate.sql.materializations import CreateMaterialization, OnDemandTarget
from headgate.sql.query.tree import ColumnRef
from headgate.sql.statement import RELATIONS, Create, Kind

ROOT = 0  # the parent of databases

Definition = TypeVar("Definition", bound=Create)


class Namespace(enum.StrEnum):
    """Two objects of one parent may share a name if their namespaces differ."""

    DATABASE = "database"
    SCHEMA = "schema"
    RELATION = "relation"
    CONNECTION = "connection"
    SECRET = "secret"
    SINK = "sink"
    SINK_POLICY = "sink policy"
    MATERIALIZATION = "materialization"
    CAPTURE = "capture"


# A kind that moves rows is a task. A kind that has rows is a relation (`RELATIONS`).
TASKS = frozenset({Kind.SINK, Kind.MATERIALIZATION, Kind.CAPTURE, Kind.MATERIALIZED_VIEW})
CAN_BE_TASKS = TASKS | {Kind.STREAM, Kind.TABLE, Kind.COLLECTION}  # these are tasks if they are created with AS SELECT


def namespace_of(kind: Kind) -> Namespace:
    """Types share the namespace of relations, because a query names both; every other kind has its own."""
    return Namespace.RELATION if kind is Kind.TYPE or kind in RELATIONS else Namespace(kind.value)


class Growth(enum.StrEnum):
    """How the rows of a relation change: rows are only added, later rows replace earlier ones by key, or rows come and go
    and no key is known."""

    APPEND = "append"
    KEYED = "keyed"
    CHANGING = "changing"


class DesiredTaskState(enum.StrEnum):
    """The state that a user wants a task to be in. The engine reports the actual state."""

    RUNNING = "running"
    PAUSED = "paused"


class DependencyKind(enum.StrEnum):
    """Why one object depends on another. COPIES is for a stored copy that the planner made: it goes with its last user."""

    READS = "reads"
    COPIES = "copies"
    CONNECTION = "connection"
    SECRET = "secret"
    TYPE = "type"
    SCOPE = "scope"
    FILLED_BY = "filled by"


@dataclass(frozen=True, slots=True)
class Dependency:
    """`on` is the id of the object that is used. `blocks_drop` is false for a disabled binding of a capture."""

    on: int
    use: DependencyKind = DependencyKind.READS
    blocks_drop: bool = True


@dataclass(frozen=True, slots=True)
class Comment:
    """The comment of `COMMENT ON`, the one from the source's schema, and whether `IS NULL` suppresses the latter."""

    explicit: str | None = None
    imported: str | None = None
    suppressed: bool = False


NO_COMMENT = Comment()


@dataclass(frozen=True, slots=True)
class FieldComment:
    """What COMMENT ON COLUMN says of a field of a record in a column. `path` has the names of the fields down to it; arrays
    and maps on the way add nothing. Without a text, the doc of the source's schema is suppressed."""

    path: tuple[str, ...]
    text: str | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `origin` is the column of which this one is a plain projection, so that a comment written upstream is
    seen here. `fields` are comments on fields inside the column."""

    id: int
    name: str
    type: Type
    nullable: bool = True
    key: bool = False
    origin: ColumnRef | None = None
    comment: Comment = NO_COMMENT
    fields: tuple[FieldComment, ...] = ()


@dataclass(frozen=True, slots=True)
class Object:
    """One entry of the catalog.

    `statement` is the text that the user wrote. `definition` is the resolved and purified CREATE statement; a secret and the
    objects that every catalog starts with have none. `created` is in UTC. A type that is a record has its fields as columns,
    any other type has a `body`. A sink without schemas gets a `body` when its relation gets another key type: it is the type
    of the keys in its topic. Only relations have a `growth`. `next_column` is the first column id never used.
    `fillings` is how often the rows of a view, stored or not, were given up for those of a new query, or of the same one again.
    """

    id: int
    kind: Kind
    parent: int
    name: str
    created: datetime
    statement: str = ""
    definition: Create | None = None
    columns: tuple[Column, ...] = ()
    growth: Growth | None = None
    body: Type | None = None
    dependencies: tuple[Dependency, ...] = ()
    comment: Comment = NO_COMMENT
    next_column: int = 0
    fillings: int = 0

    def __post_init__(self) -> None:
        above = max((c.id for c in self.columns), default=0) + 1
        if self.next_column < above:
            object.__setattr__(self, "next_column", above)

    @property
    def namespace(self) -> Namespace:
        return namespace_of(self.kind)

    def column(self, id_: int) -> Column | None:
        # Ids mostly count the columns. To search for each of 2,000 columns would take most of the time of a plan.
        if 0 < id_ <= len(self.columns) and (likely := self.columns[id_ - 1]).id == id_:
            return likely
        return next((c for c in self.columns if c.id == id_), None)

    def row_type(self) -> Record:
        """The columns as one record, without comments."""
        return Record(tuple(Field(c.name, c.type, c.nullable) for c in self.columns))

    def as_type(self) -> Type:
        """The type that a type object is a name for."""
        return self.row_type() if self.body is None else self.body


def with_comment(target: Object, column: int | None, comment: Comment) -> Object:
    """The object with the comment on itself, or on the column of that id."""
    if column is None:
        return replace(target, comment=comment)
    columns = (replace(c, comment=comment) if c.id == column else c for c in target.columns)
    return replace(target, columns=tuple(columns))


def with_field_comment(target: Object, column: int, comment: FieldComment) -> Object:
    """The object with the comment on a field of a record in the column of that id."""

    def commented(old: Column) -> Column:
        others = tuple(known for known in old.fields if known.path != comment.path)
        return replace(old, fields=(*others, comment))

    return replace(target, columns=tuple(commented(c) if c.id == column else c for c in target.columns))


def definition_of(entry: Object, cls: type[Definition]) -> Definition:
    """The definition of the object, which must be of this class."""
    if not isinstance(entry.definition, cls):
        raise InternalError(f'{entry.kind} "{entry.name}" was not made by {cls.__name__}')
    return entry.definition


def is_on_demand(entry: Object) -> bool:
    """Whether the object is a materialization ON DEMAND, which is no task."""
    statement = entry.definition
    return isinstance(statement, CreateMaterialization) and isinstance(statement.target, OnDemandTarget)
