"""The mapper for Spark: the only file outside of the runtime that imports pyspark.

Docs are the `comment` in the metadata of a struct field, where Spark's DESCRIBE shows them.
"""

from __future__ import annotations

from typing import assert_never

from pyspark.sql import types as spark

from headgate.schema.errors import UnresolvedType, UnsupportedType
from headgate.schema.names import print_name
from headgate.schema.paths import ROOT, element_path, field_path, value_path
from headgate.schema.types import (
    MAX_PRECISION,
    Array,
    Bigint,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Double,
    Enum,
    Field,
    Integer,
    Json,
    Map,
    Named,
    Real,
    Record,
    Scalar,
    Text,
    Time,
    Timestamp,
    TimestampTz,
    Type,
    Uuid,
)

# Spark 4.2 reads and writes columns of the type time, but its SQL accepts the word only with this setting.
SETTINGS = {"spark.sql.timeType.enabled": "true"}

_TO: dict[type, spark.DataType] = {
    Boolean: spark.BooleanType(),
    Integer: spark.IntegerType(),
    Bigint: spark.LongType(),
    Real: spark.FloatType(),
    Double: spark.DoubleType(),
    Text: spark.StringType(),
    Bytes: spark.BinaryType(),
    Date: spark.DateType(),
    Time: spark.TimeType(6),
    Timestamp: spark.TimestampNTZType(),
    TimestampTz: spark.TimestampType(),
    Uuid: spark.StringType(),
    Json: spark.StringType(),
    Enum: spark.StringType(),
}
_FROM: dict[type[spark.DataType], Scalar] = {
    spark.BooleanType: Boolean(),
    spark.ByteType: Integer(),
    spark.ShortType: Integer(),
    spark.IntegerType: Integer(),
    spark.LongType: Bigint(),
    spark.FloatType: Real(),
    spark.DoubleType: Double(),
    spark.StringType: Text(),
    spark.CharType: Text(),
    spark.VarcharType: Text(),
    spark.BinaryType: Bytes(),
    spark.DateType: Date(),
    spark.TimestampNTZType: Timestamp(),
    spark.TimestampType: TimestampTz(),
    spark.VariantType: Json(),
}


def to_spark(type_: Type, path: str = ROOT) -> spark.DataType:
    match type_:
        case Decimal(precision, scale):
            if not (1 <= precision <= MAX_PRECISION and 0 <= scale <= precision):
                raise UnsupportedType(
                    path, "spark", f"decimal({precision},{scale})", "it has at most 38 digits", "text"
                )
            return spark.DecimalType(precision, scale)
        case Array():
            return spark.ArrayType(to_spark(type_.element, element_path(path)), type_.element_nullable)
        case Map():
            value = to_spark(type_.value, value_path(path))
            return spark.MapType(spark.StringType(), value, type_.value_nullable)
        case Record():
            return spark.StructType([to_spark_field(field, path) for field in type_.fields])
        case Named():
            raise UnresolvedType(path, print_name(type_.parts))
        case (
            Boolean() | Integer() | Bigint() | Real() | Double() | Text() | Bytes() | Date() | Time() | Timestamp()
            | TimestampTz() | Uuid() | Json() | Enum()
        ):  # fmt: skip
            return _TO[type(type_)]
        case _:
            assert_never(type_)


def to_spark_field(field: Field, path: str = ROOT) -> spark.StructField:
    metadata = {} if field.doc is None else {"comment": field.doc}
    type_ = to_spark(field.type, field_path(path, field.name))
    return spark.StructField(field.name, type_, field.nullable, metadata)


def from_spark(type_: spark.DataType, path: str = ROOT) -> Type:
    """The neutral type of a Spark type. A type that we do not have is refused with its path."""
    if isinstance(type_, spark.StructType):
        return Record(tuple([_from_field(field, path) for field in type_.fields]))
    if isinstance(type_, spark.ArrayType):
        return Array(from_spark(type_.elementType, element_path(path)), type_.containsNull)
    if isinstance(type_, spark.MapType):
        return _from_map(type_, path)
    return _from_scalar(type_, path)


def _from_field(field: spark.StructField, path: str) -> Field:
    doc = field.metadata.get("comment")
    type_ = from_spark(field.dataType, field_path(path, field.name))
    return Field(field.name, type_, field.nullable, doc if isinstance(doc, str) else None)


def _from_map(type_: spark.MapType, path: str) -> Type:
    if not isinstance(type_.keyType, spark.StringType):
        why = "a map's keys are text"
        raise UnsupportedType(
            path, "headgate", type_.simpleString(), why, "map_from_entries over keys cast to string"
        )
    return Map(from_spark(type_.valueType, value_path(path)), type_.valueContainsNull)


def _from_scalar(type_: spark.DataType, path: str) -> Scalar:
    if isinstance(type_, spark.DecimalType):
        if type_.scale < 0:
            raise UnsupportedType(path, "headgate", type_.simpleString(), "a scale is never negative")
        return Decimal(type_.precision, type_.scale)
    if isinstance(type_, spark.TimeType):
        return Time()
    found = _FROM.get(type(type_))
    if found is None:
        instead = (
            "a CAST to the type that is meant" if isinstance(type_, spark.NullType) else "a CAST to text"
        )
        raise UnsupportedType(path, "headgate", type_.simpleString(), "there is no such type", instead)
    return found
