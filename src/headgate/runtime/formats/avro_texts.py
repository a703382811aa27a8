"""Texts that must be UTF-8, and JSON and uuids among them: Avro itself takes whatever they hold."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate.runtime.formats.side import first_of, first_within
from headgate.schema.paths import ROOT, element_path, field_path, value_path
from headgate.schema.types import Array, Json, Map, Record, Text, Type, Uuid

FEW = 16  # texts of a record
_UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\z"


def is_utf8(column: Column, type_: Type) -> Column | None:
    """Whether all texts of a value are UTF-8; None if it has none. More than a few are put together first, or the code for
    them would be longer than Java compiles."""
    texts = [*_texts(column, type_)]
    if len(texts) > FEW:
        return F.is_valid_utf8(_joined(*texts))
    each = [F.is_valid_utf8(text) for text in texts]
    return F.coalesce(reduce(Column.__and__, each), F.lit(True)) if each else None


def _texts(column: Column, type_: Type, *, many: bool = False) -> Iterator[Column]:
    """The texts of a value, those of a list together: Spark makes no code to look at them one by one. ``many``: the column
    is an array of such values."""
    match type_:
        case Text():
            yield _joined(column) if many else column
        case Record(fields):
            for field in fields:
                yield from _texts(column.getField(field.name), field.type, many=many)
        case Array(element):
            yield from _texts(_flat(column) if many else column, element, many=True)
        case Map(value):
            keys = F.transform(column, F.map_keys) if many else F.map_keys(column)
            values = F.transform(column, F.map_values) if many else F.map_values(column)
            yield _joined(_flat(keys) if many else keys)
            yield from _texts(_flat(values) if many else values, value, many=True)
        case _:
            pass


def _joined(*texts: Column) -> Column:
    """One text, which is UTF-8 if all of them are: no character goes on over the end of a line."""
    return F.concat_ws("\n", *texts)


def _flat(arrays: Column) -> Column:
    return F.flatten(F.array_compact(arrays))  # which is NULL if one of them is


def wrong_text(column: Column, type_: Type, path: str = ROOT, *, plain: bool = False) -> Column | None:
    """Why a value is not of its type, or NULL; None if nothing of the type needs a look. ``plain``: also texts that are
    nothing more."""
    match type_:
        case Text() if plain:
            return F.when(~F.is_valid_utf8(column), F.lit(f"what is at {path} is not valid UTF-8"))
        case Json():
            return F.when(~_is_json(column), F.lit(f"what is at {path} is not JSON"))
        case Uuid():
            return F.when(~column.rlike(_UUID), F.lit(f"what is at {path} is not a uuid"))
        case Record(fields):
            return first_of(
                wrong_text(column.getField(f.name), f.type, field_path(path, f.name), plain=plain)
                for f in fields
            )
        case Array(element):
            return _first(column, element, element_path(path), plain)
        case Map(value):
            wrong_value = _first(F.map_values(column), value, value_path(path), plain)
            if not plain:
                return wrong_value
            keys = F.forall(F.map_keys(column), F.is_valid_utf8)
            wrong_key = F.when(~keys, F.lit(f"a key of what is at {path} is not valid UTF-8"))
            return first_of((wrong_key, wrong_value))
        case _:
            return None


def _first(values: Column, type_: Type, path: str, plain: bool) -> Column | None:
    return first_within(values, lambda value: wrong_text(value, type_, path, plain=plain))


def _is_json(text: Column) -> Column:
    """NULL for NULL. Spark's parser passes over whatever stands behind the first value; behind one that ends an array
    early, the two lengths do not both come out."""
    alone = F.json_array_length(F.concat(F.lit("["), text, F.lit("]")))
    beside = F.json_array_length(F.concat(F.lit("["), text, F.lit(",0]")))
    one = F.coalesce(alone == F.lit(1), F.lit(False)) & F.coalesce(beside == F.lit(2), F.lit(False))
    return F.when(text.isNotNull(), one & F.try_parse_json(text).isNotNull())
