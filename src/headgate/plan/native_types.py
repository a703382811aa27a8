"""Types in PostgreSQL's own words, after AS: which fields may have which. Pure.

A value goes to a native type as its text, and the database reads the text. It often takes a text for less than it says: a day out of a
moment, a number without its last digits, a moment without its zone. What can be known beforehand is refused here, and texts
that must have one form are checked row by row (`text_form`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from headgate.errors import HeadgateError
from headgate.plan import materialization_errors as errors
from headgate.plan.materialized_fields import refused_cast
from headgate.plan.target_definitions import TargetField, record_of
from headgate.schema import types as t
from headgate.schema.errors import SchemaError
from headgate.schema.formats.postgres import from_postgres
from headgate.schema.render import print_type

# A name of a type, perhaps with a schema, its arguments and brackets. Nothing else gets into DDL.
_NATIVE = re.compile(
    r"""(?P<name>(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*)(?:(?:\.|\ )(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*))*)"""
    r"""\s*(?P<arguments>\(\s*\d+(?:\s*,\s*\d+)?\s*\))?(?P<zone>\s+with(?:out)?\s+time\s+zone)?\s*(?P<array>(?:\[\])?)\Z""",
    re.I,
)
_SERIAL = {"serial", "bigserial", "smallserial", "serial2", "serial4", "serial8"}
# Types whose arguments refuse what does not fit. A time or a bit string is rounded or cut in silence.
_LIMITED = {"numeric", "decimal", "varchar", "character varying", "char", "character", "bpchar"}
_CUTS = {"name", '"char"'}
_SAME_TEXTS = {"char", "character", "bpchar", "citext"}  # equal but for spaces at the end, or for capitals
_TIME_WITH_ZONE = ("timetz", "time with time zone")
_WORDS = t.Text | t.Enum
_NUMBERS = t.Integer | t.Bigint | t.Real | t.Double | t.Decimal

# What a text must look like, so that the database reads all of it: ISO 8601, with at most six digits of a second. It would also take
# "now", and a day of any order, and leave out what its type has no place for.
_DAY = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"\d{2}:\d{2}:[0-5]\d(?:\.\d{1,6}0*)?"
_ZONE = r"(?:[Zz]|[+-]\d{2}:\d{2})"
_FORMS: dict[type, str] = {
    t.Date: _DAY,
    t.Time: _CLOCK,
    t.Timestamp: f"{_DAY}[Tt ]{_CLOCK}",
    t.TimestampTz: f"{_DAY}[Tt ]{_CLOCK}{_ZONE}",
}
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # others are read as the same value, which a key must not be


@dataclass(frozen=True, slots=True)
class _Native:
    """A type after AS. ``known`` is our own type of that name, if there is one; that of an array is an array."""

    name: str  # in lower case
    arguments: str | None
    known: t.Type | None


def with_natives(materialization: str, field: TargetField) -> TargetField:
    """The field, whose leaves have their native types as they go into DDL."""
    if field.fields:
        inner = tuple(with_natives(materialization, one) for one in field.fields)
        return replace(field, fields=inner, type=record_of(inner))
    return field if field.native is None else with_native(materialization, field, field.native)


def with_native(materialization: str, field: TargetField, native: str) -> TargetField:
    """The field with its native type as it goes into DDL, and with the type that its values are checked for."""

    def refuse(reason: str, cure: str = "") -> errors.NativeTypeRefused:
        return errors.NativeTypeRefused(materialization, field.name, native, reason, cure)

    text = " ".join(native.split())
    found = _read(text)
    if found is None:
        raise refuse("it is not the name of a type")
    if found.name in _SERIAL:
        raise refuse("a sequence would fill it", "Write bigint or integer.")
    if found.arguments is not None and found.name not in _LIMITED:
        raise refuse("values would be rounded or cut in silence", "Leave the number in parentheses out.")
    return replace(field, native=text, type=_checked_type(field.type, found, found.known, refuse))


def _read(text: str) -> _Native | None:
    """The parts of a type's name, whose words have single spaces between them."""
    parts = _NATIVE.match(text)
    if parts is None:
        return None
    try:
        known = from_postgres(text)
    except SchemaError:
        known = None
    name = f"{parts['name']}{parts['zone'] or ''}".lower().removeprefix("pg_catalog.")
    return _Native(name, parts["arguments"], known)


