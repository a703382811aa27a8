"""Fields of delimited text that have types, as columns of Spark. `given/delimited.py` writes the same texts in Python.

A field that is empty and not in quotes is null. An empty text, and a text with the delimiter, a quote or a line end in it, is in
quotes. Times are as ISO 8601 has them, and bytes are in base64.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, functions as F

from headgate.schema import types as t
from headgate.schema.formats.spark import to_spark

_DIGITS = "[0-9]"
_DATE = f"{_DIGITS}{{4}}-{_DIGITS}{{2}}-{_DIGITS}{{2}}"
# A seventh digit of a second would be cut off.
_TIME = f"{_DIGITS}{{2}}:{_DIGITS}{{2}}(:{_DIGITS}{{2}}([.]{_DIGITS}{{1,6}}0*)?)?"
_NUMBER = f"[+-]?({_DIGITS}+([.]{_DIGITS}*)?|[.]{_DIGITS}+)([eE][+-]?{_DIGITS}+)?"
_SPECIAL = "NaN|-?Infinity"
_BASE64 = "([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
_UUID = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


# reading


def fits(text: Column, type_: t.Type) -> Column:
    """Whether the text of a field is a value of the type, of which nothing is lost."""
    match type_:
        case t.Text():
            return F.lit(True)
        case t.Real() | t.Double():
            value = text.try_cast(to_spark(type_))
            finite = F.abs(value) != float("inf")
            return F.coalesce(_is(text, _SPECIAL) | (_is(text, _NUMBER) & finite), F.lit(False))
        case _:
            return _is(text, _pattern(type_)) & typed(text, type_).isNotNull()


def _is(text: Column, pattern: str) -> Column:
    return text.rlike(rf"\A({pattern})\z")


def _pattern(type_: t.Type) -> str:
    match type_:
        case t.Boolean():
            return "(?i)true|false"
        case t.Integer() | t.Bigint():
            return f"[+-]?{_DIGITS}+"
        case t.Decimal(_, scale):
            return f"[+-]?({_DIGITS}+([.]{_DIGITS}{{0,{scale}}}0*)?|[.]{_DIGITS}{{0,{scale}}}0*)"
        case t.Date():
            return _DATE
        case t.Timestamp():
            return f"{_DATE}[T ]{_TIME}"
        case t.TimestampTz():
            return f"{_DATE}[T ]{_TIME}(Z|[+-]{_DIGITS}{{2}}:{_DIGITS}{{2}})"
        case t.Bytes():
            return _BASE64
        case t.Uuid():
            return _UUID
        case _:
            raise AssertionError(f"no delimited text of type {type(type_).__name__}")


def typed(text: Column, type_: t.Type) -> Column:
    """Convert a text to a value of the type. The text must fit the type, or the value is NULL."""
    if isinstance(type_, t.Bytes):
        return F.unbase64(text)
    return text if isinstance(type_, t.Text | t.Uuid) else text.try_cast(to_spark(type_))


# writing


def line(fields: Sequence[tuple[Column, t.Type]], delimiter: str) -> Column:
    """One line of these values."""
    texts = [F.coalesce(_quoted(_text(column, type_), delimiter), F.lit("")) for column, type_ in fields]
    return F.concat_ws(delimiter, *texts)


def _text(column: Column, type_: t.Type) -> Column:
    match type_:
        case t.Timestamp():
            return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
        case t.TimestampTz():
            return F.concat(F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), F.lit("Z"))
        case t.Bytes():
            return F.replace(F.base64(column), F.lit("\r\n"))  # Spark breaks lines after 76 characters
        case t.Uuid():
            return F.lower(column)
        case _:
            return column.cast("string")


def _quoted(text: Column, delimiter: str) -> Column:
    special = [F.contains(text, F.lit(character)) for character in ('"', "\r", "\n", delimiter)]
    quoted = F.concat(F.lit('"'), F.replace(text, F.lit('"'), F.lit('""')), F.lit('"'))
    return F.when((text == "") | special[0] | special[1] | special[2] | special[3], quoted).otherwise(text)
