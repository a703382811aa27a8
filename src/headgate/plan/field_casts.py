"""Which types a field of a materialization may have, given the type of its values. Pure.

Here is decided what can never work; whether one value fits is checked for each row by the runtime. No cast rounds, except that
a number of JSON becomes the nearest binary one. A text never becomes a number or a boolean.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.schema import types as t
from headgate.schema.render import print_type

_WHOLE = (t.Integer, t.Bigint)
_NUMBERS = (*_WHOLE, t.Real, t.Double, t.Decimal)
_FROM_TEXT = (t.Uuid, t.Date, t.Time, t.Timestamp, t.TimestampTz)


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a cast is impossible, and what to write instead."""

    reason: str
    cure: str = ""


def refused_cast(source: t.Type, type_: t.Type) -> Refused | None:
    """Why no value of the source can become one of the type; None if values are checked one by one."""
    if t.plain(source) == t.plain(type_) or isinstance(source, t.Json) or isinstance(type_, t.Json):
        return None
    match source, type_:
        case t.Array(), t.Array():
            return refused_cast(source.element, type_.element)
        case t.Map(), t.Map():
            return refused_cast(source.value, type_.value)
        case t.Array() | t.Map() | t.Record(), _:
            return Refused(f"A value of type {_short(source)} is not a single value.", "Write json as its type.")
        case _, t.Array() | t.Map() | t.Record():
            return Refused(f"A value of type {_short(source)} has no parts.")
        case _, t.Boolean():
            return Refused("Only booleans are true or false.", "Compare the value in a view.")
        case _, t.Text():
            return Refused("Bytes are no text.", "Encode them in a view.") if isinstance(source, t.Bytes) else None
        case _, t.Enum():
            return None if isinstance(source, t.Text | t.Enum) else Refused("A symbol is a text.")
        case ((t.Text() | t.Enum()), _):
            return _from_text(type_)
        case _, t.Real():
            return Refused("Most numbers would lose digits in a real.", "Write f64 as its type.")
        case _, t.Integer() | t.Bigint() | t.Double() | t.Decimal():
            return None if isinstance(source, _NUMBERS) else Refused(f"A value of type {_short(source)} is no number.")
        case _:
            return Refused(f"No value of type {_short(source)} is one of type {_short(type_)}.", "Cast it in a view.")


def _from_text(type_: t.Type) -> Refused:
    if isinstance(type_, _FROM_TEXT):
        name = print_type(type_)
        return Refused(f"A text need not be a {name}.", f"Write string AS '{name}', which checks every text.")
    return Refused("A text is no number, whatever its characters are.", "Cast it in a view.")


def _short(type_: t.Type) -> str:
    return print_type(t.plain(type_))
