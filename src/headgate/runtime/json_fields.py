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

from headgate.runtime.formats.arrow_reader import stored, without_collector
from headgate.runtime.json_columns import MISSING_VALUE, quick_column
from headgate.schema import types as t
from headgate.schema.errors import ValueDoesNotFit
from headgate.schema.formats.spark import to_spark
from headgate.schema.names import ROOT, field_path
from headgate.schema.render import print_type
from headgate.schema.values import dumps, from_json, to_json

PROBLEM = "problem"
NUL = "it contains a NUL character"
MISSING = "it is missing or null"

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
    """Reads a batch of documents: all of them first, and then field by field. A column of values that are all of the kind that their
    field expects is made at once; any other is made value by value, with the same result."""

    def __init__(self, fields: tuple[JsonField, ...], returned: StructType) -> None:
        self._fields = fields
        self._returned = returned

    @cached_property
    def _types(self) -> list[pa.DataType]:
        return [to_arrow_type(field.dataType, timezone="UTC") for field in self._returned.fields]

    def read(self, texts: pa.Array) -> pa.Array:
        with without_collector():
            documents, wrong = self._parsed(texts.to_pylist())
            pairs = zip(self._fields, self._types[1:], strict=True)
            columns = [_column(documents, field, type_, wrong) for field, type_ in pairs]
        problems: list[dict[str, str] | None] = [None] * len(documents)
        for row, error in wrong.items():
            problems[row] = {"path": error.path, "expected": error.expected, "reason": reason_of(error)}
        if wrong:
            good = pa.array([None if row in wrong else row for row in range(len(documents))], pa.int64())
            columns = [column.take(good) for column in columns]
        arrays = [pa.array(problems, self._types[0]), *columns]
        named = zip(self._returned.fields, arrays, strict=True)
        return pa.StructArray.from_arrays(arrays, fields=[pa.field(f.name, a.type) for f, a in named])

    def _parsed(self, texts: Sequence[str | None]) -> tuple[list[Any], dict[int, ValueDoesNotFit]]:
        """The documents, and what is wrong with those that are not JSON."""
        documents: list[Any] = []
        wrong: dict[int, ValueDoesNotFit] = {}
        for row, text in enumerate(texts):
            try:
                documents.append(_document(text, self._fields))
            except ValueDoesNotFit as error:
                documents.append(MISSING_VALUE)
                wrong[row] = error
        return documents, wrong


def _column(
    documents: Sequence[Any], field: JsonField, type_: pa.DataType, wrong: dict[int, ValueDoesNotFit]
) -> pa.Array:
    """The values of one field. A document whose value does not fit goes into ``wrong``, unless an earlier field is wrong too."""
    found = _all_at(documents, field.tokens)
    made = None if field.as_text else quick_column(found, field.type, type_, nullable=field.nullable)
    if made is not None:
        return made
    values: list[Any] = []
    path = field.path
    for row, (document, value) in enumerate(zip(documents, found, strict=True)):
        try:
            values.append(_checked(document, value, field, path))
        except ValueDoesNotFit as error:
            values.append(None)
            wrong.setdefault(row, error)
    return pa.array(values, type_)


def _all_at(documents: Sequence[Any], tokens: Sequence[str]) -> list[Any]:
    if len(tokens) != 1:
        return [_at(document, tokens) for document in documents]
    [name] = tokens
    return [
        document.get(name, MISSING_VALUE) if type(document) is dict else _at(document, tokens) for document in documents
    ]


def reason_of(wrong: ValueDoesNotFit) -> str:
    found = f"found {wrong.found}"
    return wrong.reason or found


def values_of(text: str | bytes | None, fields: Sequence[JsonField]) -> list[Any]:
    """The values of a document, as pyarrow takes them. Raises ValueDoesNotFit for the first that does not fit."""
    document = _document(text, fields)
    return [_checked(document, _at(document, field.tokens), field, field.path) for field in fields]


def _document(text: str | bytes | None, fields: Sequence[JsonField]) -> Any:
    if text is None:
        return MISSING_VALUE
    try:
        return _read(text.encode() if isinstance(text, str) else text)
    except ValueError as error:
        raise ValueDoesNotFit(fields[0].root if fields else ROOT, "json", "string", "it is not JSON") from error


def _checked(document: Any, found: Any, field: JsonField, path: str) -> Any:
    """The value of a field, given what its document has at its place."""
    if found is None or found is MISSING_VALUE:
        if field.nullable or any(_at(document, place) in (None, MISSING_VALUE) for place in field.optional):
            return None
        kind = "nothing" if found is MISSING_VALUE else "null"
        raise ValueDoesNotFit(path, f"{print_type(t.plain(field.type))} not null", kind, MISSING)
    value = from_json(_plain(found, field.type), field.type, path)
    if field.as_text:
        text = str(value) if isinstance(field.type, t.Json) else dumps(to_json(value, field.type))
        if "\\u0000" in text.replace("\\\\", ""):  # an escape, and not an escaped backslash before these letters
            raise ValueDoesNotFit(path, "json", "string", NUL)
        return text
    _check_nul(value, path)
    return stored(value, field.type)


def _at(document: Any, tokens: Sequence[str]) -> Any:
    """The value that a pointer leads to. A step into something that has no members finds nothing."""
    for token in tokens:
        if isinstance(document, dict):
            document = document.get(token, MISSING_VALUE)
        elif isinstance(document, list) and token.isascii() and token.isdigit() and int(token) < len(document):
            document = document[int(token)]
        else:
            return MISSING_VALUE
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
