"""Plans: what each statement will do, as data. Every statement gets exactly one plan, and the executor runs only plans."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from headgate.catalog.changes import Change
from headgate.catalog.names import SearchPath
from headgate.schema.evolve.changes import Change as SchemaChange
from headgate.schema.written import CompatibilityLevel, WrittenSchema
from headgate.sql import show
from headgate.sql.queries import ShowSearchPath
from headgate.sql.registry_formats import PendingId
from headgate.sql.statement import Query

# What must be done outside before the catalog changes. `control.effects` checks, does and undoes each of them.


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """Create the topic unless it exists. ``connection`` is the id of the connection's object."""

    connection: int
    topic: str
    partitions: int = 1
    replicas: int = -1
    config: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SetCompatibility:
    """Set the compatibility level of a subject."""

    connection: int
    subject: str
    level: CompatibilityLevel


@dataclass(frozen=True, slots=True)
class RegisterSchema:
    """Register the schema for the subject. Its id is known when that is done; until then ``id`` stands for it."""

    connection: int
    subject: str
    schema: WrittenSchema

    @property
    def id(self) -> PendingId:
        return PendingId(self.connection, self.subject)


Effect: TypeAlias = CreateTopic | SetCompatibility | RegisterSchema


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
    """Read the answer from the catalog and the store when the statement's turn comes."""

    statement: ShowStatement


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


Plan: TypeAlias = ChangeCatalog | RunQuery | Show | SetSearchPath | CheckConnection | ReplayQuarantine | Skip
