"""What happened, for whoever has to act on it: the controller reads these in order and never misses one.

Every change that is committed makes one event in the same transaction; the engine adds its own (a task halted, a
target provisioned) under names of its own.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from headgate.catalog.changes import (
    Change,
    ColumnsChanged,
    CommentImported,
    CommentSet,
    DefinitionChanged,
    ObjectCreated,
    ObjectDropped,
    ObjectRenamed,
    SecretChanged,
    StatementRespelled,
    TaskTold,
)
from headgate.catalog.objects import Desired


class Happened(enum.StrEnum):
    """The events that the catalog itself makes."""

    CREATED = "created"
    DROPPED = "dropped"
    RENAMED = "renamed"
    REDEFINED = "redefined"
    RESPELLED = "respelled"
    COLUMNS_CHANGED = "columns changed"
    COMMENTED = "commented"
    SECRET_CHANGED = "secret changed"
    PAUSED = "paused"
    RESUMED = "resumed"


@dataclass(frozen=True, slots=True)
class Event:
    """`sequence` only grows, with gaps or without; `object` is the name it had then, the id stays true."""

    sequence: int
    time: datetime
    object_id: int
    object: str
    event: str
    detail: str | None


def event_of(change: Change) -> Happened:
    match change:
        case ObjectCreated():
            return Happened.CREATED
        case ObjectDropped():
            return Happened.DROPPED
        case ObjectRenamed():
            return Happened.RENAMED
        case DefinitionChanged():
            return Happened.REDEFINED
        case StatementRespelled():
            return Happened.RESPELLED
        case ColumnsChanged():
            return Happened.COLUMNS_CHANGED
        case CommentSet() | CommentImported():
            return Happened.COMMENTED
        case SecretChanged():
            return Happened.SECRET_CHANGED
        case TaskTold():
            return Happened.PAUSED if change.desired is Desired.PAUSED else Happened.RESUMED
        case _:
            assert_never(change)
