"""What a well-formed Avro body may still hold that is not a value of its type: texts, times, uuids and JSON that are none.

The checks look at the columns as Spark's reader gives them, before `to_columns`. Behind it every check would contain the
whole converted record, and the plan of a record of 2,000 fields would not fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, functions as F

from headgate.runtime.formats.avro_types import FieldNames, field_of, is_converted, parts_of, to_leaf, value_type
from headgate.runtime.formats.side import first_element_error, first_error
from headgate.schema import types as t
from headgate.schema.formats.avro import tree
from headgate.schema.names import ROOT, element_path, field_path, value_path
from headgate.schema.render import print_type

MAX_SEPARATE_TEXTS = 16
_DAY = 86_400_000_000  # microseconds
_UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\z"


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
            return F.when(~leaf.of(column).rlike(_UUID), F.lit(f"what is at {path} is not a uuid"))
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
        return F.when(~micros.between(0, _DAY - 1), reason)
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