def _checked_type(type_: t.Type, native: _Native, known: t.Type | None, refuse: Callable[..., HeadgateError]) -> t.Type:
    """The type that values are checked for before the database reads their texts."""
    if isinstance(type_, t.Array):
        inner = known.element if isinstance(known, t.Array) else known
        return replace(type_, element=_checked_type(type_.element, native, inner, refuse))
    _refuse_loss(type_, native, known, refuse)
    match known:
        case t.Decimal() if isinstance(type_, _NUMBERS):
            # The database would round; a decimal of this scale is checked before.
            return known if native.arguments is not None else type_
        case t.Integer() | t.Bigint() | t.Real() | t.Double() if not isinstance(type_, _WORDS):
            # The database checks the range of smallint.
            if refused := refused_cast(type_, known):
                raise refuse(refused.reason[:1].lower() + refused.reason[1:].removesuffix("."), refused.cure)
            return known
        case _:
            return type_


def _refuse_loss(type_: t.Type, native: _Native, known: t.Type | None, refuse: Callable[..., HeadgateError]) -> None:
    """Raise if the database would take values and keep less of them."""
    words = print_type(t.plain(type_))
    if isinstance(known, t.Boolean) and not isinstance(type_, t.Boolean):
        raise refuse(f"a {words} is no boolean")
    if native.name in _CUTS and not isinstance(type_, t.Boolean):
        raise refuse("texts would be cut in silence", "Write text or varchar.")
    if native.name == "money" and not isinstance(type_, t.Integer | t.Bigint):
        raise refuse("numbers would be rounded in silence", "Write numeric.")
    if native.name in ("numeric", "decimal") and native.arguments is not None:
        if known is None:
            raise refuse(
                f"a number of more than {t.MAX_PRECISION} digits would be rounded in silence", "Write numeric."
            )
        if isinstance(type_, _WORDS):
            raise refuse("numbers would be rounded in silence", "Write numeric, which keeps every digit.")
    if isinstance(known, t.Real) and not isinstance(type_, t.Real):
        raise refuse("most numbers would lose digits", "Write double precision.")
    if lost := _lost_part(type_, native, known):
        raise refuse(f"the {lost} of a {words} would be left out", "Cast it in a view.")


def _lost_part(type_: t.Type, native: _Native, known: t.Type | None) -> str | None:
    """What a moment loses when the database reads its text as another type."""
    if not isinstance(type_, t.Timestamp | t.TimestampTz):
        return None
    if isinstance(known, t.Date):
        return "time"
    if isinstance(known, t.Time) or native.name in _TIME_WITH_ZONE:
        return "day"
    return "time zone" if isinstance(known, t.Timestamp) and isinstance(type_, t.TimestampTz) else None


def text_form(field: TargetField) -> str | None:
    """The pattern that each text of a field must match as a whole, so that its native type keeps all of it; None for any text."""
    type_ = field.type.element if isinstance(field.type, t.Array) else field.type
    native = None if field.native is None else _read(field.native)
    if native is None or not isinstance(type_, _WORDS):
        return None
    if native.name in _TIME_WITH_ZONE:
        return _CLOCK + _ZONE
    known = native.known.element if isinstance(native.known, t.Array) else native.known
    return _UUID if field.key and isinstance(known, t.Uuid) else _FORMS.get(type(known))


def joins_values(type_: t.Type, native: str) -> bool:
    """Whether two values of a type may become equal as values of a native type, as `1` and `1.0` do as numbers."""
    found = _read(native)
    known = None if found is None else found.known
    if found is None or found.name in _SAME_TEXTS:
        return True
    if isinstance(type_, _WORDS):
        return not isinstance(known, t.Text | t.Uuid)
    same = type(known) is type(type_)
    return not (same or isinstance(known, t.Text) or (isinstance(known, _NUMBERS) and isinstance(type_, _NUMBERS)))
