"""Formats that are decoded in Python workers, in Arrow batches: one function from bytes to a value or an error.

There are two ways. The quick way parses every body by itself and makes columns of all of them together. It refuses
whatever it is not sure of. If the columns of a batch cannot be made, the halves of the batch are tried, until only a few
bodies are left. The exact way reads these one by one and says what is wrong with each, or that nothing is.
"""

from __future__ import annotations

import decimal
import gc
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, functions as F, types as spark
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type

from headgate.registry.wire import HEADER_LENGTH, header
from headgate.runtime.formats import frame
from headgate.runtime.formats.convert import convert
from headgate.runtime.formats.side import WriterSchemas
from headgate.schema.encodings import SchemaEncoding, decoded_type, names_in, type_in
from headgate.schema.errors import SchemaError, ValueDoesNotFit
from headgate.schema.evolve.merge import can_hold
from headgate.schema.evolve.renames import KnownFields
from headgate.schema.formats.spark import to_spark
from headgate.schema.types import Array, Field, Map, Record, Type
from headgate.schema.values import from_json
from headgate.schema.written import WrittenSchema

NO_SCHEMA = "its frame names no known schema"  # never shown: `frame_error` says more
_SMALLEST_BATCH = 4  # so few bodies are not halved any more


class InvalidBody(Exception):
    """A body that cannot be read, and why, in words that quote none of it."""

    @property
    def reason(self) -> str:
        return str(self.args[0])


class NeedsExactRead(Exception):
    """A body that the quick way leaves to the exact way."""


_DOUBTS = (NeedsExactRead, ValueDoesNotFit, pa.ArrowException, TypeError, ValueError, OverflowError)


@dataclass(frozen=True, slots=True)
class Decoding:
    """What a worker must know: the type that every body becomes, and the schemas. Bodies of a side without frames are
    written with the first writer. ``names`` has, for each writer, the fields of its schema with their names in the target."""

    target: Field
    schemas: tuple[WrittenSchema, ...]
    writers: tuple[WrittenSchema, ...]
    framed: bool
    message: str | None = None
    names: tuple[KnownFields, ...] = ()
    past: tuple[WrittenSchema, ...] = ()  # the target's defaults, which do not count in comparisons, depend on them


class BodyDecoder(Protocol):
    """Decodes the bodies of one schema, in the quick and in the exact way."""

    def parse(self, bodies: list[bytes]) -> Parsed:
        """The parsed form of each body, for `columns`, and the errors of bodies that cannot be parsed, by position."""

    def columns(self, parsed: list[Any]) -> pa.Array:
        """An array of the Arrow type of the target. Raises one of `_DOUBTS` for anything that may not be exact."""

    def exact(self, body: bytes) -> pa.Array:
        """The same for one body. Raises InvalidBody."""


Parsed: TypeAlias = tuple[list[Any], dict[int, InvalidBody | NeedsExactRead]]
DecoderFactory: TypeAlias = Callable[[Decoding, WrittenSchema], BodyDecoder]


