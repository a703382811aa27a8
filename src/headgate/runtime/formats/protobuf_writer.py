"""Rows -> Protobuf messages, in Arrow batches in Python workers, by Protobuf's own library.

The JVM gives every value the form that its field takes: dates, times and instants as the fields of their messages, decimals
and timestamps as text, names as the schema has them. So a worker only makes one message of each row. The driver compiles
the schema once and sends its descriptors.
"""

from __future__ import annotations

import decimal
import gc
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, TypeAlias

import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import Value
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from headgate.runtime.formats.protobuf_files import compiled, linked
from headgate.runtime.formats.write_checks import Check
from headgate.schema.formats.protobuf.read import find_message
from headgate.schema.formats.protobuf.write import MAX_MESSAGE_DEPTH, MessageIndex
from headgate.schema.names import ROOT, element_path, field_path, value_path
from headgate.schema.types import Array, Date, Decimal, Field, Json, Map, Record, Time, Timestamp, TimestampTz, Type
from headgate.schema.written import WrittenSchema

FIRST_MESSAGE = b"\0"  # what stands between the frame and a message that is the first of its file
NOT_A_VALUE = "a number in it has more digits than google.protobuf.Value keeps, or it is nested too deeply"
NOT_ENCODED = "headgate: a row that was accepted cannot be encoded"

# Protobuf reads at most 100 messages within messages. A level of JSON takes up to three, a column at most 31.
_JSON_DEPTH = (100 - MAX_MESSAGE_DEPTH) // 3 - 1

Convert: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class ProtobufEncoder:
    """Encodes columns as the first message of a schema."""

    record: Record
    descriptors: bytes

    @classmethod
    def of(cls, record: Record, schema: WrittenSchema) -> ProtobufEncoder:
        return cls(record, compiled(schema))

    def encode(self, row: Mapping[str, Column]) -> Column:
        """The message behind its index. A row that is not accepted may raise, in the JVM and only if it is asked for."""
        index = _first_message(self.descriptors)
        names = tuple(index.fields[field.name].name for field in self.record.fields)
        if not names:
            return F.lit(FIRST_MESSAGE)
        record, descriptors = self.record, self.descriptors

        def encode_batch(*columns: pa.Array) -> pa.Array:
            return batch_encoder(record, descriptors)(columns)

        shaped = [_shaped(index, index.fields[f.name], f.type, row[f.name]) for f in record.fields]
        body: Column = arrow_udf(encode_batch, "binary")(*shaped)  # type: ignore[call-overload]
        return F.concat(F.lit(FIRST_MESSAGE), F.coalesce(body, F.raise_error(F.lit(NOT_ENCODED)).cast("binary")))

    def json_checks(self, field: Field) -> Iterator[Check]:
        """Checks of the json inside a column. They need a Python worker, and so cannot be part of the other checks: Spark
        calls no worker for the elements of an array."""
        for gather, path in _json_texts(field.type, field_path(ROOT, field.name)):
            yield Check(_loses_something(gather), path, NOT_A_VALUE)


def _first_message(descriptors: bytes) -> MessageIndex:
    return MessageIndex(FileDescriptorSet.FromString(descriptors).file[0].message_type[0])


# in the JVM


def _shaped(index: MessageIndex, field: FieldDescriptorProto, type_: Type, column: Column) -> Column:
    """The value of a field in the form that the field takes."""
    match type_:
        case Array(element) if _needs_shape(element):
            return F.transform(column, lambda item: _single(index, field, element, item))
        case Map(value) if _needs_shape(value):
            of_value = index.values_of(field)
            assert of_value is not None
            return F.transform_values(column, lambda _, item: _single(index, of_value, value, item))
        case Array() | Map():
            return column
        case _:
            return _single(index, field, type_, column)


def _single(index: MessageIndex, field: FieldDescriptorProto, type_: Type, column: Column) -> Column:
    """One value. A list or a map stands in a message of its own here, because Protobuf cannot nest them."""
    match type_:
        case Record(fields):
            inner = MessageIndex(index.message_of(field))
            parts = [_shaped(inner, inner.fields[f.name], f.type, column.getField(f.name)) for f in fields]
            named = [part.alias(inner.fields[f.name].name) for part, f in zip(parts, fields, strict=True)]
            return F.when(column.isNotNull(), F.struct(*named)) if named else column
        case Array() | Map():
            inner = MessageIndex(index.message_of(field))
            items = _shaped(inner, inner.fields["items"], type_, column)
            return F.when(column.isNotNull(), F.struct(items.alias("items")))
        case _:
            return _shaped_scalar(type_, column)


