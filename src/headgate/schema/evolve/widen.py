"""The smallest type that holds the values of two types.

Numbers widen to numbers, every scalar widens to text, everything widens to json:

    integer -> bigint -> decimal        integer, real -> double        decimal -> wider decimal -> text -> json

The operation is idempotent, associative and commutative, except for the order of a record's fields, which is that of
the first. So the types of many documents can be joined in any order and in any parts. `formats/jsonschema/read.join`
is another lattice on purpose: there, text and integer give json, because the alternatives of a schema must stay
apart.
"""

from __future__ import annotations

from headgate.schema import types as t

Number = t.Integer | t.Bigint | t.Real | t.Double | t.Decimal

# Digits that a number needs as a decimal, before and after the point. A double may have more of both. Its column is the
# widest that still has room for a bigint; a value that does not fit is refused when it is read, not rounded.
_DIGITS: dict[type, tuple[int, int]] = {
    t.Integer: (10, 0),
    t.Bigint: (19, 0),
    t.Real: (20, 18),
    t.Double: (20, 18),
}


def widen(a: t.Type, b: t.Type, *, exact: bool = False) -> t.Type:
    """The least upper bound of two types. Full names and docs are kept if both have the same.

    `exact` says that every value seen in a bigint is exact in a double. Then the bound of both is double, otherwise
    decimal. A named type equals only itself: resolve names first, otherwise its bound with another type is json.
    """
    if a == b:
        return a
    if isinstance(a, Number) and isinstance(b, Number):
        return _number(a, b, exact)
    match a, b:
        case t.Array(), t.Array():
            return t.Array(widen(a.element, b.element, exact=exact), a.element_nullable or b.element_nullable)
        case t.Map(), t.Map():
            return t.Map(widen(a.value, b.value, exact=exact), a.value_nullable or b.value_nullable)
        case t.Record(), t.Record():
            return _record(a, b, exact)
        case t.Enum(), t.Enum():
            return _enum(a, b)
        case t.Bytes(), t.Bytes():
            return t.Bytes()
        case _:
            return t.Json() if _beyond_text(a) or _beyond_text(b) else t.Text()


def is_number(type_: t.Type) -> bool:
    return isinstance(type_, Number)


def _beyond_text(type_: t.Type) -> bool:
    return isinstance(type_, t.Json | t.Array | t.Map | t.Record | t.Named)


def _number(a: Number, b: Number, exact: bool) -> t.Type:
    if isinstance(a, t.Decimal) or isinstance(b, t.Decimal):
        return _decimal(a, b)
    kinds = {type(a), type(b)}
    if kinds == {t.Integer, t.Bigint}:
        return t.Bigint()
    if t.Bigint in kinds and not exact:
        return _decimal(a, b)
    return t.Double()


def _decimal(a: Number, b: Number) -> t.Type:
    (whole_a, scale_a), (whole_b, scale_b) = _digits(a), _digits(b)
    whole, scale = max(whole_a, whole_b), max(scale_a, scale_b)
    return t.Decimal(whole + scale, scale) if whole + scale <= t.MAX_PRECISION else t.Text()


def _digits(number: Number) -> tuple[int, int]:
    if isinstance(number, t.Decimal):
        return number.precision - number.scale, number.scale
    return _DIGITS[type(number)]


def _enum(a: t.Enum, b: t.Enum) -> t.Type:
    if set(a.symbols) != set(b.symbols):
        return t.Text()
    symbols = a.symbols if a.symbols == b.symbols else tuple(sorted(a.symbols))
    return t.Enum(symbols, _agreed(a.name, b.name), _agreed(a.default, b.default), _agreed(a.doc, b.doc))


def _record(a: t.Record, b: t.Record, exact: bool) -> t.Type:
    """All fields of both, those of the first in front. A field that only one of them has becomes nullable."""
    theirs = {field.name: field for field in b.fields}
    ours = {field.name for field in a.fields}
    fields = [_field(field, theirs.get(field.name), exact) for field in a.fields]
    fields += [_field(field, None, exact) for field in b.fields if field.name not in ours]
    return t.Record(tuple(fields), _agreed(a.name, b.name), _agreed(a.doc, b.doc))


def _field(field: t.Field, other: t.Field | None, exact: bool) -> t.Field:
    if other is None:
        return t.Field(field.name, field.type, True, field.doc)
    type_ = widen(field.type, other.type, exact=exact)
    return t.Field(field.name, type_, field.nullable or other.nullable, _agreed(field.doc, other.doc))


def _agreed(a: str | None, b: str | None) -> str | None:
    return a if a == b else None
