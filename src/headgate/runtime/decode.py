"""Records of a topic -> the columns of a source, with every record that does not fit told apart.

What is costly in a format is `settled` first, because Spark otherwise decodes for every use of a field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.plan.definitions import AFTER, OP, SourceColumn, SourceLayout
from headgate.runtime.formats.readers import side_reader
from headgate.runtime.formats.side import NO_WRITERS, SideReader, Writers, framed_id, has_id
from headgate.runtime.formats.text_readers import PLAIN
from headgate.schema.encodings import Encoding, FieldPath, decoded_type

# What a record that stops a job is told to the driver by: before its source, partition and offset; of one with a schema
# that cannot be followed, also its side and id.
BAD, CHANGED = "headgate-bad-record:", "headgate-schema-changed:"
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
    """Decodes raw records of Spark's Kafka reader. Its columns are made once: making them anew for every batch took
    a thousand calls into the JVM, which with many small tasks was most of a batch's time."""

    def __init__(
        self, plan: SourceLayout, key: Writers = NO_WRITERS, value: Writers = NO_WRITERS, source: int = 0
    ) -> None:
        """``source`` is the id by which the driver finds the source of a record that stopped a job."""
        self.plan = plan
        readers = {"key": _reader(plan.key, key), "value": _reader(plan.value, value)}
        # Only what is costly; what is said of it comes after (from_avro stood in the plan 3 times, now once; decoding
        # alone took 8.8-10.2 CPU seconds for a million small records, then 5.4).
        costly = {name: r.costly(F.col(name)) for name, r in readers.items() if r and type(r) not in PLAIN}
        self._costly = _together(costly).alias("hg_in") if costly else None
        inner = {name: _inner(name, costly) for name in readers}
        self._decoded = [F.col("*")]
        if plan.inline_errors:
            self._decoded.append(_inline_error(readers["value"], inner["value"]).alias("hg_error"))
        self._decoded += [F.lit(None).alias(f"hg_{name}") for name, r in readers.items() if r is None]
        self._values = [_value(n, r, inner[n], plan).alias(f"hg_{n}") for n, r in readers.items() if r]
        self._brings_over = any(r.brings_over for r in readers.values() if r)
        self._present = _present(plan)
        checks = [*_checks(plan, readers, inner), *_event_checks(plan, readers["value"])]
        self._problem = _problem(checks).alias("hg_problem")
        self._good = reduce(Column.__and__, [check.holds for check in checks], F.lit(True))
        if plan.on_error == "HALT":
            self._good = F.when(self._good, F.lit(True)).otherwise(_stop(source, BAD))
        writers = {"key": key, "value": value}
        for name, of_side in writers.items():
            if of_side.halting:
                self._good = ~_changed(source, name, of_side.halting) & self._good
        self._columns = [
            _usable(source, _column(column), column, writers).alias(column.name) for column in plan.columns
        ]

    def decode(self, raw: DataFrame) -> DataFrame:
        """Raw records -> columns `hg_key`, `hg_value`, `hg_problem` and the record's place.

        ``hg_problem`` is NULL for a good record and else a struct of side, reason and schema id. With inline errors a
        value that does not fit is no problem: it is NULL, and `hg_error` says why. Records with neither key nor value
        are left out.
        """
        present = raw.where("key IS NOT NULL OR value IS NOT NULL")
        read = present if self._costly is None else settled(present.select("*", self._costly))
        decoded = read.select(*self._decoded).select("*", *self._values)
        if self._brings_over:
            decoded = settled(decoded)
        return decoded.select("*", self._problem)

    def good(self, decoded: DataFrame) -> DataFrame:
        """The good records; under HALT the first bad one fails the job with its place. What is wrong with it is found by
        reading it once more: `hg_problem` is not asked for here, because to have its words at hand cost every good record
        a fifth of its time."""
        return decoded.where(self._good)

    def present(self, changes: DataFrame) -> DataFrame:
        """Of the last records of all keys those that are rows, not deletions."""
        return changes if self._present is None else changes.where(self._present)

    def columns(self, records: DataFrame) -> DataFrame:
        """The source's columns of decoded records, by name."""
        return records.select(*self._columns)


