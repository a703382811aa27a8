"""Rows of a sink's relation -> records of its topic, as columns of Spark: key, value, partition and headers, and what is wrong
with a row that cannot be written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from pyspark.sql import Column, DataFrame, functions as F

from headgate.plan.definitions import OLD, PRESENT, HeadersColumn, PartitionBy, RecordEncoding, SinkDefinition
from headgate.runtime.formats.given_avro import in_jvm
from headgate.runtime.formats.given_json import json_in_jvm
from headgate.runtime.formats.given_writer import GivenWriter
from headgate.runtime.formats.writers import RecordWriter, Row, row_of
from headgate.runtime.ports import SideWriter
from headgate.runtime.record_times import TimeColumn
from headgate.schema.encodings import AFTER, BEFORE, change_event
from headgate.schema.names import ROOT, element_path, field_path, value_path
from headgate.schema.render import print_type, spark_identifier
from headgate.schema.types import Array, Map, Record, Type

NO_HEADER_KEY = "a header has no key"
TEXT = "text not null"


class SinkRecords:
    """The records of one sink. Its columns are made once, when Spark runs."""

    def __init__(self, sink: SinkDefinition) -> None:
        self.sink = sink

    # What is written

    @cached_property
    def key(self) -> Column:
        sides = self._sides
        return sides["key"].bytes() if "key" in sides else F.lit(None).cast("binary")

    @cached_property
    def value(self) -> Column:
        return self._sides["value"].bytes()

    @cached_property
    def headers(self) -> Column | None:
        return None if self.sink.headers is None else _headers(self.sink.headers)

    @cached_property
    def time(self) -> TimeColumn | None:
        """The time of a record; None if it has that of its writing."""
        return None if self.sink.time is None else TimeColumn(self.sink.time)

    @property
    def time_of_key(self) -> bool:
        """Whether the time is in the key, and so known of deletions too."""
        sink = self.sink
        return sink.time is not None and sink.key is not None and sink.time.column in sink.key.columns

    def partitioned(self, rows: DataFrame) -> DataFrame:
        """The rows with the columns that `partition` uses."""
        by = self.sink.partition_by
        if by is None:
            return rows
        return rows.withColumns({name: F.col(spark_identifier(column)) for name, column in by.columns})

    def partition(self, partitions: int) -> list[Column]:
        """The column of the partition that a record goes to; none if the producer chooses it."""
        by = self.sink.partition_by
        return [] if by is None else [_partition(by, partitions).alias("partition")]

    # What cannot be written

    @cached_property
    def can_reject(self) -> bool:
        """Whether there are rows that cannot be encoded. Otherwise nothing needs to be checked."""
        return any(side.can_reject for side in self._sides.values()) or self._headers_checked or self.time is not None

    @cached_property
    def accepts_key(self) -> Column:
        """Whether the key can be encoded. TRUE or FALSE, never NULL."""
        sides = self._sides
        accepts = sides["key"].accepts() if "key" in sides else F.lit(True)
        return accepts & self.time.accepts() if self.time is not None and self.time_of_key else accepts

    @cached_property
    def accepts_value(self) -> Column:
        """Whether the value and the headers can be encoded, and the time is one. TRUE or FALSE, never NULL."""
        accepts = self._sides["value"].accepts()
        if self.time is not None and not self.time_of_key:
            accepts = accepts & self.time.accepts()
        return accepts & ~_lacks_key(self.sink.headers) if self._headers_checked else accepts

    @cached_property
    def problem(self) -> Column:
        """struct<schema_id, path, expected, reason> for a row that cannot be written, otherwise NULL. Holds nothing of it."""
        found = F.when(F.lit(False), _problem(None, F.lit(""), F.lit(""), F.lit("")))
        for side in self._sides.values():
            found = found.when(~side.accepts(), side.problem())
        if self._headers_checked:
            wrong = _lacks_key(self.sink.headers)
            found = found.when(wrong, _problem(None, F.lit("$.headers[].key"), F.lit(TEXT), F.lit(NO_HEADER_KEY)))
        if self.time is not None and self.sink.time is not None:
            expected = F.lit(print_type(self.sink.time.type))
            problem = _problem(None, F.lit(self.time.path()), expected, self.time.reason())
            found = found.when(~self.time.accepts(), problem)
        return found

    @cached_property
    def _headers_checked(self) -> bool:
        return self.sink.headers is not None and not self.sink.headers.is_map

    @cached_property
    def _sides(self) -> Mapping[str, _Side]:
        """The key, if there is one, comes first."""
        sides = {"key": self.sink.key, "value": self.sink.value}
        key, old_rows = self.sink.key, self.sink.old_rows
        optional = key is not None and key.given and key.whole and self.sink.envelope == "NONE"
        return {
            name: _Side(name, side, old_rows=old_rows, optional=optional and name == "key")
            for name, side in sides.items()
            if side is not None
        }


class _Side:
    """One side of the records of a sink. An optional one is not there if its one column is null: the record has no key then."""

    def __init__(self, name: str, encoding: RecordEncoding, *, old_rows: bool, optional: bool) -> None:
        self._name = name
        self._optional = optional
        self._side, self._row = _written(encoding, old_rows=old_rows)
        self._writer = side_writer(self._side) if name == "value" else key_writer(self._side)

    @property
    def can_reject(self) -> bool:
        return self._writer.can_reject

    def bytes(self) -> Column:
        found = self._writer.encode(self._row)
        return F.when(self._whole.isNotNull(), found) if self._optional else found

    def accepts(self) -> Column:
        found = self._writer.accepts(self._row)
        return self._whole.isNull() | found if self._optional else found

    @property
    def _whole(self) -> Column:
        return self._row[self._side.columns[0]]

    def problem(self) -> Column:
        error = self._writer.error(self._row)
        path = F.concat(F.lit(f"{ROOT}.{self._name}"), F.substring(error["path"], len(ROOT) + 1, 10_000))
        return _problem(self._side.schema_id, path, self._expected(error["path"]), error["reason"])

    def _expected(self, path: Column) -> Column:
        """The type that the schema has at a path, or the format if it has none there."""
        found = F.lit(self._side.encoding.lower())
        types = dict(_types(self._side.record, ROOT))
        if types:
            entries = [F.lit(text) for pair in types.items() for text in pair]
            found = F.coalesce(F.try_element_at(F.create_map(*entries), path), found)
        return found


def key_writer(side: RecordEncoding) -> SideWriter:
    """The writer of keys. Those with texts of binary numbers are written by workers, as INSERT writes them: Java prints some numbers
    with other digits in each version, and other bytes are another key."""
    return GivenWriter(side) if side.prints_numbers else side_writer(side)


def side_writer(side: RecordEncoding) -> SideWriter:
    """The writer of one side of a sink's records."""
    if not side.given:
        return RecordWriter(side)
    return in_jvm(side) or json_in_jvm(side) or GivenWriter(side)


