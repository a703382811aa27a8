"""Random chains of Avro schemas: what Spark decodes by schema id is what fastavro reads, under FOLLOW and under PIN."""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any, cast

import fastavro
import pytest
from fastavro.schema import parse_schema
from hypothesis import Phase, given, settings, strategies as st
from pyspark.sql import SparkSession, functions as F

from headgate.registry import wire
from headgate.runtime.decode import evaluate_once, side_reader
from headgate.runtime.formats.side import MALFORMED, WriterSchemas
from headgate.schema.encodings import FieldPath, SchemaEncoding, decoded_type, needed_past
from headgate.schema.evolve.verdicts import arriving
from headgate.schema.types import Array, Map, Record, Type
from headgate.schema.written import SchemaFormat, WrittenSchema
from tests.laws import examples
from tests.runtime.formats.avro_chains import TIME_MICROS, TIME_MILLIS, Chain, other_meaning
from tests.runtime.formats.decoding import Bad, framed, written

pytestmark = pytest.mark.spark

CHAINS, VERSIONS, RECORDS = 4, 5, 6  # in one job: making the code of a job takes longer than running it


class Topic:
    """A side, the schemas of its records, and records beside what fastavro makes of them."""

    def __init__(self, random: Random, *, follow: bool) -> None:
        self._frozen = random.randrange(0, VERSIONS)
        chain = Chain(random, VERSIONS, self._frozen if follow else VERSIONS)
        self._schemas = chain.versions
        written = [WrittenSchema(json.dumps(s), (), n) for n, s in enumerate(self._schemas)]
        self.side = SchemaEncoding(SchemaFormat.AVRO, (written[self._frozen],))
        if follow:
            self.side = replace(self.side, past=needed_past(self.side, written[: self._frozen]), fills=True)
        self._follows = follow
        newer = written[self._frozen + 1 :] if follow else []
        for schema in newer:
            if arriving(self.side, schema).grows:
                self.side = replace(self.side, schemas=(*self.side.schemas, schema))
        self._own = frozenset(schema.id or 0 for schema in newer)
        self.broken = {schema.id or 0: arriving(self.side, schema).breaking_fields() for schema in newer}
        self.writers = WriterSchemas(dict(enumerate(written)), newer=self._own)
        self.records = [self._record(random, chain, n) for n in range(VERSIONS) for _ in range(RECORDS)]

    def _record(self, random: Random, chain: Chain, id_: int) -> tuple[bytes, Any]:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, _parsed(self._schemas[id_]), chain.value(self._schemas[id_]))
        body = out.getvalue()
        other = None if id_ in self._own else other_meaning(self._schemas[id_], self._schemas[self._frozen])
        if other:
            return framed(id_, body), Bad(f"what is at {other} has another meaning in its schema than in the source's")
        if not random.randrange(8):
            spoilt = body[:-1] if body and random.random() < 0.5 else body + b"\x00"
            return framed(id_, spoilt), Bad(MALFORMED)
        return framed(id_, body), self._expected(id_, body)

    def _expected(self, id_: int, body: bytes) -> Any:
        """Of newer schemas as it was written, of all others as Avro resolves it to the frozen one; fastavro goes by the
        logical types of the writer. A source that follows has the oldest defaults in fields that the writer lacks."""
        frozen = self._schemas[self._frozen]
        if self._follows:
            frozen = _with_oldest_defaults(frozen, self._schemas[id_], oldest_defaults(self._schemas))
        reader = None if id_ in self._own else _parsed(frozen)
        try:
            value = fastavro.schemaless_reader(io.BytesIO(body), _parsed(self._schemas[id_]), reader)
        except Exception:  # noqa: BLE001 - its errors have no type in common
            return Bad(MALFORMED)
        defaults = oldest_defaults(self._schemas) if self._follows else {}
        return _as(value, decoded_type(self.side).type, defaults)


Defaults = dict[tuple[str, ...], Any]  # by the names on the way; arrays and maps add nothing


def oldest_defaults(versions: Sequence[Any]) -> Defaults:
    """The default of every field in the oldest version that has the field, None if it has none there."""
    found: Defaults = {}
    for schema in versions:
        for path, field in _fields(schema, ()):
            found.setdefault(path, field.get("default"))
    return found