def _shaped_scalar(type_: Type, column: Column) -> Column:
    match type_:
        case Decimal():
            return column.cast("string")
        case Timestamp():
            return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
        case Date():
            return _message(column, year=F.year(column), month=F.month(column), day=F.dayofmonth(column))
        case Time():
            text = column.cast("string")
            micros = F.rpad(F.substring(text, 10, 6), 6, "0").cast("int")
            whole = {"hours": (1, 2), "minutes": (4, 2), "seconds": (7, 2)}
            parts = {name: F.substring(text, *place).cast("int") for name, place in whole.items()}
            return _message(column, **parts, nanos=micros * 1000)
        case TimestampTz():
            micros = F.pmod(F.unix_micros(column), F.lit(1_000_000))
            return _message(column, seconds=F.unix_seconds(column), nanos=(micros * 1000).cast("int"))
        case _:
            return column


def _message(column: Column, **fields: Column) -> Column:
    return F.when(column.isNotNull(), F.struct(*[value.alias(name) for name, value in fields.items()]))


def _needs_shape(type_: Type) -> bool:
    return isinstance(type_, Record | Array | Map | Decimal | Timestamp | Date | Time | TimestampTz)


# in the workers


@lru_cache(maxsize=64)
def batch_encoder(record: Record, descriptors: bytes) -> BatchEncoder:
    return BatchEncoder(record, descriptors)


class BatchEncoder:
    """Makes messages of the rows of Arrow batches. It is made once per process and schema."""

    def __init__(self, record: Record, descriptors: bytes) -> None:
        index = _first_message(descriptors)
        fields = [index.fields[field.name] for field in record.fields]
        self._names = [field.name for field in fields]
        message = find_message(linked(descriptors), index.message.name)
        self._class: Any = GetMessageClass(message)
        values = _JsonValues(_value_class(message))
        self._json = [values.converter(index, field, f.type) for field, f in zip(fields, record.fields, strict=True)]

    def __call__(self, columns: Sequence[pa.Array]) -> pa.Array:
        # Thousands of rows are alive at once and none is part of a cycle.
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            rows = zip(*[_python_values(column) for column in columns], strict=True)
            return pa.array([self._encoded(row) for row in rows], pa.binary())
        finally:
            if was_enabled:
                gc.enable()

    def _encoded(self, row: Sequence[Any]) -> bytes | None:
        """The message of a row; None for one that is not accepted, which nobody may ask for."""
        try:
            converted = [
                value if change is None or value is None else change(value)
                for value, change in zip(row, self._json, strict=True)
            ]
            # Deterministic: the order of a map is the same when a batch is written again.
            message = self._class(**dict(zip(self._names, converted, strict=True)))
            return bytes(message.SerializeToString(deterministic=True))
        except (TypeError, ValueError, RecursionError):
            return None


def _value_class(message: Descriptor) -> Any:
    """The class of google.protobuf.Value in the pool of a message; None if its file has no json."""
    try:
        return GetMessageClass(message.file.pool.FindMessageTypeByName(Value.DESCRIPTOR.full_name))
    except KeyError:
        return None


