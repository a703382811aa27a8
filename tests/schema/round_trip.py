"""What a type lost on its way through a format and back, in the words of ROUND_TRIP_LOSSES."""

from __future__ import annotations

from dataclasses import replace

from headgate.schema.parse import parse_type
from headgate.schema.render import print_type
from headgate.schema.types import Array, Bytes, Decimal, Enum, Map, Record, Type
from tools.type_losses import ROUND_TRIP_LOSSES

Lost = set[tuple[str, str]]

# One of each kind in each position that matters, so that a declared loss that never happens is found.
EVERY_KIND: tuple[Type, ...] = tuple(
    parse_type(text)
    for text in """
    boolean; integer; bigint; real; double; decimal(9,2); decimal(38,18); text; bytes; bytes(16); date; time; timestamp
    timestamptz; uuid; json; enum('a', 'b'); enum "x.E" default 'a' comment 'd' ('a', 'b'); array<integer>
    array<integer not null>; array<array<text>>; array<map<text, date>>; array<record(a text)>; array<uuid>
    map<text, integer>; map<text, integer not null>; map<text, map<text, text>>; map<text, record(a text)>
    map<text, json>; map<text, array<integer>>; record(a text not null, b record(c bigint comment 'x'))
    record "x.R" comment 'd' (a text); record(); array<enum('a')>; map<text, timestamp>; array<json>; record(a enum comment 'd' ('a'))
    record(a enum comment 'd' ('a') comment 'e', b record comment 'd' (c text) comment 'e')
    """.replace("\n", ";").split(";")
    if text.strip()
)


def kind(type_: Type) -> str:
    """The word for a type without its arguments."""
    match type_:
        case Bytes(length):
            return "bytes" if length is None else "bytes(n)"
        case Decimal():
            return "decimal"
        case Enum():
            return "enum"
        case Array():
            return "array"
        case Map():
            return "map"
        case Record():
            return "record"
        case _:
            return print_type(type_)


def lost(was: Type, became: Type) -> Lost:
    """Every difference, by kind, at any depth; below a place that became another type nothing more is said."""
    match was, became:
        case Record(), Record() if [f.name for f in was.fields] == [f.name for f in became.fields]:
            inner = _about(was, became)
            for old, new in zip(was.fields, became.fields, strict=True):
                inner |= _place(old.type, old.nullable, new.type, new.nullable)
                inner |= _doc(old.doc, new.doc)
            return inner
        case Array(), Array():
            return _place(was.element, was.element_nullable, became.element, became.element_nullable)
        case Map(), Map():
            return _place(was.value, was.value_nullable, became.value, became.value_nullable)
        case Enum(), Enum() if was.symbols == became.symbols:
            default = {("default of an enum", "nothing")} if was.default != became.default else set()
            return _about(was, became) | default
        case _:
            return set() if was == became else {(kind(was), kind(became))}


def without_arrays(type_: Type) -> Type:
    """The type as a format holds it whose every field may have several values."""
    match type_:
        case Array(element):
            return without_arrays(element)
        case Map():
            return replace(type_, value=without_arrays(type_.value))
        case Record():
            fields = tuple(replace(field, type=without_arrays(field.type)) for field in type_.fields)
            return replace(type_, fields=fields)
        case _:
            return type_


def _about(was: Record | Enum, became: Record | Enum) -> Lost:
    found = {("name of a type", "nothing")} if was.name != became.name else set()
    return found | ({("doc of a type", "nothing")} if was.doc != became.doc else set())


def _doc(was: str | None, became: str | None) -> Lost:
    if was == became:
        return set()
    return {("doc of a field", "nothing")} if was is not None else {("doc of a type", "doc of its field")}


def _place(was: Type, was_nullable: bool, became: Type, became_nullable: bool) -> Lost:
    nullability = {("not null", "null")} if not was_nullable and became_nullable else set()
    assert was_nullable <= became_nullable, "a place that could be null cannot be any more"
    return nullability | lost(was, became)


def declared(format_: str) -> Lost:
    return {(loss.type, loss.becomes) for loss in ROUND_TRIP_LOSSES[format_]}
