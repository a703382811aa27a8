"""Change parts of a statement, wherever in its tree they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar, get_args

from headgate.schema.types import Type

Node = TypeVar("Node")
Field = dataclasses.Field[Any]
Change = Callable[[Any, Field | None], Any]

TYPES = get_args(Type)


def rewrite(node: Node, change: Change) -> Node:
    """A copy of the tree in which values are replaced by what ``change`` returns for them.

    ``change`` gets each value and the field that holds it. What it replaces is not searched further. A part in which
    nothing changes is the same object as before. Spans are not visited.
    """
    changed: Node = _fields(node, change)
    return changed


def _fields(node: Any, change: Change) -> Any:
    new: dict[str, Any] = {}
    for field in dataclasses.fields(node):
        if field.compare and field.init:
            value = getattr(node, field.name)
            found = _value(value, field, change)
            if found is not value:
                new[field.name] = found
    return dataclasses.replace(node, **new) if new else node


def _value(value: Any, field: Field | None, change: Change) -> Any:
    found = change(value, field)
    if found is not value or isinstance(value, TYPES):
        return found
    if isinstance(value, tuple):
        items = tuple(_value(item, field, change) for item in value)
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    if dataclasses.is_dataclass(value):
        return _fields(value, change)
    return value
