"""The type of a JSON text or number: by format, by bounds, and by what Kafka Connect's converter writes beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.schema.formats.avro.read import connect_decimal
from headgate.schema.formats.errors import DecimalTooWide
from headgate.schema.formats.jsonschema.keywords import Keywords, Number
from headgate.schema.types import (
    MAX_PRECISION,
    Bigint,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Double,
    Integer,
    Json,
    Real,
    Text,
    Time,
    Timestamp,
    TimestampTz,
    Type,
    Uuid,
)

_BY_FORMAT: Mapping[str, Type] = {
    "date": Date(),
    "time": Time(),
    "time-local": Time(),
    "date-time": TimestampTz(),
    "date-time-local": Timestamp(),
    "uuid": Uuid(),
    "byte": Bytes(),
    "integer": Decimal(MAX_PRECISION, 0),
    "number": Decimal(),
}

# Connect's logical types are told by the title.
_CONNECT_INTEGERS: Mapping[str, Type] = {
    "org.apache.kafka.connect.data.Date": Date(),
    "org.apache.kafka.connect.data.Time": Time(),
    "org.apache.kafka.connect.data.Timestamp": TimestampTz(),
    "io.debezium.time.Date": Date(),
    "io.debezium.time.Time": Time(),
    "io.debezium.time.MicroTime": Time(),
    "io.debezium.time.Timestamp": Timestamp(),
    "io.debezium.time.MicroTimestamp": Timestamp(),
}
_CONNECT_TEXTS: Mapping[str, Type] = {
    "io.debezium.data.Json": Json(),
    "io.debezium.data.Uuid": Uuid(),
    "io.debezium.time.ZonedTimestamp": TimestampTz(),
}
_CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"
LOGICAL_TITLES = frozenset((*_CONNECT_INTEGERS, *_CONNECT_TEXTS, _CONNECT_DECIMAL))


def text_type(keywords: Keywords, path: str) -> Type:
    if keywords.encoding == "base64" or keywords.connect_type == "bytes":
        return Bytes()
    if keywords.format == "number" and keywords.digits is not None:
        return _decimal(*keywords.digits, path)
    return _CONNECT_TEXTS.get(title(keywords)) or _BY_FORMAT.get(keywords.format or "") or Text()


def number_type(keywords: Keywords, path: str) -> Type:
    if title(keywords) == _CONNECT_DECIMAL:
        precision, scale = connect_decimal({"connect.parameters": keywords.connect_parameters})
        return _decimal(MAX_PRECISION if precision is None else precision, scale or 0, path)
    return Real() if keywords.connect_type == "float32" or keywords.format == "float" else Double()


def integer_type(keywords: Keywords, path: str) -> Type:
    """A 32-bit integer if the bounds or an annotation say so, a decimal if the bounds go beyond 64 bits."""
    logical = _CONNECT_INTEGERS.get(title(keywords))
    if logical is not None:
        return logical
    if keywords.connect_type in ("int8", "int16", "int32") or keywords.format == "int32":
        return Integer()
    lower, upper = keywords.lower, keywords.upper
    if lower is not None and upper is not None and lower >= -(2**31) and upper < 2**31:
        return Integer()
    beyond = [bound for bound in (lower, upper) if bound is not None and not -(2**63) <= bound < 2**63]
    # A lower bound above or an upper bound below what 64 bits hold is beyond them as well.
    return (
        _decimal(max(_digits(bound) for bound in beyond), 0, path, at_least=MAX_PRECISION)
        if beyond
        else Bigint()
    )


def enum_type(values: Sequence[object], keywords: Keywords, path: str) -> Type:
    """The type of fixed values that are not all texts."""
    if all(isinstance(value, bool) for value in values):
        return Boolean()
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(values):
        return Json()
    if all(isinstance(number, int) or number.is_integer() for number in numbers):
        return integer_type(Keywords(lower=min(numbers), upper=max(numbers)), path)
    return number_type(keywords, path)


def title(keywords: Keywords) -> str:
    return keywords.title or keywords.inner_title or ""


def _digits(bound: Number) -> int:
    return len(str(min(abs(int(bound)), 10**99)))  # Python refuses to print integers of thousands of digits


def _decimal(precision: int, scale: int, path: str, at_least: int = 1) -> Decimal:
    if precision > MAX_PRECISION:
        raise DecimalTooWide(path, precision)
    return Decimal(max(precision, scale, at_least), scale)
