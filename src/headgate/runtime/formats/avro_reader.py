"""Avro on the JVM: the schema ids that a batch can hold are the branches of one union, read by one `from_avro`.

Writer and reader get one more field at their end, an int whose bytes we append. A malformed record gives a null there, and
a record with bytes left over gives another number. A value that is not a record becomes the first field of one. Putting a
record into another costs a tenth of all CPU time: Spark makes the inner row anew each time and asks its settings per field.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from headgate.runtime.formats.avro_inlay import Inlay, find_inlays, laid_in, taken_out
from headgate.runtime.formats.avro_meaning import OtherMeaning, meant
from headgate.runtime.formats.avro_schemas import (
    DefinedOtherwise,
    Tree,
    alone,
    apart,
    defined_once,
    grown,
    is_simple,
    resolves,
    together,
    tree,
    varint,
    written_out,
)
from headgate.runtime.formats.avro_types import differs, misread, reshape
from headgate.runtime.formats.convert import conform
from headgate.runtime.formats.side import (
    MAGIC,
    MALFORMED,
    Writers,
    first_of,
    first_within,
    framed_id,
    has_id,
    id_bytes,
    is_framed,
    known_frame,
    wrong_frame,
)
from headgate.schema.encodings import SchemaEncoding, decoded_type
from headgate.schema.formats.avro.docs import without_docs
from headgate.schema.formats.avro.read import from_avro as avro_type
from headgate.schema.formats.spark import to_spark
from headgate.schema.paths import ROOT, element_path, field_path, value_path
from headgate.schema.types import Array, Json, Map, Record, Text, Type, Uuid
from headgate.schema.written import WrittenSchema

# Five bytes as an Avro int: a chance of 1 in 2^31 that left-over bytes look like it. Negative, because a record that ends
# before a text or an array takes it for a length: of a positive one Avro makes room for 1.5 GB before it reads on.
END = -1_554_098_975
GROWN, FROZEN = "grown", "frozen"
PERMISSIVE = {"mode": "PERMISSIVE"}
END_FIELD, WHOLE_FIELD = "headgate_end", "headgate_whole"
_END_BYTES = bytes((0xBD, 0xAC, 0x8D, 0xCA, 0x0B))


class AvroReader:
    """``inner`` has a struct for each part: the fields and the number read behind them, NULL for the ids of others. If
    there is one part, it is that struct.

    Most records are in the first part, ``grown``, which Avro resolves to the side's type. What it cannot bring there is
    read as the frozen schema, or as it was written, and brought over by us. Of ids whose values mean something else than
    the frozen schema's, nothing is read.
    """

    def __init__(self, side: SchemaEncoding, writers: Writers) -> None:
        self._side = side
        self._writers = writers
        self._by_id = side.framed and side.first.id is not None
        self._parts, self._other = _parts(side, writers)
        self._target = decoded_type(side).type
        first, *others = self._parts
        self._is_target = not others and to_spark(first.type) == to_spark(self._target)
        self.brings_over = not self._is_target or first.reshaped

    def costly(self, data: Column) -> Column:
        if self._by_id:
            reads = [F.coalesce(*[read.column(data) for read in part.reads]) for part in self._parts]
        else:
            reads = [self._as_frozen(data)]
        if len(reads) == 1:
            return reads[0]
        return F.struct(*[read.alias(part.name) for read, part in zip(reads, self._parts, strict=True)])

    def _read(self, inner: Column, part: _Part) -> Column:
        return inner if len(self._parts) == 1 else inner[part.name]

    def _as_frozen(self, data: Column) -> Column:
        """The statement has the schema, and no registry: it holds for every record, whatever id a frame names."""
        text = self._parts[0].reader
        if not self._side.framed:
            return from_avro(F.concat(data, F.lit(_END_BYTES)), text, PERMISSIVE)
        return F.when(is_framed(data), from_avro(F.concat(*_body(data)), text, PERMISSIVE))

    def fits(self, data: Column, inner: Column) -> Column:
        """An id that is not known yet raises here already: where bad records are left out, nobody asks for the reason."""
        good = self._ended(inner)
        if (wrong := self._wrong(inner, plain=False)) is not None:
            good = good & wrong.isNull()
        for part in self._parts:
            if (utf8 := is_utf8(part.value(self._read(inner, part)), part.type)) is not None:
                good = good & utf8
        if not self._by_id:
            return good
        return F.when(good, F.lit(True)).otherwise(known_frame(data, self._writers))

    def reason(self, data: Column, inner: Column) -> Column:
        malformed: Column = F.lit(MALFORMED)
        if (wrong := self._wrong(inner, plain=True)) is not None:
            malformed = F.when(self._ended(inner), F.coalesce(wrong, malformed)).otherwise(malformed)
        if not self._side.framed:
            return malformed
        if self._side.first.id is None:
            return F.when(~is_framed(data), F.lit(MAGIC)).otherwise(malformed)
        for path in sorted({*self._other.values()}):
            ids = [id_ for id_, other in self._other.items() if other == path]
            told = f"what is at {path} has another meaning in its schema than in the source's"
            malformed = F.when(has_id(data, ids), F.lit(told)).otherwise(malformed)
        return wrong_frame(data, self._writers, malformed, checked=True)  # by `fits`, which is asked first

    def _ended(self, inner: Column) -> Column:
        """Whether a body ended where its schema says. NULL if it could not be read."""
        return F.coalesce(*[self._read(inner, part)[END_FIELD] for part in self._parts]) == F.lit(END)

    def _wrong(self, inner: Column, *, plain: bool) -> Column | None:
        """Why a text or a time within is not what its schema says, of bodies that are well-formed. ``plain``: texts that
        are nothing more are looked at too."""
        return first_of(part.wrong(self._read(inner, part), plain) for part in self._parts)

    def value(self, data: Column, inner: Column) -> Column:
        if self._is_target:
            return self._parts[0].value(self._read(inner, self._parts[0]))
        value = F.when(F.lit(False), F.lit(None).cast(to_spark(self._target)))
        for part in self._parts:
            read = self._read(inner, part)
            brought = conform(part.value(read), part.type, self._target)
            value = value.when(read[END_FIELD] == F.lit(END), brought)
        return value

    def schema_id(self, data: Column) -> Column:
        return framed_id(data) if self._side.framed else F.lit(None).cast("int")


# what is read together


@dataclass(frozen=True, slots=True)
class _Read:
    """One `from_avro`, for the records with these ids. Where the writer is a union, ``branches`` has that of each id."""

    writer: str
    reader: str
    ids: Sequence[int]
    branches: Mapping[int, int] = field(default_factory=dict)

    def column(self, data: Column) -> Column:
        options = PERMISSIVE if self.writer == self.reader else {**PERMISSIVE, "avroSchema": self.reader}
        body = _body(data)
        if self.branches:
            return from_avro(F.concat(self._branch(data), *body), self.writer, options)
        return F.when(has_id(data, self.ids), from_avro(F.concat(*body), self.writer, options))

    def _branch(self, data: Column) -> Column:
        """The number of the branch as Avro writes it; NULL for other ids, which makes all that is read NULL. Spark looks
        through a map from its beginning, where the newest stand: most records have one of them."""
        newest = sorted(self.ids, reverse=True)
        pairs = [F.lit(part) for id_ in newest for part in (id_bytes(id_), varint(2 * self.branches[id_]))]
        return F.try_element_at(F.create_map(*pairs), F.substring(data, 1, 5))


class _Part:
    """A struct of ``inner``: the records that are read to one type. ``more`` are those that are read to it by another
    reader."""

    def __init__(
        self, name: str, reader: _Written, writers: _Writers, *more: tuple[_Written, _Writers]
    ) -> None:
        self.name = name
        self.type = avro_type(reader.schema.text, texts(reader.schema))
        self.reshaped = differs(reader.whole)
        self._schema = reader
        groups = [(reader, writers), *more]
        self._inlays = find_inlays([one.tree for of, written in groups for one in (of, *written)])
        self.reader = reader.text(self._inlays)
        self.reads = [read for of, written in groups for read in _reads(written, of, self._inlays)]

    def value(self, read: Column) -> Column:
        return reshape(self._whole(read), self._schema.whole, self.type)

    def wrong(self, read: Column, plain: bool) -> Column | None:
        """What tells why a value is none though Avro reads it: NULL where it is one."""
        by_type = misread(self._whole(read), self._schema.whole, self.type)
        return first_of((by_type, wrong_text(self.value(read), self.type, plain=plain)))

    def _whole(self, read: Column) -> Column:
        if not self._schema.flat:
            return read[WHOLE_FIELD]
        return taken_out(read, self._inlays).dropFields(END_FIELD)


def _parts(side: SchemaEncoding, writers: Writers) -> tuple[list[_Part], dict[int, str]]:
    """All parts; and the ids that none of them reads, with the path of what means something else there."""
    frozen = _Written(side.first, [])
    own, older = _by_shape(writers, own=True), _by_shape(writers, own=False, flat=frozen.flat)
    for alike in (own.pop(frozen.shape, None), older.pop(frozen.shape, None)):
        frozen.ids += alike.ids if alike is not None else []
    old, meant_parts, other = _by_meaning(frozen, list(older.values()))
    made = _grown(side) if own else None
    new = [w for w in own.values() if made is not None and w.is_simple and resolves(w.tree, made)]
    if made is None or not new:
        parts = [_Part(GROWN, frozen, [frozen, *old])]
    else:
        parts = _grown_parts(_Written(WrittenSchema(alone(made)), []), [frozen, *new], frozen, old)
    left = [w for w in own.values() if w not in new]
    parts += [_Part(f"own{w.ids[0]}", w, [w]) for w in left]
    return [*parts, *meant_parts], other


def _by_meaning(
    frozen: _Written, old: Sequence[_Written]
) -> tuple[list[_Written], list[_Part], dict[int, str]]:
    """What Avro may resolve to the frozen schema itself, what it must resolve to one with another meaning at some places,
    and the ids that cannot be read, with the first such place."""
    alike: list[_Written] = []
    found: dict[tuple[str, bool], list[_Written]] = {}
    other: dict[int, str] = {}
    for writer in old:
        try:
            reader = meant(writer.whole, frozen.whole)
            if reader == frozen.whole and writer.flat == frozen.flat:
                alike.append(writer)
                continue
            text = alone(reader) if frozen.is_simple else written_out(reader)
            found.setdefault((text, writer.flat), []).append(writer)
        except OtherMeaning as place:
            other |= dict.fromkeys(writer.ids, place.path)
        except DefinedOtherwise:
            other |= dict.fromkeys(writer.ids, ROOT)
    parts = []
    for (text, flat), writers in found.items():
        target = _Written(WrittenSchema(text), [], flat)
        parts.append(_Part(f"meant{writers[0].ids[0]}", target, writers))
    return alike, parts, other


def _grown_parts(reader: _Written, new: _Writers, frozen: _Written, old: _Writers) -> list[_Part]:
    """What is older than the frozen schema gets the defaults that stand in it, and nothing of what came later."""
    if not old:
        return [_Part(GROWN, reader, new)]
    if to_spark(avro_type(frozen.schema.text, texts(frozen.schema))) == to_spark(
        avro_type(reader.schema.text)
    ):
        return [_Part(GROWN, reader, new, (frozen, old))]
    return [_Part(GROWN, reader, new), _Part(FROZEN, frozen, old)]


def _grown(side: SchemaEncoding) -> Tree | None:
    """The reader for all schemas that were followed, if there is one that gives the side's type."""
    schemas = [_Written(schema, []) for schema in side.schemas]
    if not all(schema.flat and schema.is_simple for schema in schemas):
        return None
    made = grown([schema.tree for schema in schemas])
    try:
        fits = made is not None and to_spark(avro_type(alone(made))) == to_spark(decoded_type(side).type)
    except DefinedOtherwise:  # an enum that grew in one place and was dropped from another
        return None
    return made if fits else None


