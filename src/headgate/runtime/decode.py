"""Records of a topic -> the columns of a source, with every record that does not fit told apart.

What is costly in a format stands behind a barrier (`explode(array(..))`), because Spark otherwise decodes once per
use of a field (RUNTIME: 160 times for 40 ids).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.plan.debezium import AFTER, OP, has_op
from headgate.plan.sides import FieldPath, SidePlan
from headgate.plan.source import SourceColumn, SourcePlan
from headgate.runtime.formats.plain import PLAIN
from headgate.runtime.formats.readers import side_reader
from headgate.runtime.formats.side import NO_WRITERS, SideReader, Writers, framed_id, has_id

BAD = "headgate-bad-record:"  # before the JSON by which a bad record is told to the driver
CHANGED = "headgate-schema-changed:"  # likewise for one with a schema that cannot be followed
NO_VALUE = "the record has no value"
NO_KEY = "the record has no key"
NO_KEY_IN_VALUE = "the record has no value, which would hold its key"
UNDECODABLE = "the value cannot be decoded: "  # before the reason in a column of inline errors
# Debezium: created, read by a snapshot, updated, deleted.
OPS, DELETED = ("c", "r", "u", "d"), "d"
UNKNOWN_OP = "$.op is none of c, r, u and d"
NO_AFTER = "$.after is missing, though $.op says that there is a row"


class Decoder:
    """Decodes raw records of Spark's Kafka reader. Its columns are made once: making them anew for every batch took
    a thousand calls into the JVM, which with many small tasks was most of a batch's time."""

    def __init__(self, plan: SourcePlan, key: Writers = NO_WRITERS, value: Writers = NO_WRITERS) -> None:
        self.plan = plan
        readers = {"key": _reader(plan.key, key), "value": _reader(plan.value, value)}
        # The barrier: what stands in it is computed once per record. Only what is costly does; what is said of it
        # comes after, because within the barrier every mention is computed for itself (from_avro stood in the plan 3
        # times, now once; decoding alone took 8.8-10.2 CPU seconds for a million small records, now 5.4).
        costly = {name: r.costly(F.col(name)) for name, r in readers.items() if r and type(r) not in PLAIN}
        self._barrier = (F.col("*"), F.explode(F.array(_together(costly))).alias("hg_in")) if costly else None
        inner = {name: _inner(name, costly) for name in readers}
        self._decoded = [F.col("*"), _problem(plan, readers, inner).alias("hg_problem")]
        if plan.inline_errors:
            self._decoded.append(_inline_error(readers["value"], inner["value"]).alias("hg_error"))
        self._decoded += [F.lit(None).alias(f"hg_{name}") for name, r in readers.items() if r is None]
        self._values = [_value(n, r, inner[n], plan).alias(f"hg_{n}") for n, r in readers.items() if r]
        self._present = _present(plan)
        self._event_problem = _event_problem(plan, readers["value"])
        self._good = _good() if plan.on_error == "HALT" else F.col("hg_problem").isNull()
        writers = {"key": key, "value": value}
        for name, of_side in writers.items():
            if of_side.halting:
                self._good = ~_changed(name, of_side.halting) & self._good
        self._columns = [
            _usable(_column(column), column, writers).alias(column.name) for column in plan.columns
        ]

    def decode(self, raw: DataFrame) -> DataFrame:
        """Raw records -> columns `hg_key`, `hg_value`, `hg_problem` and the record's place.

        ``hg_problem`` is NULL for a good record and else a struct of side, reason and schema id. With inline errors a
        value that does not fit is no problem: it is NULL, and `hg_error` says why. Records with neither key nor value
        are left out.
        """
        present = raw.where("key IS NOT NULL OR value IS NOT NULL")
        behind = present if self._barrier is None else present.select(*self._barrier)
        decoded = behind.select(*self._decoded)
        for value in self._values:  # each may be a barrier of its own, of which a projection holds but one
            decoded = decoded.select("*", value)
        if self.plan.envelope == "DEBEZIUM":
            decoded = decoded.withColumn("hg_problem", self._event_problem)
        return decoded

    def good(self, decoded: DataFrame) -> DataFrame:
        """The good records; under HALT the first bad one fails the job with its place."""
        return decoded.where(self._good)

    def present(self, changes: DataFrame) -> DataFrame:
        """Of the last records of all keys those that are rows, not deletions."""
        return changes if self._present is None else changes.where(self._present)

    def columns(self, records: DataFrame) -> DataFrame:
        """The source's columns of decoded records, by name."""
        return records.select(*self._columns)


def _good() -> Column:
    # The problem as a whole: asked for one by one, each of its fields would be computed with all conditions again, and
    # a method of more than 8,000 bytes is one that Java never compiles (a million records took 5.3 CPU seconds, then 2.0).
    place = F.to_json(F.struct("topic", "partition", "offset", F.col("hg_problem").alias("problem")))
    bad = F.raise_error(F.concat(F.lit(BAD), place)).cast("boolean")
    return F.when(F.col("hg_problem").isNotNull(), bad).otherwise(F.lit(True))


def _value(name: str, reader: SideReader, inner: Column, plan: SourcePlan) -> Column:
    data = F.col(name)
    if name == "value" and plan.inline_errors:  # what was read of a value that does not fit is no value
        fits = F.col("hg_error").isNull()
        data, inner = F.when(fits, data), F.when(fits, inner)
    return reader.value(data, inner)


def _present(plan: SourcePlan) -> Column | None:
    if plan.envelope == "NONE":
        return None
    present = F.col("value").isNotNull()
    if plan.envelope != "DEBEZIUM":
        return present
    event = F.col("hg_value")
    return present & (event[OP] != F.lit(DELETED) if has_op(plan.value) else event[AFTER].isNotNull())