@contextmanager
def without_collector() -> Iterator[None]:
    """While documents are read: thousands of them are alive at once and none is part of a cycle. Looking for cycles took a tenth of
    the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def one_by_one(parse: Callable[[Any], Any], bodies: Sequence[Any]) -> Parsed:
    """What ``parse`` gives for each body, and None for a body for which it raises InvalidBody or NeedsExactRead."""
    made: list[Any] = []
    wrong: dict[int, InvalidBody | NeedsExactRead] = {}
    for number, body in enumerate(bodies):
        try:
            made.append(parse(body))
        except (InvalidBody, NeedsExactRead) as trouble:
            made.append(None)
            wrong[number] = trouble
    return made, wrong


def default_value(field: Field) -> Any:
    """The default of a field as pyarrow takes it. The field must have one."""
    assert field.default is not None
    return stored(from_json(json.loads(field.default, parse_float=decimal.Decimal), field.type), field.type)


def stored(value: Any, type_: Type) -> Any:
    """A canonical value as pyarrow takes it."""
    match value, type_:
        case uuid.UUID(), _:
            return str(value)
        case list(), Array(element):
            return [stored(one, element) for one in value]
        case dict(), Map(inner):
            return {key: stored(one, inner) for key, one in value.items()}
        case dict(), Record(fields):
            return {field.name: stored(value[field.name], field.type) for field in fields}
        case _:
            return value


def arrow_type(field: Field) -> pa.DataType:
    return to_arrow_type(to_spark(field.type), timezone="UTC")


class ArrowReader:
    """``decoded`` has a struct of value and error for every type that bodies are read as.

    Most bodies are read as the side's own type. If a schema gives another type to a field, its bodies keep that type, and
    `convert` decides what becomes of the value. ``make`` must be a function of a module, because workers import it.
    """

    def __init__(self, side: SchemaEncoding, writers: WriterSchemas, make: DecoderFactory) -> None:
        self._side = side
        self._writers = writers
        self._make = make
        self._target = decoded_type(side)
        shapes: dict[Field, list[WrittenSchema]] = {self._target: []}
        for schema in writers.known.values() if side.framed else (side.first,):
            shapes.setdefault(_shape(side, schema, writers), []).append(schema)
        self._main, *self._others = [
            _Part(
                f"part{number}",
                Decoding(
                    shape,
                    side.schemas,
                    tuple(known),
                    side.framed,
                    side.message,
                    names_of_writers(side, known),
                    side.past,
                ),
            )
            for number, (shape, known) in enumerate(shapes.items())
        ]
        self.converts = bool(self._others)

    def decode(self, data: Column) -> Column:
        elsewhere = [id_ for part in self._others for id_ in part.ids]
        rest = F.when(~frame.has_schema_id(data, elsewhere), data) if elsewhere else data
        parts = [self._main.read(rest, self._make)]
        parts += [part.read(F.when(frame.has_schema_id(data, part.ids), data), self._make) for part in self._others]
        return F.struct(*parts)

    def accepts(self, data: Column, decoded: Column) -> Column:
        """An unknown id raises here already: where bad records are left out, no query asks for the error."""
        error = self._body_error(decoded)
        good = error.isNull()
        if not self._side.framed:
            return good
        wrong = frame.frame_error(data, self._writers, F.lit(""))
        return F.when(error == F.lit(NO_SCHEMA), wrong == F.lit("")).otherwise(good)

    def error(self, data: Column, decoded: Column) -> Column:
        error = self._body_error(decoded)
        return frame.frame_error(data, self._writers, error) if self._side.framed else error

    def _body_error(self, decoded: Column) -> Column:
        return F.coalesce(*[decoded[part.name]["reason"] for part in (self._main, *self._others)])

    def value(self, data: Column, decoded: Column) -> Column:
        value = decoded[self._main.name]["v"]
        for part in self._others:
            converted = convert(decoded[part.name]["v"], part.type, self._target.type)
            value = F.when(frame.has_schema_id(data, part.ids), converted).otherwise(value)
        return value

    def fields(self, data: Column, decoded: Column) -> Column:
        return self.value(data, decoded)

    def schema_id(self, data: Column) -> Column:
        return frame.schema_id(data) if self._side.framed else F.lit(None).cast("int")


class _Part:
    """Bodies that are read as one type."""

    def __init__(self, name: str, decoding: Decoding) -> None:
        self.name = name
        self.type = decoding.target.type
        self.ids = [writer.id or 0 for writer in decoding.writers]
        self._decoding = decoding

    def read(self, data: Column, make: DecoderFactory) -> Column:
        decoding = self._decoding

        def decode_batch(bodies: pa.Array) -> pa.Array:
            return batch_decoder(decoding, make)(bodies)

        type_ = spark.StructType(
            [spark.StructField("v", to_spark(self.type)), spark.StructField("reason", spark.StringType())]
        )
        decoded: Column = arrow_udf(decode_batch, type_)(data)  # type: ignore[call-overload]
        return decoded.alias(self.name)


def names_of_writers(side: SchemaEncoding, writers: Sequence[WrittenSchema]) -> tuple[KnownFields, ...]:
    return tuple(_names_of(side, writer) for writer in writers)


def _names_of(side: SchemaEncoding, writer: WrittenSchema) -> KnownFields:
    try:
        return names_in(side, writer)
    except SchemaError:  # its decoder says why nothing can be read
        return ()


def _shape(side: SchemaEncoding, schema: WrittenSchema, writers: WriterSchemas) -> Field:
    """The type that bodies of a schema are read as: the side's type, except for fields that do not fit into it. A
    body whose schema is not newer than the frozen schema is treated as if it were written with the frozen schema."""
    target = decoded_type(side)
    own = type_in(side, schema if schema.id in writers.newer else side.first)
    if can_hold(target.type, own.type):
        return target
    if not (isinstance(target.type, Record) and isinstance(own.type, Record)):
        return own
    theirs = {field.name: field for field in own.type.fields}
    mine = target.type.fields
    fields = tuple(f if can_hold(f.type, theirs.get(f.name, f).type) else theirs[f.name] for f in mine)
    return replace(target, type=replace(target.type, fields=fields))


@lru_cache(maxsize=64)
def batch_decoder(decoding: Decoding, make: DecoderFactory) -> BatchDecoder:
    return BatchDecoder(decoding, make)


class BatchDecoder:
    """Decodes Arrow batches. It is made once per process and set of schemas."""

    def __init__(self, decoding: Decoding, make: DecoderFactory) -> None:
        self._type = arrow_type(decoding.target)
        self._start = HEADER_LENGTH if decoding.framed else 0
        self._writers = {_frame(writer, decoding.framed): make(decoding, writer) for writer in decoding.writers}

    def __call__(self, data: pa.Array) -> pa.StructArray:
        with without_collector():
            return self._decoded(data.to_pylist())

    def _decoded(self, rows: list[Any]) -> pa.StructArray:
        reasons: list[str | None] = [None] * len(rows)
        made = _Columns()
        for bodies, numbers, parsed in self._parsed(rows, reasons, made):
            self._columns(bodies, numbers, parsed, made)
        for bodies, number in made.doubtful:
            try:
                made.chunks.append(bodies.exact(rows[number][self._start :]))
                made.numbers.append(number)
            except InvalidBody as bad:
                reasons[number] = bad.reason
        values = made.in_order(len(rows), self._type)
        return pa.StructArray.from_arrays([values, pa.array(reasons, pa.string())], ["v", "reason"])

    def _parsed(
        self, rows: Sequence[bytes | None], reasons: list[str | None], made: _Columns
    ) -> Iterator[tuple[BodyDecoder, list[int], list[Any]]]:
        for prefix, (numbers, bodies) in self._by_frame(rows, reasons).items():
            reader = self._writers[prefix]
            parsed, wrong = reader.parse(bodies)
            for place, trouble in wrong.items():
                if isinstance(trouble, InvalidBody):
                    reasons[numbers[place]] = trouble.reason
                else:
                    made.doubtful.append((reader, numbers[place]))
            if wrong:
                parsed = [one for place, one in enumerate(parsed) if place not in wrong]
                numbers = [number for place, number in enumerate(numbers) if place not in wrong]
            yield reader, numbers, parsed

    def _by_frame(
        self, rows: Sequence[bytes | None], reasons: list[str | None]
    ) -> dict[bytes, tuple[list[int], list[bytes]]]:
        """Numbers and bodies of the rows, by their frames."""
        groups: dict[bytes, tuple[list[int], list[bytes]]] = {prefix: ([], []) for prefix in self._writers}
        start = self._start
        for number, row in enumerate(rows):
            if row is None:
                continue
            group = groups.get(row[:start])
            if group is None:
                reasons[number] = NO_SCHEMA
            else:
                group[0].append(number)
                group[1].append(row[start:])
        return groups

    def _columns(self, bodies: BodyDecoder, numbers: list[int], parsed: list[Any], made: _Columns) -> None:
        if not parsed:
            return
        try:
            made.chunks.append(bodies.columns(parsed))
            made.numbers += numbers
        except _DOUBTS:
            if len(parsed) <= _SMALLEST_BATCH:
                made.doubtful += [(bodies, number) for number in numbers]
                return
            half = len(parsed) // 2
            self._columns(bodies, numbers[:half], parsed[:half], made)
            self._columns(bodies, numbers[half:], parsed[half:], made)


class _Columns:
    """The arrays made so far, and the numbers of the rows that their values belong to."""

    def __init__(self) -> None:
        self.chunks: list[pa.Array] = []
        self.numbers: list[int] = []
        self.doubtful: list[tuple[BodyDecoder, int]] = []

    def in_order(self, rows: int, type_: pa.DataType) -> pa.Array:
        if not self.chunks:
            return pa.nulls(rows, type_)
        whole = self.chunks[0] if len(self.chunks) == 1 else pa.concat_arrays(self.chunks)
        if self.numbers == list(range(rows)):
            return whole
        places: list[int | None] = [None] * rows
        for place, number in enumerate(self.numbers):
            places[number] = place
        return whole.take(pa.array(places, pa.int64()))


def _frame(writer: WrittenSchema, framed: bool) -> bytes:
    return header(writer.id or 0) if framed else b""
