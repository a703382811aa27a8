"""Records of a topic -> the columns of a source, with every record that does not fit told apart.

What is costly in a format stands behind a barrier (`explode(array(..))`), because Spark otherwise decodes once per
use of a field (RUNTIME: 160 times for 40 ids).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.plan.sides import SidePlan
from headgate.plan.source import SourceColumn, SourcePlan
from headgate.runtime.formats.readers import side_reader
from headgate.runtime.formats.side import NO_WRITERS, SideReader, Writers, framed_id, has_id

BAD = "headgate-bad-record:"  # before the JSON by which a bad record is told to the driver
CHANGED = "headgate-schema-changed:"  # likewise for one with a schema that cannot be followed
NO_VALUE = "the record has no value"
NO_KEY = "the record has no key"


class Decoder:
    """Decodes raw records of Spark's Kafka reader. Its columns are made once: making them anew for every batch took
    a thousand calls into the JVM, which with many small tasks was most of a batch's time."""

    def __init__(self, plan: SourcePlan, key: Writers = NO_WRITERS, value: Writers = NO_WRITERS) -> None:
        self.plan = plan
        readers = {"key": _reader(plan.key, key), "value": _reader(plan.value, value)}
        # The barrier: what stands in it is computed once per record. Only what is costly does; what is said of it
        # comes after, because within the barrier every mention is computed for itself (from_avro stood in the plan 3
        # times, now once; decoding alone took 8.8-10.2 CPU seconds for a million small records, now 5.4).
        costly = F.struct(*[_costly(name, reader).alias(name) for name, reader in readers.items()])
        self._barrier = (F.col("*"), F.explode(F.array(costly)).alias("hg_in"))
        self._decoded = [F.col("*"), _problem(plan, readers).alias("hg_problem")]
        self._values = [_value(name, reader).alias(f"hg_{name}") for name, reader in readers.items()]
        self._good = _good() if plan.on_error == "HALT" else F.col("hg_problem").isNull()
        writers = {"key": key, "value": value}
        for name, of_side in writers.items():
            if of_side.halting:
                self._good = self._good & ~_changed(name, of_side.halting)
        self._columns = [
            _usable(_column(column), column, writers).alias(column.name) for column in plan.columns
        ]

    def decode(self, raw: DataFrame) -> DataFrame:
        """Raw records -> columns `hg_key`, `hg_value`, `hg_problem` and the record's place.

        ``hg_problem`` is NULL for a good record and else a struct of side, reason and schema id. Records with neither
        key nor value are left out.
        """
        present = raw.where("key IS NOT NULL OR value IS NOT NULL")
        decoded = present.select(*self._barrier).select(*self._decoded)
        for value in self._values:  # each may be a barrier of its own, of which a projection holds but one
            decoded = decoded.select("*", value)
        return decoded

    def good(self, decoded: DataFrame) -> DataFrame:
        """The good records; under HALT the first bad one fails the job with its place."""
        return decoded.where(self._good)

    def columns(self, records: DataFrame) -> DataFrame:
        """The source's columns of decoded records, by name."""
        return records.select(*self._columns)


def _good() -> Column:
    place = F.to_json(F.struct("topic", "partition", "offset", F.col("hg_problem.*")))
    bad = F.raise_error(F.concat(F.lit(BAD), place)).cast("boolean")
    return F.when(F.col("hg_problem").isNotNull(), bad).otherwise(F.lit(True))


def _value(name: str, reader: SideReader | None) -> Column:
    return F.lit(None) if reader is None else reader.value(F.col(name), F.col(f"hg_in.{name}"))


def _reader(side: SidePlan | None, writers: Writers) -> SideReader | None:
    return None if side is None else side_reader(side, writers)


def _costly(name: str, reader: SideReader | None) -> Column:
    return F.lit(None).cast("string") if reader is None else reader.costly(F.col(name))


def _column(column: SourceColumn) -> Column:
    origin = column.origin
    match origin.part:
        case "key" | "value":
            whole = F.col(f"hg_{origin.part}")
            return whole if origin.name is None else whole.getField(origin.name)
        case "metadata":
            name = (origin.name or "").lower()
            return F.coalesce(F.col("headers"), F.array()) if name == "headers" else F.col(name)
        case "header":
            value = _header(origin.name or "")
            return value if origin.as_bytes else value.cast("string")


def _usable(value: Column, column: SourceColumn, writers: Mapping[str, Writers]) -> Column:
    """The column, but for records whose schema made something else of it: to use those stops whoever does."""
    side = writers.get(column.origin.part)
    changed = [id_ for id_, fields in side.broken.items() if column.origin.name in fields] if side else []
    if not changed:
        return value
    return F.when(_changed(column.origin.part, changed), F.lit(None)).otherwise(value)


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


def _problem(plan: SourcePlan, readers: dict[str, SideReader | None]) -> Column:
    """The first thing that is wrong with a record, the key's before the value's."""

    def found(side: str, reason: Column, schema_id: Column) -> Column:
        return F.struct(
            F.lit(side).alias("side"), reason.alias("reason"), schema_id.cast("int").alias("schema_id")
        )

    problem = F.when(F.lit(False), found("key", F.lit(""), F.lit(0)))
    for name, reader in readers.items():
        data, inner = F.col(name), F.col(f"hg_in.{name}")
        if name == "key" and reader is not None and plan.envelope == "UPSERT" and _keyed_by_key(plan):
            problem = problem.when(data.isNull(), found("key", F.lit(NO_KEY), F.lit(None)))
        if name == "value" and plan.envelope == "NONE":
            problem = problem.when(data.isNull(), found("value", F.lit(NO_VALUE), F.lit(None)))
        if reader is not None:
            bad = data.isNotNull() & ~F.coalesce(reader.fits(data, inner), F.lit(False))
            problem = problem.when(bad, found(name, reader.reason(data, inner), reader.schema_id(data)))
    for origin in [c.origin for c in plan.columns if c.origin.part == "header" and not c.origin.as_bytes]:
        value = _header(origin.name or "")
        reason = F.lit(f'header "{origin.name}" is not valid UTF-8')
        problem = problem.when(~F.is_valid_utf8(value.cast("string")), found("header", reason, F.lit(None)))
    return problem


def _keyed_by_key(plan: SourcePlan) -> bool:
    return any(c.key and c.origin.part == "key" for c in plan.columns)