def _written(side: RecordEncoding, *, old_rows: bool) -> tuple[RecordEncoding, Row]:
    """The side as its writer sees it, and its columns. An event is a record of two columns."""
    row = row_of(side)
    if not side.as_event:
        return side, row
    after = _struct(row)
    columns = {BEFORE: F.when(F.lit(False), after), AFTER: after}
    if old_rows:
        before = _struct(row_of(side, F.col(OLD)))
        columns = {BEFORE: F.when(F.col(OLD).isNotNull(), before), AFTER: F.when(F.col(PRESENT), after)}
    renames = tuple(((place, *path), name) for place in columns for path, name in side.renames)
    event = replace(side, columns=tuple(columns), renames=renames, record=change_event(side.record), as_event=False)
    return event, columns


def _struct(row: Mapping[str, Column]) -> Column:
    return F.struct(*[column.alias(name) for name, column in row.items()])


def _types(type_: Type, path: str) -> Iterator[tuple[str, str]]:
    """The paths inside a type, each with what must be there."""
    match type_:
        case Record():
            for field in type_.fields:
                inner = field_path(path, field.name)
                yield inner, print_type(field.type) + ("" if field.nullable else " not null")
                yield from _types(field.type, inner)
        case Array():
            inner = element_path(path)
            yield inner, print_type(type_.element) + ("" if type_.element_nullable else " not null")
            yield from _types(type_.element, inner)
        case Map():
            inner = value_path(path)
            yield inner, print_type(type_.value) + ("" if type_.value_nullable else " not null")
            yield from _types(type_.value, inner)
        case _:
            return


def _problem(schema_id: int | None, path: Column, expected: Column, reason: Column) -> Column:
    id_ = F.lit(schema_id).cast("bigint").alias("schema_id")
    return F.struct(id_, path.alias("path"), expected.alias("expected"), reason.alias("reason"))


def _partition(by: PartitionBy, partitions: int) -> Column:
    """The expression modulo the number of partitions. NULL and negative numbers go to partition 0."""
    number = F.expr(by.sql).cast("bigint")
    within = F.when(number >= 0, F.pmod(number, F.lit(partitions)))
    return F.coalesce(within, F.lit(0)).cast("int")


def _headers(headers: HeadersColumn) -> Column:
    """The headers as Spark's writer takes them: a list of structs of key and bytes."""
    column = F.col(spark_identifier(headers.column))
    entries = F.map_entries(column) if headers.is_map else column

    def entry(header: Column) -> Column:
        return F.struct(header["key"].alias("key"), header["value"].cast("binary").alias("value"))

    return F.transform(entries, entry)


def _lacks_key(headers: HeadersColumn | None) -> Column:
    """Whether a header in a list has no key, which Kafka does not take."""
    assert headers is not None
    column = F.col(spark_identifier(headers.column))
    return F.coalesce(F.exists(column, lambda header: header["key"].isNull()), F.lit(False))
