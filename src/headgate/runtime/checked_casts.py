"""Casts of values that have a type, as columns of Spark: whether a value fits, and what it becomes. No cast is silent.

The planner allows a cast if some value of the source fits (`plan.materialized_fields`); here every value is checked. `try_cast` is used throughout,
because Spark may compute the value of a row that the check refuses.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, functions as F

from headgate.runtime.formats.json_text import json_text
from headgate.schema import types as t
from headgate.schema.formats.spark import to_spark

FRACTION = "it has a fraction or is out of range"
RANGE = "it is out of range"
DIGITS = "it has too many digits"
NOT_EXACT = "it is not exact in the field's type"
NOT_A_SYMBOL = "it is not one of the symbols"
NUL = "it contains a NUL character, or is not valid UTF-8"
ELEMENT = "an element does not fit"

_WHOLE = {t.Integer: 2**31, t.Bigint: 2**63}


@dataclass(frozen=True, slots=True)
class Cast:
    """``value`` is meaningful where ``fits`` is true. ``fits`` is None if every value does; it is TRUE or NULL-free FALSE for a value that
    is not null."""

    value: Column
    fits: Column | None = None
    reason: str = ""


def checked_cast(value: Column, source: t.Type, type_: t.Type) -> Cast:
    """The cast of a value of one type to another, which the planner allows."""
    same = t.plain(source) == t.plain(type_)
    match source, type_:
        case _, t.Json():
            return Cast(value if same else json_text(value, source), *_valid_text(value if same else None))
        case t.Array(), t.Array():
            return _array(value, source, type_)
        case t.Map(), t.Map() if not same:
            return _map(value, source, type_)
        case t.Record(), t.Record() if not same:
            return _record(value, source, type_)
        case t.Text() | t.Enum(), t.Enum():
            known = value.isin(list(type_.symbols))
            return Cast(value, None if same else known, NOT_A_SYMBOL)
        case t.Text() | t.Enum() | t.Uuid(), t.Text():
            return Cast(value, *_valid_text(value))
        case _, t.Text() if not same:
            return Cast(_text(value, source))
        case _, t.Integer() | t.Bigint() if not same:
            return _whole(value, source, type_)
        case _, t.Decimal() if not same:
            return _decimal(value, source, type_)
        case _, t.Double() if not same:
            return _double(value, source)
        case _:
            return Cast(value)


def _valid_text(value: Column | None) -> tuple[Column | None, str]:
    """A cast of bytes makes a text of anything, and one row of that kind would abort the whole COPY."""
    if value is None:
        return None, ""
    return F.is_valid_utf8(value) & ~F.contains(value, F.lit("\0")), NUL


def _array(value: Column, source: t.Array, type_: t.Array) -> Cast:
    inner = checked_cast(F.lit(None).cast(to_spark(source.element)), source.element, type_.element)
    made = F.transform(value, lambda v: checked_cast(v, source.element, type_.element).value)
    whole = value if t.plain(source.element) == t.plain(type_.element) else made
    nullable = type_.element_nullable or not source.element_nullable
    if inner.fits is None and nullable:
        return Cast(whole)
    fits = F.forall(value, lambda v: _part_fits(v, source.element, type_.element, nullable=nullable))
    return Cast(whole, fits, ELEMENT)


def _map(value: Column, source: t.Map, type_: t.Map) -> Cast:
    made = F.transform_values(value, lambda _, v: checked_cast(v, source.value, type_.value).value)
    nullable = type_.value_nullable or not source.value_nullable
    fits = F.forall(F.map_values(value), lambda v: _part_fits(v, source.value, type_.value, nullable=nullable))
    return Cast(made, fits, ELEMENT)


def _record(value: Column, source: t.Record, type_: t.Record) -> Cast:
    """A record by the names of its fields, as it is inside of lists and maps."""
    made: list[Column] = []
    all_fit = F.lit(True)
    for field in type_.fields:
        held, inner = source.field(field.name), value.getField(field.name)
        assert held is not None, "the planner refuses a record without the field"
        made.append(checked_cast(inner, held.type, field.type).value.alias(field.name))
        all_fit = all_fit & _part_fits(inner, held.type, field.type, nullable=field.nullable or not held.nullable)
    return Cast(F.when(value.isNotNull(), F.struct(*made)), all_fit, ELEMENT)


def _part_fits(value: Column, source: t.Type, type_: t.Type, *, nullable: bool) -> Column:
    """Whether an element, a value of a map or a field fits. Never NULL."""
    fits = checked_cast(value, source, type_).fits
    known = F.lit(True) if fits is None else F.coalesce(fits, F.lit(False))
    return value.isNull() | known if nullable else value.isNotNull() & known


def _text(value: Column, source: t.Type) -> Column:
    """The text that the value has in JSON, without quotes."""
    match source:
        case t.Integer() | t.Bigint() | t.Boolean() | t.Decimal() | t.Date() | t.Time():
            return value.cast("string")
        case t.Timestamp() | t.TimestampTz():
            quoted = json_text(value, source)
            return F.substring(quoted, F.lit(2), F.length(quoted) - 2)
        case _:
            return json_text(value, source)


def _whole(value: Column, source: t.Type, type_: t.Integer | t.Bigint) -> Cast:
    spark = to_spark(type_)
    if isinstance(source, t.Integer):
        return Cast(value.cast(spark))
    made = value.try_cast(spark)
    if isinstance(source, t.Bigint):
        return Cast(made, made.isNotNull(), RANGE)
    limit = _WHOLE[type(type_)]
    if isinstance(source, t.Decimal):
        return Cast(made, made.isNotNull() & (value % F.lit(1) == F.lit(0)), FRACTION)
    # NaN and infinity have no remainder. The upper bound is a power of two, which is exact in a double.
    number = value.cast("double")
    fits = (number % F.lit(1.0) == F.lit(0.0)) & (number >= F.lit(float(-limit))) & (number < F.lit(float(limit)))
    return Cast(made, fits, FRACTION)


def _decimal(value: Column, source: t.Type, type_: t.Decimal) -> Cast:
    """Exactly, or not at all. A double goes through its shortest text, which is the number that was meant."""
    spark = to_spark(type_)
    if isinstance(source, t.Real | t.Double):
        made = value.cast("string").try_cast(spark)
        back = made.try_cast(to_spark(source))
    else:
        made = value.try_cast(spark)
        back = made.try_cast(to_spark(source))
    return Cast(made, F.coalesce(back == value, F.lit(False)), DIGITS)


def _double(value: Column, source: t.Type) -> Cast:
    """A decimal becomes the nearest double. A whole number must be exact: nobody expects another one."""
    made = value.cast("double")
    if isinstance(source, t.Bigint):
        # The way back is not enough: 2^63 comes back as the largest bigint, which is one less.
        exact = (made < F.lit(2.0**63)) & (made.try_cast("bigint") == value)
        return Cast(made, F.coalesce(exact, F.lit(False)), NOT_EXACT)
    return Cast(made)
