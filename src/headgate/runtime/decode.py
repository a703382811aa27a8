"""Records of a topic -> the columns of a source. Every record is accepted or has an error.

The costly part of a format is computed first, by `evaluate_once`. Otherwise Spark decodes again for every use of a field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import assert_never

from pyspark.sql import Column, DataFrame, Observation, functions as F
from pyspark.sql.types import StructType

from headgate.plan.definitions import AFTER, OP, PRESENT, SourceColumn, SourceLayout
from headgate.runtime.formats import frame
from headgate.runtime.formats.arrow_reader import ArrowReader
from headgate.runtime.formats.avro_reader import AvroReader
from headgate.runtime.formats.convert import convert
from headgate.runtime.formats.json_reader import JsonReader, json_decoder
from headgate.runtime.formats.protobuf_reader import ProtobufDecoders
from headgate.runtime.formats.side import NO_WRITERS, SideReader, WriterSchemas
from headgate.runtime.formats.text_readers import (
    PLAIN,
    BytesReader,
    CsvReader,
    PrimitiveReader,
    RegexReader,
    TextReader,
)
from headgate.schema import encodings as e
from headgate.schema.formats.spark import to_spark
from headgate.schema.render import spark_identifier
from headgate.schema.types import Record, Type
from headgate.schema.written import SchemaFormat

# Prefixes of the errors that carry a record's position to the driver: `BAD` source/partition/offset, and for a schema that
# cannot be followed `CHANGED` source/partition/offset/side/schema id.
BAD, CHANGED = "headgate-bad-record:", "headgate-schema-changed:"
REJECTED = "rejected"  # metric: how many records are not accepted
REJECTED_BYTES = "rejected_bytes"  # metric: the bytes of their keys and values
WIDE = 100  # fields of a value from which on they are named by a star
NO_VALUE = "the record has no value"
NO_KEY = "the record has no key"
NO_KEY_IN_VALUE = "the record has no value, which would hold its key"
NULL_KEY = "what would be its key is null"
UNDECODABLE = "the value cannot be decoded: "  # before the reason in a column of inline errors
# Debezium: created, read by a snapshot, updated, deleted.
OPS, DELETED = ("c", "r", "u", "d"), "d"
UNKNOWN_OP = "$.op is none of c, r, u and d"
NO_AFTER = "$.after is missing, though $.op says that there is a row"


class Decoder:
    """Decodes raw records of Spark's Kafka reader.

    Its columns are made once. Making them anew for every batch took a thousand calls into the JVM, which was most of a
    batch's time with many small tasks.
    """

    def __init__(
        self, plan: SourceLayout, key: WriterSchemas = NO_WRITERS, value: WriterSchemas = NO_WRITERS, source: int = 0
    ) -> None:
        """``source`` is the id by which the driver finds the source of a record that stopped a job."""
        self.plan = plan
        readers = {"key": _reader(plan.key, key), "value": _reader(plan.value, value)}
        # This is only the costly part. The checks come after it: with them from_avro stood in the plan 3 times, and decoding
        # alone took 8.8-10.2 CPU seconds for a million small records; with it once, 5.4.
        costly = {name: r.decode(F.col(name)) for name, r in readers.items() if r and type(r) not in PLAIN}
        self._costly = _one_column(costly).alias("hg_decoded") if costly else None
        decoded = {name: _decoded(name, costly) for name in readers}
        self._sides = [F.col("*")]
        if plan.inline_errors:
            self._sides.append(_inline_error(readers["value"], decoded["value"]).alias("hg_error"))
        self._sides += [F.lit(None).alias(f"hg_{name}") for name, r in readers.items() if r is None]
        self._value_columns = {f"hg_{n}": _value(n, r, decoded[n], plan) for n, r in readers.items() if r}
        self._values = [column.alias(name) for name, column in self._value_columns.items()]
        self._converts = any(r.converts for r in readers.values() if r)
        self._not_deleted = _not_deleted(plan)
        self._checks = [*_checks(plan, readers, decoded), *_event_checks(plan, readers["value"])]
        self._accepted = reduce(Column.__and__, [check.holds for check in self._checks], F.lit(True))
        if plan.on_error == "HALT":
            self._accepted = F.when(self._accepted, F.lit(True)).otherwise(_stop(source, BAD))
        writers = {"key": key, "value": value}
        # Whether a column can fail the job. A query that does not use such a column for a row must not compute it.
        self.guards_columns = any(of_side.unreadable_fields for of_side in writers.values())
        for name, of_side in writers.items():
            if of_side.halting:
                self._accepted = ~_stop_if_changed(source, name, of_side.halting) & self._accepted
        self._source, self._writers = source, writers
        self._columns: list[Column] | None = None  # made when they are first asked for

    def decode(self, raw: DataFrame) -> DataFrame:
        """Raw records -> columns `hg_key`, `hg_value` and the record's position.

        With inline errors a value that cannot be decoded is NULL, and `hg_error` says why. Records with neither key nor value
        are left out.
        """
        present = raw.where("key IS NOT NULL OR value IS NOT NULL")
        read = present if self._costly is None else evaluate_once(present.select("*", self._costly))
        decoded = read.select(*self._sides).select("*", *self._values)
        if self._converts:
            decoded = evaluate_once(decoded)
        return decoded

    def decode_stream(self, raw: DataFrame) -> DataFrame:
        """The same as `decode`, for a stream."""
        present = raw.where("key IS NOT NULL OR value IS NOT NULL")
        read = present if self._costly is None else computed_on_stream(present, {"hg_decoded": self._costly})
        sides = read.select(*self._sides)
        if not self._converts:
            return sides.select("*", *self._values)
        return computed_on_stream(sides, self._value_columns)

    def with_problems(self, decoded: DataFrame) -> DataFrame:
        """Decoded records with one more column ``hg_problem``: NULL for an accepted record, otherwise a struct of side, reason
        and schema id. With inline errors a value that cannot be decoded is no problem."""
        return decoded.select("*", self._problem)

    @cached_property
    def _problem(self) -> Column:
        """Made when it is first asked for: it has a text for every field, and most batches have no bad record."""
        return _problem(self._checks).alias("hg_problem")

    def accepted(self, decoded: DataFrame) -> DataFrame:
        """The good records. Under HALT the first bad one fails the job with its position.

        The error of that record is found by reading it once more. `hg_problem` is not used here: having its texts at hand
        cost every good record a fifth of its time.
        """
        return decoded.where(self._accepted)

    def count_rejected(self, decoded: DataFrame, observation: Observation) -> DataFrame:
        """The same records. Whatever job reads them also counts those that are not accepted, as `REJECTED`, and their bytes,
        as `REJECTED_BYTES`, which is NULL if there are none."""
        size = F.coalesce(F.length("key"), F.lit(0)) + F.coalesce(F.length("value"), F.lit(0))
        rejected_size = F.when(~self._accepted, size.cast("bigint"))
        return decoded.observe(
            observation, F.count_if(~self._accepted).alias(REJECTED), F.sum(rejected_size).alias(REJECTED_BYTES)
        )

    def not_deleted(self, changes: DataFrame) -> DataFrame:
        """The records that are rows and not deletions, given the last record of every key."""
        return changes if self._not_deleted is None else changes.where(self._not_deleted)

    def marked(self, changes: DataFrame) -> DataFrame:
        """The source's columns of the last record of every key, and whether it is a row and not a deletion."""
        present = F.lit(True) if self._not_deleted is None else F.coalesce(self._not_deleted, F.lit(False))
        return changes.select(*self._columns_of(changes), present.alias(PRESENT))

    def columns(self, records: DataFrame, *more: Column) -> DataFrame:
        """The source's columns of decoded records, by name, and ``more`` of a record."""
        return records.select(*self._columns_of(records), *more)

    def _columns_of(self, records: DataFrame) -> list[Column]:
        """The source's columns. Many that are fields of the value as they are become one star: to name 2,000 takes 16,000 calls
        into the JVM and two seconds of CPU time."""
        if self._columns is None:
            plain = [self._is_plain(column) for column in self.plan.columns]
            first, last = (plain.index(True), len(plain) - plain[::-1].index(True)) if any(plain) else (0, 0)
            fields = [column.name for column in self.plan.columns[first:last]]
            star = _star(records, fields) if len(fields) >= WIDE and all(plain[first:last]) else None
            middle = [star] if star is not None else self._named(self.plan.columns[first:last])
            self._columns = [*self._named(self.plan.columns[:first]), *middle, *self._named(self.plan.columns[last:])]
        return self._columns

    def _named(self, columns: Iterable[SourceColumn]) -> list[Column]:
        return [_guarded_column(self._source, one, self.plan, self._writers).alias(one.name) for one in columns]

    def _is_plain(self, column: SourceColumn) -> bool:
        """Whether the column is a field of the value with its own name and type, of which no record changed the meaning."""
        section, name = column.origin.section, column.origin.name
        if section != "value" or name != column.name or _unreadable(column, self._writers):
            return False
        return to_spark(_decoded_type(column, self.plan)) == to_spark(column.type)


