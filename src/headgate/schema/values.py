"""The canonical Python value of each type, and how it is written as JSON and as text;
and checked casts, of parsed JSON values to a type and of values of a type to a wider type.

boolean is bool; integer and bigint are int; real and double are float; decimal is decimal.Decimal with exactly its
scale; text and enum are str; json is str (the JSON text); bytes is bytes; date and time are datetime.date and
datetime.time; timestamp is datetime without zone; timestamptz is datetime in UTC; uuid is uuid.UUID; array is list;
map and record are dict. Null is None, where the type allows it.

No cast fails silently, and none rounds, except that a decimal number becomes the nearest binary one. A value that does
not fit raises ValueDoesNotFit with its path, the expected type and the kind of the value, never the value itself.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
import json
import math
import re
import struct
import uuid
from types import NoneType
from typing import NoReturn, assert_never

from headgate.schema import types as t
from headgate.schema.errors import UnresolvedType, ValueDoesNotFit
from headgate.schema.names import ROOT, field_path, print_name, value_path
from headgate.schema.render import print_type

# The width of the whole numbers, sign included.
BITS: dict[type, int] = {t.Integer: 32, t.Bigint: 64}


def fits_bits(value: int, bits: int) -> bool:
    return -(1 << bits - 1) <= value < 1 << bits - 1


def single(value: float) -> float:
    """The nearest number of 32 bits, or infinity if there is none."""
    try:
        nearest: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return nearest


def to_json(value: object, type_: t.Type) -> object:
    """A canonical value as a JSON value. Types that JSON does not have become strings; json is parsed."""
    if value is None:
        return None
    match type_:
        case t.Array(element):
            assert isinstance(value, list)
            return [to_json(v, element) for v in value]
        case t.Map(inner):
            assert isinstance(value, dict)
            return {key: to_json(v, inner) for key, v in value.items()}
        case t.Record(fields):
            assert isinstance(value, dict)
            return {field.name: to_json(value[field.name], field.type) for field in fields}
        case t.Json():
            return json.loads(str(value), parse_float=decimal.Decimal)
        case t.Boolean() | t.Integer() | t.Bigint() | t.Real() | t.Double():
            return value
        case _:
            return _string(value)


def _string(value: object) -> str:
    """The text of a value that JSON has no type for."""
    match value:
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case decimal.Decimal():
            return format(value, "f")
        case dt.datetime() if value.tzinfo is not None:
            return value.isoformat().removesuffix("+00:00") + "Z"
        case dt.date() | dt.time():
            return value.isoformat()
        case _:
            return str(value)


# Without a zone, as the canonical value of a timestamp is.
EPOCH = dt.datetime(1970, 1, 1)
DAY = 86_400_000_000  # microseconds
# The microseconds of one step of a date or time that Kafka Connect or Debezium counts in whole numbers, by the name of its type.
CONNECT_MICROSECONDS = {
    "io.debezium.time.Date": DAY,
    "io.debezium.time.Time": 1000,
    "io.debezium.time.MicroTime": 1,
    "io.debezium.time.Timestamp": 1000,
    "io.debezium.time.MicroTimestamp": 1,
    "org.apache.kafka.connect.data.Date": DAY,
    "org.apache.kafka.connect.data.Time": 1000,
    "org.apache.kafka.connect.data.Timestamp": 1000,
}


def moment_of(microseconds: int, type_: t.Date | t.Time | t.Timestamp | t.TimestampTz) -> object:
    """The canonical value of a date or time by its microseconds since the epoch. Raises OverflowError."""
    moment = EPOCH + dt.timedelta(microseconds=microseconds)
    match type_:
        case t.Date():
            return moment.date()
        case t.Time():
            return moment.time()
        case t.Timestamp():
            return moment
        case t.TimestampTz():
            return moment.replace(tzinfo=dt.UTC)
        case _:
            assert_never(type_)


def dumps(value: object) -> str:
    """Compact JSON text with every digit of a number. Raises ValueDoesNotFit for infinity and NaN."""
    match value:
        case dict():
            return "{" + ",".join([f"{dumps(key)}:{dumps(inner)}" for key, inner in value.items()]) + "}"
        case list():
            return "[" + ",".join([dumps(inner) for inner in value]) + "]"
        case decimal.Decimal() if value.is_finite():
            return str(value)
        case float() if not math.isfinite(value):
            raise ValueDoesNotFit(ROOT, "json", "number", "it is not finite")
        case str() | int() | float() | None:
            return json.dumps(value, ensure_ascii=False)
        case _:
            raise ValueDoesNotFit(ROOT, "json", type(value).__name__, "it is not a json value")


# Checked casts


# Queries raise this text, followed by the type, where Spark casts a text that does not fit. The runtime finds the text
# in Spark's error and may show it, because it holds nothing of the value.
CAST_ERROR = "a text cannot be cast to "

# ASCII only: \d alone would accept the digits of every script.
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.A)
_CLOCK = r"\d{2}:\d{2}:\d{2}(?:\.(?P<fraction>\d+))?"
_TIME = re.compile(_CLOCK + r"\Z", re.A)
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]" + _CLOCK + r"(?P<zone>[Zz]|[+-]\d{2}:\d{2})?\Z", re.A)
_UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
# JSON's grammar. The exponent is bounded, because a decimal with a huge one takes megabytes to print.
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,4})?\Z", re.A)


_KINDS: dict[type, str] = {
    NoneType: "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    decimal.Decimal: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def kind_of(value: object) -> str:
    """The kind of a JSON value, in JSON's words."""
    return _KINDS.get(type(value), type(value).__name__)


