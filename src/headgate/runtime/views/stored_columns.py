"""The columns of stored rows as they are in files: their names and types, and what they are in rows from before they came."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import quote

from pyspark.sql import Column, functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructField, StructType

from headgate.plan.definitions import ELEMENT, FieldDefault, StoredColumn
from headgate.schema.render import spark_identifier

PRESENT = "hg_present"
_SAFE = (
    string.ascii_letters + string.digits + "_!#$&*+-./:<>?@[]^|~"
)  # characters that Delta takes in the name of a column


def physical_names(columns: Sequence[StoredColumn]) -> list[str]:
    """The names of columns in files: Delta refuses some characters, and names that differ only in case."""
    names: list[str] = []
    for column in columns:
        name = quote(column.name, safe=_SAFE)
        while name.lower() in {known.lower() for known in names}:
            name += "%"
        names.append(name)
    return names


@lru_cache(maxsize=1024)
def spark_type(ddl: str) -> DataType:
    """A type from the words of Spark. PySpark asks the JVM for most."""
    return DataType.fromDDL(ddl)


_NAME_OR_TIME = re.compile(r"`(?:[^`]|``)*`|\bTIME\b")


def stored_type(ddl: str) -> str:
    """The type of a column in files. Delta has none for a time of the day, so that it is a text there, and refuses some characters
    in the names of fields, which a cast does not look at."""
    return _NAME_OR_TIME.sub(lambda found: _stored_name(found[0]) if found[0].startswith("`") else "STRING", ddl)


def _stored_name(field: str) -> str:
    return spark_identifier(quote(field[1:-1].replace("``", "`"), safe=_SAFE))


def as_stored(column: StoredColumn) -> Column:
    """A column as it is in files."""
    value, type_ = F.col(spark_identifier(column.name)), stored_type(column.type)
    value = value if type_ == column.type else value.cast(spark_type(type_))
    return _one_zero(value, spark_type(type_)) if _FLOATING.search(type_) else value


_FLOATING = re.compile(r"\b(?:FLOAT|DOUBLE)\b")


def _one_zero(value: Column, type_: DataType) -> Column:
    """A value with 0.0 in the place of -0.0. The two are one value in GROUP BY, so that rows which are read from the store would
    have 0.0, and what is computed from them, such as a text, would differ from what was computed when the row came."""
    match type_:
        case FloatType() | DoubleType():
            return value + F.lit(0.0).cast(type_)
        case ArrayType():
            return F.transform(value, lambda each: _one_zero(each, type_.elementType))
        case MapType():
            return F.transform_values(value, lambda _, each: _one_zero(each, type_.valueType))
        case StructType():
            fields = [_one_zero(value.getField(f.name), f.dataType).alias(f.name) for f in type_.fields]
            return F.when(value.isNotNull(), F.struct(*fields))
        case _:
            return value


def default_value(column: StoredColumn) -> Column:
    """The value of a column in rows that were stored before it came."""
    if column.name == PRESENT:
        return F.lit(True)
    return _parsed(column.default, spark_type(column.type))


def _parsed(value: str | None, type_: DataType) -> Column:
    if value is None:
        return F.lit(None).cast(type_)
    return F.from_json(F.lit(f'{{"v": {value}}}'), StructType([StructField("v", type_)])).getField("v")


def converted(
    value: Column, stored: DataType, wanted: DataType, inner: Sequence[FieldDefault], path: tuple[str, ...] = ()
) -> Column:
    """A stored value with the type of today. A wider type takes every value, and every stored time of the day is one. A field that came
    later has its default. Rows of a query that was replaced may have another type altogether, and then NULL."""
    if stored == wanted:
        return value
    match stored, wanted:
        case StructType(), StructType():
            there = {field.name: field.dataType for field in stored.fields}
            fields = [
                converted(value.getField(name), there[name], field.dataType, inner, (*path, field.name))
                if (name := quote(field.name, safe=_SAFE)) in there
                else _parsed(_default_of((*path, field.name), inner), field.dataType)
                for field in wanted.fields
            ]
            named = [made.alias(field.name) for made, field in zip(fields, wanted.fields, strict=True)]
            return F.when(value.isNotNull(), F.struct(*named))
        case ArrayType(), ArrayType():
            types, below = (stored.elementType, wanted.elementType), (*path, ELEMENT)
            return F.transform(value, lambda each: converted(each, *types, inner, below))
        case MapType(), MapType():
            types, below = (stored.valueType, wanted.valueType), (*path, ELEMENT)
            return F.transform_values(value, lambda _, each: converted(each, *types, inner, below))
        case (StructType() | ArrayType() | MapType(), _) | (_, StructType() | ArrayType() | MapType()):
            return F.lit(None).cast(wanted)
        case _:
            return value.try_cast(wanted)


def _default_of(path: tuple[str, ...], inner: Sequence[FieldDefault]) -> str | None:
    return next((default.value for default in inner if default.path == path), None)


_IN_BUCKETS = (
    "STRING",
    "BINARY",
    "BOOLEAN",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
)


def buckets_by(columns: Sequence[StoredColumn], key: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The columns by which rows are put into buckets, each with its type: those of the key, or else all, as far as equal
    values have one hash."""
    plain = [column for column in columns if column.type.upper() in _IN_BUCKETS]
    chosen = [column for column in plain if column.name in key] or plain
    return tuple((column.name, column.type) for column in chosen)
