"""BYTES, TEXT, CSV and REGEX: formats without a schema, read by expressions of the JVM.

CSV is read as RFC 4180 has it. Spark's own `from_csv` is not used: it silently takes what is not well formed (`a"b`, text
behind a closing quote, a second line) for something else.
"""

from __future__ import annotations

import re

from pyspark.sql import Column, functions as F

from headgate.runtime.formats.delimited import fits, typed
from headgate.runtime.formats.side import NOT_UTF8
from headgate.schema.encodings import CsvEncoding, PrimitiveEncoding, RegexEncoding
from headgate.schema.formats.regex import group_pattern
from headgate.schema.render import print_type
from headgate.schema.types import Bigint, Integer


class BytesReader:
    converts = False

    def decode(self, data: Column) -> Column:
        return F.lit(None).cast("string")

    def accepts(self, data: Column, decoded: Column) -> Column:
        return F.lit(True)

    def error(self, data: Column, decoded: Column) -> Column:
        return F.lit(None).cast("string")

    def value(self, data: Column, decoded: Column) -> Column:
        return data

    def fields(self, data: Column, decoded: Column) -> Column:
        return self.value(data, decoded)

    def schema_id(self, data: Column) -> Column:
        return F.lit(None).cast("int")


class TextReader(BytesReader):
    def accepts(self, data: Column, decoded: Column) -> Column:
        return F.is_valid_utf8(data.cast("string"))

    def error(self, data: Column, decoded: Column) -> Column:
        return F.lit(NOT_UTF8)

    def value(self, data: Column, decoded: Column) -> Column:
        return data.cast("string")


class PrimitiveReader(BytesReader):
    """A number in big-endian order. Spark reads whole numbers from hexadecimal digits, and has no way from bytes to a
    double but through the bits of its parts."""

    def __init__(self, side: PrimitiveEncoding) -> None:
        self._type = side.type
        self._length = 4 if isinstance(side.type, Integer) else 8

    def accepts(self, data: Column, decoded: Column) -> Column:
        return F.length(data) == self._length

    def error(self, data: Column, decoded: Column) -> Column:
        return F.concat(F.lit("it has "), F.length(data), F.lit(f" bytes, not {self._length}"))

    def value(self, data: Column, decoded: Column) -> Column:
        number = _signed(data, self._length)
        if isinstance(self._type, Integer):
            return number.cast("int")
        return number if isinstance(self._type, Bigint) else _double(number)


def _signed(data: Column, length: int) -> Column:
    """The bytes as a number in two's complement."""
    digits = F.hex(data)
    high = F.conv(F.substring(digits, 1, 8), 16, 10).cast("bigint")
    signed = F.when(high >= 2**31, high - 2**32).otherwise(high)
    if length == 4:
        return signed
    low = F.conv(F.substring(digits, 9, 8), 16, 10).cast("bigint")
    return F.shiftleft(signed, 32).bitwiseOR(low)


def _double(bits: Column) -> Column:
    """The number whose IEEE form has these bits."""
    exponent = F.shiftright(bits, 52).bitwiseAND(F.lit(0x7FF))
    fraction = bits.bitwiseAND(F.lit(0xFFFFFFFFFFFFF))
    sign = F.when(bits < 0, F.lit(-1.0)).otherwise(F.lit(1.0))
    normal = (fraction.bitwiseOR(F.lit(0x10000000000000))).cast("double") * F.pow(F.lit(2.0), exponent - F.lit(1075))
    small = fraction.cast("double") * F.pow(F.lit(2.0), F.lit(-1022)) * F.pow(F.lit(2.0), F.lit(-52))
    special = F.when(fraction == 0, sign * F.lit(float("inf"))).otherwise(F.lit(float("nan")))
    return F.when(exponent == 0x7FF, special).when(exponent == 0, sign * small).otherwise(sign * normal)


# Readers whose `decode` computes nothing.
PLAIN = (BytesReader, TextReader, PrimitiveReader)
NO_MATCH = "the pattern does not match it"

# Takes the place of a delimiter outside of quotes while a line is split. A line that contains it is refused.
_SEPARATOR = "\x00\x1f\x01headgate\x01\x1f\x00"


