"""Rows of a materialization ON DEMAND, as the query process computes them at the time of a call.

Fields are cast and checked as those of tables and indexes are. A row becomes the bytes that the client gets inside of Spark, so that the
engine only passes them on. A row with a value that does not fit ends the call, or is left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from headgate.plan.on_demand_messages import FLAT_ROW, JSON_ROW
from headgate.plan.target_definitions import (
    ON_DEMAND_VIEW,
    ROW_COLUMNS,
    OnDemandRows,
    TargetField,
    record_of,
)
from headgate.runtime.errors import RowDoesNotFit
from headgate.runtime.formats.json_text import json_object, json_text
from headgate.runtime.formats.protobuf_writer import ProtobufEncoder
from headgate.runtime.formats.write_checks import Check, field_checks, json_rule, protobuf_rule
from headgate.runtime.query import BatchQuery, Finished, Messages, SourceGrew
from headgate.runtime.relations import RelationFrames
from headgate.runtime.target_rows import FieldColumns, Leaf, value_at
from headgate.runtime.targets.search_documents import document_id
from headgate.schema import types as t
from headgate.schema.formats.spark import to_spark
from headgate.schema.names import internal_name
from headgate.schema.render import print_type, spark_identifier

ID, PROBLEM, UNKNOWN = ROW_COLUMNS
MATCH, WRONG = internal_name("match"), internal_name("wrong")
_ALL = 2**31 - 1  # characters or bytes

# The words of types in flat rows; all others are printed as everywhere.
_WORDS: Mapping[type, str] = {
    t.Boolean: "bool",
    t.Integer: "i32",
    t.Bigint: "i64",
    t.Real: "f32",
    t.Double: "f64",
    t.Text: "string",
}


@dataclass(frozen=True, slots=True)
class TypedLeaf(Leaf):
    """A leaf that keeps its type: clients get lists, maps and records as what they are."""

    @property
    def is_json(self) -> bool:
        return isinstance(self.field.type, t.Json)


class OnDemandQuery(BatchQuery):
    """One call of a materialization ON DEMAND."""

    _skipped = 0

    @property
    def _call(self) -> OnDemandRows:
        assert self._request.on_demand is not None
        return self._request.on_demand

    def _frame(self) -> DataFrame:
        self._counts, self._arrived, self._skipped = {}, {}, 0
        frames = RelationFrames(
            self._session,
            self._request.select.relations,
            self._source,
            self._request.system_rows.__getitem__,
            self._materialized,
        )
        rows = frames.relation(self._call.definition.relation)
        if self._arrived:
            raise SourceGrew
        return on_demand_frame(self._session, rows, self._call)

    def _printed(self, frame: DataFrame) -> tuple[tuple[str, str], ...]:
        return ()

    def _pieces(self) -> Iterator[Messages]:
        """Rows as they come. One with a problem ends the call, or is left out."""
        left = self._call.limit
        for batch in self._spool.batches():
            rows, wrong = self._rows(batch)
            rows = rows if left is None else rows[:left]
            left = None if left is None else left - len(rows)
            if rows:
                yield Messages(tuple(rows))
            if left == 0:
                return  # the server cancels what still runs
            if wrong is not None:
                raise wrong

    def _rows(self, batch: pa.RecordBatch) -> tuple[list[bytes], RowDoesNotFit | None]:
        rows, problems = batch.columns
        if problems.null_count == len(problems):
            return rows.to_pylist(), None
        if self._call.definition.on_error == "SKIP":
            self._skipped += len(problems) - problems.null_count
            return rows.filter(problems.is_null()).to_pylist(), None
        first = problems.is_valid().index(True).as_py()
        problem = problems[first].as_py()
        name = self._call.definition.name
        return rows[:first].to_pylist(), RowDoesNotFit(name, problem["path"], problem["expected"], problem["reason"])

    def _finished(self) -> Finished:
        read = {id_: reader.read_until for id_, reader in self._sources.items() if reader.read_until is not None}
        return Finished(self._bad_records, self._reached, read, self._skipped)


def on_demand_frame(session: SparkSession, rows: DataFrame, call: OnDemandRows) -> DataFrame:
    """Two columns: the row as the client gets it, and what is wrong with it, struct<path, expected, reason>. One of both is NULL."""
    shown = _shown(_of_key(rows, call), call)
    if call.filter is not None:
        shown.createOrReplaceTempView(ON_DEMAND_VIEW)
        # A value that does not fit leaves open whether the row is one that was asked for.
        unknown, match = F.col(spark_identifier(UNKNOWN)).isNotNull(), F.col(spark_identifier(MATCH))
        shown = session.sql(call.filter.sql).where(F.coalesce(match, F.lit(False)) | unknown)
    made = _Form(call)
    shown = shown.withColumn(WRONG, F.coalesce(F.col(spark_identifier(PROBLEM)), *made.problems()))
    wrong = F.col(spark_identifier(WRONG))
    found = shown.select(F.when(wrong.isNull(), made.row()).alias("row"), wrong.alias("problem"))
    # Rows that are left out do not count, and nobody knows before how many these are.
    return found if call.limit is None or call.definition.on_error == "SKIP" else found.limit(call.limit)


def _of_key(rows: DataFrame, call: OnDemandRows) -> DataFrame:
    """The rows of one key. The condition is over columns of the relation, so that Spark and Delta skip what cannot have it."""
    if call.key is None:
        return rows
    for (name, type_), value in zip(call.definition.key_columns, call.key, strict=True):
        rows = rows.where(F.col(spark_identifier(name)) == F.lit(value).cast(to_spark(type_)))
    return rows


def _shown(rows: DataFrame, call: OnDemandRows) -> DataFrame:
    """The fields that the call needs, the object's id, and what is wrong with them."""
    used = call.filter.fields if call.filter is not None else frozenset()
    wanted = {one.name for one in call.fields} | used
    fields = tuple(one for one in call.definition.fields if one.name in wanted)
    leaves = [(one, TypedLeaf(leaf, above)) for one in fields for above, leaf in one.leaves()]
    columns = FieldColumns([leaf for _, leaf in leaves])
    values = iter(columns.values)
    made = [_value(one, values).alias(one.name) for one in fields]
    unknown = [
        p for (one, _), found in zip(leaves, columns.problems_of, strict=True) if one.name in used for p in found
    ]
    nothing = F.lit(None).cast("struct<path: string, expected: string, reason: string>")
    id_ = document_id(call.definition.key_columns) if call.definition.key_columns else F.lit("")
    return columns.with_documents(rows).select(
        *made, id_.alias(ID), columns.problem.alias(PROBLEM), F.coalesce(*unknown, nothing).alias(UNKNOWN)
    )