def _reader(side: SidePlan | None, writers: Writers) -> SideReader | None:
    return None if side is None else side_reader(side, writers)


def _together(costly: Mapping[str, Column]) -> Column:
    """One column of what is costly on either side. A struct around what stands alone would cost some of its time."""
    if len(costly) == 1:
        return next(iter(costly.values()))
    return F.struct(*[column.alias(name) for name, column in costly.items()])


def _inner(name: str, costly: Mapping[str, Column]) -> Column:
    """What was computed for a side within the barrier."""
    if name not in costly:
        return F.lit(None)
    return F.col("hg_in") if len(costly) == 1 else F.col(f"hg_in.{name}")


def _column(column: SourceColumn) -> Column:
    origin = column.origin
    match origin.part:
        case "key" | "value":
            whole = F.col(f"hg_{origin.part}")
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


def _usable(value: Column, column: SourceColumn, writers: Mapping[str, Writers]) -> Column:
    """The column, but for records whose schema made something else of it: to use those stops whoever does."""
    part, path = _place(column)
    side = writers.get(part)
    changed = [id_ for id_, broken in side.broken.items() if _meets(path, broken)] if side else []
    return F.when(_changed(part, changed), F.lit(None)).otherwise(value) if changed else value


def _place(column: SourceColumn) -> tuple[str, FieldPath]:
    """The side that a column is read from, and the field."""
    origin = column.origin
    name = () if origin.name is None else (origin.name,)
    if origin.part == "after":
        return ("key", name) if column.key else ("value", (AFTER, *name))
    return origin.part, name


def _meets(path: FieldPath, broken: Iterable[FieldPath]) -> bool:
    """Whether one of the fields is the path's own, or within it, or around it."""
    return any(all(a == b for a, b in zip(path, field, strict=False)) for field in broken)


def _changed(side: str, ids: Iterable[int]) -> Column:
    """False for a record with another id; one with these fails the job with its place."""
    place = F.struct(
        "topic", "partition", "offset", F.lit(side).alias("side"), framed_id(F.col(side)).alias("id")
    )
    stop = F.raise_error(F.concat(F.lit(CHANGED), F.to_json(place))).cast("boolean")
    return F.when(has_id(F.col(side), ids), stop).otherwise(F.lit(False))


def _header(name: str) -> Column:
    """The value of the last header of that name, NULL if there is none."""
    found = F.filter(F.col("headers"), lambda h: h["key"] == F.lit(name))
    return F.when(F.size(found) > 0, F.element_at(found, -1)["value"])


def _found(side: str, reason: Column, schema_id: Column) -> Column:
    return F.struct(
        F.lit(side).alias("side"), reason.alias("reason"), schema_id.cast("int").alias("schema_id")
    )


def _problem(
    plan: SourcePlan, readers: Mapping[str, SideReader | None], inners: Mapping[str, Column]
) -> Column:
    """The first thing that is wrong with a record, the key's before the value's."""
    problem = F.when(F.lit(False), _found("key", F.lit(""), F.lit(0)))
    for name, reader in readers.items():
        data, inner = F.col(name), inners[name]
        if (missing := _missing(plan, name)) is not None:
            problem = problem.when(data.isNull(), _found(name, F.lit(missing), F.lit(None)))
        if reader is not None and not (name == "value" and plan.inline_errors):
            problem = problem.when(
                _is_bad(reader, data, inner), _found(name, reader.reason(data, inner), reader.schema_id(data))
            )
    for origin in [c.origin for c in plan.columns if c.origin.part == "header" and not c.origin.as_bytes]:
        value = _header(origin.name or "")
        reason = F.lit(f'header "{origin.name}" is not valid UTF-8')
        problem = problem.when(~F.is_valid_utf8(value.cast("string")), _found("header", reason, F.lit(None)))
    return problem


def _missing(plan: SourcePlan, side: str) -> str | None:
    """What is wrong with a record without this side, if anything is."""
    if side == "value":
        return NO_VALUE if plan.envelope == "NONE" else NO_KEY_IN_VALUE if plan.key_in_value else None
    return NO_KEY if plan.envelope != "NONE" and not plan.key_in_value else None


def _is_bad(reader: SideReader, data: Column, inner: Column) -> Column:
    return data.isNotNull() & ~F.coalesce(reader.fits(data, inner), F.lit(False))


def _inline_error(reader: SideReader | None, inner: Column) -> Column:
    assert reader is not None
    data = F.col("value")
    told = F.struct(F.concat(F.lit(UNDECODABLE), reader.reason(data, inner)).alias("description"))
    return F.when(_is_bad(reader, data, inner), told)


def _event_problem(plan: SourcePlan, reader: SideReader | None) -> Column:
    """`hg_problem` of what may be no change of a row though it fits its schema."""
    event, problem = F.col("hg_value"), F.col("hg_problem")
    if plan.envelope != "DEBEZIUM" or reader is None or not has_op(plan.value):
        return problem
    op, schema_id = event[OP], reader.schema_id(F.col("value"))
    good = problem.isNull() & F.col("value").isNotNull()
    unknown = ~F.coalesce(op.isin(list(OPS)), F.lit(False))
    return (
        F.when(good & unknown, _found("value", F.lit(UNKNOWN_OP), schema_id))
        .when(
            good & (op != F.lit(DELETED)) & event[AFTER].isNull(), _found("value", F.lit(NO_AFTER), schema_id)
        )
        .otherwise(problem)
    )
