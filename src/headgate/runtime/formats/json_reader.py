"""Whether bytes are one JSON text: in Arrow batches, by jiter, which refuses what Spark's parsers let pass."""

from __future__ import annotations

import datetime as dt
import json
import re
import uuid
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias

import jiter
import jsonschema_rs
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf

from headgate.runtime.formats.arrow_reader import Bad, Decoding, Doubt, Parsed, arrow_type, one_by_one
from headgate.runtime.formats.json_validation import (
    instance_path,
    nothing_lost,
    shape,
    validator,
    validator_of_many,
)
from headgate.schema.casts import from_json
from headgate.schema.errors import SchemaError, ValueDoesNotFit
from headgate.schema.formats.jsonschema.read import logical_titles
from headgate.schema.paths import ROOT, element_path, field_path, value_path
from headgate.schema.types import (
    Array,
    Bytes,
    Date,
    Decimal,
    Double,
    Json,
    Map,
    Real,
    Record,
    Time,
    Timestamp,
    TimestampTz,
    Type,
    Uuid,
)
from headgate.schema.written import WrittenSchema


def json_problem(data: Column) -> Column:
    """NULL for a JSON text, else why it is none (never any of it). Trailing text and duplicate members are refused."""
    checked: Column = arrow_udf(_problems, "string")(data)  # type: ignore[call-overload]
    return checked


def _problems(texts: pa.Array) -> pa.Array:
    return pa.array([problem_of(text) for text in texts.to_pylist()], pa.string())


def problem_of(text: bytes | None) -> str | None:
    if text is None:
        return None
    try:
        jiter.from_json(text, float_mode="lossless-float", catch_duplicate_keys=True, allow_inf_nan=False)
    except ValueError as error:
        return told(error)
    return None


def told(error: ValueError) -> str:
    """What jiter found, without any of the text."""
    reason = str(error)
    if "duplicate" in reason.lower():
        return "it has a member twice"
    if "unicode" in reason.lower():
        return "it is not valid UTF-8"
    if "recursion" in reason.lower():
        return "it is nested too deeply"
    place = re.search(r"at line \d+ column \d+", reason)
    return f"it is not JSON{' ' + place[0] if place else ''}"


Change: TypeAlias = Callable[[Any], Any]
_MOMENTS = (Date, Time, Timestamp, TimestampTz)
_OWN_FORM = (*_MOMENTS, Bytes, Uuid, Decimal, Json)  # not what pyarrow takes for them
_EXACT = (Decimal, Json)  # every digit counts
_AT_ONCE = 1000  # documents that are checked together

_DAY, _MILLIS, _MICROS = 86_400_000_000, 1000, 1
_UNITS = {  # microseconds, by Connect's title
    "org.apache.kafka.connect.data.Date": _DAY,
    "org.apache.kafka.connect.data.Time": _MILLIS,
    "org.apache.kafka.connect.data.Timestamp": _MILLIS,
    "io.debezium.time.Date": _DAY,
    "io.debezium.time.Time": _MILLIS,
    "io.debezium.time.MicroTime": _MICROS,
    "io.debezium.time.Timestamp": _MILLIS,
    "io.debezium.time.MicroTimestamp": _MICROS,
}
_EPOCH = dt.datetime(1970, 1, 1)


def json_bodies(decoding: Decoding, writer: WrittenSchema) -> JsonBodies:
    return JsonBodies(decoding, writer)


class JsonBodies:
    def __init__(self, decoding: Decoding, writer: WrittenSchema) -> None:
        self._target = decoding.target
        self._writer = writer
        self._arrow = arrow_type(decoding.target)
        self._shape = shape(decoding.target.type)
        leaves = _leaves(decoding.target.type)
        self._mode: Literal["decimal", "float"] = (
            "decimal" if any(isinstance(leaf, _EXACT) for leaf in leaves) else "float"
        )
        titles = _titles(writer)
        own = (*_OWN_FORM, Real, Double) if self._mode == "decimal" else _OWN_FORM
        self._changed = _change(decoding.target.type, ROOT, lambda t, p: _canonical(t, p, own, titles))
        self._dated = _change(decoding.target.type, ROOT, lambda t, p: _moment(t, titles.get(p)))

        self._read: Callable[[bytes], Any] = partial(
            jiter.from_json,
            float_mode=self._mode,
            catch_duplicate_keys=True,
            allow_inf_nan=False,
            cache_mode="keys",
        )

    @cached_property
    def _validator(self) -> Any:
        """Raises Bad if the schema itself cannot be used: its records then are bad, and no others."""
        try:
            return validator(self._writer)
        except (ValueError, jsonschema_rs.ReferencingError) as wrong:
            raise Bad("the schema that it names cannot be used to check it") from wrong

    @cached_property
    def _validator_of_many(self) -> Any:
        return validator_of_many(self._writer)

    def parse(self, bodies: list[bytes]) -> Parsed:
        """So many at a time: where one of them is bad, all are looked at one by one."""
        made: list[Any] = []
        wrong: dict[int, Bad | Doubt] = {}
        for start in range(0, len(bodies), _AT_ONCE):
            parsed, bad = self._parsed(bodies[start : start + _AT_ONCE])
            made += parsed
            wrong |= {start + number: trouble for number, trouble in bad.items()}
        return made, wrong

    def _parsed(self, bodies: list[bytes]) -> Parsed:
        many = self._validator_of_many
        try:
            documents = list(map(self._read, bodies)) if many is not None else []
        except ValueError:
            many = None
        if many is None or not many.is_valid(documents):
            return one_by_one(self._parsed_alone, bodies)
        return (documents, {}) if self._changed is None else one_by_one(self._brought, documents)

    def _parsed_alone(self, body: bytes) -> object:
        try:
            document = self._read(body)
        except ValueError as error:
            raise Bad(told(error)) from None
        if not self._validator.is_valid(document):
            raise Doubt
        return self._brought(document)

    def _brought(self, document: object) -> object:
        if self._changed is None or document is None:
            return document
        try:
            return self._changed(document)
        except (ValueDoesNotFit, AttributeError, TypeError):
            raise Doubt from None

    def columns(self, parsed: list[Any]) -> pa.Array:
        self._shape(parsed)
        made = pa.array(parsed, self._arrow)
        nothing_lost(made, self._target.type, self._target.nullable)
        return made

    def exact(self, body: bytes) -> pa.Array:
        document: Any = jiter.from_json(body, float_mode="decimal", catch_duplicate_keys=True)
        wrong = next(iter(self._validator.iter_errors(document)), None)
        if wrong is not None:
            path = instance_path(wrong.instance_path, self._target.type)
            raise Bad(
                f'what is at {path} is against "{wrong.schema_path[-1]}" of its schema{_missing(wrong)}'
            )
        if document is None and self._target.nullable:
            return pa.nulls(1, self._arrow)
        try:
            dated = self._dated(document) if self._dated is not None else document
            value = from_json(dated, self._target.type)
            return pa.array([_stored(value, self._target.type)], self._arrow)
        except ValueDoesNotFit as misfit:
            raise Bad(misfit.message()) from None
        except (pa.ArrowException, AttributeError, TypeError, ValueError, OverflowError):
            raise Bad("it does not fit the type of the source") from None