def from_json(value: object, type_: t.Type, path: str = ROOT) -> object:
    """The canonical value of the type for a JSON value. Fields that the record does not have are ignored.

    Numbers may be int, float or Decimal. With Decimal no digit is lost. A missing field is null.
    """
    match type_:
        case t.Array(element, nullable):
            if not isinstance(value, list):
                _misfit(value, type_, path)
            return [_checked_nullable(v, element, nullable, f"{path}[{i}]") for i, v in enumerate(value)]
        case t.Map(inner, nullable):
            if not isinstance(value, dict):
                _misfit(value, type_, path)
            return {
                _checked_text(k, path): _checked_nullable(v, inner, nullable, value_path(path))
                for k, v in value.items()
            }
        case t.Record():
            return _checked_record(value, type_, path)
        case t.Named(parts):
            raise UnresolvedType(path, print_name(parts))
        case _:
            return _checked_scalar(value, type_, path)


def _checked_nullable(value: object, type_: t.Type, nullable: bool, path: str) -> object:
    """The value of an element, a value of a map, or a field. Null must be allowed there."""
    if value is None:
        if not nullable:
            raise ValueDoesNotFit(path, f"{print_type(type_)} not null", "null")
        return None
    return from_json(value, type_, path)


def _checked_record(value: object, type_: t.Record, path: str) -> object:
    """The fields of a record. A field that is missing counts as null."""
    if not isinstance(value, dict):
        _misfit(value, type_, path)
    made: dict[str, object] = {}
    for field in type_.fields:
        inner = field_path(path, field.name)
        if field.name not in value and not field.nullable:
            raise ValueDoesNotFit(inner, f"{print_type(field.type)} not null", "nothing")
        made[field.name] = _checked_nullable(value.get(field.name), field.type, field.nullable, inner)
    return made


def _checked_scalar(value: object, type_: t.Scalar, path: str) -> object:
    match type_:
        case t.Boolean():
            return value if isinstance(value, bool) else _misfit(value, type_, path)
        case t.Integer() | t.Bigint():
            return _integer(value, type_, path)
        case t.Real() | t.Double():
            return _float(value, type_, path)
        case t.Decimal():
            return _decimal(value, type_, path)
        case t.Json():
            return _checked_json(value, path)
        case _:
            if not isinstance(value, str):
                _misfit(value, type_, path)
            return _from_string(_checked_text(value, path), type_, path)


def _from_string(
    value: str, type_: t.Text | t.Bytes | t.Date | t.Time | t.Timestamp | t.TimestampTz | t.Uuid | t.Enum, path: str
) -> object:
    """The value of a type that JSON carries as a string."""
    match type_:
        case t.Text():
            return value
        case t.Enum(symbols, _, default):
            known = value if value in symbols else default
            return known if known is not None else _misfit(value, type_, path, "it is not one of the symbols")
        case t.Uuid():
            return uuid.UUID(value) if _UUID_TEXT.match(value) else _misfit(value, type_, path, "it is not a uuid")
        case t.Bytes():
            return _bytes(value, type_, path)
        case t.Date() | t.Time() | t.Timestamp() | t.TimestampTz():
            return _moment(value, type_, path)
        case _:
            assert_never(type_)


