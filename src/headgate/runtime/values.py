"""Values of result rows -> JSON, as the statement protocol has them.

Rows come as Arrow batches. They are converted column by column, which takes a third of the time that one value after
another took.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from datetime import time
from itertools import pairwise

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions as F, types as spark

from headgate.schema.render import spark_identifier

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def json_rows(batch: pa.RecordBatch, types: Iterable[spark.DataType]) -> Iterator[tuple[Json, ...]]:
    """The rows of a batch of a frame of `with_text_times`. ``types`` are those of the frame before it."""
    columns = [json_values(column, type_) for column, type_ in zip(batch.columns, types, strict=True)]
    return zip(*columns, strict=True) if columns else iter([()] * batch.num_rows)


def json_values(array: pa.Array, type_: spark.DataType) -> list[Json]:
    """NULL is null, bytes are hex digits, decimals and times are text, and numbers that JSON does not have are their names."""
    match type_:
        case spark.DateType() | spark.TimestampType() | spark.TimestampNTZType() | spark.StringType():
            return _texts(array)
        case spark.FloatType() | spark.DoubleType():
            return [v if v is None or math.isfinite(v) else _name(v) for v in array.to_pylist()]
        case spark.DecimalType():
            return [None if v is None else format(v, "f") for v in array.to_pylist()]
        case spark.BinaryType():
            return [None if v is None else v.hex() for v in array.to_pylist()]
        case spark.StructType():
            return _records(array, type_)
        case spark.ArrayType():
            items = json_values(_used(array, array.values), type_.elementType)
            return [None if span is None else items[span] for span in _spans(array)]
        case spark.MapType():
            return _maps(array, type_)
        case spark.VariantType():
            return [None if v is None else str(spark.VariantVal(**v)) for v in array.to_pylist()]
        case _:
            return [_plain(value) for value in array.to_pylist()]


def _texts(array: pa.Array) -> list[Json]:
    try:
        return array.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError:  # a cast from bytes makes a text of anything
        return [None if v is None else v.decode("utf-8", "replace") for v in array.cast(pa.binary()).to_pylist()]


def _records(array: pa.Array, type_: spark.StructType) -> list[Json]:
    names = [field.name for field in type_.fields]
    columns = [json_values(c, f.dataType) for c, f in zip(array.flatten(), type_.fields, strict=True)]
    rows = zip(*columns, strict=True) if columns else iter([()] * len(array))
    return [
        dict(zip(names, row, strict=True)) if valid else None
        for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)
    ]


def _maps(array: pa.Array, type_: spark.MapType) -> list[Json]:
    keys = [str(key) for key in json_values(_used(array, array.keys), type_.keyType)]
    values = json_values(_used(array, array.items), type_.valueType)
    return [None if span is None else dict(zip(keys[span], values[span], strict=True)) for span in _spans(array)]


def _used(array: pa.Array, values: pa.Array) -> pa.Array:
    """The values of these lists or maps. A slice of an array keeps the values of all its rows."""
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return values.slice(first, last - first)


def _spans(array: pa.Array) -> Iterator[slice | None]:
    """The part of the used values that each list or map has. None for NULL."""
    first, *ends = array.offsets.to_pylist()
    spans = pairwise(end - first for end in (first, *ends))
    for (start, end), valid in zip(spans, array.is_valid().to_pylist(), strict=True):
        yield slice(start, end) if valid else None


def _plain(value: object) -> Json:
    match value:
        case None | bool() | str() | int():
            return value
        case time():
            text = value.isoformat()
            return text.rstrip("0").rstrip(".") if "." in text else text
        case _:
            return str(value)


def with_text_times(frame: DataFrame) -> DataFrame:
    """The frame with dates, timestamps and intervals of months as texts: Python has no dates before the year 1 or after
    9999, and Arrow for Python no such intervals.

    A result may have a name twice and Arrow may not, so its columns then get names of their own. To rename 2,000 columns takes
    9,000 calls into the JVM, and half a second of CPU time.
    """
    fields = frame.schema.fields
    names = [field.name for field in fields]
    if "" in names or len({name.upper().casefold() for name in names}) < len(names):
        names = [f"hg_{number}" for number in range(len(fields))]
        frame = frame.toDF(*names)
    typed = {name: field.dataType for name, field in zip(names, fields, strict=True)}
    changed = {
        name: _readable(F.col(spark_identifier(name)), type_) for name, type_ in typed.items() if _is_changed(type_)
    }
    return frame.withColumns(changed) if changed else frame


def _is_changed(type_: spark.DataType) -> bool:
    return _has_times(type_) or _with_unique_names(type_) != type_


def _readable(column: Column, type_: spark.DataType) -> Column:
    unique = _with_unique_names(type_)
    return _as_text(column if unique == type_ else column.cast(unique), type_)


def _with_unique_names(type_: spark.DataType) -> spark.DataType:
    match type_:
        case spark.StructType():
            names = type_.names if len(set(type_.names)) == len(type_.names) else range(len(type_.names))
            return spark.StructType(
                [
                    spark.StructField(str(n), _with_unique_names(f.dataType), f.nullable)
                    for n, f in zip(names, type_.fields, strict=True)
                ]
            )
        case spark.ArrayType():
            return spark.ArrayType(_with_unique_names(type_.elementType), type_.containsNull)
        case spark.MapType():
            value = _with_unique_names(type_.valueType)
            return spark.MapType(_with_unique_names(type_.keyType), value, type_.valueContainsNull)
        case _:
            return type_


def _as_text(column: Column, type_: spark.DataType) -> Column:
    match type_:
        case _ if not _has_times(type_):
            return column
        case spark.TimestampType() | spark.TimestampNTZType():
            text = F.replace(column.cast("string"), F.lit(" "), F.lit("T"))
            return F.concat(text, F.lit("Z")) if isinstance(type_, spark.TimestampType) else text
        case spark.ArrayType():
            return F.transform(column, lambda one: _as_text(one, type_.elementType))
        case spark.MapType():
            values = F.transform_values(column, lambda _, one: _as_text(one, type_.valueType))
            return F.transform_keys(values, lambda key, _: _as_text(key, type_.keyType))
        case spark.StructType():
            unique = _with_unique_names(type_)
            assert isinstance(unique, spark.StructType)
            fields = [
                _as_text(column.getField(u.name), f.dataType).alias(u.name)
                for u, f in zip(unique.fields, type_.fields, strict=True)
            ]
            return F.when(column.isNotNull(), F.struct(*fields))
        case _:
            return column.cast("string")


def _has_times(type_: spark.DataType) -> bool:
    match type_:
        case spark.StructType():
            return any(_has_times(field.dataType) for field in type_.fields)
        case spark.ArrayType():
            return _has_times(type_.elementType)
        case spark.MapType():
            return _has_times(type_.keyType) or _has_times(type_.valueType)
        case spark.DateType() | spark.TimestampType() | spark.TimestampNTZType():
            return True
        case _:
            return isinstance(type_, spark.YearMonthIntervalType | spark.CalendarIntervalType)


def _name(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
