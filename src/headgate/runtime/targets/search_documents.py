"""Rows of a relation -> documents of an index, as columns of Spark: `_id` and JSON, and what is wrong with a row that cannot be
a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame, functions as F

from headgate.plan.definitions import PRESENT
from headgate.plan.indexes import written_as_number
from headgate.plan.target_definitions import Fields, IndexDefinition, TargetField
from headgate.runtime.formats.json_text import json_object, json_text
from headgate.runtime.formats.write_checks import Place, Problem, field_checks, json_rule
from headgate.runtime.target_rows import FieldColumns, Leaf, leaves_of, value_at
from headgate.schema.formats.spark import to_spark
from headgate.schema.names import ROOT, field_path, internal_name
from headgate.schema.render import print_type, spark_identifier
from headgate.schema.types import Date, Double, Enum, Field, Json, Real, Text, Timestamp, TimestampTz, Type, Uuid, plain

ID, DOCUMENT, PROBLEM = internal_name("id"), internal_name("document"), internal_name("problem")
LONGEST_ID = 512  # bytes; one longer `_id` fails the whole bulk
TOO_LONG = f"the _id of the document would be longer than {LONGEST_ID} bytes"
NOT_AN_OBJECT = "an index holds json only if it is an object"
OUT_OF_YEARS = "its year is not one of 1 to 9999"


def index_rule(place: Place) -> Iterator[Problem]:
    """What a document cannot hold of a value that fits its type."""
    yield from json_rule(place)
    match place.type:
        case Json():
            yield (lambda value: ~F.ltrim(value).startswith("{") & (F.trim(value) != "null")), NOT_AN_OBJECT
        case Date() | Timestamp() | TimestampTz():
            yield (lambda value: ~F.year(value).between(1, 9999)), OUT_OF_YEARS


class IndexDocuments:
    """The documents of one index."""

    def __init__(self, definition: IndexDefinition) -> None:
        self._definition = definition

    def frame(self, rows: DataFrame, *further: Column, marked: bool = False) -> DataFrame:
        """The `_id` of every row, its JSON text, and what is wrong with it: struct<path, expected, reason> or NULL. A row that is
        deleted, or that has a problem, has no text. ``marked`` rows have the column `PRESENT`. ``further`` columns go along."""
        fields = FieldColumns(leaves_of(self._definition.fields))
        present = F.col(PRESENT) if marked else F.lit(True)
        ready = fields.with_documents(rows).withColumns({ID: self.id, PROBLEM: F.when(present, self._problem(fields))})
        document = json_object(list(_members(self._definition.fields, iter(fields.values))))
        text = F.when(present & F.col(PROBLEM).isNull(), document)
        return ready.select(F.col(ID), text.alias(DOCUMENT), F.col(PROBLEM), *further)

    def keys(self, changed: DataFrame) -> DataFrame:
        """Deletions of the keys of a frame that has the key columns of the relation."""
        nothing = F.lit(None).cast("struct<path: string, expected: string, reason: string>")
        return changed.select(self.id.alias(ID), F.lit(None).cast("string").alias(DOCUMENT), nothing.alias(PROBLEM))

    @property
    def id(self) -> Column:
        """The `_id`: the text of one key column, or the JSON array of several; empty if there is no key."""
        return document_id(key_columns(self._definition)) if self._definition.key else F.lit("")

    def _problem(self, fields: FieldColumns) -> Column:
        """What is wrong with the types of a row comes first."""
        own = [_leaf_problem(leaf, value) for leaf, value in zip(fields.leaves, fields.values, strict=True)]
        if self._definition.key:
            path = field_path(ROOT, self._definition.key[0]) if len(self._definition.key) == 1 else ROOT
            own.append(F.when(F.octet_length(self.id) > LONGEST_ID, _problem(path, "text", TOO_LONG)))
        return F.coalesce(fields.problem, *[one for one in own if one is not None])


def _leaf_problem(leaf: Leaf, value: Column) -> Column | None:
    """What a document cannot hold of a leaf. What the leaf keeps as JSON text was checked when the text was made."""
    if leaf.is_json and not isinstance(leaf.field.type, Json):
        return None
    found: Column | None = None
    path = ROOT
    for step in leaf.place.tokens:
        path = field_path(path, step)
    expected = print_type(plain(leaf.field.type))
    for check in field_checks(Field("v", leaf.field.type), index_rule):
        problem = _problem(path, expected, check.reason)
        fails = check.fails(value)
        found = F.when(fails, problem) if found is None else found.when(fails, problem)
    return found


def _members(fields: Fields, values: Iterator[Column]) -> Iterator[tuple[Field, Column]]:
    """The members of an object, made of the next values of leaves."""
    for field in fields:
        if field.fields:
            yield Field(field.name, Json()), _object(field, values)
        else:
            yield Field(field.name, _held(field)), next(values)


def _object(field: TargetField, values: Iterator[Column]) -> Column:
    """The JSON text of an object, NULL where the relation has none."""
    made = json_object(list(_members(field.fields, values)))
    if field.path is None or field.path.inside is not None:
        return made
    return F.when(value_at(field.path).isNotNull(), made)


def _held(field: TargetField) -> Type:
    """The type that the value of a leaf has, or the one by which it is written."""
    if Leaf(field, ()).is_json:
        return Json()
    return written_as_number(field.type) if field.native == "scaled_float" else field.type


def key_columns(definition: IndexDefinition) -> list[tuple[str, Type]]:
    """The columns of the relation's key, and their types."""
    by_name = {field.name: field for field in definition.fields}
    found = []
    for name in definition.key:
        field = by_name[name]
        assert field.path is not None, "a key is a column"
        found.append((field.path.column, field.source or field.type))
    return found


def document_id(key: Sequence[tuple[str, Type]]) -> Column:
    """The text of one key column, or the JSON array of several. An index has no empty `_id`, so an empty text, and NULL, are JSON
    arrays too; and so is a text that could be taken for one."""
    parts = [(_key_column(name, type_), type_) for name, type_ in key]
    texts = [F.coalesce(json_text(column, type_), F.lit("null")) for column, type_ in parts]
    array = F.concat(F.lit("["), F.concat_ws(",", *texts), F.lit("]"))
    if len(parts) != 1:
        return array
    [(column, type_)] = parts
    text = column if isinstance(type_, Text | Enum | Uuid) else _unquoted(json_text(column, type_))
    return F.when(column.isNull() | (text == "") | text.startswith("["), array).otherwise(text)


def _key_column(name: str, type_: Type) -> Column:
    """The key 0.0 is the key -0.0."""
    column = F.col(spark_identifier(name))
    return column + F.lit(0.0).cast(to_spark(type_)) if isinstance(type_, Real | Double) else column


def _unquoted(text: Column) -> Column:
    """The content of a JSON string that needs no escapes, or other JSON as it is."""
    return F.when(text.startswith('"'), F.substring(text, F.lit(2), F.length(text) - 2)).otherwise(text)


def _problem(path: str, expected: str, reason: str) -> Column:
    return F.struct(F.lit(path).alias("path"), F.lit(expected).alias("expected"), F.lit(reason).alias("reason"))