def _reads(writers: _Writers, reader: _Written, inlays: Mapping[str, Inlay]) -> list[_Read]:
    """As few as can be."""
    text = reader.text(inlays)
    by_union = [w for w in writers if reader.is_simple and w.is_simple]
    union, members = together([w.ended(inlays) for w in by_union])
    joined = [by_union[number] for number in members]
    if len(joined) < 2:
        joined = []
    reads = [_Read(w.text(inlays), text, w.ids) for w in writers if w not in joined]
    branches = {id_: number for number, w in enumerate(joined) for id_ in w.ids}
    return [_Read(union, text, list(branches), branches), *reads] if branches else reads


class _Written:
    """A schema that records are written with, under some ids."""

    def __init__(self, schema: WrittenSchema, ids: list[int], flat: bool = True) -> None:
        self.schema = schema
        self.ids = ids
        self.shape = _shape(schema)
        self.whole = tree_of(schema)
        self.flat = flat and _is_record(self.whole)
        self.tree = self.whole if self.flat else _wrapped(self.whole)
        self.is_simple = is_simple(self.tree)

    def text(self, inlays: Mapping[str, Inlay]) -> str:
        return json.dumps(apart(defined_once(self.ended(inlays))))

    def ended(self, inlays: Mapping[str, Inlay]) -> Tree:
        record = laid_in(self.tree, inlays)
        return {**record, "fields": [*record["fields"], {"name": END_FIELD, "type": "int"}]}


