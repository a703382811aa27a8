"""What a catalog holds: objects of every kind, their columns, comments and dependencies. Frozen values only.

An object and a column are known by their ids, which are never used twice; names are only what they are called
at present. A database and a schema are objects too: a schema's parent is its database, any other object's parent
is its schema, a database has none.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from headgate.errors import InternalError
from headgate.schema.parse import parse_type
from headgate.schema.render import print_type
from headgate.schema.types import Field, Record, Type
from headgate.sql.statement import Kind

ROOT = 0  # the parent of databases


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


# Whatever has rows is a relation; whatever moves rows is a task.
RELATIONS = frozenset(
    {Kind.SOURCE, Kind.VIEW, Kind.MATERIALIZED_VIEW, Kind.STREAM, Kind.TABLE, Kind.COLLECTION}
)
TASKS = frozenset({Kind.SINK, Kind.MATERIALIZATION, Kind.CAPTURE, Kind.MATERIALIZED_VIEW})
CAN_BE_TASKS = TASKS | {Kind.STREAM, Kind.TABLE, Kind.COLLECTION}  # these are when made with AS SELECT


def namespace_of(kind: Kind) -> Namespace:
    """Types share the namespace of relations, because a query names both; every other kind has its own."""
    return Namespace.RELATION if kind is Kind.TYPE or kind in RELATIONS else Namespace(kind.value)


class Growth(enum.StrEnum):
    """How the rows of a relation come: only more of them, or later ones in place of earlier ones by key."""

    APPEND = "append"
    KEYED = "keyed"


class DesiredTaskState(enum.StrEnum):
    """What a task is told to do; what it does is its state, which the engine reports."""

    RUNNING = "running"
    PAUSED = "paused"


class DependencyKind(enum.StrEnum):
    """What one object needs another for."""

    READS = "reads"
    WRITES = "writes"
    CONNECTION = "connection"
    SECRET = "secret"
    TYPE = "type"


@dataclass(frozen=True, slots=True)
class Dependency:
    """`on` cannot go while this stands. A disabled binding (`holds` false) does not keep its collection."""

    on: int
    use: DependencyKind = DependencyKind.READS
    holds: bool = True


@dataclass(frozen=True, slots=True)
class Comment:
    """What `COMMENT ON` said, what the source's schema said, and whether `IS NULL` silenced the latter."""

    explicit: str | None = None
    imported: str | None = None
    suppressed: bool = False


NO_COMMENT = Comment()


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column by ids, whatever it and its object are called today."""

    object: int
    column: int


@dataclass(frozen=True, slots=True)
class Column:
    """`type` is the full printed form, read back by `parsed`. `origin` is the column of which this one is a plain
    projection, so that a comment written upstream is seen here."""

    id: int
    name: str
    type: str
    nullable: bool = True
    key: bool = False
    origin: ColumnRef | None = None
    comment: Comment = NO_COMMENT

    @property
    def parsed(self) -> Type:
        return read_type(self.type)


@dataclass(frozen=True, slots=True)
class Object:
    """One entry of the catalog.

    `statement` is what the user wrote, `purified` the JSON text of the statement with every outside answer in it.
    `created` is an instant in UTC. A type that is a record has its fields as columns, any other has a `body`;
    both have no `growth`, as has whatever is no relation. `next_column` is the first column id never used.
    """

    id: int
    kind: Kind
    parent: int
    name: str
    created: datetime
    statement: str = ""
    purified: str = "{}"
    columns: tuple[Column, ...] = ()
    growth: Growth | None = None
    body: str | None = None
    dependencies: tuple[Dependency, ...] = ()
    comment: Comment = NO_COMMENT
    next_column: int = 0

    def __post_init__(self) -> None:
        above = max((c.id for c in self.columns), default=0) + 1
        if self.next_column < above:
            object.__setattr__(self, "next_column", above)

    @property
    def namespace(self) -> Namespace:
        return namespace_of(self.kind)

    def column(self, id_: int) -> Column | None:
        return next((c for c in self.columns if c.id == id_), None)

    def purified_json(self) -> dict[str, object]:
        """The purified form as a JSON object; decoded anew on each call, so a caller may keep or change it."""
        value = json.loads(self.purified)
        if not isinstance(value, dict):
            raise InternalError(f'the purified form of {self.kind} "{self.name}" is no JSON object')
        return value

    def row_type(self) -> Record:
        """The columns as one record, comments left aside: they are looked up, not part of the type."""
        return Record(tuple(Field(c.name, c.parsed, c.nullable) for c in self.columns))

    def definition(self) -> Type:
        """What a type object stands for."""
        return self.row_type() if self.body is None else read_type(self.body)


def columns_of(record: Record, keys: frozenset[str] = frozenset(), first: int = 1) -> tuple[Column, ...]:
    """The columns of a new object over a record type; the docs of its fields become imported comments."""
    return tuple(
        Column(
            first + position,
            f.name,
            print_type(f.type, full=True),
            f.nullable,
            f.name in keys,
            comment=Comment(imported=f.doc),
        )
        for position, f in enumerate(record.fields)
    )


def with_comment(target: Object, column: int | None, comment: Comment) -> Object:
    """The object with the comment on itself, or on the column of that id."""
    if column is None:
        return replace(target, comment=comment)
    columns = (replace(c, comment=comment) if c.id == column else c for c in target.columns)
    return replace(target, columns=tuple(columns))


@lru_cache(maxsize=4096)
def read_type(text: str) -> Type:
    """A stored type; most columns of a catalog share a few types, so each text is parsed once."""
    return parse_type(text)
