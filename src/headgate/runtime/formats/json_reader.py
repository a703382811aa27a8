"""JSON and JSON Schema, in Arrow batches.

A JSON value without a schema is only checked, by jiter, which refuses what Spark's parsers let pass. A document of a JSON
Schema is checked by its writer's schema and then becomes a value of the side's type: jiter parses it (exactly; a member
that occurs twice and trailing text are errors), jsonschema-rs validates it, and pyarrow makes columns of whole documents.
pyarrow takes more than is exact (1.5 for an integer, a text for an array), so `check_kinds` looks at all values before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias

import jiter
import jsonschema_rs
import pyarrow as pa
from pyspark.sql import Column, functions as F
from pyspark.sql.pandas.functions import arrow_udf

from headgate.runtime.formats import arrow_reader, json_validation
from headgate.runtime.formats.side import NOT_UTF8
from headgate.runtime.formats.text_readers import TextReader
from headgate.schema import types as t
from headgate.schema.errors import SchemaError, ValueDoesNotFit
from headgate.schema.formats.jsonschema.read import logical_titles
from headgate.schema.names import ROOT, element_path, field_path, value_path
from headgate.schema.values import CONNECT_MICROSECONDS, DAY, from_json, moment_of, to_json
from headgate.schema.written import WrittenSchema


class JsonReader(TextReader):
    """A JSON text, which stays text. ``decoded`` says why the text is not JSON; NULL if it is."""

    def decode(self, data: Column) -> Column:
        return json_problem(data)

    def accepts(self, data: Column, decoded: Column) -> Column:
        return super().accepts(data, decoded) & decoded.isNull()

    def error(self, data: Column, decoded: Column) -> Column:
        return F.when(~super().accepts(data, decoded), F.lit(NOT_UTF8)).otherwise(decoded)


def json_problem(data: Column) -> Column:
    """NULL for a JSON text, otherwise why it is not JSON, without quoting it. Trailing text and duplicate members are
    errors."""
    checked: Column = arrow_udf(_problems, "string")(data)  # type: ignore[call-overload]
    return checked


def _problems(texts: pa.Array) -> pa.Array:
    return pa.array([json_error(text) for text in texts.to_pylist()], pa.string())


def json_error(text: bytes | None) -> str | None:
    if text is None:
        return None
    try:
        jiter.from_json(text, float_mode="lossless-float", catch_duplicate_keys=True, allow_inf_nan=False)
    except ValueError as error:
        return error_text(error)
    return None


def error_text(error: ValueError) -> str:
    """What jiter found, without quoting the text."""
    reason = str(error)
    if "duplicate" in reason.lower():
        return "it has a member twice"
    if "unicode" in reason.lower():
        return "it is not valid UTF-8"
    if "recursion" in reason.lower():
        return "it is nested too deeply"
    place = re.search(r"at line \d+ column \d+", reason)
    return f"it is not JSON{' ' + place[0] if place else ''}"


Convert: TypeAlias = Callable[[Any], Any]
_TIMES = (t.Date, t.Time, t.Timestamp, t.TimestampTz)
_OWN_FORM = (*_TIMES, t.Bytes, t.Uuid, t.Decimal, t.Json)  # pyarrow does not take these as JSON has them
_EXACT = (t.Decimal, t.Json)  # types in which every digit counts
_BATCH = 1000  # documents that are validated together


def json_decoder(decoding: arrow_reader.Decoding, writer: WrittenSchema) -> JsonDecoder:
    return JsonDecoder(decoding, writer)


class JsonDecoder:
    def __init__(self, decoding: arrow_reader.Decoding, writer: WrittenSchema) -> None:
        self._target = decoding.target
        self._writer = writer
        self._arrow = arrow_reader.arrow_type(decoding.target)
        self._check_kinds = json_validation.check_kinds(decoding.target.type)
        leaves = _leaves(decoding.target.type)
        self._mode: Literal["decimal", "float"] = (
            "decimal" if any(isinstance(leaf, _EXACT) for leaf in leaves) else "float"
        )
        titles = _titles(writer)
        self._fill = _filler(decoding.target.type)
        own = (*_OWN_FORM, t.Real, t.Double) if self._mode == "decimal" else _OWN_FORM
        self._convert = _converter(decoding.target.type, ROOT, lambda type_, p: _checked_cast(type_, p, own, titles))
        self._convert_times = _converter(
            decoding.target.type, ROOT, lambda type_, p: _time_converter(type_, titles.get(p))
        )

        self._read: Callable[[bytes], Any] = partial(
            jiter.from_json, float_mode=self._mode, catch_duplicate_keys=True, allow_inf_nan=False, cache_mode="keys"
        )

    @cached_property
    def _validator(self) -> Any:
        """Raises InvalidBody if the schema itself cannot be used. Then only its own records are bad."""
        try:
            return json_validation.validator(self._writer)
        except (ValueError, jsonschema_rs.ReferencingError) as wrong:
            raise arrow_reader.InvalidBody("the schema that it names cannot be used to check it") from wrong

    @cached_property
    def _batch_validator(self) -> Any:
        return json_validation.batch_validator(self._writer)

    def parse(self, bodies: list[bytes]) -> arrow_reader.Parsed:
        """In batches of limited size: if one document of a batch is bad, all of the batch are parsed one by one."""
        made: list[Any] = []
        wrong: dict[int, arrow_reader.InvalidBody | arrow_reader.NeedsExactRead] = {}
        for start in range(0, len(bodies), _BATCH):
            parsed, bad = self._parsed(bodies[start : start + _BATCH])
            made += parsed
            wrong |= {start + number: trouble for number, trouble in bad.items()}
        return made, wrong

    def _parsed(self, bodies: list[bytes]) -> arrow_reader.Parsed:
        many = self._batch_validator
        try:
            documents = list(map(self._read, bodies)) if many is not None else []
        except ValueError:
            many = None
        if many is None or not many.is_valid(documents):
            return arrow_reader.one_by_one(self._parse_one, bodies)
        if self._convert is None and self._fill is None:
            return documents, {}
        return arrow_reader.one_by_one(self._converted, documents)

    def _parse_one(self, body: bytes) -> object:
        try:
            document = self._read(body)
        except ValueError as error:
            raise arrow_reader.InvalidBody(error_text(error)) from None
        if not self._validator.is_valid(document):
            raise arrow_reader.NeedsExactRead
        return self._converted(document)

    def _converted(self, document: object) -> object:
        if document is None:
            return document
        try:
            if self._fill is not None:
                document = self._fill(document)
            return document if self._convert is None else self._convert(document)
        except (ValueDoesNotFit, AttributeError, TypeError):
            raise arrow_reader.NeedsExactRead from None

    def columns(self, parsed: list[Any]) -> pa.Array:
        self._check_kinds(parsed)
        made = pa.array(parsed, self._arrow)
        json_validation.check_exact(made, self._target.type, self._target.nullable)
        return made

    def exact(self, body: bytes) -> pa.Array:
        document: Any = jiter.from_json(body, float_mode="decimal", catch_duplicate_keys=True)
        wrong = next(iter(self._validator.iter_errors(document)), None)
        if wrong is not None:
            path = json_validation.instance_path(wrong.instance_path, self._target.type)
            raise arrow_reader.InvalidBody(
                f'what is at {path} is against "{wrong.schema_path[-1]}" of its schema{_missing(wrong)}'
            )
        if document is None and self._target.nullable:
            return pa.nulls(1, self._arrow)
        try:
            if self._fill is not None:
                document = self._fill(document)
            dated = self._convert_times(document) if self._convert_times is not None else document
            value = from_json(dated, self._target.type)
            return pa.array([arrow_reader.stored(value, self._target.type)], self._arrow)
        except ValueDoesNotFit as misfit:
            raise arrow_reader.InvalidBody(misfit.message()) from None
        except (pa.ArrowException, AttributeError, TypeError, ValueError, OverflowError):
            raise arrow_reader.InvalidBody("it does not fit the type of the source") from None


def _missing(wrong: Any) -> str:
    name = getattr(wrong.kind, "property", None)  # a name of the schema's, not of the document's
    return f': "{name}" is missing' if isinstance(name, str) else ""


def _titles(writer: WrittenSchema) -> Mapping[str, str]:
    try:
        return logical_titles(json.loads(writer.text), dict(writer.references))
    except SchemaError:  # its documents may fit all the same
        return {}


def _leaves(type_: t.Type) -> list[t.Type]:
    match type_:
        case t.Record(fields):
            return [leaf for field in fields for leaf in _leaves(field.type)]
        case t.Array(inner) | t.Map(inner):
            return _leaves(inner)
        case _:
            return [type_]


# conversion of documents in place


def _filler(type_: t.Type) -> Convert | None:
    """A function that puts the defaults of absent properties into a document; None if no property has a default."""
    match type_:
        case t.Record(fields):
            defaults = [(f.name, f.default) for f in fields if f.default is not None]
            inner = [(f.name, change) for f in fields if (change := _filler(f.type)) is not None]
            return _fill_record(defaults, inner) if defaults or inner else None
        case t.Array(element):
            change = _filler(element)
            return None if change is None else _convert_array(change)
        case t.Map(value):
            change = _filler(value)
            return None if change is None else _convert_map(change)
        case _:
            return None


def _fill_record(defaults: list[tuple[str, str]], inner: list[tuple[str, Convert]]) -> Convert:
    change = _convert_record(inner)

    def filled(record: Any) -> Any:
        for name, default in defaults:
            if name not in record:
                record[name] = json.loads(default)
        return change(record)

    return filled


def _converter(type_: t.Type, path: str, leaf: Callable[[t.Type, str], Convert | None]) -> Convert | None:
    """A function that converts a document in place, with what ``leaf`` gives for a type and its path; None if there is
    nothing to convert. Nulls stay. The function raises AttributeError or TypeError for a document of another form."""
    match type_:
        case t.Record(fields):
            inner = [(f.name, _converter(f.type, field_path(path, f.name), leaf)) for f in fields]
            changes = [(name, change) for name, change in inner if change is not None]
            return _convert_record(changes) if changes else None
        case t.Array(element):
            change = _converter(element, element_path(path), leaf)
            return None if change is None else _convert_array(change)
        case t.Map(value):
            change = _converter(value, value_path(path), leaf)
            return None if change is None else _convert_map(change)
        case _:
            return leaf(type_, path)


def _convert_record(changes: list[tuple[str, Convert]]) -> Convert:
    def changed(record: Any) -> Any:
        for name, change in changes:
            value = record.get(name)
            if value is not None:
                record[name] = change(value)
        return record

    return changed


def _convert_array(change: Convert) -> Convert:
    def changed(array: Any) -> Any:
        if type(array) is not list:
            raise TypeError
        return [None if value is None else change(value) for value in array]

    return changed


def _convert_map(change: Convert) -> Convert:
    def changed(map_: Any) -> Any:
        return {key: None if value is None else change(value) for key, value in map_.items()}

    return changed


def _checked_cast(type_: t.Type, path: str, own: tuple[type, ...], titles: Mapping[str, str]) -> Convert | None:
    """For a type whose values pyarrow does not take as JSON has them: the checked cast."""
    if not isinstance(type_, own):
        return None
    moment = _time_converter(type_, titles.get(path))
    if moment is not None:
        return lambda value: from_json(moment(value), type_, path)
    if isinstance(type_, t.Uuid):
        return lambda value: str(from_json(value, type_, path))
    return lambda value: from_json(value, type_, path)


def _time_converter(type_: t.Type, title: str | None) -> Convert | None:
    """A date or time that is counted in whole numbers -> its ISO form. ``title`` is what Connect calls its type."""
    if title not in CONNECT_MICROSECONDS or not isinstance(type_, _TIMES):
        return None
    unit = CONNECT_MICROSECONDS[title]

    def written(value: Any) -> Any:
        if type(value) is not int or (isinstance(type_, t.Time) and not 0 <= value * unit < DAY):
            return value
        try:
            return to_json(moment_of(value * unit, type_), type_)
        except OverflowError:
            return value

    return written
