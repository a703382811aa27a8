"""Avro on the JVM: the schema ids that a batch can hold are the branches of one union, read by one `from_avro`.

Writer and reader get one more field at their end, an int whose bytes we append. A malformed record gives a null there, and
a record with bytes left over gives another number. A value that is not a record becomes the first field of one. Putting a
record into another costs a tenth of all CPU time: Spark makes the decoded row anew each time and asks its settings per field.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import fastavro
from pyspark.sql import Column, functions as F
from pyspark.sql.avro.functions import from_avro

from headgate.registry.wire import HEADER_LENGTH, header
from headgate.runtime.formats import avro_plan, frame
from headgate.runtime.formats.avro_defaults import with_defaults
from headgate.runtime.formats.avro_flatten import NestedRecord, find_nested, flatten, unflatten, without_leaves
from headgate.runtime.formats.avro_logical_types import LogicalTypeConflict, with_writer_logical_types
from headgate.runtime.formats.avro_types import is_utf8, needs_conversion, to_columns, value_error
from headgate.runtime.formats.convert import convert
from headgate.runtime.formats.side import MALFORMED, WriterSchemas, first_error
from headgate.schema.encodings import SchemaEncoding, decoded_type, names_in, past_fields
from headgate.schema.formats.avro.read import read_tree
from headgate.schema.formats.avro.tree import AvroType, Field, Name, Primitive, Record, canonical_text
from headgate.schema.formats.spark import to_spark
from headgate.schema.names import ROOT
from headgate.schema.written import WrittenSchema

# The end mark behind every record is an Avro int of five bytes. Bytes that are left over equal it with a chance of 1 in
# 2^31. The mark is negative: a record that is cut off before a text or an array reads the mark as a length, and for a
# positive length Avro would first allocate 1.5 GB.
END = -1_554_098_975
MERGED, CREATED = "merged", "created"
PERMISSIVE = {"mode": "PERMISSIVE"}
END_FIELD, WHOLE_FIELD = "headgate_end", "headgate_whole"
_END_BYTES = bytes((0xBD, 0xAC, 0x8D, 0xCA, 0x0B))


class AvroReader:
    """``decoded`` has a struct for each part: the fields and the end behind them. It is NULL for the ids of other parts. If
    there is only one part, ``decoded`` is that struct.

    Most records are in the first part, which Avro resolves to the side's type. Records that Avro cannot resolve to it are
    read as the frozen schema says, or as they were written, and are converted by us. Nothing is read of ids whose values
    mean something else than those of the frozen schema.
    """

    def __init__(self, side: SchemaEncoding, writers: WriterSchemas) -> None:
        self._side = side
        self._writers = writers
        self._by_id = side.framed and side.first.id is not None
        self._parts, self._conflicts = _parts(side, writers)
        self._target = decoded_type(side).type
        first, *others = self._parts
        self._is_target = not others and to_spark(first.type) == to_spark(self._target)
        self.converts = not self._is_target or first.needs_conversion

    def decode(self, data: Column) -> Column:
        if self._by_id:
            reads = [F.coalesce(*[read.column(data) for read in part.reads]) for part in self._parts]
        else:
            reads = [self._as_frozen(data)]
        if len(reads) == 1:
            return reads[0]
        return F.struct(*[read.alias(part.name) for read, part in zip(reads, self._parts, strict=True)])

    def _read(self, decoded: Column, part: _Part) -> Column:
        return decoded if len(self._parts) == 1 else decoded[part.name]

    def _as_frozen(self, data: Column) -> Column:
        """The schema is in the statement and there is no registry: it holds for every record, whatever id is in its frame."""
        text = self._parts[0].reader_text
        if not self._side.framed:
            return from_avro(F.concat(data, F.lit(_END_BYTES)), text, PERMISSIVE)
        return F.when(frame.is_framed(data), from_avro(F.concat(*_body(data)), text, PERMISSIVE))

    def accepts(self, data: Column, decoded: Column) -> Column:
        """An unknown id raises here already: where bad records are left out, no query asks for the error."""
        good = self._ended(decoded)
        if (wrong := self._wrong(decoded, plain=False)) is not None:
            good = good & wrong.isNull()
        for part in self._parts:
            if (utf8 := part.is_utf8(self._read(decoded, part))) is not None:
                good = good & utf8
        if not self._by_id:
            return good
        return F.when(good, F.lit(True)).otherwise(frame.raise_if_unknown_id(data, self._writers))

    def error(self, data: Column, decoded: Column) -> Column:
        malformed: Column = F.lit(MALFORMED)
        if (wrong := self._wrong(decoded, plain=True)) is not None:
            malformed = F.when(self._ended(decoded), F.coalesce(wrong, malformed)).otherwise(malformed)
        if not self._side.framed:
            return malformed
        if self._side.first.id is None:
            return F.when(~frame.is_framed(data), F.lit(frame.WRONG_MAGIC)).otherwise(malformed)
        for path in sorted({*self._conflicts.values()}):
            ids = [id_ for id_, at in self._conflicts.items() if at == path]
            reason = f"what is at {path} has another meaning in its schema than in the source's"
            malformed = F.when(frame.has_schema_id(data, ids), F.lit(reason)).otherwise(malformed)
        return frame.frame_error(data, self._writers, malformed, checked=True)  # by `accepts`

    def _ended(self, decoded: Column) -> Column:
        """Whether a body ends where its schema says. NULL if the body could not be read."""
        return F.coalesce(*[self._read(decoded, part)[END_FIELD] for part in self._parts]) == F.lit(END)

    def _wrong(self, decoded: Column, *, plain: bool) -> Column | None:
        """Why a text or a time in a well-formed body is not what its schema says. With ``plain`` texts that are only texts are
        checked too."""
        return first_error(part.error(self._read(decoded, part), plain) for part in self._parts)

    def fields(self, data: Column, decoded: Column) -> Column:
        if self._is_target:
            return self._parts[0].fields(self._read(decoded, self._parts[0]))
        return self.value(data, decoded)

    def value(self, data: Column, decoded: Column) -> Column:
        if self._is_target:
            return self._parts[0].value(self._read(decoded, self._parts[0]))
        value = F.when(F.lit(False), F.lit(None).cast(to_spark(self._target)))
        for part in self._parts:
            read = self._read(decoded, part)
            converted = convert(part.value(read), part.type, self._target)
            value = value.when(read[END_FIELD] == F.lit(END), converted)
        return value

    def schema_id(self, data: Column) -> Column:
        return frame.schema_id(data) if self._side.framed else F.lit(None).cast("int")


def explain_malformed(data: bytes | None, writer: WrittenSchema | None) -> str:
    """Why the body of a framed record is malformed, found by decoding that one record in Python."""
    if data is None or writer is None:
        return MALFORMED
    body = io.BytesIO(data[HEADER_LENGTH:])
    try:
        fastavro.schemaless_reader(body, _parsed(writer), None)
    except EOFError:
        return "it ends before its schema does"
    except Exception:  # noqa: BLE001 - whatever the decoder raises, it says no more than that
        return MALFORMED
    left = len(data) - HEADER_LENGTH - body.tell()
    return f"{left} bytes are left over behind it" if left else MALFORMED


@lru_cache(maxsize=64)
def _parsed(writer: WrittenSchema) -> fastavro.types.Schema:
    """A batch may have half a million malformed records of one schema."""
    return fastavro.parse_schema(json.loads(avro_plan.to_json_text(avro_plan.writer_tree(writer))))


# parts


@dataclass(frozen=True, slots=True)
class _Read:
    """One `from_avro`, for the records with these ids. If the writer is a union, ``branches`` has the branch of each id."""

    writer: str
    reader: str
    ids: Sequence[int]
    branches: Mapping[int, int] = field(default_factory=dict)

    def column(self, data: Column) -> Column:
        options = PERMISSIVE if self.writer == self.reader else {**PERMISSIVE, "avroSchema": self.reader}
        body = _body(data)
        if self.branches:
            return from_avro(F.concat(self._branch(data), *body), self.writer, options)
        return F.when(frame.has_schema_id(data, self.ids), from_avro(F.concat(*body), self.writer, options))

    def _branch(self, data: Column) -> Column:
        """The union branch of the record's schema id, as a varint; NULL for other ids, which makes the whole result NULL. The
        map lists the newest ids first, because Spark searches it from its beginning."""
        newest = sorted(self.ids, reverse=True)
        pairs = [F.lit(part) for id_ in newest for part in (header(id_), avro_plan.varint(2 * self.branches[id_]))]
        return F.try_element_at(F.create_map(*pairs), frame.header_of(data))


class _Part:
    """A struct of ``decoded``: the records that are read as one type. ``more`` are records that another reader reads as the
    same type."""

    def __init__(self, name: str, reader: _Version, writers: _Versions, *more: tuple[_Version, _Versions]) -> None:
        self.name = name
        self.type = read_tree(reader.whole)
        self.needs_conversion = needs_conversion(reader.whole)
        self._reader = reader
        groups = [(reader, writers), *more]
        versions = [one for of, written in groups for one in (of, *written)]
        simple = all(one.is_simple for one in versions)
        self._nested = find_nested([one.record for one in versions]) if simple else {}
        self._texts: dict[_Version, str] = {}
        self.reads = [read for of, written in groups for read in self._reads(written, of)]
        self.reader_text = self._text(reader)

    def _reads(self, writers: _Versions, reader: _Version) -> list[_Read]:
        """The reads that decode records of all these writers. Simple schemas are joined, so that one read serves them all."""
        by_union = [w for w in writers if reader.is_simple and w.is_simple]
        joined: list[_Version] = []
        if len(by_union) > 1:
            union, members = avro_plan.writer_union([w.ended(self._nested) for w in by_union])
            joined = [by_union[number] for number in members] if len(members) > 1 else []
        text = self._text(reader)
        reads = [_Read(self._text(w), text, w.ids) for w in writers if w not in joined]
        branches = {id_: number for number, w in enumerate(joined) for id_ in w.ids}
        return [_Read(union, text, list(branches), branches), *reads] if branches else reads

    def _text(self, version: _Version) -> str:
        if version not in self._texts:
            self._texts[version] = avro_plan.to_json_text(avro_plan.mark_ambiguous_unions(version.ended(self._nested)))
        return self._texts[version]

    def value(self, read: Column) -> Column:
        """What was read, of the part's type."""
        if self.needs_conversion or not self._reader.flat:
            return self.fields(read)
        return without_leaves(self.fields(read), self._nested).dropFields(END_FIELD)

    def fields(self, read: Column) -> Column:
        """A struct with the fields of the value, and perhaps more. To drop a field, Spark lists all others: a query over 2,000
        fields that were taken out of such a struct would list four million."""
        return to_columns(self._as_read(read), self._reader.whole, self.type)

    def error(self, read: Column, plain: bool) -> Column | None:
        """Why a value is not of its type though Avro reads it: NULL where it is."""
        return value_error(self._as_read(read), self._reader.whole, self.type, plain=plain)

    def is_utf8(self, read: Column) -> Column | None:
        return is_utf8(self._as_read(read), self._reader.whole, self.type)

    def _as_read(self, read: Column) -> Column:
        return unflatten(read, self._nested) if self._reader.flat else read[WHOLE_FIELD]