def _value(one: TargetField, values: Iterator[Column]) -> Column:
    """The value of a field, made of the next values of leaves. An object is NULL where the relation has none."""
    if not one.fields:
        return next(values)
    parts = [(inner.name, _value(inner, values)) for inner in one.fields]
    made = F.struct(*[part.alias(name) for name, part in parts])
    if one.path is not None and one.path.inside is None:
        return F.when(value_at(one.path).isNotNull(), made)
    if not one.nullable:
        return made
    return F.when(reduce(Column.__or__, [part.isNotNull() for _, part in parts]), made)


# What a client gets for a row


class _Form:
    """How the rows of a call are written."""

    def __init__(self, call: OnDemandRows) -> None:
        self.call = call
        self.values = {one.name: F.col(spark_identifier(one.name)) for one in call.fields}

    def row(self) -> Column:
        match self.call.form:
            case "message":
                return self._encoded(record_of(self.call.fields), self.values)
            case "json":
                texts = [(one.name, json_text(self.values[one.name], one.type)) for one in self.call.fields]
                return self._encoded(JSON_ROW, self._with_id(_map((n, F.coalesce(v, F.lit("null"))) for n, v in texts)))
            case "flat":
                parts = [part for one in self.call.fields for part in _flat(self.values[one.name], one.type, one.name)]
                return self._encoded(FLAT_ROW, self._with_id(_map((path, _flat_value(v, of)) for path, v, of in parts)))
            case "object":
                members = [(t.Field(one.name, one.type), self.values[one.name]) for one in self.call.fields]
                return json_object(members).cast("binary")

    def problems(self) -> Iterator[Column]:
        """What the form cannot hold of values that fit their types."""
        rule = protobuf_rule if self.call.form == "message" else json_rule
        for one in self.call.fields:
            of = t.Field(one.name, one.type, one.nullable)
            for check in self._checks(of, field_checks(of, rule)):
                fails = check.fails(self.values[one.name])
                yield F.when(fails, _problem(check.path, print_type(t.plain(one.type)), check.reason))

    def _checks(self, of: t.Field, first: Iterator[Check]) -> Iterator[Check]:
        yield from first
        if self.call.form == "message":
            yield from self._encoder(record_of(self.call.fields)).json_checks(of)

    def _encoder(self, record: t.Record) -> ProtobufEncoder:
        return ProtobufEncoder(record, self.call.descriptors)

    def _encoded(self, record: t.Record, row: Mapping[str, Column]) -> Column:
        """The message alone. The encoder puts the place of the message in its file before it, one byte for the first."""
        return F.substring(self._encoder(record).encode(row), 2, _ALL)

    def _with_id(self, fields: Column) -> Mapping[str, Column]:
        return {"object_id": F.col(spark_identifier(ID)), "fields": fields}


def _map(entries: Iterator[tuple[str, Column]]) -> Column:
    return F.create_map(*[part for name, value in entries for part in (F.lit(name), value)])


def _flat(value: Column, type_: t.Type, path: str) -> Iterator[tuple[str, Column, t.Type]]:
    """The leaves of a value, each with its path and type."""
    if not isinstance(type_, t.Record):
        yield path, value, type_
        return
    for inner in type_.fields:
        yield from _flat(value.getField(inner.name), inner.type, f"{path}.{inner.name}")


def _flat_value(value: Column, type_: t.Type) -> Column:
    """The text of a value and the word for its type. Texts have no quotes; lists and maps are JSON."""
    word = F.lit(_WORDS.get(type(type_)) or print_type(t.plain(type_)))
    return F.struct(_flat_text(value, type_).alias("value"), word.alias("type"))


def _flat_text(value: Column, type_: t.Type) -> Column:
    match type_:
        case t.Text() | t.Enum() | t.Uuid():
            return value
        case t.Bytes() | t.Date() | t.Time() | t.Timestamp() | t.TimestampTz() | t.Decimal():
            quoted = json_text(value, type_)  # without escapes
            return F.substring(quoted, F.lit(2), F.length(quoted) - 2)
        case _:
            return json_text(value, type_)


def _problem(path: str, expected: str, reason: str) -> Column:
    return F.struct(F.lit(path).alias("path"), F.lit(expected).alias("expected"), F.lit(reason).alias("reason"))
