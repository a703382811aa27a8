"""ALTER: what it can do to objects of many kinds alike. What it does to one kind is in that kind's file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from headgate.sql.ast.alter import ChangeTaskState, RenameObject
from headgate.sql.ast.names import ObjectName, object_name
from headgate.sql.ast.statement import ObjectKind, Statement
from headgate.text.cursor import Cursor


@dataclass(frozen=True, slots=True)
class Target:
    """What an ALTER statement alters."""

    kind: ObjectKind
    name: ObjectName
    if_exists: bool


# One thing that ALTER can do: the statement, or None if something else comes next.
Action = Callable[[Cursor, Target], Statement | None]

_STATES: dict[str, Literal["PAUSE", "RESUME"]] = {
    "PAUSE": "PAUSE",
    "DISABLE": "PAUSE",
    "RESUME": "RESUME",
    "ENABLE": "RESUME",
}

RULES = {"task state": "{PAUSE | RESUME | DISABLE | ENABLE}"}


def alter(cursor: Cursor, kind: ObjectKind, actions: tuple[Action, ...]) -> Statement:
    """The rest of ``ALTER <kind>``: the name, and the one action that fits."""
    exists = cursor.take("IF EXISTS")
    target = Target(kind, object_name(cursor), exists)
    for action in actions:
        found = action(cursor, target)
        if found is not None:
            return found
    raise cursor.unexpected()


def rename(cursor: Cursor, target: Target) -> RenameObject | None:
    if not cursor.take("RENAME TO"):
        return None
    return RenameObject(target.kind, target.name, cursor.identifier(), target.if_exists)


def change_state(cursor: Cursor, target: Target) -> ChangeTaskState | None:
    word = cursor.choose(*_STATES)
    if word is None:
        return None
    binding = cursor.string() if target.kind == "CAPTURE" and cursor.take("BINDING") else None
    return ChangeTaskState(target.kind, target.name, _STATES[word], binding, target.if_exists)
