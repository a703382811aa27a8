"""A type in the words of Spark's SQL, for CAST. (`schema/formats/spark.py` makes Spark's objects, and needs Spark.)"""

from __future__ import annotations

from typing import assert_never

from headgate.errors import InternalError
from headgate.schema.types import (
    Array,
    Bigint,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Double,
    Enum,
    Integer,
    Json,
    Map,
    Named,
    Real,
    Record,
    Text,
    Time,
    Timestamp,
    TimestampTz,
    Type,
    Uuid,
)

_SCALARS = {
    Boolean: "BOOLEAN", Integer: "INT", Bigint: "BIGINT", Real: "FLOAT", Double: "DOUBLE", Text: "STRING",
    Bytes: "BINARY", Date: "DATE", Time: "TIME", Timestamp: "TIMESTAMP_NTZ", TimestampTz: "TIMESTAMP",
    Uuid: "STRING", Json: "STRING", Enum: "STRING",
}  # fmt: skip


def spark_ddl(type_: Type) -> str:
    match type_:
        case Decimal(precision, scale):
            return f"DECIMAL({precision}, {scale})"
        case Array(element, _):
            return f"ARRAY<{spark_ddl(element)}>"
        case Map(value, _):
            return f"MAP<STRING, {spark_ddl(value)}>"
        case Record(fields):
            return f"STRUCT<{', '.join(f'{spark_identifier(f.name)}: {spark_ddl(f.type)}' for f in fields)}>"
        case Named(parts):
            raise InternalError(f"type {'.'.join(parts)} was not resolved")
        case (
            Boolean() | Integer() | Bigint() | Real() | Double() | Text() | Bytes() | Date() | Time() | Timestamp()
            | TimestampTz() | Uuid() | Json() | Enum()
        ):  # fmt: skip
            return _SCALARS[type(type_)]
        case _:
            assert_never(type_)


def spark_identifier(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
