"""Types that hold the values of two types: the smallest one (`widen`), and the one that a reader has after a change.

`widen` is a lattice. Numbers widen to numbers, every scalar widens to text, everything widens to json:

    integer -> bigint -> decimal        integer, real -> double        decimal -> wider decimal -> text -> json

It is idempotent, associative and commutative, except for the order of a record's fields, which is that of the first. So
the types of many documents can be joined in any order and in any parts. `formats/jsonschema/read.join` is another
lattice on purpose: there, text and integer give json, because the alternatives of a schema must stay apart.

`merge` is what a reader does under ON SCHEMA CHANGE = FOLLOW. New fields are added at the end, nullable unless they
have a default. Numbers widen. Columns become nullable. A removed field keeps its column, which has the field's default
from then on, or becomes nullable. Every other change leaves the column as it was: its verdict is BREAKING, and tasks
that use the column halt until the change is accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headgate.schema import types as t

Number = t.Integer | t.Bigint | t.Real | t.Double | t.Decimal

# Digits that a number needs as a decimal, before and after the point. A double may have more of both. Its column is the
# widest that still has room for a bigint; a value that does not fit is refused when it is read, not rounded.
_DIGITS: dict[type, tuple[int, int]] = {t.Integer: (10, 0), t.Bigint: (19, 0), t.Real: (20, 18), t.Double: (20, 18)}


def widen(a: t.Type, b: t.Type, *, exact: bool = False) -> t.Type:
    """The least upper bound of two types. Full names and docs are kept if both have the same.

    `exact` says that every value seen in a bigint is exact in a double. Then the bound of both is double, otherwise
    decimal. A named type equals only itself: resolve names first, otherwise its bound with another type is json.
    """
    if a == b:
        return a
    if isinstance(a, Number) and isinstance(b, Number):
        return _widened_number(a, b, exact)
    match a, b:
        case t.Array(), t.Array():
            return t.Array(widen(a.element, b.element, exact=exact), a.element_nullable or b.element_nullable)
        case t.Map(), t.Map():
            return t.Map(widen(a.value, b.value, exact=exact), a.value_nullable or b.value_nullable)
        case t.Record(), t.Record():
            return _widened_record(a, b, exact)
        case t.Enum(), t.Enum():
            return _widened_enum(a, b)
        case t.Bytes(), t.Bytes():
            return t.Bytes()
        case _:
            return t.Json() if _beyond_text(a) or _beyond_text(b) else t.Text()


def is_number(type_: t.Type) -> bool:
    """Whether the type is one of those that widen among each other."""
    return isinstance(type_, Number)


def _beyond_text(type_: t.Type) -> bool:
    """Whether the bound of this type with another one is json: text could not hold its structure."""
    return isinstance(type_, t.Json | t.Array | t.Map | t.Record | t.Named)


def _widened_number(a: Number, b: Number, exact: bool) -> t.Type:
    """The bound of two numbers."""
    if isinstance(a, t.Decimal) or isinstance(b, t.Decimal):
        return _widened_decimal(a, b)
    kinds = {type(a), type(b)}
    if kinds == {t.Integer, t.Bigint}:
        return t.Bigint()
    if t.Bigint in kinds and not exact:
        return _widened_decimal(a, b)
    return t.Double()


def _widened_decimal(a: Number, b: Number) -> t.Type:
    """A decimal with room for the digits of both; text if it would have too many."""
    (whole_a, scale_a), (whole_b, scale_b) = _digits(a), _digits(b)
    whole, scale = max(whole_a, whole_b), max(scale_a, scale_b)
    return t.Decimal(whole + scale, scale) if whole + scale <= t.MAX_PRECISION else t.Text()


def _digits(number: Number) -> tuple[int, int]:
    """The digits that a number needs before and after the point."""
    if isinstance(number, t.Decimal):
        return number.precision - number.scale, number.scale
    return _DIGITS[type(number)]


def _widened_enum(a: t.Enum, b: t.Enum) -> t.Type:
    """The bound of two enums: an enum if both have the same symbols, otherwise text."""
    if set(a.symbols) != set(b.symbols):
        return t.Text()
    symbols = a.symbols if a.symbols == b.symbols else tuple(sorted(a.symbols))
    return t.Enum(symbols, _agreed(a.name, b.name), _agreed(a.default, b.default), _agreed(a.doc, b.doc))


def _widened_record(a: t.Record, b: t.Record, exact: bool) -> t.Type:
    """All fields of both, those of the first in front. A field that only one of them has becomes nullable."""
    theirs = {field.name: field for field in b.fields}
    ours = {field.name for field in a.fields}
    fields = [_widened_field(field, theirs.get(field.name), exact) for field in a.fields]
    fields += [_widened_field(field, None, exact) for field in b.fields if field.name not in ours]
    return t.Record(tuple(fields), _agreed(a.name, b.name), _agreed(a.doc, b.doc))


def _widened_field(field: t.Field, other: t.Field | None, exact: bool) -> t.Field:
    if other is None:
        return t.Field(field.name, field.type, True, field.doc)
    type_ = widen(field.type, other.type, exact=exact)
    return t.Field(field.name, type_, field.nullable or other.nullable, _agreed(field.doc, other.doc))


def _agreed(a: str | None, b: str | None) -> str | None:
    return a if a == b else None


def merge(old: t.Record, new: t.Record, *, accept: bool = False) -> t.Record:
    """The old schema with those changes that FOLLOW adopts. Every old field keeps its name, position and doc.

    With `accept`, all changes are adopted: a field whose type FOLLOW would not change becomes text or json.
    """
    arriving = {field.name: field for field in new.fields}
    known = {field.name for field in old.fields}
    fields = [_field(field, arriving.get(field.name), accept) for field in old.fields]
    fields += [_absent_before(field) for field in new.fields if field.name not in known]
    return replace(old, fields=tuple(fields))


def merge_fields(known: t.Field, arriving: t.Field, *, accept: bool = False) -> t.Field:
    """As `merge`, for one field. The known field keeps its name, whatever the arriving one is called."""
    return merge(t.Record((known,)), t.Record((replace(arriving, name=known.name),)), accept=accept).fields[0]


def with_past(present: t.Field, past: Sequence[t.Field]) -> t.Field:
    """A schema as it reads records of earlier versions too, given oldest first.

    A field has the default of the oldest version that has it. If there is none, the field is nullable as soon as a
    version lacks it. Only the fields of the present schema count. A version in which a field has a type that could not
    have been followed to the present one says nothing about the field: its records cannot be read.
    """
    nullable = present.nullable or any(one.nullable for one in past)
    return replace(present, type=_past_type(present.type, [one.type for one in past]), nullable=nullable)


def _past_type(type_: t.Type, past: Sequence[t.Type]) -> t.Type:
    """A type as it reads values of earlier versions too. Only its nullability and its numbers can differ."""
    match type_:
        case t.Record():
            records = [{f.name: f for f in one.fields} for one in past if isinstance(one, t.Record)]
            return replace(type_, fields=tuple(_past_field(f, [r.get(f.name) for r in records]) for f in type_.fields))
        case t.Array():
            arrays = [one for one in past if isinstance(one, t.Array)]
            nullable = type_.element_nullable or any(one.element_nullable for one in arrays)
            return t.Array(_past_type(type_.element, [one.element for one in arrays]), nullable)
        case t.Map():
            maps = [one for one in past if isinstance(one, t.Map)]
            nullable = type_.value_nullable or any(one.value_nullable for one in maps)
            return t.Map(_past_type(type_.value, [one.value for one in maps]), nullable)
        case _:
            known: t.Type = type_
            for one in past:
                known = _type(known, one, accept=False)
            return known


def _past_field(field: t.Field, versions: Sequence[t.Field | None]) -> t.Field:
    """A field as it reads records of earlier versions. None stands for a version that lacks the field."""
    having = [one for one in versions if one is not None and _fits(field.type, one.type)]
    made = with_past(field, having)
    default = having[0].default if having else field.default
    lacking = None in versions
    return replace(made, default=default, nullable=made.nullable or (lacking and default is None))


def _fits(present: t.Type, past: t.Type) -> bool:
    """Whether values of a past type can be read as values of the present one, after numbers have widened."""
    match present, past:
        case t.Record(), t.Record():
            return True  # each field is looked at by itself
        case t.Array(), t.Array():
            return _fits(present.element, past.element)
        case t.Map(), t.Map():
            return _fits(present.value, past.value)
        case _:
            return can_hold(_type(present, past, accept=False), past)


def _absent_before(field: t.Field) -> t.Field:
    """A field that earlier records lack. Those have its default."""
    return replace(field, nullable=field.nullable or field.default is None)


def _field(old: t.Field, new: t.Field | None, accept: bool) -> t.Field:
    """A field after a change; None stands for a schema that no longer has it."""
    if new is None:
        return _absent_before(old)
    type_ = _type(old.type, new.type, accept)
    return replace(old, type=type_, nullable=old.nullable or new.nullable)


def _type(old: t.Type, new: t.Type, accept: bool) -> t.Type:
    """A type after a change. Without `accept` only numbers widen."""
    match old, new:
        case t.Record(), t.Record():
            return merge(old, new, accept=accept)
        case t.Array(), t.Array():
            element = _type(old.element, new.element, accept)
            return t.Array(element, old.element_nullable or new.element_nullable)
        case t.Map(), t.Map():
            return t.Map(_type(old.value, new.value, accept), old.value_nullable or new.value_nullable)
        case _:
            bound = widen(old, new)
            return bound if accept or (is_number(old) and is_number(bound)) else old


def can_hold(want: t.Type, have: t.Type) -> bool:
    """Whether every value of the type `have` can be read as a value of `want`. After a merge this holds for the
    merged type."""
    match want, have:
        case t.Record(), t.Record():
            wanted = {field.name: field for field in want.fields}
            return all(f.name in wanted and can_hold(wanted[f.name].type, f.type) for f in have.fields)
        case t.Array(), t.Array():
            return can_hold(want.element, have.element)
        case t.Map(), t.Map():
            return can_hold(want.value, have.value)
        case t.Enum(), t.Enum():
            return set(have.symbols) <= set(want.symbols)
        case _:
            return want == have or (is_number(want) and is_number(have) and widen(want, have) == want)