def _fields(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(schema, list):
        for branch in schema:
            yield from _fields(branch, path)
    elif isinstance(schema, dict):
        for part in ("items", "values"):
            yield from _fields(schema.get(part), path)
        for field in schema.get("fields", ()):
            yield (*path, field["name"]), field
            yield from _fields(field["type"], (*path, field["name"]))


def _with_oldest_defaults(reader: Any, writer: Any, defaults: Defaults, path: tuple[str, ...] = ()) -> Any:
    """The reader with the oldest defaults of the fields that the writer lacks; one that has none may be null."""
    if isinstance(reader, list):
        return [_with_oldest_defaults(branch, writer, defaults, path) for branch in reader]
    if isinstance(writer, list):
        writer = next((one for one in writer if one != "null"), None)
    if not isinstance(reader, dict) or not isinstance(writer, dict):
        return reader
    for part in ("items", "values"):
        if part in reader and part in writer:
            return {**reader, part: _with_oldest_defaults(reader[part], writer[part], defaults, path)}
    if "fields" not in reader or "fields" not in writer:
        return reader
    theirs = {field["name"]: field["type"] for field in writer["fields"]}
    made = []
    for field in reader["fields"]:
        here = (*path, field["name"])
        known = next((name for name in (field["name"], *field.get("aliases", ())) if name in theirs), None)
        if known is not None:
            type_ = _with_oldest_defaults(field["type"], theirs[known], defaults, here)
            made.append({**field, "type": type_})
        elif defaults[here] is not None:
            made.append({**field, "default": defaults[here]})
        else:
            nullable = field["type"] if isinstance(field["type"], list) else ["null", field["type"]]
            made.append({**field, "type": nullable, "default": None})
    return {**reader, "fields": made}


def _parsed(schema: Any) -> Any:
    return parse_schema(cast("dict[str, Any]", json.loads(json.dumps(schema))))


def _as(value: Any, type_: Type, defaults: Defaults, path: tuple[str, ...] = ()) -> Any:
    """With the fields of the type, and the defaults, or None, of those that it lacks."""
    match type_:
        case Record() if value is not None:
            return {
                f.name: _as(value[f.name], f.type, defaults, (*path, f.name))
                if f.name in value
                else defaults.get((*path, f.name))
                for f in type_.fields
            }
        case Array() if value is not None:
            return [_as(item, type_.element, defaults, path) for item in value]
        case Map() if value is not None:
            return {key: _as(item, type_.value, defaults, path) for key, item in value.items()}
        case _ if isinstance(value, dt.datetime):
            return value.astimezone().replace(tzinfo=None)  # as PySpark shows it
        case _:
            return value


class Given:
    """A side and records that stand in a test."""

    def __init__(
        self,
        side: SchemaEncoding,
        writers: list[WrittenSchema],
        records: list[tuple[bytes, Any]],
        newer: frozenset[int] | None = None,
    ) -> None:
        self.side = side
        known = {schema.id or 0: schema for schema in writers}
        after = frozenset(s.id or 0 for s in side.schemas[1:]) if newer is None else newer
        self.writers = WriterSchemas(known, newer=after)
        self.records = records


def decoded(session: SparkSession, topics: Sequence[Topic | Given]) -> list[list[Any]]:
    """The records of all topics, by one job."""
    rows = [tuple(map(bytearray, data)) for data in zip(*[[r[0] for r in t.records] for t in topics], strict=True)]
    frame = session.createDataFrame(rows, ", ".join(f"d{n} binary" for n in range(len(topics)))).coalesce(1)
    for n, topic in enumerate(topics):
        reader = side_reader(topic.side, topic.writers)
        data, inner = F.col(f"d{n}"), F.col(f"i{n}")
        frame = evaluate_once(frame.withColumn(f"i{n}", reader.decode(data)))
        frame = frame.withColumn(f"v{n}", reader.value(data, inner))
        fits = F.coalesce(reader.accepts(data, inner), F.lit(False))
        frame = frame.withColumn(f"r{n}", F.when(~fits, reader.error(data, inner)))
    found = [row.asDict(recursive=True) for row in frame.collect()]
    return [[Bad(row[f"r{n}"]) if row[f"r{n}"] else row[f"v{n}"] for row in found] for n in range(len(topics))]


def without(value: Any, paths: Sequence[FieldPath]) -> Any:
    """The value but for these fields, whose use stops the user before he sees them."""
    if not isinstance(value, dict):
        return value
    inside = {name: [path[1:] for path in paths if path[:1] == (name,)] for name in value}
    return {name: without(part, inside[name]) for name, part in value.items() if () not in inside[name]}


SEEDS = st.lists(st.integers(0, 2**32), min_size=CHAINS, max_size=CHAINS)
# A seed cannot be made smaller, and every try is a job of Spark's.
WITHOUT_SHRINKING = settings(examples(6), phases=(Phase.explicit, Phase.reuse, Phase.generate))


@pytest.mark.soak
@pytest.mark.parametrize("follow", [True, False], ids=["follow", "pin"])
def test_records_of_every_id_are_what_fastavro_reads(session: SparkSession, follow: bool) -> None:
    @given(SEEDS)
    @WITHOUT_SHRINKING
    def law(seeds: list[int]) -> None:
        topics = [Topic(Random(seed), follow=follow) for seed in seeds]
        for seed, topic, found in zip(seeds, topics, decoded(session, topics), strict=True):
            for (data, expected), one in zip(topic.records, found, strict=True):
                broken = topic.broken.get(wire.decode(data).schema_id, ())
                assert without(one, broken) == without(expected, broken), (
                    f"seed {seed} of {seeds}",
                    topic.side,
                    topic.writers,
                )

    law()


class Twins:
    """Two sources over one topic, one made before all changes and one after them."""

    def __init__(self, random: Random) -> None:
        chain = Chain(random, VERSIONS, 0)
        written = [WrittenSchema(json.dumps(s), (), n) for n, s in enumerate(chain.versions)]
        known = dict(enumerate(written))
        side = SchemaEncoding(SchemaFormat.AVRO, (written[0],), fills=True)
        for schema in written[1:]:
            if arriving(side, schema).grows:
                side = replace(side, schemas=(*side.schemas, schema))
        self.broken = {n: arriving(side, schema).breaking_fields() for n, schema in known.items()}
        last = SchemaEncoding(SchemaFormat.AVRO, (written[-1],))
        self.type = decoded_type(last).type
        self.ids = [n for n in known for _ in range(RECORDS)]
        data = [framed(n, _encoded(chain.versions[n], chain.value(chain.versions[n]))) for n in self.ids]
        records = [(one, None) for one in data]
        self.before = Given(side, written, records, newer=frozenset(known) - {0})
        after = replace(last, past=needed_past(last, written[:-1]), fills=True)
        self.after = Given(after, written, records)


def _encoded(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _parsed(schema), value)
    return out.getvalue()


def _shared(value: Any, type_: Type) -> Any:
    """Only the fields of the type."""
    match type_:
        case Record() if value is not None:
            return {f.name: _shared(value[f.name], f.type) for f in type_.fields if f.name in value}
        case Array() if value is not None:
            return [_shared(item, type_.element) for item in value]
        case Map() if value is not None:
            return {key: _shared(item, type_.value) for key, item in value.items()}
        case _:
            return value


@pytest.mark.soak
def test_a_source_made_before_a_change_and_one_made_after_it_give_equal_rows(session: SparkSession) -> None:
    @given(st.lists(st.integers(0, 2**32), min_size=2, max_size=2))
    @WITHOUT_SHRINKING
    def law(seeds: list[int]) -> None:
        twins = [Twins(Random(seed)) for seed in seeds]
        found = decoded(session, [topic for one in twins for topic in (one.before, one.after)])
        for seed, one, before, after in zip(seeds, twins, found[::2], found[1::2], strict=True):
            for id_, row, other in zip(one.ids, before, after, strict=True):
                broken = one.broken[id_]
                shared = without(_shared(row, one.type), broken)
                others = without(_shared(other, decoded_type(one.before.side).type), broken)
                assert shared == others, f"seed {seed}, schema {id_}"

    law()


def test_what_is_no_record_is_not_read_as_the_defaults_of_one(session: SparkSession) -> None:
    frozen = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int", "default": 7}]}
    frozen_schema, maybe, text = written(frozen, 1), written(["null", frozen], 2), written("string", 3)
    records = [
        (framed(1, b"\x02"), {"a": 1}),
        (framed(2, b"\x02\x04"), {"a": 2}),
        (framed(2, b"\x00"), Bad(MALFORMED)),
        (framed(3, b"\x02x"), Bad(MALFORMED)),
    ]
    given_ = Given(SchemaEncoding(SchemaFormat.AVRO, (frozen_schema,)), [frozen_schema, maybe, text], records)
    assert decoded(session, [given_]) == [[expected for _, expected in records]]


def test_types_of_a_reference_are_read_like_those_of_the_schema(session: SparkSession) -> None:
    inner = {"type": "record", "name": "i", "fields": [{"name": "t", "type": TIME_MILLIS}]}
    outer = {"type": "record", "name": "o", "fields": [{"name": "x", "type": "i"}]}
    finer = {"type": "record", "name": "i", "fields": [{"name": "t", "type": TIME_MICROS}]}
    one, other = written(outer, 1, i=inner), written(outer, 2, i=finer)
    seen = {"x": {"t": dt.time(0, 0, 0, 1000)}}
    records = [(framed(1, b"\x02"), seen), (framed(2, b"\xd0\x0f"), seen)]
    newer = Given(SchemaEncoding(SchemaFormat.AVRO, (other,)), [one, other], records)
    older = Given(SchemaEncoding(SchemaFormat.AVRO, (one,)), [one], [records[0], records[0]])
    assert decoded(session, [newer, older]) == [[seen, seen], [seen, seen]]


def test_a_name_is_found_by_the_namespace_around_it(session: SparkSession) -> None:
    """Also one that stands in a reference, within what is referred to."""
    inner = {"type": "record", "name": "i", "fields": [{"name": "t", "type": TIME_MILLIS}]}
    bare = {**inner, "name": "bare", "namespace": ""}
    around = {
        "type": "record",
        "name": "a.around",
        "fields": [{"name": "x", "type": inner}, {"name": "y", "type": bare}],
    }
    fields = [{"name": name, "type": type_} for name, type_ in (("p", around), ("q", "a.i"), ("r", "bare"))]
    referring = {"type": "record", "name": "b.o", "fields": fields[1:]}
    one, two = written({**referring, "fields": fields}, 1), written(referring, 2, around=around)
    times = [{"t": dt.time(0, 0, 0, n * 1000)} for n in range(1, 5)]
    whole = {"p": {"x": times[0], "y": times[1]}, "q": times[2], "r": times[3]}
    of_one, of_two = framed(1, b"\x02\x04\x06\x08"), framed(2, b"\x06\x08")
    topics = [
        Given(SchemaEncoding(SchemaFormat.AVRO, (one,)), [one], [(of_one, whole), (of_one, whole)]),
        Given(SchemaEncoding(SchemaFormat.AVRO, (two,)), [two], [(of_two, None), (of_two, None)]),
    ]
    assert decoded(session, topics) == [[whole, whole], [{"q": times[2], "r": times[3]}] * 2]


def test_names_that_versions_use_otherwise_are_followed(session: SparkSession) -> None:
    """A record in two places, as Debezium's, and an enum that is dropped in one place and grows in another."""

    def change(*fields: str) -> dict[str, Any]:
        row = {"type": "record", "name": "row", "fields": [_optional(name, "string") for name in fields]}
        return {"type": "record", "name": "change", "fields": [_optional("b", row), _optional("a", "row")]}

    def choice(field: str, *symbols: str) -> dict[str, Any]:
        kind = {"type": "enum", "name": "kind", "symbols": list(symbols)}
        return {"type": "record", "name": "choice", "fields": [_optional(field, kind)]}

    changes = [written(change("x"), 1), written(change("x", "y"), 2)]
    choices = [written(choice("old", "k"), 1), written(choice("new", "k", "l"), 2)]
    rows = [
        (framed(1, b"\x00\x02\x02\x02p"), {"b": None, "a": {"x": "p", "y": None}}),
        (framed(2, b"\x00\x02\x02\x02p\x02\x02q"), {"b": None, "a": {"x": "p", "y": "q"}}),
    ]
    kinds = [
        (framed(1, b"\x02\x00"), {"old": "k", "new": None}),
        (framed(2, b"\x02\x02"), {"old": None, "new": "l"}),
    ]
    topics = [
        Given(SchemaEncoding(SchemaFormat.AVRO, tuple(changes)), changes, rows),
        Given(SchemaEncoding(SchemaFormat.AVRO, tuple(choices)), choices, kinds),
    ]
    assert decoded(session, topics) == [[value for _, value in rows], [value for _, value in kinds]]


def _optional(name: str, type_: object) -> dict[str, Any]:
    return {"name": name, "type": ["null", type_], "default": None}
