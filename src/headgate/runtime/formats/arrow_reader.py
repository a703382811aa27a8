"""Formats that are decoded in Python workers, in Arrow batches: one function from bytes to a value and a reason.

A batch goes the quick way: every body is parsed by itself, and all of them become columns together. The quick way
never takes what it is not sure of. If the columns of a batch cannot be made, its halves are tried, until the bodies
that are in the way are alone; these are read exactly, one by one, which tells what is wrong with them, or that nothing
is.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as spark
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type

from headgate.runtime.formats.convert import conform
from headgate.runtime.formats.side import Writers, framed_id, has_id, wrong_frame
from headgate.schema.encodings import SchemaEncoding, decoded_type, type_of_schema
from headgate.schema.errors import ValueDoesNotFit
from headgate.schema.evolve.merge import can_hold
from headgate.schema.formats.spark import to_spark
from headgate.schema.types import Field, Record
from headgate.schema.written import WrittenSchema

FRAME = 5  # bytes: a zero and the schema's id
NO_SCHEMA = "its frame names no known schema"
_ALONE = 4  # so few bodies are not halved any more


class Bad(Exception):
    """A body that cannot be read, and why, in words without any of it."""

    @property
    def reason(self) -> str:
        return str(self.args[0])


class Doubt(Exception):
    """Something that the quick way leaves to the exact one."""


_DOUBTS = (Doubt, ValueDoesNotFit, pa.ArrowException, TypeError, ValueError, OverflowError)


@dataclass(frozen=True, slots=True)
class Decoding:
    """What a worker must know: the type that every body becomes, and the schemas as texts. A body of a side that is
    not framed is written with the first one."""

    target: Field
    schemas: tuple[WrittenSchema, ...]
    writers: tuple[WrittenSchema, ...]
    framed: bool
    message: str | None = None


class Bodies(Protocol):
    """Bodies written with one schema."""

    def parse(self, bodies: list[bytes]) -> Parsed:
        """What `columns` takes for each body; and of those for which there is nothing, by number, why."""

    def columns(self, parsed: list[Any]) -> pa.Array:
        """Of the arrow type of the target. Raises one of `_DOUBTS`, for whatever it is not sure of."""

    def exact(self, body: bytes) -> pa.Array:
        """The same for one body. Raises Bad."""


Parsed: TypeAlias = tuple[list[Any], dict[int, Bad | Doubt]]
MakeBodies: TypeAlias = Callable[[Decoding, WrittenSchema], Bodies]


def one_by_one(parse: Callable[[Any], Any], bodies: Sequence[Any]) -> Parsed:
    """What ``parse`` gives for each, and None for one for which it raises Bad or Doubt."""
    made: list[Any] = []
    wrong: dict[int, Bad | Doubt] = {}
    for number, body in enumerate(bodies):
        try:
            made.append(parse(body))
        except (Bad, Doubt) as trouble:
            made.append(None)
            wrong[number] = trouble
    return made, wrong


def arrow_type(field: Field) -> pa.DataType:
    return to_arrow_type(to_spark(field.type), timezone="UTC")


class ArrowReader:
    """``inner`` has a struct for every shape that bodies are read in, of the value and why there is none. Most are read
    in the side's own type; those whose schema made something else of a field keep it so, and `conform` judges what
    becomes of it. ``make`` must be a function of a module."""

    def __init__(self, side: SchemaEncoding, writers: Writers, make: MakeBodies) -> None:
        self._side = side
        self._writers = writers
        self._make = make
        self._target = decoded_type(side)
        shapes: dict[Field, list[WrittenSchema]] = {self._target: []}
        for schema in writers.known.values() if side.framed else (side.first,):
            shapes.setdefault(_shape(side, schema, writers), []).append(schema)
        self._main, *self._others = [
            _Part(f"part{number}", Decoding(shape, side.schemas, tuple(known), side.framed, side.message))
            for number, (shape, known) in enumerate(shapes.items())
        ]
        self.brings_over = bool(self._others)

    def costly(self, data: Column) -> Column:
        elsewhere = [id_ for part in self._others for id_ in part.ids]
        rest = F.when(~has_id(data, elsewhere), data) if elsewhere else data
        parts = [self._main.read(rest, self._make)]
        parts += [part.read(F.when(has_id(data, part.ids), data), self._make) for part in self._others]
        return F.struct(*parts)

    def fits(self, data: Column, inner: Column) -> Column:
        """An id that is not known yet raises here already: where bad records are left out, nobody asks for the reason."""
        reason = self._told(inner)
        good = reason.isNull()
        if not self._side.framed:
            return good
        wrong = wrong_frame(data, self._writers, F.lit(""))
        return F.when(reason == F.lit(NO_SCHEMA), wrong == F.lit("")).otherwise(good)

    def reason(self, data: Column, inner: Column) -> Column:
        told = self._told(inner)
        return wrong_frame(data, self._writers, told) if self._side.framed else told

    def _told(self, inner: Column) -> Column:
        return F.coalesce(*[inner[part.name]["reason"] for part in (self._main, *self._others)])

    def value(self, data: Column, inner: Column) -> Column:
        value = inner[self._main.name]["v"]
        for part in self._others:
            brought = conform(inner[part.name]["v"], part.type, self._target.type)
            value = F.when(has_id(data, part.ids), brought).otherwise(value)
        return value

    def schema_id(self, data: Column) -> Column:
        return framed_id(data) if self._side.framed else F.lit(None).cast("int")


class _Part:
    """Bodies that are read in one shape."""

    def __init__(self, name: str, decoding: Decoding) -> None:
        self.name = name
        self.type = decoding.target.type
        self.ids = [writer.id or 0 for writer in decoding.writers]
        self._decoding = decoding

    def read(self, data: Column, make: MakeBodies) -> Column:
        decoding = self._decoding

        def decoded(bodies: pa.Array) -> pa.Array:
            return batch_decoder(decoding, make)(bodies)

        type_ = spark.StructType(
            [spark.StructField("v", to_spark(self.type)), spark.StructField("reason", spark.StringType())]
        )
        inner: Column = arrow_udf(decoded, type_)(data)  # type: ignore[call-overload]
        return inner.alias(self.name)


def _shape(side: SchemaEncoding, schema: WrittenSchema, writers: Writers) -> Field:
    """What bodies of a schema are read as: the side's type, but for the fields of which it has another one. Those of
    schemas that are not newer than the frozen one are read as it says."""
    target = decoded_type(side)
    own = type_of_schema(side.format, schema if schema.id in writers.own else side.first, side.message)
    if can_hold(target.type, own.type):
        return target
    if not (isinstance(target.type, Record) and isinstance(own.type, Record)):
        return own
    theirs = {field.name: field for field in own.type.fields}
    mine = target.type.fields
    fields = tuple(f if can_hold(f.type, theirs.get(f.name, f).type) else theirs[f.name] for f in mine)
    return replace(target, type=replace(target.type, fields=fields))


@lru_cache(maxsize=64)
def batch_decoder(decoding: Decoding, make: MakeBodies) -> BatchDecoder:
    return BatchDecoder(decoding, make)


class BatchDecoder:
    """Made once per process and set of schemas."""

    def __init__(self, decoding: Decoding, make: MakeBodies) -> None:
        self._type = arrow_type(decoding.target)
        self._start = FRAME if decoding.framed else 0
        self._writers = {
            _frame(writer, decoding.framed): make(decoding, writer) for writer in decoding.writers
        }

    def __call__(self, data: pa.Array) -> pa.StructArray:
        # Thousands of documents are alive at once, and none of them is in a cycle: looking for some took a tenth.
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return self._decoded(data.to_pylist())
        finally:
            if was_enabled:
                gc.enable()

    def _decoded(self, rows: list[Any]) -> pa.StructArray:
        reasons: list[str | None] = [None] * len(rows)
        made = _Made()
        for bodies, numbers, parsed in self._parsed(rows, reasons, made):
            self._columns(bodies, numbers, parsed, made)
        for bodies, number in made.doubtful:
            try:
                made.chunks.append(bodies.exact(rows[number][self._start :]))
                made.numbers.append(number)
            except Bad as bad:
                reasons[number] = bad.reason
        values = made.in_order(len(rows), self._type)
        return pa.StructArray.from_arrays([values, pa.array(reasons, pa.string())], ["v", "reason"])

    def _parsed(
        self, rows: Sequence[bytes | None], reasons: list[str | None], made: _Made
    ) -> Iterator[tuple[Bodies, list[int], list[Any]]]:
        for frame, (numbers, bodies) in self._by_frame(rows, reasons).items():
            reader = self._writers[frame]
            parsed, wrong = reader.parse(bodies)
            for place, trouble in wrong.items():
                if isinstance(trouble, Bad):
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
        """Numbers and bodies of the rows, by the schemas that their frames name."""
        groups: dict[bytes, tuple[list[int], list[bytes]]] = {frame: ([], []) for frame in self._writers}
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

    def _columns(self, bodies: Bodies, numbers: list[int], parsed: list[Any], made: _Made) -> None:
        if not parsed:
            return
        try:
            made.chunks.append(bodies.columns(parsed))
            made.numbers += numbers
        except _DOUBTS:
            if len(parsed) <= _ALONE:
                made.doubtful += [(bodies, number) for number in numbers]
                return
            half = len(parsed) // 2
            self._columns(bodies, numbers[:half], parsed[:half], made)
            self._columns(bodies, numbers[half:], parsed[half:], made)


class _Made:
    """Arrays, and the numbers of the rows that their values belong to."""

    def __init__(self) -> None:
        self.chunks: list[pa.Array] = []
        self.numbers: list[int] = []
        self.doubtful: list[tuple[Bodies, int]] = []

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
    return b"\x00" + (writer.id or 0).to_bytes(4, "big") if framed else b""