_Writers = Sequence[_Written]


def _by_shape(writers: Writers, *, own: bool, flat: bool = True) -> dict[str, _Written]:
    """The ids that are newer than the frozen schema, or the others; together where their bytes are alike."""
    found: dict[str, _Written] = {}
    for id_, schema in sorted(writers.known.items()):
        if (id_ in writers.own) is own:
            found.setdefault(_shape(schema), _Written(schema, [], flat)).ids.append(id_)
    return found


def _shape(schema: WrittenSchema) -> str:
    """The schema without what does not show in the bytes: its docs."""
    parts = (schema.text, *texts(schema))
    return json.dumps([without_docs(json.loads(_json(text))) for text in parts], sort_keys=True)


def _body(data: Column) -> tuple[Column, Column]:
    """What stands behind the frame, and the end of it."""
    return F.substring(data, 6, 2**31 - 1), F.lit(_END_BYTES)


def texts(schema: WrittenSchema) -> tuple[str, ...]:
    return tuple(text for _, text in schema.references)


def tree_of(schema: WrittenSchema) -> Tree:
    return tree(json.loads(_json(schema.text)), [json.loads(_json(text)) for text in texts(schema)])


def _wrapped(whole: object) -> dict[str, Tree]:
    fields = [{"name": WHOLE_FIELD, "type": whole}]
    return {"type": "record", "name": "headgate_wrapped", "fields": fields}


