"""What the annotations on Avro's own types mean: logical types, and the names Kafka Connect and Debezium write.

An annotation that is unknown, stands on the wrong type, or is not valid in itself is ignored, as the Avro
specification asks; the column then has the type below.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate.schema.errors import DecimalTooWide
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

PRIMITIVES: Mapping[str, Type] = {
    "boolean": Boolean(),
    "int": Integer(),
    "long": Bigint(),
    "float": Real(),
    "double": Double(),
    "bytes": Bytes(),
    "string": Text(),
}

_LOGICAL: Mapping[tuple[str, str], Type] = {
    ("int", "date"): Date(),
    ("int", "time-millis"): Time(),
    ("long", "time-micros"): Time(),
    ("long", "timestamp-millis"): TimestampTz(),
    ("long", "timestamp-micros"): TimestampTz(),
    ("long", "local-timestamp-millis"): Timestamp(),
    ("long", "local-timestamp-micros"): Timestamp(),
    ("string", "uuid"): Uuid(),
}

# Debezium's timestamps of columns without zone are counted from the epoch as if they were UTC: no zone is meant.
# Connect's own Timestamp is an instant.
_CONNECT: Mapping[tuple[str, str], Type] = {
    ("string", "io.debezium.data.Json"): Json(),
    ("string", "io.debezium.data.Uuid"): Uuid(),
    ("int", "io.debezium.time.Date"): Date(),
    ("int", "io.debezium.time.Time"): Time(),
    ("long", "io.debezium.time.MicroTime"): Time(),
    ("long", "io.debezium.time.Timestamp"): Timestamp(),
    ("long", "io.debezium.time.MicroTimestamp"): Timestamp(),
    ("string", "io.debezium.time.ZonedTimestamp"): TimestampTz(),
    ("int", "org.apache.kafka.connect.data.Date"): Date(),
    ("int", "org.apache.kafka.connect.data.Time"): Time(),
    ("long", "org.apache.kafka.connect.data.Timestamp"): TimestampTz(),
}
_CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def annotated(primitive: str, schema: Mapping[str, object], path: str) -> Type:
    """The type that a primitive with these attributes stands for."""
    logical, connect = _text(schema, "logicalType"), _text(schema, "connect.name")
    if primitive == "bytes":
        return decimal_of(schema, path) or Bytes()
    return _CONNECT.get((primitive, connect)) or _LOGICAL.get((primitive, logical)) or PRIMITIVES[primitive]


def annotated_fixed(size: int, schema: Mapping[str, object], path: str) -> Type:
    if schema.get("logicalType") == "uuid" and size == 16:
        return Uuid()
    decimal = decimal_of(schema, path)
    return decimal if decimal is not None and 10**decimal.precision <= 2 ** (8 * size - 1) else Bytes(size)


def decimal_of(schema: Mapping[str, object], path: str) -> Decimal | None:
    """The decimal that the attributes declare, or None if they declare none that is valid."""
    if schema.get("logicalType") == "decimal":
        precision, scale = schema.get("precision"), schema.get("scale", 0)
    elif schema.get("connect.name") == _CONNECT_DECIMAL:
        precision, scale = connect_decimal(schema)
    else:
        return None
    # bool is an int in Python, and no number in JSON
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision == 0:
        return None
    if precision > MAX_PRECISION:
        raise DecimalTooWide(path, precision)
    return Decimal(precision, scale)


def connect_decimal(schema: Mapping[str, object]) -> tuple[int | None, int | None]:
    """Precision and scale as Kafka Connect writes them, which is as texts."""
    parameters = schema.get("connect.parameters")
    if not isinstance(parameters, dict):
        return None, None
    return _number(parameters.get("connect.decimal.precision")), _number(parameters.get("scale"))


def _number(value: object) -> int | None:
    return (
        int(value)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10
        else None
    )


def _text(schema: Mapping[str, object], key: str) -> str:
    value = schema.get(key)
    return value if isinstance(value, str) else ""