def evaluate_once(computed: DataFrame) -> DataFrame:
    """The same records, with their columns computed once however often a query uses them.

    Spark otherwise copies what a projection computes into every filter and projection above it: with 40 ids a record was
    decoded 160 times. Spark moves nothing through a sample, and this sample takes all records. Two other ways are worse:
    behind `explode` of an array every row is copied, which is a tenth of all CPU time, and a value that is marked as
    nondeterministic cannot be used in LATERAL.
    """
    return computed.sample(fraction=1.0, seed=0)


def computed_on_stream(frame: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """The frame with further columns, each computed once. A stream has no samples, and the row that `explode` copies costs
    little beside what a streaming query spends on waiting."""
    if len(columns) == 1:
        ((name, column),) = columns.items()
        return frame.select("*", F.explode(F.array(column)).alias(name))
    together = F.struct(*[column.alias(name) for name, column in columns.items()])
    once = frame.select("*", F.explode(F.array(together)).alias("hg_once"))
    return once.select(*[spark_identifier(name) for name in frame.columns], "hg_once.*")


def stops_at_other_ids(source: int, side: str, ids: Iterable[int]) -> Column:
    """True for a record with one of the ids, or without a frame. Any other id fails the job with the record's position."""
    data = F.col(side)
    other = F.coalesce(frame.is_framed(data) & ~frame.has_schema_id(data, ids), F.lit(False))
    return F.when(other, _stop(source, CHANGED, F.lit(side), frame.schema_id(data))).otherwise(F.lit(True))


def count_rows(records: DataFrame) -> int:
    """The number of records. `count` ignores the session's settings in a thread that did not open the session, and without
    them Spark has no type for times of day."""
    counted = records.select(F.count(F.lit(1))).first()
    return int(counted[0]) if counted is not None else 0


def _stop(source: int, mark: str, *more: Column) -> Column:
    """Fails the job with the record's position."""
    parts = [F.col("partition"), F.col("offset"), *more]
    position = [piece for part in parts for piece in (F.lit("/"), part)]
    return F.raise_error(F.concat(F.lit(f"{mark}{source}"), *position)).cast("boolean")


def _value(name: str, reader: SideReader, decoded: Column, plan: SourceLayout) -> Column:
    data = F.col(name)
    if name == "value" and plan.inline_errors:  # what was read of a value that is not accepted is not used
        accepted = F.col("hg_error").isNull()
        data, decoded = F.when(accepted, data), F.when(accepted, decoded)
    by_field = all(c.origin.name is not None for c in plan.columns if c.origin.section == "value")
    return reader.fields(data, decoded) if name == "value" and by_field else reader.value(data, decoded)


def _not_deleted(plan: SourceLayout) -> Column | None:
    if plan.envelope == "NONE":
        return None
    present = F.col("value").isNotNull()
    if plan.envelope != "DEBEZIUM":
        return present
    event = F.col("hg_value")
    return present & (event[OP] != F.lit(DELETED) if plan.has_operation else event[AFTER].isNotNull())


def _reader(side: e.Encoding | None, writers: WriterSchemas) -> SideReader | None:
    return None if side is None else side_reader(side, writers)


def _one_column(costly: Mapping[str, Column]) -> Column:
    """One column of the costly parts of both sides. A struct around a single part would cost time."""
    if len(costly) == 1:
        return next(iter(costly.values()))
    return F.struct(*[column.alias(name) for name, column in costly.items()])


def _decoded(name: str, costly: Mapping[str, Column]) -> Column:
    """The costly part of a side, already computed."""
    if name not in costly:
        return F.lit(None)
    return F.col("hg_decoded") if len(costly) == 1 else F.col(f"hg_decoded.{name}")


def _column(column: SourceColumn, plan: SourceLayout) -> Column:
    origin = column.origin
    match origin.section:
        case "key" | "value":
            whole = f"hg_{origin.section}"
            found = F.col(whole if origin.name is None else f"{whole}.{spark_identifier(origin.name)}")
            return convert(found, _decoded_type(column, plan), column.type)
        case "after":  # a deletion has no row, but it has the key
            row = F.col("hg_key") if column.key else F.col("hg_value").getField(AFTER)
            field = row.getField(origin.name)
            return field.cast(to_spark(column.type)) if column.key else field
        case "error":
            return F.col("hg_error")
        case "metadata":
            name = (origin.name or "").lower()
            return F.coalesce(F.col("headers"), F.array()) if name == "headers" else F.col(name)
        case "header":
            value = _header(origin.name or "")
            return value if origin.as_bytes else value.cast("string")


def _decoded_type(column: SourceColumn, plan: SourceLayout) -> Type:
    """The type that the part of the record has from which a column is read. The column may lack fields of it."""
    encoding = plan.key if column.origin.section == "key" else plan.value
    assert encoding is not None
    whole, name = e.decoded_type(encoding).type, column.origin.name
    field = whole.field(name) if name is not None and isinstance(whole, Record) else None
    return whole if field is None else field.type


def _guarded_column(
    source: int, column: SourceColumn, plan: SourceLayout, writers: Mapping[str, WriterSchemas]
) -> Column:
    """The column. A query that uses it fails at a record whose schema changed the column in a way that cannot be followed."""
    value, ids = _column(column, plan), _unreadable(column, writers)
    name, _ = _side_and_path(column)
    return F.when(_stop_if_changed(source, name, ids), F.lit(None)).otherwise(value) if ids else value


def _unreadable(column: SourceColumn, writers: Mapping[str, WriterSchemas]) -> list[int]:
    """The ids that changed the column in a way that cannot be followed."""
    name, path = _side_and_path(column)
    side = writers.get(name)
    return [id_ for id_, fields in side.unreadable_fields.items() if _overlaps(path, fields)] if side else []


def _star(records: DataFrame, names: Sequence[str]) -> Column | None:
    """These fields of the value as one column; None if the value has them in another order."""
    value = records.schema["hg_value"].dataType
    found = value.names if isinstance(value, StructType) else []
    wanted = set(names)
    if [name for name in found if name in wanted] != list(names):
        return None
    more = ", ".join(spark_identifier(name) for name in found if name not in wanted)
    return F.expr(f"hg_value.* EXCEPT ({more})" if more else "hg_value.*")


def _side_and_path(column: SourceColumn) -> tuple[str, e.FieldPath]:
    """The side that a column is read from, and the field."""
    origin = column.origin
    name = () if origin.name is None else (origin.name,)
    if origin.section == "after":
        return ("key", name) if column.key else ("value", (AFTER, *name))
    return origin.section, name


def _overlaps(path: e.FieldPath, fields: Iterable[e.FieldPath]) -> bool:
    """Whether one of the fields is the field at the path, inside it or around it."""
    return any(all(a == b for a, b in zip(path, field, strict=False)) for field in fields)


def _stop_if_changed(source: int, side: str, ids: Iterable[int]) -> Column:
    """False for a record with another id. A record with one of the ids fails the job with its position."""
    stop = _stop(source, CHANGED, F.lit(side), frame.schema_id(F.col(side)))
    return F.when(frame.has_schema_id(F.col(side), ids), stop).otherwise(F.lit(False))


def _header(name: str) -> Column:
    """The value of the last header of that name, or NULL."""
    found = F.filter(F.col("headers"), lambda h: h["key"] == F.lit(name))
    return F.when(F.size(found) > 0, F.element_at(found, -1)["value"])


@dataclass(frozen=True, slots=True)
class _Check:
    """A condition that good records fulfil, and the error of a record that does not. The condition is never NULL. The error is
    made only if somebody asks for it."""

    holds: Column
    side: str
    reason: Callable[[], Column]
    schema_id: Column


def _problem(checks: Iterable[_Check]) -> Column:
    """The first error of a record. Errors of the key come before those of the value."""
    none = F.struct(F.lit("").alias("side"), F.lit("").alias("reason"), F.lit(0).cast("bigint").alias("schema_id"))
    problem = F.when(F.lit(False), none)
    for check in checks:
        found = F.struct(
            F.lit(check.side).alias("side"),
            check.reason().alias("reason"),
            check.schema_id.cast("bigint").alias("schema_id"),
        )
        problem = problem.when(~check.holds, found)
    return problem


def _checks(
    plan: SourceLayout, readers: Mapping[str, SideReader | None], decoded_sides: Mapping[str, Column]
) -> Iterator[_Check]:
    nothing = F.lit(None)
    for name, reader in readers.items():
        data, decoded = F.col(name), decoded_sides[name]
        if (missing := _missing(plan, name)) is not None:
            yield _Check(data.isNotNull(), name, partial(F.lit, missing), nothing)
        if reader is not None and not (name == "value" and plan.inline_errors):
            error = partial(reader.error, data, decoded)
            yield _Check(_accepts(reader, data, decoded), name, error, reader.schema_id(data))
        if name == "key" and plan.key is not None and missing is not None and e.decoded_type(plan.key).nullable:
            has_key = data.isNull() | F.col("hg_key").isNotNull()
            yield _Check(has_key, name, partial(F.lit, missing), reader.schema_id(data) if reader else nothing)
        if name == "value" and plan.key_in_value and reader is not None:
            columns = [_column(column, plan).isNull() for column in plan.columns if column.key]
            has_key = data.isNull() | ~reduce(Column.__and__, columns)
            yield _Check(has_key, name, partial(F.lit, NULL_KEY), reader.schema_id(data))
    for origin in [c.origin for c in plan.columns if c.origin.section == "header" and not c.origin.as_bytes]:
        value = _header(origin.name or "")
        reason = partial(F.lit, f'header "{origin.name}" is not valid UTF-8')
        yield _Check(F.coalesce(F.is_valid_utf8(value.cast("string")), F.lit(True)), "header", reason, nothing)


def _missing(plan: SourceLayout, side: str) -> str | None:
    """The error of a record without this side, or None if it may be missing."""
    if side == "value":
        return NO_VALUE if plan.envelope == "NONE" else NO_KEY_IN_VALUE if plan.key_in_value else None
    return NO_KEY if plan.envelope != "NONE" and not plan.key_in_value else None


def _accepts(reader: SideReader, data: Column, decoded: Column) -> Column:
    return data.isNull() | F.coalesce(reader.accepts(data, decoded), F.lit(False))


def _inline_error(reader: SideReader | None, decoded: Column) -> Column:
    assert reader is not None
    data = F.col("value")
    error = F.struct(F.concat(F.lit(UNDECODABLE), reader.error(data, decoded)).alias("description"))
    return F.when(~_accepts(reader, data, decoded), error)


def _event_checks(plan: SourceLayout, reader: SideReader | None) -> Iterator[_Check]:
    """Checks of a Debezium event that is accepted by its schema and may still not be a change of a row."""
    if plan.envelope != "DEBEZIUM" or reader is None or not plan.has_operation:
        return
    data, event = F.col("value"), F.col("hg_value")
    op, schema_id = event[OP], reader.schema_id(data)
    known = F.coalesce(op.isin(list(OPS)), F.lit(False))
    whole = (op == F.lit(DELETED)) | event[AFTER].isNotNull()
    yield _Check(data.isNull() | known, "value", partial(F.lit, UNKNOWN_OP), schema_id)
    yield _Check(data.isNull() | F.coalesce(whole, F.lit(False)), "value", partial(F.lit, NO_AFTER), schema_id)


def side_reader(side: e.Encoding, writers: WriterSchemas) -> SideReader:
    match side:
        case e.BytesEncoding():
            return BytesReader()
        case e.TextEncoding():
            return TextReader()
        case e.JsonEncoding():
            return JsonReader()
        case e.PrimitiveEncoding():
            return PrimitiveReader(side)
        case e.CsvEncoding():
            return CsvReader(side)
        case e.RegexEncoding():
            return RegexReader(side)
        case e.SchemaEncoding():
            return _schema_reader(side, writers)
        case _:
            assert_never(side)


def _schema_reader(side: e.SchemaEncoding, writers: WriterSchemas) -> SideReader:
    match side.format:
        case SchemaFormat.AVRO:
            return AvroReader(side, writers)
        case SchemaFormat.JSON:
            return ArrowReader(side, writers, json_decoder)
        case SchemaFormat.PROTOBUF:
            return ArrowReader(side, writers, ProtobufDecoders.of((*side.schemas, *writers.known.values())))
        case _:
            assert_never(side.format)
