"""Texts that must be UTF-8, and JSON and uuids among them: Avro itself takes whatever they hold."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate.schema.paths import ROOT, element_path, field_path, value_path
from headgate.schema.types import Array, Json, Map, Record, Text, Type, Uuid

_UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\z"


def wrong_text(column: Column, type_: Type, path: str = ROOT) -> Column | None:
    """Why a value is not of its type, or NULL; None if nothing of the type needs a look."""
    match type_:
        case Text():
            return F.when(~F.is_valid_utf8(column), F.lit(f"what is at {path} is not valid UTF-8"))
        case Json():
            return F.when(~_is_json(column), F.lit(f"what is at {path} is not JSON"))
        case Uuid():
            return F.when(~column.rlike(_UUID), F.lit(f"what is at {path} is not a uuid"))
        case Record(fields):
            inner = [wrong_text(column.getField(f.name), f.type, field_path(path, f.name)) for f in fields]
            found = [reason for reason in inner if reason is not None]
            return F.coalesce(*found) if found else None
        case Array(element):
            return _first(column, element, element_path(path))
        case Map(value):
            keys = _joined(F.map_keys(column))
            wrong_key = F.when(
                ~F.is_valid_utf8(keys), F.lit(f"a key of what is at {path} is not valid UTF-8")
            )
            wrong_value = _first(F.map_values(column), value, value_path(path))
            return wrong_key if wrong_value is None else F.coalesce(wrong_key, wrong_value)
        case _:
            return None


def _first(values: Column, type_: Type, path: str) -> Column | None:
    if isinstance(type_, Text):
        return wrong_text(_joined(values), type_, path)
    if wrong_text(F.lit(None), type_, path) is None:
        return None
    return F.get(F.array_compact(F.transform(values, lambda value: _told(value, type_, path))), 0)


def _joined(texts: Column) -> Column:
    """One text, which is UTF-8 if all of them are: no byte of a character is a comma. Much quicker than one by one, for
    which Spark makes no code."""
    return F.array_join(texts, ",")


def _told(value: Column, type_: Type, path: str) -> Column:
    reason = wrong_text(value, type_, path)
    assert reason is not None
    return reason


def _is_json(text: Column) -> Column:
    """NULL for NULL. Spark's parser passes over whatever stands behind the first value; behind one that ends an array
    early, the two lengths do not both come out."""
    alone = F.json_array_length(F.concat(F.lit("["), text, F.lit("]")))
    beside = F.json_array_length(F.concat(F.lit("["), text, F.lit(",0]")))
    one = F.coalesce(alone == F.lit(1), F.lit(False)) & F.coalesce(beside == F.lit(2), F.lit(False))
    return F.when(text.isNotNull(), one & F.try_parse_json(text).isNotNull())