def _parts(side: SchemaEncoding, writers: WriterSchemas) -> tuple[list[_Part], dict[int, str]]:
    """All parts; and the ids that none of them reads, each with the path where its values mean something else."""
    first, reader = _Version(_known_tree(side, side.first), []), _Version(avro_plan.writer_tree(side.first), [])
    newer = _by_shape(writers, lambda schema: _known_tree(side, schema), newer=True)
    older = _by_shape(writers, avro_plan.writer_tree, newer=False, flat=reader.flat)
    for alike in (newer.pop(first.shape, None), older.pop(reader.shape, None)):
        first.ids += alike.ids if alike is not None else []
    frozen = _filled(reader, side)
    old, converted, conflicts = _by_logical_types(frozen, list(older.values()))
    merged = _merged(side) if newer else None
    fitting = [
        w for w in newer.values() if merged is not None and w.is_simple and avro_plan.is_readable_as(w.record, merged)
    ]
    if merged is None or not fitting:
        parts = [_Part(MERGED, frozen, [first, *old])]
    else:
        parts = _merged_parts(_Version(merged, []), [first, *fitting], frozen, old)
    parts += [_Part(f"newer{w.ids[0]}", _filled(w, side), [w]) for w in newer.values() if w not in fitting]
    return [*parts, *converted], conflicts


