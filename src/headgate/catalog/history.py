"""History and events of changes. Pure.

The history has one line per object or column that a change touched. Lines hold names and types as they were at that time,
never the text of a comment, a literal of a statement or a secret. Events are for the controller, which reads them in order.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from headgate.catalog.apply import AppliedChange
from headgate.catalog.changes import (
    Change,
    ColumnsChanged,
    CommentSet,
    DefinitionChanged,
    ObjectCreated,
    ObjectDropped,
    ObjectRenamed,
    SecretChanged,
    TaskStateSet,
)
from headgate.catalog.objects import Column, DesiredTaskState, Object
from headgate.catalog.positions import RecordPosition
from headgate.schema.names import quote_identifier
from headgate.schema.render import print_type


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored line. `sequence` only grows. `position` is the record that caused the change, if there is one."""

    sequence: int
    time: datetime
    object_id: int
    object: str
    change: str
    cause: str
    position: RecordPosition | None
    statement: str | None


def describe(step: AppliedChange) -> tuple[str, ...]:
    """The lines for one change."""
    if step.before is None or step.after is None:
        return (_came_or_went(step),)
    match step.change:
        case ObjectCreated() | ObjectDropped():
            return ()
        case ObjectRenamed():
            return (f"renamed from {step.name_before} to {step.name_after}",)
        case DefinitionChanged():
            return (f"redefined {step.after.kind}", *_columns(step.before, step.after))
        case ColumnsChanged():
            return tuple(_columns(step.before, step.after)) or ("columns unchanged",)
        case CommentSet():
            return (_comment(step.change, step.after),)
        case SecretChanged():
            return ("secret changed",)
        case TaskStateSet():
            return ("paused" if step.change.desired is DesiredTaskState.PAUSED else "resumed",)
        case _:
            assert_never(step.change)


def _came_or_went(step: AppliedChange) -> str:
    if step.after is not None:
        return f"created {step.after.kind}"
    return f"dropped {step.before.kind}" if step.before is not None else "nothing"


def _comment(change: CommentSet, target: Object) -> str:
    column = target.column(change.column) if change.column is not None else None
    place = "comment" if column is None else f"comment on column {quote_identifier(column.name)}"
    return f"{place} {'set' if change.text is not None else 'removed'}"


def _columns(before: Object, after: Object) -> Iterator[str]:
    old, new = {c.id: c for c in before.columns}, {c.id: c for c in after.columns}
    for id_, column in new.items():
        if id_ not in old:
            yield f"column {quote_identifier(column.name)} added as {_short(column)}"
        else:
            yield from _column(old[id_], column)
    for id_ in old.keys() - new.keys():
        yield f"column {quote_identifier(old[id_].name)} removed"
    kept = [i for i in old if i in new]
    if kept != [i for i in new if i in old]:
        yield "columns reordered"


def _column(old: Column, new: Column) -> Iterator[str]:
    name = f"column {quote_identifier(new.name)}"
    if old.name != new.name:
        yield f"column {quote_identifier(old.name)} renamed to {quote_identifier(new.name)}"
    if old.type != new.type:
        yield f"{name} changed from {_short(old)} to {_short(new)}"
    if old.nullable != new.nullable:
        yield f"{name} {'may be null' if new.nullable else 'may not be null'} now"
    if old.key != new.key:
        yield f"{name} is {'part of the key' if new.key else 'no part of the key'} now"


def _short(column: Column) -> str:
    return print_type(column.type)


class EventKind(enum.StrEnum):
    """Events that the catalog itself records."""

    CREATED = "created"
    DROPPED = "dropped"
    RENAMED = "renamed"
    REDEFINED = "redefined"
    COLUMNS_CHANGED = "columns changed"
    COMMENTED = "commented"
    SECRET_CHANGED = "secret changed"
    PAUSED = "paused"
    RESUMED = "resumed"


@dataclass(frozen=True, slots=True)
class Event:
    """`sequence` only grows and may have gaps. `object` is the name at that time; the id stays valid."""

    sequence: int
    time: datetime
    object_id: int
    object: str
    event: str
    detail: str | None


def event_of(change: Change) -> EventKind:
    match change:
        case ObjectCreated():
            return EventKind.CREATED
        case ObjectDropped():
            return EventKind.DROPPED
        case ObjectRenamed():
            return EventKind.RENAMED
        case DefinitionChanged():
            return EventKind.REDEFINED
        case ColumnsChanged():
            return EventKind.COLUMNS_CHANGED
        case CommentSet():
            return EventKind.COMMENTED
        case SecretChanged():
            return EventKind.SECRET_CHANGED
        case TaskStateSet():
            return EventKind.PAUSED if change.desired is DesiredTaskState.PAUSED else EventKind.RESUMED
        case _:
            assert_never(change)