def settled(computed: DataFrame) -> DataFrame:
    """The same records, their columns computed once however often a query mentions them. Spark otherwise puts what a
    projection computes into every filter and projection above it (RUNTIME: 160 decodings of a record for 40 ids), but
    nothing passes a sample, and this one takes all. (Behind `explode` of an array every row is copied, a tenth of all CPU
    time; to make the value look as if it changed each time bars it from LATERAL.)"""
    return computed.sample(fraction=1.0, seed=0)


def number_of(records: DataFrame) -> int:
    """`count` does not go by the session's settings in another thread than its own: without them there are no times."""
    counted = records.select(F.count(F.lit(1))).first()
    return int(counted[0]) if counted is not None else 0


def _stop(source: int, mark: str, *more: Column) -> Column:
    """Fails the job with the record's place."""
    parts = [F.col("partition"), F.col("offset"), *more]
    told = [piece for part in parts for piece in (F.lit("/"), part)]
    return F.raise_error(F.concat(F.lit(f"{mark}{source}"), *told)).cast("boolean")


def _value(name: str, reader: SideReader, inner: Column, plan: SourceLayout) -> Column:
    data = F.col(name)
    if name == "value" and plan.inline_errors:  # what was read of a value that does not fit is no value
        fits = F.col("hg_error").isNull()
        data, inner = F.when(fits, data), F.when(fits, inner)
    return reader.value(data, inner)


def _present(plan: SourceLayout) -> Column | None:
    if plan.envelope == "NONE":
        return None
    present = F.col("value").isNotNull()
    if plan.envelope != "DEBEZIUM":
        return present
    event = F.col("hg_value")
    return present & (event[OP] != F.lit(DELETED) if plan.has_operation else event[AFTER].isNotNull())


def _reader(side: Encoding | None, writers: Writers) -> SideReader | None:
    return None if side is None else side_reader(side, writers)


def _together(costly: Mapping[str, Column]) -> Column:
    """One column of what is costly on either side. A struct around what stands alone would cost some of its time."""
    if len(costly) == 1:
        return next(iter(costly.values()))
    return F.struct(*[column.alias(name) for name, column in costly.items()])


def _inner(name: str, costly: Mapping[str, Column]) -> Column:
    """What was computed for a side beforehand."""
    if name not in costly:
        return F.lit(None)
    return F.col("hg_in") if len(costly) == 1 else F.col(f"hg_in.{name}")


def _column(column: SourceColumn) -> Column:
    origin = column.origin
    match origin.section:
        case "key" | "value":
            whole = F.col(f"hg_{origin.section}")
            return whole if origin.name is None else whole.getField(origin.name)
        case "after":  # a deletion has no row, but the key
            row = F.col("hg_key") if column.key else F.col("hg_value").getField(AFTER)
            return row.getField(origin.name)
        case "error":
            return F.col("hg_error")
        case "metadata":
            name = (origin.name or "").lower()
            return F.coalesce(F.col("headers"), F.array()) if name == "headers" else F.col(name)
        case "header":
            value = _header(origin.name or "")
            return value if origin.as_bytes else value.cast("string")


def _usable(source: int, value: Column, column: SourceColumn, writers: Mapping[str, Writers]) -> Column:
    """The column, but for records whose schema made something else of it: to use those stops whoever does."""
    part, path = _place(column)
    side = writers.get(part)
    changed = [id_ for id_, broken in side.broken.items() if _meets(path, broken)] if side else []
    return F.when(_changed(source, part, changed), F.lit(None)).otherwise(value) if changed else value


def _place(column: SourceColumn) -> tuple[str, FieldPath]:
    """The side that a column is read from, and the field."""
    origin = column.origin
    name = () if origin.name is None else (origin.name,)
    if origin.section == "after":
        return ("key", name) if column.key else ("value", (AFTER, *name))
    return origin.section, name


def _meets(path: FieldPath, broken: Iterable[FieldPath]) -> bool:
    """Whether one of the fields is the path's own, or within it, or around it."""
    return any(all(a == b for a, b in zip(path, field, strict=False)) for field in broken)


def _changed(source: int, side: str, ids: Iterable[int]) -> Column:
    """False for a record with another id; one with these fails the job with its place."""
    stop = _stop(source, CHANGED, F.lit(side), framed_id(F.col(side)))
    return F.when(has_id(F.col(side), ids), stop).otherwise(F.lit(False))