class CsvReader(TextReader):
    """``decoded`` has the fields as they are written, quotes included; NULL if the line cannot be split."""

    def __init__(self, side: CsvEncoding) -> None:
        self._side = side

    def decode(self, data: Column) -> Column:
        line = F.regexp_replace(data.cast("string"), r"\r?\n\z", "")
        plain = F.split(line, _literal(self._side.delimiter), -1)
        parts = F.split(line, '"', -1)  # the even ones are outside of quotes
        delimiter, separator = F.lit(self._side.delimiter), F.lit(_SEPARATOR)
        outside = F.transform(
            parts, lambda part, at: F.when(at % 2 == 0, F.replace(part, delimiter, separator)).otherwise(part)
        )
        quoted = F.split(F.concat_ws('"', outside), _literal(_SEPARATOR), -1)
        return F.when(~F.contains(line, F.lit('"')), plain).when(~F.contains(line, separator), quoted)

    def accepts(self, data: Column, decoded: Column) -> Column:
        found = (
            super().accepts(data, decoded)
            & (F.size(decoded) == len(self._side.columns))
            & F.forall(decoded, _is_well_formed)
        )
        # As an array, because a chain of thousands of conditions would be too deep for Spark.
        typed_fields = [fits for _, fits in self._fits(decoded)]
        return found & F.forall(F.array(*typed_fields), lambda fits: fits) if typed_fields else found

    def error(self, data: Column, decoded: Column) -> Column:
        wanted = len(self._side.columns)
        number = F.concat(F.lit("it has "), F.size(decoded), F.lit(f" columns, not {wanted}"))
        return (
            F.when(~super().accepts(data, decoded), F.lit(NOT_UTF8))
            .when(decoded.isNull(), F.lit("it cannot be taken apart"))
            .when(~F.forall(decoded, _is_well_formed), F.lit("its quotes or line ends are not those of one CSV line"))
            .when(F.size(decoded) != wanted, number)
            .otherwise(F.coalesce(*[F.when(~fits, F.lit(reason)) for reason, fits in self._fits(decoded)], number))
        )

    def _fits(self, decoded: Column) -> list[tuple[str, Column]]:
        """For each column with a type, whether its field is a value of it, and the reason if not."""
        return [
            (f'its column "{name}" is not {print_type(type_)}', (field == "") | fits(_unquoted(field), type_))
            for name, type_, field in zip(self._side.columns, self._side.types, self._written(decoded), strict=False)
        ]

    def _written(self, decoded: Column) -> list[Column]:
        return [F.get(decoded, F.lit(number)) for number in range(len(self._side.columns))]

    def value(self, data: Column, decoded: Column) -> Column:
        fields = [_unquoted(field) for field in self._written(decoded)]
        if self._side.types:
            written = zip(fields, self._written(decoded), self._side.types, strict=True)
            fields = [F.when(field != "", typed(text, type_)) for text, field, type_ in written]
        named = [field.alias(name) for field, name in zip(fields, self._side.columns, strict=True)]
        return F.when(decoded.isNotNull(), F.struct(*named))


def _literal(text: str) -> str:
    """A Java pattern that matches exactly the text."""
    return re.escape(text) if len(text) == 1 else f"\\Q{text}\\E"


def _is_well_formed(field: Column) -> Column:
    """Whether a field is on one line without a quote, or is in quotes with every quote inside written twice."""
    plain = ~F.contains(field, F.lit('"')) & ~F.contains(field, F.lit("\n")) & ~F.contains(field, F.lit("\r"))
    inside = F.replace(_inside(field), F.lit('""'), F.lit(""))
    enclosed = F.startswith(field, F.lit('"')) & F.endswith(field, F.lit('"')) & (F.length(field) >= 2)
    return plain | (enclosed & ~F.contains(inside, F.lit('"')))


def _unquoted(field: Column) -> Column:
    quoted = F.replace(_inside(field), F.lit('""'), F.lit('"'))
    return F.when(F.startswith(field, F.lit('"')), quoted).otherwise(field)


def _inside(field: Column) -> Column:
    return F.substring(field, F.lit(2), F.length(field) - 2)


class RegexReader(TextReader):
    """A pattern that matches anywhere in the text; its groups are the columns. ``decoded`` is a struct of the columns, NULL
    for a text without a match.

    Spark gives an empty text also for a group that took no part in the match. The marks in the pattern tell the two apart.
    """

    def __init__(self, side: RegexEncoding) -> None:
        self._side = side
        self._marked = group_pattern(side.pattern)

    def decode(self, data: Column) -> Column:
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

    def accepts(self, data: Column, decoded: Column) -> Column:
        return super().accepts(data, decoded) & decoded.isNotNull()

    def error(self, data: Column, decoded: Column) -> Column:
        return F.when(~super().accepts(data, decoded), F.lit(NOT_UTF8)).otherwise(F.lit(NO_MATCH))

    def value(self, data: Column, decoded: Column) -> Column:
        return decoded
