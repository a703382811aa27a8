"""Bytes, texts and JSON texts: values that are their bytes."""

from __future__ import annotations

import re

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate.runtime.formats.json_reader import json_problem
from headgate.runtime.formats.side import NOT_UTF8
from headgate.schema.encodings import CsvEncoding, RegexEncoding
from headgate.schema.formats.regex import group_pattern


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


# Stands for a delimiter that is none within quotes, while a line is taken apart. A line that holds it is refused.
_SEPARATOR = "\x00\x1f\x01headgate\x01\x1f\x00"


class CsvReader(TextReader):
    """``inner`` is the fields as they are written, quotes included; NULL if the line cannot be taken apart."""

    def __init__(self, side: CsvEncoding) -> None:
        self._side = side

    def costly(self, data: Column) -> Column:
        line = F.regexp_replace(data.cast("string"), r"\r?\n\z", "")
        plain = F.split(line, _literal(self._side.delimiter), -1)
        parts = F.split(line, '"', -1)  # those at even places are outside of quotes
        delimiter, separator = F.lit(self._side.delimiter), F.lit(_SEPARATOR)
        outside = F.transform(
            parts, lambda part, at: F.when(at % 2 == 0, F.replace(part, delimiter, separator)).otherwise(part)
        )
        quoted = F.split(F.concat_ws('"', outside), _literal(_SEPARATOR), -1)
        return F.when(~F.contains(line, F.lit('"')), plain).when(~F.contains(line, separator), quoted)

    def fits(self, data: Column, inner: Column) -> Column:
        return (
            super().fits(data, inner)
            & (F.size(inner) == len(self._side.columns))
            & F.forall(inner, _is_well_formed)
        )

    def reason(self, data: Column, inner: Column) -> Column:
        wanted = len(self._side.columns)
        number = F.concat(F.lit("it has "), F.size(inner), F.lit(f" columns, not {wanted}"))
        return (
            F.when(~super().fits(data, inner), F.lit(NOT_UTF8))
            .when(inner.isNull(), F.lit("it cannot be taken apart"))
            .when(
                ~F.forall(inner, _is_well_formed),
                F.lit("its quotes or line ends are not those of one CSV line"),
            )
            .otherwise(number)
        )

    def value(self, data: Column, inner: Column) -> Column:
        fields = [
            _unquoted(F.get(inner, F.lit(number))).alias(name)
            for number, name in enumerate(self._side.columns)
        ]
        return F.when(inner.isNotNull(), F.struct(*fields))


def _literal(text: str) -> str:
    """A pattern of Java that matches just the text."""
    return re.escape(text) if len(text) == 1 else f"\\Q{text}\\E"


def _is_well_formed(field: Column) -> Column:
    """Without a quote and on one line; or within quotes, and each quote in it written twice."""
    plain = ~F.contains(field, F.lit('"')) & ~F.contains(field, F.lit("\n")) & ~F.contains(field, F.lit("\r"))
    inside = F.replace(_inside(field), F.lit('""'), F.lit(""))
    enclosed = F.startswith(field, F.lit('"')) & F.endswith(field, F.lit('"')) & (F.length(field) >= 2)
    return plain | (enclosed & ~F.contains(inside, F.lit('"')))


def _unquoted(field: Column) -> Column:
    quoted = F.replace(_inside(field), F.lit('""'), F.lit('"'))
    return F.when(F.startswith(field, F.lit('"')), quoted).otherwise(field)


def _inside(field: Column) -> Column:
    return F.substring(field, F.lit(2), F.length(field) - 2)


NO_MATCH = "the pattern does not match it"


class RegexReader(TextReader):
    """``inner`` is a struct of the columns, NULL for a text without a match.

    Spark gives an empty text for a group that took no part in the match, too. `marked` tells the two apart.
    """

    def __init__(self, side: RegexEncoding) -> None:
        self._side = side
        self._marked = group_pattern(side.pattern)

    def costly(self, data: Column) -> Column:
        text = data.cast("string")
        fields = [self._group(text, number).alias(name) for number, name in enumerate(self._side.columns)]
        return F.when(F.rlike(text, F.lit(self._side.pattern)), F.struct(*fields))

    def _group(self, text: Column, number: int) -> Column:
        java, group, marks = self._marked.java, self._marked.groups[number], self._marked.marks[number]
        found = F.regexp_extract(text, java, group)
        if marks is None:
            return found
        took_part = F.concat(*[F.regexp_extract(text, java, mark) for mark in marks]) != F.lit("")
        for_empty_text = F.rlike(text, F.lit(self._marked.for_empty_text[number]))
        return F.when(F.when(text == F.lit(""), for_empty_text).otherwise(took_part), found)

    def fits(self, data: Column, inner: Column) -> Column:
        return super().fits(data, inner) & inner.isNotNull()

    def reason(self, data: Column, inner: Column) -> Column:
        return F.when(~super().fits(data, inner), F.lit(NOT_UTF8)).otherwise(F.lit(NO_MATCH))

    def value(self, data: Column, inner: Column) -> Column:
        return inner
