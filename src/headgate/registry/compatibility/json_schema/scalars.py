"""Bounds, strings, numbers, constants: what has no schema inside.

Known to be too kind, as Confluent's registry is: that a schema starts to demand its type is no difference as long as
it had keywords of that type before (``{"minLength": 1}`` to ``{"type": "string", "minLength": 1}``); ``format`` and
draft 4's boolean ``exclusiveMaximum`` do not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from headgate.registry.compatibility.json_schema.kinds import Difference, changed
from headgate.registry.compatibility.json_schema.nodes import Const, Enum, Number, String


def compare_strings(old: String, new: String) -> Iterator[Difference]:
    yield from bound("maxLength", "MAX_LENGTH", old.max_length, new.max_length)
    yield from bound("minLength", "MIN_LENGTH", old.min_length, new.min_length)
    if old.pattern == new.pattern:
        return
    if old.pattern is None:
        yield changed("PATTERN_ADDED", "pattern", detail=f'"{new.pattern}"')
    elif new.pattern is None:
        yield changed("PATTERN_REMOVED", "pattern")
    else:
        # Whether one regular expression accepts all that another does is not decided.
        yield changed("PATTERN_CHANGED", "pattern", detail=f'"{old.pattern}" to "{new.pattern}"')


def compare_numbers(old: Number, new: Number) -> Iterator[Difference]:
    yield from bound("maximum", "MAXIMUM", old.maximum, new.maximum)
    yield from bound("minimum", "MINIMUM", old.minimum, new.minimum)
    yield from bound("exclusiveMaximum", "EXCLUSIVE_MAXIMUM", old.exclusive_maximum, new.exclusive_maximum)
    yield from bound("exclusiveMinimum", "EXCLUSIVE_MINIMUM", old.exclusive_minimum, new.exclusive_minimum)
    yield from _multiple_of(old.multiple_of, new.multiple_of)
    if old.is_integer and not new.is_integer:
        yield changed("TYPE_EXTENDED", detail="integer to number")
    elif new.is_integer and not old.is_integer:
        yield changed("TYPE_NARROWED", detail="number to integer")


def compare_enums(old: Enum, new: Enum) -> Iterator[Difference]:
    if old.values == new.values:
        return
    gone = ", ".join(sorted(old.values - new.values))
    if old.values < new.values:
        yield changed("ENUM_ARRAY_EXTENDED", "enum")
    elif new.values < old.values:
        yield changed("ENUM_ARRAY_NARROWED", "enum", detail=f"without {gone}")
    else:
        yield changed("ENUM_ARRAY_CHANGED", "enum", detail=f"without {gone}")


def compare_constants(old: Const, new: Const) -> Iterator[Difference]:
    if old.value != new.value:
        yield changed("ENUM_ARRAY_CHANGED", "const", detail=f"{old.value} to {new.value}")


def bound(keyword: str, kind: str, old: Decimal | None, new: Decimal | None) -> Iterator[Difference]:
    """How a limit changed. Which direction is compatible depends on the limit and is the kind's business."""
    if old == new:
        return
    if old is None:
        yield changed(f"{kind}_ADDED", keyword, detail=f"{new}")
    elif new is None:
        yield changed(f"{kind}_REMOVED", keyword)
    else:
        word = "INCREASED" if old < new else "DECREASED"
        yield changed(f"{kind}_{word}", keyword, detail=f"{old} to {new}")


def _multiple_of(old: Decimal | None, new: Decimal | None) -> Iterator[Difference]:
    if old is None or new is None or old == new:
        yield from bound("multipleOf", "MULTIPLE_OF", old, new)
        return
    detail = f"{old} to {new}"
    if new % old == 0:
        yield changed("MULTIPLE_OF_EXPANDED", "multipleOf", detail=detail)
    elif old % new == 0:
        yield changed("MULTIPLE_OF_REDUCED", "multipleOf", detail=detail)
    else:
        yield changed("MULTIPLE_OF_CHANGED", "multipleOf", detail=detail)