def _missing(wrong: Any) -> str:
    name = getattr(wrong.kind, "property", None)  # a name of the schema's, not of the document's
    return f': "{name}" is missing' if isinstance(name, str) else ""


def _titles(writer: WrittenSchema) -> Mapping[str, str]:
    try:
        return logical_titles(json.loads(writer.text), dict(writer.references))
    except SchemaError:  # its documents may fit all the same
        return {}


def _leaves(type_: Type) -> list[Type]:
    match type_:
        case Record(fields):
            return [leaf for field in fields for leaf in _leaves(field.type)]
        case Array(inner) | Map(inner):
            return _leaves(inner)
        case _:
            return [type_]


# documents changed where they are


def _change(type_: Type, path: str, leaf: Callable[[Type, str], Change | None]) -> Change | None:
    """What changes a document in place, by what ``leaf`` gives for a type and its path; None if there is nothing to
    do. Nulls stay. Raises AttributeError or TypeError for a document of another form."""
    match type_:
        case Record(fields):
            inner = [(f.name, _change(f.type, field_path(path, f.name), leaf)) for f in fields]
            changes = [(name, change) for name, change in inner if change is not None]
            return _change_record(changes) if changes else None
        case Array(element):
            change = _change(element, element_path(path), leaf)
            return None if change is None else _change_array(change)
        case Map(value):
            change = _change(value, value_path(path), leaf)
            return None if change is None else _change_map(change)
        case _:
            return leaf(type_, path)


def _change_record(changes: list[tuple[str, Change]]) -> Change:
    def changed(record: Any) -> Any:
        for name, change in changes:
            value = record.get(name)
            if value is not None:
                record[name] = change(value)
        return record

    return changed


def _change_array(change: Change) -> Change:
    def changed(array: Any) -> Any:
        if type(array) is not list:
            raise TypeError
        return [None if value is None else change(value) for value in array]

    return changed


def _change_map(change: Change) -> Change:
    def changed(map_: Any) -> Any:
        return {key: None if value is None else change(value) for key, value in map_.items()}

    return changed


def _canonical(type_: Type, path: str, own: tuple[type, ...], titles: Mapping[str, str]) -> Change | None:
    """For a type whose values pyarrow does not take as JSON has them: the checked cast."""
    if not isinstance(type_, own):
        return None
    moment = _moment(type_, titles.get(path))
    if moment is not None:
        return lambda value: from_json(moment(value), type_, path)
    if isinstance(type_, Uuid):
        return lambda value: str(from_json(value, type_, path))
    return lambda value: from_json(value, type_, path)


def _moment(type_: Type, title: str | None) -> Change | None:
    """A date or time that is counted in whole numbers -> its ISO form."""
    if title not in _UNITS or not isinstance(type_, _MOMENTS):
        return None
    unit = _UNITS[title]

    def written(value: Any) -> Any:
        if type(value) is not int:
            return value
        try:
            moment = _EPOCH + dt.timedelta(microseconds=value * unit)
        except OverflowError:
            return value
        match type_:
            case Date():
                return moment.date().isoformat()
            case Time():
                return moment.time().isoformat() if 0 <= value * unit < _DAY else value
            case TimestampTz():
                return moment.isoformat() + "Z"
            case _:
                return moment.isoformat()

    return written


def _stored(value: Any, type_: Type) -> Any:
    """A canonical value as pyarrow takes it."""
    match value, type_:
        case uuid.UUID(), _:
            return str(value)
        case list(), Array(element):
            return [_stored(one, element) for one in value]
        case dict(), Map(inner):
            return {key: _stored(one, inner) for key, one in value.items()}
        case dict(), Record(fields):
            return {field.name: _stored(value[field.name], field.type) for field in fields}
        case _:
            return value
