"""Rows -> documents of a given JSON Schema in the JVM, for schemas that `json_shape` understands.

Python workers take ten times as long. They stay for patterns, conditions and choices between several types.
"""

from __future__ import annotations

from pyspark.sql import Column

from headgate.plan.definitions import RecordEncoding
from headgate.runtime.formats.frame import framed
from headgate.runtime.formats.given_avro import FilledRowWriter, can_fill
from headgate.runtime.formats.json_shape import NotPlain, Shape, shape_of
from headgate.runtime.formats.json_text import json_object
from headgate.runtime.formats.writers import Row
from headgate.schema import types as t
from headgate.schema.encodings import type_of_schema


class GivenJsonWriter(FilledRowWriter):
    """Writes the document of a row. Made by `json_in_jvm` alone."""

    def __init__(self, side: RecordEncoding, physical: t.Record, shape: Shape) -> None:
        super().__init__(side, physical, shape.rule)
        self._schema_id = side.schema_id
        self._left_out = frozenset(shape.left_out)

    def encode(self, row: Row) -> Column:
        assert self._schema_id is not None
        made = self._rewritten(row)
        fields = [(field, made[field.name]) for field in self._physical.fields]
        return framed(self._schema_id, json_object(fields, self._left_out).cast("binary"))


def json_in_jvm(side: RecordEncoding) -> GivenJsonWriter | None:
    """A writer for the side; None if Python workers must write it."""
    written = side.written
    if side.encoding != "JSON SCHEMA" or side.whole or written is None:
        return None
    physical = type_of_schema(written.format, written).type
    if not isinstance(physical, t.Record) or not can_fill(side.record, physical):
        return None
    try:
        return GivenJsonWriter(side, physical, shape_of(written, physical))
    except NotPlain:
        return None
