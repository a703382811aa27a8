"""Fields inside JSON documents: found by their pointers and cast, in Arrow batches in Python workers.

A document is parsed once for all fields in it. Numbers keep every digit that the text has (`lossless-float` of jiter), so that an
i64, a decimal and a text over a number are exact. The first value of a document that does not fit is told by its path and
the type that was expected, never by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, partial
from typing import Any

import jiter
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType, StructField, StructType

from headgate.runtime.formats.arrow_reader import stored
from headgate.schema import types as t
from headgate.schema.errors import ValueDoesNotFit
from headgate.schema.formats.spark import to_spark
from headgate.schema.names import ROOT, field_path
from headgate.schema.render import print_type
from headgate.schema.values import dumps, from_json, to_json

PROBLEM = "problem"
NUL = "it contains a NUL character"
MISSING = "it is missing or null"

_MISSING = object()
_read = partial(
    jiter.from_json, float_mode="lossless-float", catch_duplicate_keys=True, allow_inf_nan=False, cache_mode="keys"
)


@dataclass(frozen=True, slots=True)
class JsonField:
    """A value in a document: the members and positions that lead to it, and its type.

    ``as_text`` says that the value is kept as its JSON text once it has been checked. ``optional`` are the places of objects around it
    that may be missing; then the value may be missing too. ``root`` is the path of the document in the row.
    """

    tokens: tuple[str, ...]
    type: t.Type
    nullable: bool
    as_text: bool = False
    optional: tuple[tuple[str, ...], ...] = ()
    root: str = ROOT

    @property
    def path(self) -> str:
        path = self.root
        for token in self.tokens:
            path = field_path(path, token)
        return path

    @property
    def held(self) -> t.Type:
        """The type of the result."""
        return t.Json() if self.as_text else self.type


def json_fields(text: Column, fields: Sequence[JsonField]) -> Column:
    """A struct of a problem (path, expected, reason; NULL if there is none) and of the values `v0`, `v1`, …"""
    problem = StructType([StructField(name, StringType()) for name in ("path", "expected", "reason")])
    values = [StructField(f"v{number}", to_spark(field.held)) for number, field in enumerate(fields)]
    returned = StructType([StructField(PROBLEM, problem), *values])
    reader = DocumentReader(tuple(fields), returned)
    made: Column = arrow_udf(reader.read, returned)(text)  # type: ignore[call-overload]
    return made


class DocumentReader:
    """Reads a batch of documents."""

    def __init__(self, fields: tuple[JsonField, ...], returned: StructType) -> None:
        self._fields = fields
        self._returned = returned

    @cached_property
    def _types(self) -> list[pa.DataType]:
        return [to_arrow_type(field.dataType, timezone="UTC") for field in self._returned.fields]

    def read(self, texts: pa.Array) -> pa.Array:
        problems: list[dict[str, str] | None] = []
        columns: list[list[Any]] = [[] for _ in self._fields]
        nothing = [None] * len(self._fields)
        for text in texts.to_pylist():
            try:
                values = values_of(text, self._fields)
                problems.append(None)
            except ValueDoesNotFit as wrong:
                values = nothing
                problems.append({"path": wrong.path, "expected": wrong.expected, "reason": reason_of(wrong)})
            for column, value in zip(columns, values, strict=True):
                column.append(value)
        arrays = [pa.array(problems, self._types[0])]
        arrays += [pa.array(column, type_) for column, type_ in zip(columns, self._types[1:], strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=[pa.field(f.name, a.type) for f, a in zip(self._returned.fields, arrays, strict=True)])  # fmt: skip


def reason_of(wrong: ValueDoesNotFit) -> str:
    found = f"found {wrong.found}"
    return wrong.reason or found


def values_of(text: str | bytes | None, fields: Sequence[JsonField]) -> list[Any]:
    """The values of a document, as pyarrow takes them. Raises ValueDoesNotFit for the first that does not fit."""
    document = _MISSING
    if text is not None:
        try:
            document = _read(text.encode() if isinstance(text, str) else text)
        except ValueError as error:
            raise ValueDoesNotFit(fields[0].root if fields else ROOT, "json", "string", "it is not JSON") from error
    return [_value(document, field) for field in fields]


def _value(document: Any, field: JsonField) -> Any:
    found = _at(document, field.tokens)
    if found is None or found is _MISSING:
        if field.nullable or any(_at(document, place) in (None, _MISSING) for place in field.optional):
            return None
        kind = "nothing" if found is _MISSING else "null"
        raise ValueDoesNotFit(field.path, f"{print_type(t.plain(field.type))} not null", kind, MISSING)
    value = from_json(_plain(found, field.type), field.type, field.path)
    if field.as_text:
        text = str(value) if isinstance(field.type, t.Json) else dumps(to_json(value, field.type))
        if "\\u0000" in text.replace("\\\\", ""):  # an escape, and not an escaped backslash before these letters
            raise ValueDoesNotFit(field.path, "json", "string", NUL)
        return text
    _check_nul(value, field.path)
    return stored(value, field.type)


def _at(document: Any, tokens: Sequence[str]) -> Any:
    """The value that a pointer leads to. A step into something that has no members finds nothing."""
    for token in tokens:
        if isinstance(document, dict):
            document = document.get(token, _MISSING)
        elif isinstance(document, list) and token.isascii() and token.isdigit() and int(token) < len(document):
            document = document[int(token)]
        else:
            return _MISSING
    return document


def _plain(value: Any, type_: t.Type) -> Any:
    """The value as `from_json` takes it. A number that becomes a text is its text in the document."""
    match value, type_:
        case list(), t.Array(element):
            return [_plain(each, element) for each in value]
        case dict(), t.Map(inner):
            return {key: _plain(each, inner) for key, each in value.items()}
        case dict(), t.Record():
            types = {field.name: field.type for field in type_.fields}
            return {key: _plain(each, types.get(key, t.Json())) for key, each in value.items()}
        case list(), _:
            return [_plain(each, type_) for each in value]
        case dict(), _:
            return {key: _plain(each, type_) for key, each in value.items()}
        case bool(), t.Text():
            return "true" if value else "false"
        case int(), t.Text():
            return str(value)
        case jiter.LosslessFloat(), t.Text():
            return bytes(value).decode("ascii")
        case jiter.LosslessFloat(), _:
            return Decimal(bytes(value).decode("ascii"))
        case _:
            return value


def _check_nul(value: Any, path: str) -> None:
    """PostgreSQL has no text with this character."""
    if isinstance(value, str) and "\0" in value:
        raise ValueDoesNotFit(path, "text", "string", NUL)
    if isinstance(value, list):
        for each in value:
            _check_nul(each, path)