def _header(name: str) -> Column:
    """The value of the last header of that name, NULL if there is none."""
    found = F.filter(F.col("headers"), lambda h: h["key"] == F.lit(name))
    return F.when(F.size(found) > 0, F.element_at(found, -1)["value"])


@dataclass(frozen=True, slots=True)
class _Check:
    """What holds for a good record, is never NULL, and what is wrong with one for which it does not."""

    holds: Column
    side: str
    reason: Column
    schema_id: Column


def _problem(checks: Iterable[_Check]) -> Column:
    """The first thing that is wrong with a record, the key's before the value's."""
    none = F.struct(
        F.lit("").alias("side"), F.lit("").alias("reason"), F.lit(0).cast("bigint").alias("schema_id")
    )
    problem = F.when(F.lit(False), none)
    for check in checks:
        found = F.struct(
            F.lit(check.side).alias("side"),
            check.reason.alias("reason"),
            check.schema_id.cast("bigint").alias("schema_id"),
        )
        problem = problem.when(~check.holds, found)
    return problem


def _checks(
    plan: SourceLayout, readers: Mapping[str, SideReader | None], inners: Mapping[str, Column]
) -> Iterator[_Check]:
    nothing = F.lit(None)
    for name, reader in readers.items():
        data, inner = F.col(name), inners[name]
        if (missing := _missing(plan, name)) is not None:
            yield _Check(data.isNotNull(), name, F.lit(missing), nothing)
        if reader is not None and not (name == "value" and plan.inline_errors):
            yield _Check(_fits(reader, data, inner), name, reader.reason(data, inner), reader.schema_id(data))
        if name == "key" and plan.key is not None and missing is not None and decoded_type(plan.key).nullable:
            there = data.isNull() | F.col("hg_key").isNotNull()
            yield _Check(there, name, F.lit(missing), reader.schema_id(data) if reader else nothing)
        if name == "value" and plan.key_in_value and reader is not None:
            columns = [_column(column).isNull() for column in plan.columns if column.key]
            there = data.isNull() | ~reduce(Column.__and__, columns)
            yield _Check(there, name, F.lit(NULL_KEY), reader.schema_id(data))
    for origin in [c.origin for c in plan.columns if c.origin.section == "header" and not c.origin.as_bytes]:
        value = _header(origin.name or "")
        reason = F.lit(f'header "{origin.name}" is not valid UTF-8')
        yield _Check(
            F.coalesce(F.is_valid_utf8(value.cast("string")), F.lit(True)), "header", reason, nothing
        )


def _missing(plan: SourceLayout, side: str) -> str | None:
    """What is wrong with a record without this side, if anything is."""
    if side == "value":
        return NO_VALUE if plan.envelope == "NONE" else NO_KEY_IN_VALUE if plan.key_in_value else None
    return NO_KEY if plan.envelope != "NONE" and not plan.key_in_value else None


def _fits(reader: SideReader, data: Column, inner: Column) -> Column:
    return data.isNull() | F.coalesce(reader.fits(data, inner), F.lit(False))


def _inline_error(reader: SideReader | None, inner: Column) -> Column:
    assert reader is not None
    data = F.col("value")
    told = F.struct(F.concat(F.lit(UNDECODABLE), reader.reason(data, inner)).alias("description"))
    return F.when(~_fits(reader, data, inner), told)


def _event_checks(plan: SourceLayout, reader: SideReader | None) -> Iterator[_Check]:
    """Of what may be no change of a row though it fits its schema."""
    if plan.envelope != "DEBEZIUM" or reader is None or not plan.has_operation:
        return
    data, event = F.col("value"), F.col("hg_value")
    op, schema_id = event[OP], reader.schema_id(data)
    known = F.coalesce(op.isin(list(OPS)), F.lit(False))
    whole = (op == F.lit(DELETED)) | event[AFTER].isNotNull()
    yield _Check(data.isNull() | known, "value", F.lit(UNKNOWN_OP), schema_id)
    yield _Check(data.isNull() | F.coalesce(whole, F.lit(False)), "value", F.lit(NO_AFTER), schema_id)
