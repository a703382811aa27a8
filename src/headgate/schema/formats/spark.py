"""The mapper for Spark: the only file outside of the runtime that imports pyspark.

Docs are the `comment` in the metadata of a struct field, where Spark's DESCRIBE shows them.
"""

from __future__ import annotations

from pyspark.sql import types as spark

from headgate.schema import types as t
from headgate.schema.errors import UnresolvedType, UnsupportedType
from headgate.schema.names import ROOT, element_path, field_path, print_name, value_path

# Spark 4.2 reads and writes columns of the type time, but its SQL accepts the word only with this setting.
SETTINGS = {"spark.sql.timeType.enabled": "true"}

# Times have microseconds, as everywhere in Spark.
_TO: dict[type, spark.DataType] = {
    t.Boolean: spark.BooleanType(),
    t.Integer: spark.IntegerType(),
    t.Bigint: spark.LongType(),
    t.Real: spark.FloatType(),
    t.Double: spark.DoubleType(),
    t.Text: spark.StringType(),
    t.Bytes: spark.BinaryType(),
    t.Date: spark.DateType(),
    t.Time: spark.TimeType(6),
    t.Timestamp: spark.TimestampNTZType(),
    t.TimestampTz: spark.TimestampType(),
    t.Uuid: spark.StringType(),
    t.Json: spark.StringType(),
    t.Enum: spark.StringType(),
    t.CatalogEnum: spark.StringType(),
}
_FROM: dict[type[spark.DataType], t.Scalar] = {
    spark.BooleanType: t.Boolean(),
    spark.ByteType: t.Integer(),
    spark.ShortType: t.Integer(),
    spark.IntegerType: t.Integer(),
    spark.LongType: t.Bigint(),
    spark.FloatType: t.Real(),
    spark.DoubleType: t.Double(),
    spark.StringType: t.Text(),
    spark.CharType: t.Text(),
    spark.VarcharType: t.Text(),
    spark.BinaryType: t.Bytes(),
    spark.DateType: t.Date(),
    spark.TimestampNTZType: t.Timestamp(),
    spark.TimestampType: t.TimestampTz(),
    spark.VariantType: t.Json(),
}


def to_spark(type_: t.Type, path: str = ROOT) -> spark.DataType:
    """The type of Spark for a neutral type. Uuid, json and enum are strings there."""
    match type_:
        case t.Decimal(precision, scale):
            if not (1 <= precision <= t.MAX_PRECISION and 0 <= scale <= precision):
                raise UnsupportedType(
                    path, "spark", f"decimal({precision},{scale})", "it has at most 38 digits", "text"
                )
            return spark.DecimalType(precision, scale)
        case t.Array():
            return spark.ArrayType(to_spark(type_.element, element_path(path)), type_.element_nullable)
        case t.Map():
            value = to_spark(type_.value, value_path(path))
            return spark.MapType(spark.StringType(), value, type_.value_nullable)
        case t.Record():
            return spark.StructType([to_spark_field(field, path) for field in type_.fields])
        case t.Named():
            raise UnresolvedType(path, print_name(type_.parts))
        case _:
            return _TO[type(type_)]


def to_spark_field(field: t.Field, path: str = ROOT) -> spark.StructField:
    metadata = {} if field.doc is None else {"comment": field.doc}
    type_ = to_spark(field.type, field_path(path, field.name))
    return spark.StructField(field.name, type_, field.nullable, metadata)


def from_spark(type_: spark.DataType, path: str = ROOT) -> t.Type:
    """The neutral type of a Spark type. A type that we do not have is refused with its path."""
    if isinstance(type_, spark.StructType):
        return t.Record(tuple([_from_field(field, path) for field in type_.fields]))
    if isinstance(type_, spark.ArrayType):
        return t.Array(from_spark(type_.elementType, element_path(path)), type_.containsNull)
    if isinstance(type_, spark.MapType):
        return _from_map(type_, path)
    return _from_scalar(type_, path)


def _from_field(field: spark.StructField, path: str) -> t.Field:
    doc = field.metadata.get("comment")
    type_ = from_spark(field.dataType, field_path(path, field.name))
    return t.Field(field.name, type_, field.nullable, doc if isinstance(doc, str) else None)


def _from_map(type_: spark.MapType, path: str) -> t.Type:
    """A map, whose keys must be strings."""
    if not isinstance(type_.keyType, spark.StringType):
        why = "a map's keys are text"
        raise UnsupportedType(path, "headgate", type_.simpleString(), why, "map_from_entries over keys cast to string")
    return t.Map(from_spark(type_.valueType, value_path(path)), type_.valueContainsNull)


def _from_scalar(type_: spark.DataType, path: str) -> t.Scalar:
    if isinstance(type_, spark.DecimalType):
        if type_.scale < 0:
            raise UnsupportedType(path, "headgate", type_.simpleString(), "a scale is never negative")
        return t.Decimal(type_.precision, type_.scale)
    if isinstance(type_, spark.TimeType):
        return t.Time()
    found = _FROM.get(type(type_))
    if found is None:
        instead = "a CAST to the type that is meant" if isinstance(type_, spark.NullType) else "a CAST to text"
        raise UnsupportedType(path, "headgate", type_.simpleString(), "there is no such type", instead)
    return found
