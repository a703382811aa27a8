"""Values as the texts that Spark writes for them in JSON and in delimited text, so that INSERT and the JVM write the same bytes.

A number is written as Java writes it: with a fraction, and with an exponent if it is small or large. Its digits are the fewest that
give the number back, as since Java 19; older ones sometimes write one more.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

from headgate.runtime.formats.given import values as v
from headgate.runtime.formats.given.values import Unwritable
from headgate.schema import types as t
from headgate.schema.names import ROOT, element_path, field_path, value_path
from headgate.schema.values import single, to_json

_PLAIN_EXPONENTS = range(-3, 7)  # of the numbers that Java writes without an exponent
_ESCAPES = {code: f"\\u{code:04X}" for code in range(32)} | {
    ord("\b"): "\\b", ord("\f"): "\\f", ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t", ord('"'): '\\"', ord("\\"): "\\\\",
}  # fmt: skip


class Raw(str):
    """A text that is part of a document as it is."""

    __slots__ = ()


# scalars


def scalar_text(value: Any, type_: t.Type) -> str:
    """The text of a value of a type that is no record, array or map."""
    match type_:
        case t.Boolean():
            return "true" if value else "false"
        case t.Real():
            return real_text(value)
        case t.Double():
            return double_text(value)
        case t.Time():
            return _time_text(value)
        case t.Timestamp():
            return str(value.isoformat(timespec="microseconds"))
        case t.TimestampTz():
            return f"{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
        case t.Json():
            return str(value)
        case _:
            return str(to_json(value, type_))


def _time_text(value: dt.time) -> str:
    text = value.isoformat()
    return text.rstrip("0") if value.microsecond else text


def double_text(value: float) -> str:
    """As Java writes a double."""
    return _special(value) or _number_text(value, repr(abs(value)), lambda text: float(text) == abs(value))


def real_text(value: float) -> str:
    """As Java writes a float."""
    if special := _special(value):
        return special
    whole = single(abs(value))
    texts = (f"{whole:.{digits}e}" for digits in range(9))
    shortest = next(text for text in texts if single(float(text)) == whole)
    return _number_text(value, shortest, lambda text: single(float(text)) == whole)


def _special(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    return f"{sign}0.0" if value == 0 else None


def _number_text(value: float, shortest: str, is_same: Any) -> str:
    """Java writes two digits at least, and chooses the nearest two."""
    digits = _digits(shortest)
    if len(digits) == 1 and is_same(f"{abs(value):.1e}"):
        shortest = f"{abs(value):.1e}"
        digits = _digits(shortest)
    exponent = Decimal(shortest).adjusted()
    sign = "-" if value < 0 else ""
    if exponent not in _PLAIN_EXPONENTS:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    padded = digits.ljust(exponent + 2, "0")
    return f"{sign}{padded[: exponent + 1]}.{padded[exponent + 1 :]}"


def _digits(text: str) -> str:
    """The digits of a number without zeros at either end."""
    return "".join(map(str, Decimal(text).as_tuple().digits)).rstrip("0") or "0"


# documents


def json_value(value: Any, type_: t.Type, path: str = ROOT) -> Any:
    """What `print_json` prints for a value. Raises Unwritable for a number that JSON does not have."""
    if value is None:
        return None
    match type_:
        case t.Record(fields):
            return {f.name: json_value(value[f.name], f.type, field_path(path, f.name)) for f in fields}
        case t.Array(element):
            return [json_value(one, element, element_path(path)) for one in value]
        case t.Map(inner):
            return {key: json_value(one, inner, value_path(path)) for key, one in value.items()}
        case t.Real() | t.Double():
            if not math.isfinite(value):
                raise Unwritable(path, v.NOT_FINITE)
            return Raw(scalar_text(value, type_))
        case t.Json():
            return Raw(_checked_json(value, path))
        case t.Boolean() | t.Integer() | t.Bigint():
            return value
        case _:
            return scalar_text(value, type_)


def _checked_json(value: str, path: str) -> str:
    try:
        json.loads(value)
    except ValueError:
        raise Unwritable(path, v.NOT_JSON) from None
    return value


def print_json(value: Any) -> str:
    """Compact JSON text of what `json_value` gives."""
    match value:
        case dict():
            return "{" + ",".join([f"{print_json(key)}:{print_json(inner)}" for key, inner in value.items()]) + "}"
        case list():
            return "[" + ",".join([print_json(inner) for inner in value]) + "]"
        case Raw():
            return str(value)
        case str():
            return f'"{value.translate(_ESCAPES)}"'
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case float():
            return double_text(value)
        case _:
            return str(value)
