"""A type in the words of Spark's SQL, for CAST. (`schema/formats/spark.py` makes Spark's objects, and needs Spark.)"""

from __future__ import annotations

from typing import assert_never

from headgate.errors import InternalError
from headgate.schema import types as t

_SCALARS = {
    t.Boolean: "BOOLEAN", t.Integer: "INT", t.Bigint: "BIGINT", t.Real: "FLOAT", t.Double: "DOUBLE", t.Text: "STRING",
    t.Bytes: "BINARY", t.Date: "DATE", t.Time: "TIME", t.Timestamp: "TIMESTAMP_NTZ", t.TimestampTz: "TIMESTAMP",
    t.Uuid: "STRING", t.Json: "STRING", t.Enum: "STRING",
}  # fmt: skip


def spark_ddl(type_: t.Type) -> str:
    match type_:
        case t.Decimal(precision, scale):
            return f"DECIMAL({precision}, {scale})"
        case t.Array(element, _):
            return f"ARRAY<{spark_ddl(element)}>"
        case t.Map(value, _):
            return f"MAP<STRING, {spark_ddl(value)}>"
        case t.Record(fields):
            return f"STRUCT<{', '.join(f'{spark_identifier(f.name)}: {spark_ddl(f.type)}' for f in fields)}>"
        case t.Named(parts):
            raise InternalError(f"type {'.'.join(parts)} was not resolved")
        case (
            t.Boolean() | t.Integer() | t.Bigint() | t.Real() | t.Double() | t.Text() | t.Bytes() | t.Date() | t.Time() | t.Timestamp()
            | t.TimestampTz() | t.Uuid() | t.Json() | t.Enum()
        ):  # fmt: skip
            return _SCALARS[type(type_)]
        case _:
            assert_never(type_)


def spark_identifier(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
