"""JSON text into values, strictly: no NaN, no endless nesting, and the place of a mistake as line and column."""

from __future__ import annotations

import json
from typing import NoReturn

from headgate.registry.errors import Fault, MalformedSchema
from headgate.schema.formats.documents import Json

# Real schemas nest a few dozen levels. The bound keeps every recursive walk far from Python's own limit of 1000.
MOST_LEVELS = 150


def read_json(text: str, schema_type: str) -> Json:
    """The value that ``text`` is; :class:`MalformedSchema` with line and column when it is none."""
    try:
        value: Json = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as wrong:
        reason = f"not valid JSON: {wrong.msg[:1].lower()}{wrong.msg[1:]}"
        raise MalformedSchema(schema_type, (Fault("", reason),), wrong.lineno, wrong.colno) from None
    except (ValueError, RecursionError) as wrong:
        reason = "nested too deeply" if isinstance(wrong, RecursionError) else f"not valid JSON: {wrong}"
        raise MalformedSchema(schema_type, (Fault("", reason),)) from None
    if _levels(value) > MOST_LEVELS:
        raise MalformedSchema(schema_type, (Fault("", f"nested more than {MOST_LEVELS} levels deep"),))
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _levels(value: Json) -> int:
    """How deep arrays and objects nest; without recursion, because the answer may be "too deep"."""
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        node, level = waiting.pop()
        deepest = max(deepest, level)
        if isinstance(node, dict):
            waiting.extend((child, level + 1) for child in node.values())
        elif isinstance(node, list):
            waiting.extend((child, level + 1) for child in node)
    return deepest