def _python_values(array: pa.Array) -> list[Any]:
    """The values as Python's. Four times as fast as `to_pylist` for numbers and texts, which make up most columns."""
    if pa.types.is_struct(array.type):
        return _structs(array)
    if pa.types.is_map(array.type):
        entries = list(zip(_python_values(array.keys), _python_values(array.items), strict=True))
        return [None if part is None else dict(part) for part in _slices(array, entries)]
    if pa.types.is_list(array.type):
        return _slices(array, _python_values(array.values))
    if array.null_count and not (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        return array.to_pylist()  # type: ignore[no-any-return]
    return array.to_numpy(zero_copy_only=False).tolist()  # type: ignore[no-any-return]


def _structs(array: pa.StructArray) -> list[Any]:
    names = [field.name for field in array.type]
    if not names:
        return array.to_pylist()  # type: ignore[no-any-return]
    rows = zip(*[_python_values(column) for column in array.flatten()], strict=True)
    made: list[Any] = [dict(zip(names, row, strict=True)) for row in rows]
    if array.null_count:
        return [one if valid else None for one, valid in zip(made, array.is_valid().to_pylist(), strict=True)]
    return made


def _slices(array: pa.Array, values: list[Any]) -> list[Any]:
    """The lists of an array of lists or maps, of all their values."""
    parts: list[Any] = [values[start:end] for start, end in pairwise(array.offsets.to_pylist())]
    if array.null_count:
        return [part if valid else None for part, valid in zip(parts, array.is_valid().to_pylist(), strict=True)]
    return parts


# json


class _JsonValues:
    """Makes functions that turn the JSON texts inside a value into messages of a pool's class of google.protobuf.Value."""

    def __init__(self, value_class: Any) -> None:
        self._class = value_class

    def converter(self, index: MessageIndex, field: FieldDescriptorProto, type_: Type) -> Convert | None:
        """The function for the values of a field; None if they hold no json."""
        match type_:
            case Json():
                return self._value
            case Record(fields):
                inner = MessageIndex(index.message_of(field))
                places = [(inner.fields[f.name], f.type) for f in fields]
                found = [(place.name, self.converter(inner, place, of)) for place, of in places]
                changes = [(name, change) for name, change in found if change is not None]
                return partial(_change_fields, changes) if changes else None
            case Array(element):
                each = self._element(index, field, element)
                return None if each is None else partial(_change_items, each)
            case Map(value):
                of_value = index.values_of(field)
                assert of_value is not None
                each = self._element(index, of_value, value)
                return None if each is None else partial(_change_values, each)
            case _:
                return None

    def _element(self, index: MessageIndex, field: FieldDescriptorProto, type_: Type) -> Convert | None:
        """The same for an element, which may stand in a message of its own. Only a null of type json can be written."""
        if isinstance(type_, Json):
            return lambda text: self._value("null" if text is None else text)
        if not isinstance(type_, Array | Map):
            return _unless_null(self.converter(index, field, type_))
        inner = MessageIndex(index.message_of(field))
        change = self.converter(inner, inner.fields["items"], type_)
        return None if change is None else _unless_null(partial(_change_fields, [("items", change)]))

    def _value(self, text: str) -> Any:
        return ParseDict(json.loads(text), self._class())


def _unless_null(change: Convert | None) -> Convert | None:
    return None if change is None else lambda value: None if value is None else change(value)


def _change_items(change: Convert, items: list[Any]) -> list[Any]:
    return [change(item) for item in items]


def _change_values(change: Convert, items: dict[str, Any]) -> dict[str, Any]:
    return {key: change(item) for key, item in items.items()}


def _change_fields(changes: Sequence[tuple[str, Convert]], record: dict[str, Any]) -> dict[str, Any]:
    for name, change in changes:
        if record[name] is not None:
            record[name] = change(record[name])
    return record


Gather: TypeAlias = Callable[[Column], Column]
"""From a value to the array of the JSON texts at one place inside of it."""


def _json_texts(type_: Type, path: str) -> Iterator[tuple[Gather, str]]:
    """The places of a type that hold json, each with its path."""
    match type_:
        case Json():
            yield lambda value: F.array(value), path
        case Record(fields):
            for field in fields:
                inner = _json_texts(field.type, field_path(path, field.name))
                yield from ((_in_field(field.name, gather), place) for gather, place in inner)
        case Array(element):
            inner = _json_texts(element, element_path(path))
            yield from ((_in_elements(lambda value: value, gather), place) for gather, place in inner)
        case Map(value):
            inner = _json_texts(value, value_path(path))
            yield from ((_in_elements(F.map_values, gather), place) for gather, place in inner)
        case _:
            return


def _in_field(name: str, gather: Gather) -> Gather:
    return lambda value: gather(value.getField(name))


def _in_elements(elements: Callable[[Column], Column], gather: Gather) -> Gather:
    return lambda value: F.flatten(F.transform(elements(value), lambda item: gather(item)))


def _loses_something(gather: Gather) -> Callable[[Column], Column]:
    def fails(value: Column) -> Column:
        found: Column = arrow_udf(_any_without_value, "boolean")(gather(value))  # type: ignore[call-overload]
        return F.coalesce(found, F.lit(False))

    return fails


def _any_without_value(texts: pa.Array) -> pa.Array:
    return pa.array([any(map(is_no_value, row or ())) for row in texts.to_pylist()], pa.bool_())


def is_no_value(text: str | None) -> bool:
    """Whether a JSON text would lose something in a google.protobuf.Value. Text that is not JSON is told elsewhere."""
    if text is None:
        return False
    try:
        return not _is_kept(json.loads(text, parse_float=decimal.Decimal, parse_int=decimal.Decimal), 0)
    except RecursionError:
        return True
    except ValueError:
        return False


def _is_kept(value: object, depth: int) -> bool:
    match value:
        case dict():
            return depth < _JSON_DEPTH and all(_is_kept(inner, depth + 1) for inner in value.values())
        case list():
            return depth < _JSON_DEPTH and all(_is_kept(inner, depth + 1) for inner in value)
        case decimal.Decimal():
            return decimal.Decimal(repr(float(value))) == value
        case _:
            return True