@lru_cache(maxsize=256)
def _known_tree(side: SchemaEncoding, schema: WrittenSchema) -> AvroType:
    """The tree of a schema with the names that the side has for its fields."""
    return avro_plan.with_known_names(avro_plan.writer_tree(schema), names_in(side, schema))


def _filled(version: _Version, side: SchemaEncoding) -> _Version:
    """The version as a reader that has the defaults of all versions. Under PIN only Avro's own rules count."""
    if not side.fills and len(side.past) + len(side.schemas) == 1:
        return version
    whole = avro_plan.with_aliases(_with_defaults(version.whole, side), past_fields(side))
    return _Version(whole, [], version.flat)


def _with_defaults(reader: AvroType, side: SchemaEncoding) -> AvroType:
    versions = [_known_tree(side, schema) for schema in (*side.past, *side.schemas)]
    return with_defaults(reader, versions, decoded_type(side).type)


def _by_logical_types(frozen: _Version, old: Sequence[_Version]) -> tuple[list[_Version], list[_Part], dict[int, str]]:
    """The schemas that Avro may resolve to the frozen schema itself; the parts for those that it must resolve to one with
    other logical types; and the ids that cannot be read, each with the first path that prevents it."""
    alike: list[_Version] = []
    found: dict[tuple[str, bool], tuple[AvroType, list[_Version]]] = {}
    conflicts: dict[int, str] = {}
    for writer in old:
        try:
            reader = with_writer_logical_types(writer.whole, frozen.whole)
            if reader is frozen.whole and writer.flat == frozen.flat:
                alike.append(writer)
                continue
            named = avro_plan.standalone(reader) if frozen.is_simple else reader
            found.setdefault((avro_plan.to_json_text(named), writer.flat), (named, []))[1].append(writer)
        except LogicalTypeConflict as conflict:
            conflicts |= dict.fromkeys(writer.ids, conflict.path)
        except avro_plan.NameConflict:
            conflicts |= dict.fromkeys(writer.ids, ROOT)
    parts = []
    for (_, flat), (reader, writers) in found.items():
        parts.append(_Part(f"older{writers[0].ids[0]}", _Version(reader, [], flat), writers))
    return alike, parts, conflicts