def _integer(value: object, type_: t.Integer | t.Bigint, path: str) -> int:
    """Only exact integers: 1.0 is 1, 1.5 is refused."""
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        _misfit(value, type_, path)
    if isinstance(value, int):
        whole = value
    else:
        # Tested before the conversion, because int(Decimal("1e999999")) would take minutes and megabytes.
        if not math.isfinite(value) or not -(1 << 64) < value < 1 << 64:
            _misfit(value, type_, path, "it is out of range")
        whole = int(value)
        if whole != value:
            _misfit(value, type_, path, "it has a fraction")
    if not fits_bits(whole, BITS[type(type_)]):
        _misfit(value, type_, path, "it is out of range")
    return whole


def _float(value: object, type_: t.Real | t.Double, path: str) -> float:
    """A finite number. It becomes the nearest binary one, which is the only rounding that a cast does."""
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        _misfit(value, type_, path)
    try:
        number = single(float(value)) if isinstance(type_, t.Real) else float(value)
    except OverflowError:
        number = math.inf
    return number if math.isfinite(number) else _misfit(value, type_, path, "it is not finite")


def _decimal(value: object, type_: t.Decimal, path: str) -> decimal.Decimal:
    """From a number, or from a string that contains one, because that is how JSON carries decimals."""
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal | str):
        _misfit(value, type_, path)
    if isinstance(value, str) and not _NUMBER.match(value):
        _misfit(value, type_, path, "it is not a number")
    number = decimal.Decimal(repr(value) if isinstance(value, float) else value)
    if not number.is_finite():
        _misfit(value, type_, path, "it is not finite")
    if number and number.adjusted() >= type_.precision - type_.scale:
        _misfit(value, type_, path, "it has too many digits before the point")
    try:
        # A trap turns every rounding into an error.
        exact = decimal.Context(prec=type_.precision + 1, traps=[decimal.Inexact, decimal.InvalidOperation])
        return number.quantize(decimal.Decimal((0, (1,), -type_.scale)), context=exact)
    except (decimal.Inexact, decimal.InvalidOperation):
        _misfit(value, type_, path, "it has too many digits after the point")


def _checked_json(value: object, path: str) -> str:
    """The JSON text of a value of type json."""
    try:
        return dumps(value)
    except RecursionError:
        _misfit(value, t.Json(), path, "it is nested too deeply")
    except ValueDoesNotFit as error:
        _misfit(value, t.Json(), path, error.reason)


def _checked_text(value: object, path: str) -> str:
    """Refuse half of a surrogate pair: it is valid in the escapes of JSON, but no encoding of text has it."""
    if not isinstance(value, str):
        _misfit(value, t.Text(), path)
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            _misfit(value, t.Text(), path, "it holds half of a surrogate pair")
    return value


def _bytes(value: str, type_: t.Bytes, path: str) -> bytes:
    try:
        made = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        _misfit(value, type_, path, "it is not base64")
    if type_.length not in (None, len(made)):
        _misfit(value, type_, path, "it has another length")
    return made


def _moment(value: str, type_: t.Date | t.Time | t.Timestamp | t.TimestampTz, path: str) -> object:
    """A date or time in ISO 8601, with at most six digits of a second."""
    form = {t.Date: _DATE, t.Time: _TIME}.get(type(type_), _TIMESTAMP).match(value)
    if form is None:
        _misfit(value, type_, path, "it is not written as ISO 8601 has it")
    parts = form.groupdict()
    if len((parts.get("fraction") or "").rstrip("0")) > 6:
        _misfit(value, type_, path, "it is finer than microseconds")
    if isinstance(type_, t.Timestamp | t.TimestampTz) and (parts["zone"] is None) == isinstance(type_, t.TimestampTz):
        _misfit(value, type_, path, "it has no time zone" if parts["zone"] is None else "it has a time zone")
    try:
        return _iso(value, type_)
    except (ValueError, OverflowError):
        _misfit(value, type_, path, "there is no such moment")


def _iso(value: str, type_: t.Date | t.Time | t.Timestamp | t.TimestampTz) -> object:
    match type_:
        case t.Date():
            return dt.date.fromisoformat(value)
        case t.Time():
            return dt.time.fromisoformat(value)
        case t.Timestamp():
            return dt.datetime.fromisoformat(value.upper())
        case t.TimestampTz():
            return dt.datetime.fromisoformat(value.upper()).astimezone(dt.UTC)
        case _:
            assert_never(type_)


def _misfit(value: object, type_: t.Type, path: str, reason: str = "") -> NoReturn:
    """Raise the error for a value. It names the kind of the value and never shows it."""
    raise ValueDoesNotFit(path, print_type(type_), kind_of(value), reason)
