"""What Spark's Avro reader gives -> the columns that an Avro schema has here.

Both agree except for a few types that Spark reads more plainly. Whatever agrees is left alone, so that an ordinary schema
costs nothing.

`value_error` finds what a well-formed Avro body may still hold that is not a value of its type: texts, times, uuids and JSON that are
none. Its checks look at the columns as Spark's reader gives them. Behind `to_columns` every check would contain the whole converted
record, and the plan of a record of 2,000 fields would not fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from pyspark.sql import Column, functions as F

from headgate.runtime.formats.side import first_element_error, first_error
from headgate.schema import types as t
from headgate.schema.formats.avro import tree
from headgate.schema.names import ROOT, element_path, field_path, value_path
from headgate.schema.render import print_type

_DAY = 86_400_000  # milliseconds
_MAX_MILLIS = 2**63 // 1000  # milliseconds of which the microseconds can be counted
_UUID_PARTS, _UUID = "^(.{8})(.{4})(.{4})(.{4})(.{12})$", "$1-$2-$3-$4-$5"


def to_columns(column: Column, schema: tree.AvroType, type_: t.Type) -> Column:
    """The column that Spark made of a schema, as the neutral type of that schema. A value that is not of the type is NULL;
    `value_error` says why."""
    if not needs_conversion(schema):
        return column
    match value_type(schema), type_:
        case _, t.Record():
            parts = [
                to_columns(field_of(column, names), of, f.type).alias(f.name)
                for names, of, f in parts_of(schema, type_)
            ]
            return F.when(column.isNotNull(), F.struct(*parts))
        case tree.Array(items), t.Array(element):
            return F.transform(column, lambda item: to_columns(item, items, element))
        case tree.Map(values), t.Map(inner):
            return F.transform_values(column, lambda _, value: to_columns(value, values, inner))
        case plain, _:
            return to_leaf(column, plain, type_)


def needs_conversion(schema: tree.AvroType) -> bool:
    """Whether Spark reads anything in the schema in another way: unions of several types, times in milliseconds, uuids that
    are bytes, dates and times that only the names of Connect or Debezium mark."""
    return any(map(is_converted, tree.walk(schema)))


def is_converted(node: tree.AvroType) -> bool:
    """Whether Spark reads this very node in another way, whatever is inside it."""
    match node:
        case tree.Union():
            return _is_split(node)
        case tree.Record():  # the name that Connect gives to a record says nothing of its fields
            return False
        case _:
            logical = _logical_type(node)
            is_uuid = isinstance(node, tree.Fixed) and logical == "uuid"
            return logical == "time-millis" or is_uuid or "connect.name" in node.attributes


def to_leaf(column: Column, schema: tree.AvroType, type_: t.Type) -> Column:
    """A value without parts as its neutral type, NULL if it is no value of it."""
    kind, logical = tree.kind_of(schema), _logical_type(schema)
    match type_:
        case t.Time() if kind == "int":
            return F.when(column.between(0, _DAY - 1), F.call_function("time_from_millis", column))
        case t.Time() if kind == "long" and not logical:
            return F.when(column.between(0, _DAY * 1000 - 1), F.call_function("time_from_micros", column))
        case t.Date() if kind == "int" and not logical:
            return F.date_from_unix_date(column)
        case t.TimestampTz() if kind == "long" and not logical:
            return _timestamp(column, schema)
        case t.TimestampTz() if kind == "string":
            return column.try_cast("timestamp")
        case t.Timestamp() if kind == "long" and not str(logical).startswith("local"):
            return (column if logical else _timestamp(column, schema)).cast("timestamp_ntz")
        case t.Uuid() if kind == "fixed":
            return F.lower(F.regexp_replace(F.hex(column), _UUID_PARTS, _UUID))
        case _:
            return column


def _timestamp(column: Column, schema: tree.AvroType) -> Column:
    """A long that only the name of Connect or Debezium makes a timestamp."""
    if str(_attribute(schema, "connect.name")).endswith("MicroTimestamp"):
        return F.timestamp_micros(column)
    return F.when(column.between(-_MAX_MILLIS, _MAX_MILLIS - 1), F.timestamp_millis(column))


FieldNames: TypeAlias = tuple[str, ...]
"""A field inside a column, by the names that Spark has for the fields on the way to it."""


def field_of(column: Column, names: FieldNames) -> Column:
    return reduce(Column.getField, names, column)


def parts_of(schema: tree.AvroType, type_: t.Record) -> Iterator[tuple[FieldNames, tree.AvroType, t.Field]]:
    """The fields of a record, each with its schema; those of a union of several types one by one."""
    wanted = iter(type_.fields)
    if _is_split(schema):
        yield from _members((), schema, wanted)
        return
    record = value_type(schema)
    assert isinstance(record, tree.Record)
    for member in record.fields:
        if _is_split(member.type):
            yield from _members((member.name,), member.type, wanted)
        else:
            yield (member.name,), member.type, next(wanted)


def _members(
    names: FieldNames, union: tree.AvroType, wanted: Iterator[t.Field]
) -> Iterator[tuple[FieldNames, tree.AvroType, t.Field]]:
    for number, branch in enumerate(tree.values_of(union)):
        yield (*names, f"member{number}"), branch, next(wanted)


def _is_split(node: tree.AvroType) -> bool:
    """Whether a union becomes several columns."""
    return len(tree.values_of(node)) > 1


def value_type(node: tree.AvroType) -> tree.AvroType:
    """The type behind a nullable union."""
    return tree.values_of(node)[0]


def _logical_type(node: tree.AvroType) -> object:
    return _attribute(node, "logicalType")


def _attribute(node: tree.AvroType, key: str) -> object:
    return None if isinstance(node, tree.Union) else node.attributes.get(key)


MAX_SEPARATE_TEXTS = 16
_DAY_IN_MICROS = 86_400_000_000  # microseconds
_UUID_FORM = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\z"


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A value inside a record, or inside a record of the record: anything but a record itself. Its column is made only if a
    check needs it, because making one takes a call into the JVM."""

    names: FieldNames
    schema: tree.AvroType
    type: t.Type
    path: str

    def of(self, column: Column) -> Column:
        return field_of(column, self.names)


