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
from typing import Any, TypeAlias

import pyarrow as pa
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import Column, functions as F
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
    """Makes messages of the rows of Arrow batches. It is made once per process and schema.

    One message is used again for all rows, and its fields are set one by one: of a row with four numbers and texts this takes
    half of the time that a new message takes.
    """

    def __init__(self, record: Record, descriptors: bytes) -> None:
        index = _first_message(descriptors)
        self._class: Any = GetMessageClass(find_message(linked(descriptors), index.message.name))
        self._has_maps = _has_map(record)
        self._scalars: list[tuple[int, str]] = []
        self._others: list[tuple[int, Fill]] = []
        for place, field in enumerate(record.fields):
            found = index.fields[field.name]
            if _is_scalar(found):
                self._scalars.append((place, found.name))
            else:
                self._others.append((place, _filler(index, found, field.type)))

    def __call__(self, columns: Sequence[pa.Array]) -> pa.Array:
        # Thousands of rows are alive at once and none is part of a cycle.
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return pa.array(self._bodies(columns), pa.binary())
        finally:
            if was_enabled:
                gc.enable()

    def _bodies(self, columns: Sequence[pa.Array]) -> list[bytes | None]:
        """The message of each row; None for one that is not accepted, which nobody may ask for."""
        message, bodies = self._class(), list[bytes | None]()
        for row in zip(*map(_python_values, columns), strict=True):
            message.Clear()
            try:
                for place, name in self._scalars:
                    if row[place] is not None:
                        setattr(message, name, row[place])
                for place, fill in self._others:
                    if row[place] is not None:
                        fill(message, row[place])
                # Sorted, the entries of a map come in the same order when a batch is written again. It doubles the time.
                bodies.append(message.SerializeToString(deterministic=self._has_maps))
            except (TypeError, ValueError, AttributeError, RecursionError):
                bodies.append(None)
        return bodies


def _python_values(column: pa.Array) -> list[Any]:
    """The values as Python's. pyarrow takes ten times as long for numbers and texts if it is told how to show maps."""
    nested = pa.types.is_nested(column.type)
    return column.to_pylist(maps_as_pydicts="strict") if nested else column.to_pylist()  # type: ignore[no-any-return]


def _has_map(type_: Type) -> bool:
    """Whether values hold a map. The members of json are one."""
    match type_:
        case Map() | Json():
            return True
        case Array(element):
            return _has_map(element)
        case Record(fields):
            return any(_has_map(field.type) for field in fields)
        case _:
            return False


Fill: TypeAlias = Callable[[Any, Any], None]
"""Sets a part of a message, or a whole one, from a value that is not null."""


def _is_scalar(field: FieldDescriptorProto) -> bool:
    return field.label != field.LABEL_REPEATED and field.type != field.TYPE_MESSAGE


def _filler(index: MessageIndex, field: FieldDescriptorProto, type_: Type) -> Fill:
    """Sets one field of a message."""
    name = field.name
    match type_:
        case Array(element):
            each = _message_filler(index, field, element)
            return partial(_extend, name) if each is None else partial(_add_messages, name, each)
        case Map(value):
            of_value = index.values_of(field)
            assert of_value is not None
            each = _message_filler(index, of_value, value)
            return partial(_update, name) if each is None else partial(_put_messages, name, each)
        case _:
            whole = _message_filler(index, field, type_)
            if whole is None:
                return lambda message, value: setattr(message, name, value)
            return lambda message, value: whole(getattr(message, name), value)


def _message_filler(index: MessageIndex, field: FieldDescriptorProto, type_: Type) -> Fill | None:
    """Sets all of a message that stands for one value; None if the field is no message."""
    match type_:
        case Json():
            return _fill_json
        case Date() | Time() | TimestampTz():
            return _fill_parts
        case Record(fields):
            inner = MessageIndex(index.message_of(field))
            places = [(inner.fields[f.name], f.type) for f in fields]
            return partial(_fill_record, [(place.name, _filler(inner, place, of)) for place, of in places])
        case Array() | Map():  # in a message of its own, because Protobuf cannot nest lists
            inner = MessageIndex(index.message_of(field))
            return partial(_fill_record, [("items", _filler(inner, inner.fields["items"], type_))])
        case _:
            return None


def _extend(name: str, message: Any, values: list[Any]) -> None:
    getattr(message, name).extend(values)


def _add_messages(name: str, fill: Fill, message: Any, values: list[Any]) -> None:
    add = getattr(message, name).add
    for value in values:
        fill(add(), value)


def _update(name: str, message: Any, values: dict[str, Any]) -> None:
    target = getattr(message, name)
    for key, value in values.items():
        target[key] = value


def _put_messages(name: str, fill: Fill, message: Any, values: dict[str, Any]) -> None:
    target = getattr(message, name)
    for key, value in values.items():
        fill(target[key], value)


def _fill_record(fills: Sequence[tuple[str, Fill]], message: Any, record: dict[str, Any]) -> None:
    message.SetInParent()  # a record without any value is not a missing one
    for name, fill in fills:
        value = record[name]
        if value is not None:
            fill(message, value)


def _fill_parts(message: Any, parts: dict[str, int]) -> None:
    message.SetInParent()
    for name, value in parts.items():
        setattr(message, name, value)


def _fill_json(message: Any, text: str | None) -> None:
    """An element that is null is JSON's null."""
    document: Any = None if text is None else json.loads(text)
    message.SetInParent()
    ParseDict(document, message)


# json


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