def _merged_parts(reader: _Version, new: _Versions, frozen: _Version, old: _Versions) -> list[_Part]:
    """Records that are older than the frozen schema are resolved to it, with the defaults of all versions."""
    if not old:
        return [_Part(MERGED, reader, new)]
    if to_spark(read_tree(frozen.whole)) == to_spark(read_tree(reader.whole)):
        return [_Part(MERGED, reader, new, (frozen, old))]
    return [_Part(MERGED, reader, new), _Part(CREATED, frozen, old)]


def _merged(side: SchemaEncoding) -> AvroType | None:
    """The reader for all schemas that were followed, if there is one that gives the side's type."""
    schemas = [_Version(_known_tree(side, schema), []) for schema in side.schemas]
    if not all(schema.flat and schema.is_simple for schema in schemas):
        return None
    merged = avro_plan.merged_reader([schema.whole for schema in schemas])
    try:
        named = None if merged is None else avro_plan.standalone(_with_defaults(merged, side))
    except avro_plan.NameConflict:  # an enum that got a symbol in one place and not in another
        return None
    return named if named and to_spark(read_tree(named)) == to_spark(decoded_type(side).type) else None


class _Version:
    """A schema that records of some ids are written with, or are read by.

    ``record`` is what Spark reads: the schema itself if it is ``flat``, otherwise a record with the schema as its only
    field. A record without fields is not flat, because Spark cannot drop the end of it. Neither is one that contains
    itself: the end would be expected inside it too.
    """

    def __init__(self, whole: AvroType, ids: list[int], flat: bool = True) -> None:
        self.whole = whole
        self.ids = ids
        self.is_simple = avro_plan.is_simple(whole)
        self.flat = flat and _has_room_for_end(whole) and (self.is_simple or not avro_plan.contains_itself(whole))
        wrapped = Record(Name("headgate_wrapped"), (Field(WHOLE_FIELD, whole),))
        self.record = whole if self.flat and isinstance(whole, Record) else wrapped

    @property
    def shape(self) -> str:
        """Equal for schemas that differ only in what does not show in the bytes."""
        return _shape(self.whole)

    def ended(self, nested: Mapping[str, NestedRecord]) -> Record:
        """The record with the end behind its fields."""
        record = flatten(self.record, nested)
        return replace(record, fields=(*record.fields, Field(END_FIELD, Primitive("int"))))


@lru_cache(maxsize=256)  # by identity, as `is_simple`
def _shape(whole: AvroType) -> str:
    return canonical_text(whole, normalize=True)


_Versions = Sequence[_Version]


def _has_room_for_end(whole: AvroType) -> bool:
    return isinstance(whole, Record) and bool(whole.fields) and not whole.is_error


def _by_shape(
    writers: WriterSchemas, tree: Callable[[WrittenSchema], AvroType], *, newer: bool, flat: bool = True
) -> dict[str, _Version]:
    """The ids that are newer than the frozen schema, or the others, grouped by equal shape."""
    found: dict[str, _Version] = {}
    for id_, schema in sorted(writers.known.items()):
        if (id_ in writers.newer) is newer:
            version = _Version(tree(schema), [], flat)
            found.setdefault(version.shape, version).ids.append(id_)
    return found


def _body(data: Column) -> tuple[Column, Column]:
    """What stands behind the frame, and the end of it."""
    return frame.body_of(data), F.lit(_END_BYTES)