def _leaves(schema: tree.AvroType, type_: t.Type, path: str = ROOT, names: FieldNames = ()) -> Iterator[_Leaf]:
    if isinstance(type_, t.Record):
        for inner, of, field in parts_of(schema, type_):
            yield from _leaves(of, field.type, field_path(path, field.name), (*names, *inner))
    else:
        yield _Leaf(names, value_type(schema), type_, path)


# errors


def value_error(
    column: Column, schema: tree.AvroType, type_: t.Type, path: str = ROOT, *, plain: bool = False
) -> Column | None:
    """Why what Spark made of a schema is not a value of its type, or NULL; None if nothing in it needs a check. With
    ``plain`` texts that are only texts are checked too."""
    return first_error(_error(column, leaf, plain) for leaf in _leaves(schema, type_, path))


def _error(column: Column, leaf: _Leaf, plain: bool) -> Column | None:
    path = leaf.path
    match leaf.schema, leaf.type:
        case _, t.Text() if plain:
            return F.when(~F.is_valid_utf8(leaf.of(column)), F.lit(f"what is at {path} is not valid UTF-8"))
        case _, t.Json():
            return F.when(~_is_json(leaf.of(column)), F.lit(f"what is at {path} is not JSON"))
        case schema, t.Uuid() if tree.kind_of(schema) == "string":
            return F.when(~leaf.of(column).rlike(_UUID_FORM), F.lit(f"what is at {path} is not a uuid"))
        case _, t.Time() | t.Timestamp() | t.TimestampTz():
            return _time_error(column, leaf)
        case tree.Array(items), t.Array(element):
            return _first(leaf.of(column), items, element, element_path(path), plain)
        case tree.Map(values), t.Map(inner):
            wrong_value = _first(F.map_values(leaf.of(column)), values, inner, value_path(path), plain)
            return first_error((_key_error(leaf.of(column), path), wrong_value)) if plain else wrong_value
        case _:
            return None


