"""Bytes, texts and JSON texts: values that are their bytes."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate.runtime.formats.json_check import json_problem
from headgate.runtime.formats.side import NOT_UTF8


class BytesReader:
    brings_over = False

    def costly(self, data: Column) -> Column:
        return F.lit(None).cast("string")

    def fits(self, data: Column, inner: Column) -> Column:
        return F.lit(True)

    def reason(self, data: Column, inner: Column) -> Column:
        return F.lit(None).cast("string")

    def value(self, data: Column, inner: Column) -> Column:
        return data

    def schema_id(self, data: Column) -> Column:
        return F.lit(None).cast("int")


class TextReader(BytesReader):
    def fits(self, data: Column, inner: Column) -> Column:
        return F.is_valid_utf8(data.cast("string"))

    def reason(self, data: Column, inner: Column) -> Column:
        return F.lit(NOT_UTF8)

    def value(self, data: Column, inner: Column) -> Column:
        return data.cast("string")


class JsonReader(TextReader):
    """``inner`` is why the text is not JSON."""

    def costly(self, data: Column) -> Column:
        return json_problem(data)

    def fits(self, data: Column, inner: Column) -> Column:
        return super().fits(data, inner) & inner.isNull()

    def reason(self, data: Column, inner: Column) -> Column:
        return F.when(~super().fits(data, inner), F.lit(NOT_UTF8)).otherwise(inner)


# Those that compute nothing beforehand.
PLAIN = (BytesReader, TextReader)
