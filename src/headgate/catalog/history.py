"""History and events of changes. Pure.

The history has one line for each object or column that a change touched. Lines contain names and types as they were at
that time, and never the text of a comment, a literal of a statement or a secret. Events are shorter: one for each change.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from headgate.catalog import changes as c
from headgate.catalog.changes import AppliedChange
from headgate.catalog.objects import Column, DesiredTaskState, Object
from headgate.catalog.positions import RecordPosition
from headgate.schema.names import print_name, quote_identifier
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
        case c.ObjectCreated() | c.ObjectDropped():
            return ()
        case c.ObjectRenamed():
            return (f"renamed from {step.name_before} to {step.name_after}",)
        case c.DefinitionChanged():
            return (f"redefined {step.after.kind}", *_columns(step.before, step.after))
        case c.ColumnsChanged():
            return tuple(_columns(step.before, step.after)) or ("columns unchanged",)
        case c.CommentSet():
            return (_comment(step.change, step.after),)
        case c.SecretChanged():
            return ("secret changed",)
        case c.TaskStateSet():
            return ("paused" if step.change.desired is DesiredTaskState.PAUSED else "resumed",)
        case _:
            assert_never(step.change)


def _came_or_went(step: AppliedChange) -> str:
    if step.after is not None:
        return f"created {step.after.kind}"
    return f"dropped {step.before.kind}" if step.before is not None else "nothing"


def _comment(change: c.CommentSet, target: Object) -> str:
    column = target.column(change.column) if change.column is not None else None
    names = () if column is None else (column.name, *change.field)
    place = f"comment on column {print_name(names)}" if names else "comment"
    return f"{place} {'set' if change.text is not None else 'removed'}"


def _columns(before: Object, after: Object) -> Iterator[str]:
    old, new = {column.id: column for column in before.columns}, {column.id: column for column in after.columns}
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
    if before.growth is not after.growth and after.growth is not None:
        yield f"rows come by {after.growth} now"


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


_EVENTS = {
    c.ObjectCreated: EventKind.CREATED,
    c.ObjectDropped: EventKind.DROPPED,
    c.ObjectRenamed: EventKind.RENAMED,
    c.DefinitionChanged: EventKind.REDEFINED,
    c.ColumnsChanged: EventKind.COLUMNS_CHANGED,
    c.CommentSet: EventKind.COMMENTED,
    c.SecretChanged: EventKind.SECRET_CHANGED,
}


def event_of(change: c.Change) -> EventKind:
    """The event that the catalog records for a change."""
    if isinstance(change, c.TaskStateSet):
        return EventKind.PAUSED if change.desired is DesiredTaskState.PAUSED else EventKind.RESUMED
    return _EVENTS[type(change)]