def _first(values: Column, schema: tree.AvroType, type_: t.Type, path: str, plain: bool) -> Column | None:
    return first_element_error(values, lambda value: value_error(value, schema, type_, path, plain=plain))


def _key_error(map_: Column, path: str) -> Column:
    valid = F.forall(F.map_keys(map_), F.is_valid_utf8)
    return F.when(~valid, F.lit(f"a key of what is at {path} is not valid UTF-8"))


def _time_error(column: Column, leaf: _Leaf) -> Column | None:
    reason = F.lit(f"what is at {leaf.path} is no {print_type(leaf.type)}")
    if is_converted(leaf.schema):
        value = leaf.of(column)
        return F.when(value.isNotNull() & to_leaf(value, leaf.schema, leaf.type).isNull(), reason)
    if isinstance(leaf.type, t.Time):  # Spark takes any number for a time of day, and other functions then fail on it
        micros = F.call_function("time_to_micros", leaf.of(column))
        return F.when(~micros.between(0, _DAY_IN_MICROS - 1), reason)
    return None


def _is_json(text: Column) -> Column:
    """Whether a text is one JSON value; NULL for NULL. Spark's parser ignores whatever stands behind the first value. A text
    that ends the array early does not give both lengths."""
    alone = F.json_array_length(F.concat(F.lit("["), text, F.lit("]")))
    beside = F.json_array_length(F.concat(F.lit("["), text, F.lit(",0]")))
    one = F.coalesce(alone == F.lit(1), F.lit(False)) & F.coalesce(beside == F.lit(2), F.lit(False))
    return F.when(text.isNotNull(), one & F.try_parse_json(text).isNotNull())


# UTF-8


def is_utf8(column: Column, schema: tree.AvroType, type_: t.Type) -> Column | None:
    """Whether all texts of a value are UTF-8; None if it has no text. Many texts are joined first: otherwise the generated
    code would be longer than Java compiles."""
    texts = [*_texts(column, schema, type_)]
    if len(texts) > MAX_SEPARATE_TEXTS:
        return F.is_valid_utf8(_joined(*texts))
    each = [F.is_valid_utf8(text) for text in texts]
    return F.coalesce(reduce(Column.__and__, each), F.lit(True)) if each else None


def _texts(column: Column, schema: tree.AvroType, type_: t.Type, *, many: bool = False) -> Iterator[Column]:
    """The texts of a value. Those of a list are joined, because Spark generates no code for checking them one by one. With
    ``many`` the column is an array of such values."""
    for leaf in _leaves(schema, type_):
        match leaf.schema, leaf.type:
            case _, t.Text():
                yield _joined(leaf.of(column)) if many else leaf.of(column)
            case tree.Array(items), t.Array(element):
                elements = leaf.of(column)
                yield from _texts(_flat(elements) if many else elements, items, element, many=True)
            case tree.Map(of), t.Map(inner):
                map_ = leaf.of(column)
                keys = F.transform(map_, F.map_keys) if many else F.map_keys(map_)
                values = F.transform(map_, F.map_values) if many else F.map_values(map_)
                yield _joined(_flat(keys) if many else keys)
                yield from _texts(_flat(values) if many else values, of, inner, many=True)
            case _:
                pass


def _joined(*texts: Column) -> Column:
    """One text, which is UTF-8 exactly if all of them are: no character continues over the end of a line."""
    return F.concat_ws("\n", *texts)


def _flat(arrays: Column) -> Column:
    return F.flatten(F.array_compact(arrays))  # flatten gives NULL if one of them is NULL
