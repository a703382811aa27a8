"""What can be wrong with a value that is to be written: conditions over columns, each with its path and reason.

A format brings a rule for each place of a type: which values of just this place it cannot hold. The walk through records,
arrays and maps is the same for all formats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import Column, functions as F

from headgate.schema.formats.spark import to_spark
from headgate.schema.names import ROOT, element_path, field_path, value_path
from headgate.schema.render import spark_identifier
from headgate.schema.types import (
    Array,
    Bytes,
    Date,
    Decimal,
    Double,
    Enum,
    Field,
    Json,
    Map,
    Real,
    Record,
    Text,
    Timestamp,
    TimestampTz,
    Type,
    Uuid,
)

MISSING = "it is null, and its schema has no null there"
NO_SYMBOL = "it is none of the symbols of its schema"
NOT_FINITE = "JSON has no number that is not finite"
NOT_JSON = "it is not valid JSON"
JSON_NULL = "it is JSON's null, and its schema has no null there"
NOT_UTF8 = "it is not valid UTF-8"
NOT_UUID = "it is not a uuid"
OTHER_LENGTH = "it has another length than its schema says"
OUT_OF_YEARS = "its year is not one of 1 to 9999"
TOO_MANY_DIGITS = "it has more digits than its schema says"
NULL_ELEMENT = "a list or map of Protobuf cannot hold a null"

_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


@dataclass(frozen=True, slots=True)
class Check:
    """The condition under which a value cannot be written, as a function of the value. Never NULL."""

    fails: Callable[[Column], Column]
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a type. ``inside`` says that it is an element of an array or a value of a map."""

    type: Type
    nullable: bool
    path: str
    inside: bool = False


Problem: TypeAlias = tuple[Callable[[Column], Column], str]
"""A condition over a value, which may be NULL for NULL, and the reason."""

Rule: TypeAlias = Callable[[Place], Iterator[Problem]]
"""What a format cannot hold at a place, without what is inside of it."""


def field_checks(field: Field, rule: Rule) -> Iterator[Check]:
    """The checks of a column and of all its parts, outer ones first."""
    return _checks(Place(field.type, field.nullable, field_path(ROOT, field.name)), rule)


def passes_in_sql(field: Field, check: Check) -> str | None:
    """The condition that a column passes a check of the column itself, as SQL; None for the checks that few columns have."""
    column = spark_identifier(field.name)
    if check.path != field_path(ROOT, field.name):
        return None
    match check.reason, field.type:
        case (reason, _) if reason == MISSING:
            return f"{column} IS NOT NULL"
        case (reason, Text()) if reason == NOT_UTF8:
            return f"coalesce(is_valid_utf8({column}), true)"
        case (reason, Real() | Double()) if reason == NOT_FINITE:
            return f"coalesce(NOT isnan({column}) AND abs({column}) <> double('Infinity'), true)"
        case _:
            return None


def _checks(place: Place, rule: Rule) -> Iterator[Check]:
    for problem, reason in rule(place):
        yield Check(_never_null(problem), place.path, reason)
    match place.type:
        case Record(fields):
            for field in fields:
                inner = Place(field.type, field.nullable, field_path(place.path, field.name))
                yield from (_in_field(field.name, check) for check in _checks(inner, rule))
        case Array(element, nullable):
            inner = Place(element, nullable, element_path(place.path), inside=True)
            yield from (_in_elements(lambda value: value, check) for check in _checks(inner, rule))
        case Map(value, nullable):
            inner = Place(value, nullable, value_path(place.path), inside=True)
            yield from (_in_elements(F.map_values, check) for check in _checks(inner, rule))
            yield from (_in_elements(F.map_keys, check) for check in _checks(Place(Text(), True, place.path), rule))
        case _:
            return


def _never_null(problem: Callable[[Column], Column]) -> Callable[[Column], Column]:
    return lambda value: F.coalesce(problem(value), F.lit(False))


def _in_field(name: str, check: Check) -> Check:
    def fails(value: Column) -> Column:
        return value.isNotNull() & check.fails(value.getField(name))

    return Check(fails, check.path, check.reason)