def _is_record(schema: object) -> bool:
    """With fields: of one without them Spark cannot drop the end."""
    return isinstance(schema, dict) and schema.get("type") == "record" and bool(schema.get("fields"))


def _json(schema: str) -> str:
    return schema if schema.lstrip()[:1] in ("{", "[", '"') else json.dumps(schema)


FEW = 16  # texts of a record
_UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\z"


def is_utf8(column: Column, type_: Type) -> Column | None:
    """Whether all texts of a value are UTF-8; None if it has none. More than a few are put together first, or the code for
    them would be longer than Java compiles."""
    texts = [*_texts(column, type_)]
    if len(texts) > FEW:
        return F.is_valid_utf8(_joined(*texts))
    each = [F.is_valid_utf8(text) for text in texts]
    return F.coalesce(reduce(Column.__and__, each), F.lit(True)) if each else None


def _texts(column: Column, type_: Type, *, many: bool = False) -> Iterator[Column]:
    """The texts of a value, those of a list together: Spark makes no code to look at them one by one. ``many``: the column
    is an array of such values."""
    match type_:
        case Text():
            yield _joined(column) if many else column
        case Record(fields):
            for field in fields:
                yield from _texts(column.getField(field.name), field.type, many=many)
        case Array(element):
            yield from _texts(_flat(column) if many else column, element, many=True)
        case Map(value):
            keys = F.transform(column, F.map_keys) if many else F.map_keys(column)
            values = F.transform(column, F.map_values) if many else F.map_values(column)
            yield _joined(_flat(keys) if many else keys)
            yield from _texts(_flat(values) if many else values, value, many=True)
        case _:
            pass


def _joined(*texts: Column) -> Column:
    """One text, which is UTF-8 if all of them are: no character goes on over the end of a line."""
    return F.concat_ws("\n", *texts)


def _flat(arrays: Column) -> Column:
    return F.flatten(F.array_compact(arrays))  # which is NULL if one of them is


def wrong_text(column: Column, type_: Type, path: str = ROOT, *, plain: bool = False) -> Column | None:
    """Why a value is not of its type, or NULL; None if nothing of the type needs a look. ``plain``: also texts that are
    nothing more."""
    match type_:
        case Text() if plain:
            return F.when(~F.is_valid_utf8(column), F.lit(f"what is at {path} is not valid UTF-8"))
        case Json():
            return F.when(~_is_json(column), F.lit(f"what is at {path} is not JSON"))
        case Uuid():
            return F.when(~column.rlike(_UUID), F.lit(f"what is at {path} is not a uuid"))
        case Record(fields):
            return first_of(
                wrong_text(column.getField(f.name), f.type, field_path(path, f.name), plain=plain)
                for f in fields
            )
        case Array(element):
            return _first(column, element, element_path(path), plain)
        case Map(value):
            wrong_value = _first(F.map_values(column), value, value_path(path), plain)
            if not plain:
                return wrong_value
            keys = F.forall(F.map_keys(column), F.is_valid_utf8)
            wrong_key = F.when(~keys, F.lit(f"a key of what is at {path} is not valid UTF-8"))
            return first_of((wrong_key, wrong_value))
        case _:
            return None


def _first(values: Column, type_: Type, path: str, plain: bool) -> Column | None:
    return first_within(values, lambda value: wrong_text(value, type_, path, plain=plain))


def _is_json(text: Column) -> Column:
    """NULL for NULL. Spark's parser passes over whatever stands behind the first value; behind one that ends an array
    early, the two lengths do not both come out."""
    alone = F.json_array_length(F.concat(F.lit("["), text, F.lit("]")))
    beside = F.json_array_length(F.concat(F.lit("["), text, F.lit(",0]")))
    one = F.coalesce(alone == F.lit(1), F.lit(False)) & F.coalesce(beside == F.lit(2), F.lit(False))
    return F.when(text.isNotNull(), one & F.try_parse_json(text).isNotNull())
