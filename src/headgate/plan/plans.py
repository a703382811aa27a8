"""Plans: what each statement will do, as data. Every statement gets exactly one plan, and the executor runs only plans."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from headgate.catalog.changes import Change
from headgate.catalog.names import SearchPath
from headgate.plan.definitions import ConnectionRef
from headgate.plan.target_definitions import IndexDefinition, TableDefinition, TableName
from headgate.schema.evolve.changes import Change as SchemaChange
from headgate.schema.written import CompatibilityLevel, WrittenSchema
from headgate.sql import show
from headgate.sql.queries import ShowSearchPath
from headgate.sql.registry_formats import PendingId
from headgate.sql.statement import Query

# What must be done outside before the catalog changes. `control.effects` checks, does and undoes each of them.


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """Create the topic unless it exists with the settings that are given here. None for one that is not given.

    ``connection`` is the id of the connection's object, or an address.
    """

    connection: ConnectionRef
    topic: str
    partitions: int | None = None
    replicas: int | None = None
    config: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SetCompatibility:
    """Set the compatibility level of a subject."""

    connection: ConnectionRef
    subject: str
    level: CompatibilityLevel


@dataclass(frozen=True, slots=True)
class RegisterSchema:
    """Register the schema for the subject. Its id is known when that is done; until then ``id`` stands for it."""

    connection: ConnectionRef
    subject: str
    schema: WrittenSchema

    @property
    def id(self) -> PendingId:
        return PendingId(self.connection, self.subject)


@dataclass(frozen=True, slots=True)
class ProvisionTable:
    """Check that the table can be written. The task makes it when it starts. ``new`` is false if the task exists already."""

    table: TableDefinition
    new: bool = True


@dataclass(frozen=True, slots=True)
class ReleaseTable:
    """Give up a table that a task wrote, and drop it if ``drop`` says so. ``task`` is the id of the task."""

    connection: int
    table: TableName
    task: int
    drop: bool = False


@dataclass(frozen=True, slots=True)
class ProvisionIndex:
    """Check that the index can be written. The task makes it when it starts. ``new`` is false if the task exists already."""

    index: IndexDefinition
    new: bool = True


@dataclass(frozen=True, slots=True)
class ReleaseIndex:
    """Give up an index that a task wrote, and remove it if ``drop`` says so. ``task`` is the id of the task."""

    connection: int
    index: str
    task: int
    drop: bool = False


@dataclass(frozen=True, slots=True)
class ReuseSchema:
    """Register a schema that the registry has already, with its references, for another subject. It must keep its id."""

    connection: ConnectionRef
    subject: str
    schema: WrittenSchema


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """Delete a topic, and softly the subjects of its schemas, given with their registries. It cannot be undone, so it comes
    after the commit."""

    connection: ConnectionRef
    topic: str
    subjects: tuple[tuple[ConnectionRef, str], ...] = ()


Effect: TypeAlias = (
    CreateTopic
    | SetCompatibility
    | RegisterSchema
    | ReuseSchema
    | DeleteTopic
    | ProvisionTable
    | ReleaseTable
    | ProvisionIndex
    | ReleaseIndex
)


class Outcome(StrEnum):
    """What happens to a dependent. The values are printed by `headgate plan` and in notices."""

    UNCHANGED = "unchanged"
    FOLLOWS = "follows"
    GAINS = "gains column"
    WIDENS = "widens column"
    OTHER_GROWTH = "changes how its rows come, to"
    REGISTERS = "registers schema"
    IN_STEP = "is brought in step"  # rows of the old query are replaced and deleted by key
    GOES_ON = "goes on from where it is"  # a target without a key keeps what it has
    LEAVES_OUT = "waits for the documentation of"
    FILLED_ANEW = "is filled anew, as it narrows"
    HALTS = "halts"


@dataclass(frozen=True, slots=True)
class Consequence:
    """What a change does to one object. ``detail`` names the column or the reason. ``change`` is the change of the schema
    for the source itself. ``because_of`` is the object upstream that passes the change on."""

    object: int
    outcome: Outcome
    detail: str = ""
    change: SchemaChange | None = None
    because_of: int | None = None


@dataclass(frozen=True, slots=True)
class ChangeCatalog:
    """Do the effects, then commit the changes. ``tag`` is reported when the statement has succeeded.

    ``consequences`` say what happens to objects that the statement does not name. ``cause`` is written into their history.
    """

    tag: str
    changes: tuple[Change, ...] = ()
    effects: tuple[Effect, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    notices: tuple[str, ...] = ()
    cause: str = "statement"


@dataclass(frozen=True, slots=True)
class RunQuery:
    """SELECT. The query has the ids of the relations that it names."""

    query: Query


Row: TypeAlias = tuple[tuple[str, object], ...]
"""The columns of a row that are given, each with its value."""


@dataclass(frozen=True, slots=True)
class InsertRows:
    """INSERT INTO … VALUES. ``target`` is a stream or table. ``deletes`` says that the rows are keys to be deleted."""

    target: int
    rows: tuple[Row, ...]
    deletes: bool = False


@dataclass(frozen=True, slots=True)
class InsertQuery:
    """INSERT INTO … SELECT. ``columns`` are the columns of the target that the columns of the query go into."""

    target: int
    query: Query
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FollowChanges:
    """SUBSCRIBE and SELECT … EMIT CHANGES: the rows of a query that come and go, until ``limit`` of them or the client stops.
    ``view`` is the materialized view whose changes it reads; with ``snapshot`` its present rows come first."""

    query: Query
    view: int
    snapshot: bool = True
    limit: int | None = None


ShowStatement: TypeAlias = (
    show.ShowObjects
    | show.ShowCreate
    | show.ShowLineage
    | ShowSearchPath
    | show.Describe
    | show.Explain
    | show.ExplainObject
    | show.ExplainSchema
)


@dataclass(frozen=True, slots=True)
class Show:
    """Read the answer from the catalog and the store when the statement's turn comes. ``after`` are changes of the catalog that
    the answer supposes and nobody makes: EXPLAIN CREATE STREAM … AS shows a stream that does not exist."""

    statement: ShowStatement
    after: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class SetSearchPath:
    path: SearchPath


@dataclass(frozen=True, slots=True)
class CheckConnection:
    connection: int


@dataclass(frozen=True, slots=True)
class ReplayQuarantine:
    tasks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Skip:
    """Do nothing, and say why: IF [NOT] EXISTS, or a change that changes nothing."""

    tag: str
    notice: str


Plan: TypeAlias = (
    ChangeCatalog
    | RunQuery
    | FollowChanges
    | InsertRows
    | InsertQuery
    | Show
    | SetSearchPath
    | CheckConnection
    | ReplayQuarantine
    | Skip
)