def _in_elements(elements: Callable[[Column], Column], check: Check) -> Check:
    def fails(value: Column) -> Column:
        return F.coalesce(F.exists(elements(value), check.fails), F.lit(False))

    return Check(fails, check.path, check.reason)


# rules


def avro_rule(place: Place) -> Iterator[Problem]:
    yield from _missing(place)
    yield from _texts(place)
    match place.type:
        case Enum(symbols):
            yield (lambda value: ~value.isin(list(symbols))), NO_SYMBOL
        case Bytes(int(length)):
            yield (lambda value: F.length(value) != length), OTHER_LENGTH
        case Decimal():
            yield _digits(place.type)


def json_rule(place: Place) -> Iterator[Problem]:
    """JSON without a schema."""
    yield from document_rule(place)
    if isinstance(place.type, Json):
        yield (lambda value: value.isNotNull() & F.try_parse_json(value).isNull()), NOT_JSON


def document_rule(place: Place) -> Iterator[Problem]:
    """What the JSON text of a value would not hold as it is: Spark writes a number that is not finite as a text, and puts another
    character in the place of bytes that are no text."""
    yield from _texts(place)
    yield from finite_rule(place)


def finite_rule(place: Place) -> Iterator[Problem]:
    """Numbers of JSON."""
    if isinstance(place.type, Real | Double):
        yield (lambda value: F.isnan(value) | (F.abs(value) == float("inf"))), NOT_FINITE


def json_schema_rule(place: Place) -> Iterator[Problem]:
    yield from _missing(place)
    yield from json_rule(place)
    match place.type:
        case Json() if not place.nullable:
            yield (lambda value: F.trim(value) == _JSON_NULL), JSON_NULL
        case _:
            yield from _schema_values(place)


def protobuf_rule(place: Place) -> Iterator[Problem]:
    """A null array or map is written as an empty one, which docs/types.md declares."""
    if place.inside and not isinstance(place.type, Json):
        yield (lambda value: value.isNull()), NULL_ELEMENT
    else:
        yield from _missing(place)
    yield from _texts(place)
    match place.type:
        case Json():
            yield (lambda value: value.isNotNull() & F.try_parse_json(value).isNull()), NOT_JSON
        case _:
            yield from _schema_values(place)


def text_rule(place: Place) -> Iterator[Problem]:
    """TEXT: a null would be no record."""
    yield from _missing(place)
    yield from _texts(place)
    if isinstance(place.type, Bytes):
        yield (lambda value: ~F.is_valid_utf8(value.cast("string"))), NOT_UTF8


def delimited_rule(place: Place) -> Iterator[Problem]:
    """A field of delimited text may be null."""
    yield from _texts(place)
    if isinstance(place.type, Date | Timestamp | TimestampTz):
        yield (lambda value: ~F.year(value).between(1, 9999)), OUT_OF_YEARS


def bytes_rule(place: Place) -> Iterator[Problem]:
    """BYTES: a null would be no record."""
    yield from _missing(place)


_JSON_NULL = "null"


def _missing(place: Place) -> Iterator[Problem]:
    if not place.nullable:
        yield (lambda value: value.isNull()), MISSING


def _texts(place: Place) -> Iterator[Problem]:
    """A cast of bytes to text does not check them."""
    if isinstance(place.type, Text):
        yield (lambda value: ~F.is_valid_utf8(value)), NOT_UTF8
    elif isinstance(place.type, Uuid):
        yield (lambda value: ~value.rlike(_UUID)), NOT_UUID


def _schema_values(place: Place) -> Iterator[Problem]:
    """What schemas with text forms or messages for these types cannot hold."""
    match place.type:
        case Enum(symbols):
            yield (lambda value: ~value.isin(list(symbols))), NO_SYMBOL
        case Date() | Timestamp() | TimestampTz():
            yield (lambda value: ~F.year(value).between(1, 9999)), OUT_OF_YEARS
        case Decimal():
            yield _digits(place.type)


def _digits(type_: Decimal) -> Problem:
    """Spark removes the cast, and with it the check, where the column has this very type."""
    kept = to_spark(type_)
    return (lambda value: ~value.try_cast(kept).eqNullSafe(value)), TOO_MANY_DIGITS
