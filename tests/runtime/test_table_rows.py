"""Rows of Spark as a staging table gets them: every type, marked rows, and rows that do not fit."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from pgpq import ArrowToPostgresBinaryEncoder
from pyspark.sql import SparkSession, functions as F
from pyspark.sql.types import StructField, StructType

from headgate.plan.definitions import PRESENT
from headgate.plan.target_definitions import TargetField, ValuePath
from headgate.runtime.rejected_rows import Refusal, with_refusals
from headgate.runtime.targets.search_documents import document_id
from headgate.runtime.targets.table_rows import BAD, CHANGED, DELETE, NOTHING, OP, WRITE, TableRows, arrow_rows
from headgate.schema import types as t
from headgate.schema.formats.spark import to_spark
from tests.runtime.tables import field, table

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

MOMENT = dt.datetime(2026, 11, 15, 12, 30, 0, 123456)
EVERY: list[tuple[t.Type, object, object]] = [  # the value in Spark, and what is staged of it
    (t.Boolean(), True, True),
    (t.Integer(), 7, 7),
    (t.Bigint(), 2**40, 2**40),
    (t.Real(), 0.5, 0.5),
    (t.Double(), 0.1, 0.1),
    (t.Decimal(10, 2), Decimal("1.10"), Decimal("1.10")),
    (t.Text(), "x", "x"),
    (t.Bytes(), b"\x00\xff", b"\x00\xff"),
    (t.Date(), dt.date(2026, 11, 15), dt.date(2026, 11, 15)),
    (t.Time(), dt.time(12, 30, 0, 5), dt.time(12, 30, 0, 5)),
    (t.Timestamp(), MOMENT, MOMENT),
    (t.TimestampTz(), MOMENT.replace(tzinfo=dt.UTC), MOMENT.replace(tzinfo=dt.UTC)),
    (t.Uuid(), "01234567-89ab-cdef-0123-456789abcdef", "01234567-89ab-cdef-0123-456789abcdef"),
    (t.Json(), '{"a": 1.10}', '{"a": 1.10}'),
    (t.Array(t.Text()), ["a", None], ["a", None]),
    (t.Array(t.Decimal(4, 1)), [Decimal("1.5")], ["1.5"]),
    (t.Array(t.Bytes()), [b"\xff"], ["\\xFF"]),
    (t.Array(t.Timestamp()), [MOMENT], ["2026-11-15T12:30:00.123456"]),
    (t.Map(t.Bigint()), {"k": 1}, '{"k":1}'),
    (t.Array(t.Array(t.Bigint())), [[1], []], "[[1],[]]"),
    (t.Record((t.Field("x", t.Bigint()),)), (1,), '{"x":1}'),
]


def test_every_type_is_staged_in_a_form_that_the_copy_takes(session: SparkSession) -> None:
    names = [f"c{number}" for number in range(len(EVERY))]
    schema = StructType([StructField(n, to_spark(type_)) for n, (type_, _, _) in zip(names, EVERY, strict=True)])
    rows = session.createDataFrame([tuple(given for _, given, _ in EVERY)], schema)
    made = TableRows(table("t", *[field(n, type_) for n, (type_, _, _) in zip(names, EVERY, strict=True)]))
    staged = arrow_rows(made.frame(rows))
    ArrowToPostgresBinaryEncoder(staged.schema)
    (row,) = staged.to_pylist()
    assert row[OP] == WRITE
    assert [row[name] for name in names] == [expected for _, _, expected in EVERY]


def test_marked_rows_are_written_or_deleted_and_bad_ones_keep_their_key(session: SparkSession) -> None:
    rows = session.createDataFrame(
        [("a", 1.0, True), ("b", 1.5, True), ("c", 1.5, False), (None, 1.0, False), (None, 1.0, True)],
        f"k string, v double, `{PRESENT}` boolean",
    ).coalesce(1)
    made = TableRows(table("t", field("k", t.Text(), key=True), field("v", t.Bigint(), t.Double())))
    found = [(row["k"], row["v"], row[OP]) for row in arrow_rows(made.frame(rows, marked=True)).to_pylist()]
    assert found == [("a", 1, WRITE), ("b", None, BAD), ("c", None, DELETE), (None, None, NOTHING), (None, None, BAD)]
    keys = arrow_rows(made.keys(rows)).to_pylist()
    assert {(row["k"], row[OP]) for row in keys} == {("a", CHANGED), ("b", CHANGED), ("c", CHANGED), (None, NOTHING)}


def test_fields_inside_documents_and_objects_as_json(session: SparkSession) -> None:
    city = TargetField("city", ValuePath("d", (), ("p", "city")), t.Text(), t.Json(), nullable=False)
    zip_ = TargetField("zip", ValuePath("d", (), ("p", "zip")), t.Bigint(), t.Json(), nullable=True)
    place = TargetField("place", None, t.Record((t.Field("city", t.Text()), t.Field("zip", t.Bigint()))), None, nullable=False, fields=(city, zip_))  # fmt: skip
    made = TableRows(table("t", field("n", t.Bigint(), t.Json(), inside=("n",), column="d"), place))
    documents = ['{"n": 1.0, "p": {"city": "Rome", "zip": 10}}', '{"n": 2, "p": {}}', "{}"]
    rows = session.createDataFrame([(one,) for one in documents], "d string").coalesce(1)
    found = [(row["n"], row["place"], row[OP]) for row in arrow_rows(made.frame(rows)).to_pylist()]
    assert found == [(1, '{"city":"Rome","zip":10}', WRITE), (None, None, BAD), (None, None, BAD)]
    ready, problem, _ = made.problems(rows)
    told = [row[0] for row in ready.select(F.when(problem.isNotNull(), problem["path"])).collect()]
    assert told == [None, "$.d.p.city", "$.d.n"]


@pytest.mark.parametrize("type_", [t.Json(), None])
def test_json_is_not_made_of_what_its_text_would_not_hold(session: SparkSession, type_: t.Type | None) -> None:
    """Spark writes NaN as a text, and another character for bytes that are no text."""
    rows = session.sql(
        "SELECT named_struct('x', double('NaN'), 'words', map('a', 'b')) AS r UNION ALL "
        "SELECT named_struct('x', 1.0D, 'words', map('a', CAST(X'FF' AS string))) UNION ALL "
        "SELECT named_struct('x', 1.0D, 'words', map('a', 'b'))"
    ).coalesce(1)
    record = t.Record((t.Field("x", t.Double()), t.Field("words", t.Map(t.Text()))))
    made = TableRows(table("t", field("r", type_ or record, record)))
    assert [row[OP] for row in made.frame(rows).select(OP).collect()] == [BAD, BAD, WRITE]
    ready, problem, _ = made.problems(rows)
    told = [tuple(row) for row in ready.select(problem["path"], problem["reason"]).collect()]
    assert told == [
        ("$.r.x", "JSON has no number that is not finite"),
        ("$.r.words{}", "it is not valid UTF-8"),
        (None, None),
    ]


def test_zero_and_minus_zero_are_one_key_of_an_index(session: SparkSession) -> None:
    keys = session.sql(
        "SELECT 0.0D AS d, float(0) AS f UNION ALL SELECT -0.0D, float(-0.0) UNION ALL SELECT 0.1D, float(0.1)"
    )
    for name, type_, other in (("d", t.Double(), "0.1"), ("f", t.Real(), "0.1")):
        found = [row[0] for row in keys.select(document_id([(name, type_)])).collect()]
        assert found == ["0.0", "0.0", other]


def test_thousands_of_refused_rows_are_found_by_one_join(session: SparkSession) -> None:
    refusals = [Refusal(str(number), f"$.n{number}", None, "no") for number in range(1, 20_000, 2)]
    rows, told = with_refusals(session.range(20_000), F.col("id").cast("string"), [*refusals, *refusals])
    found = rows.select("id", told.alias("told")).where("told IS NOT NULL")
    assert found.agg(F.count("*"), F.count_if(F.col("told.path") == F.concat(F.lit("$.n"), "id"))).first() == (
        10_000,
        10_000,
    )
    rows, told = with_refusals(session.range(2), F.col("id").cast("string"), [])
    assert rows.where(told.isNull()).count() == 2


def test_a_day_or_a_moment_that_the_database_does_not_have_is_a_value_that_does_not_fit(session: SparkSession) -> None:
    """The copy of the whole batch would fail of it."""
    rows = session.range(3, numPartitions=1).select(
        F.when(F.col("id") == 0, F.date_from_unix_date(F.lit(-(2**31)))).when(F.col("id") == 1, F.date_from_unix_date(F.lit(2**31 - 1))).otherwise(F.lit("-4713-11-24").cast("date")).alias("d"),
        F.when(F.col("id") < 2, F.timestamp_micros(F.lit(-(2**63)))).otherwise(F.lit("-4713-11-24").cast("timestamp")).alias("at"),
    )  # fmt: skip
    rows = rows.withColumn("wall", F.col("at").cast("timestamp_ntz"))
    for name, type_, bad in (("d", t.Date(), 2), ("at", t.TimestampTz(), 2), ("wall", t.Timestamp(), 2)):
        made = TableRows(table("t", field(name, type_, nullable=True)))
        assert [row[OP] for row in made.frame(rows).select(OP).collect()] == [BAD] * bad + [WRITE] * (3 - bad)
        ready, problem, _ = made.problems(rows)
        told = ready.select(problem["path"], problem["expected"], problem["reason"]).first()
        assert told is not None
        assert tuple(told) == (f"$.{name}", t_name(type_), "it is out of range")


def t_name(type_: t.Type) -> str:
    return {t.Date: "date", t.Timestamp: "timestamp", t.TimestampTz: "timestamptz"}[type(type_)]


def test_a_number_that_is_not_finite_does_not_become_a_text_of_json(session: SparkSession) -> None:
    rows = session.sql(
        "SELECT array(named_struct('x', double(v))) AS items, named_struct('x', double(v)) AS one, map('k', double(v)) AS m"
        " FROM VALUES ('1.5'), ('NaN'), ('-Infinity') AS t(v)"
    ).coalesce(1)
    record = t.Record((t.Field("x", t.Double()),))
    leaf = TargetField("x", ValuePath("one", ("x",)), t.Double(), t.Double(), nullable=True)
    one = TargetField("one", ValuePath("one", ()), record, record, nullable=True, fields=(leaf,))
    fields = (field("items", t.Array(record), nullable=True), field("m", t.Map(t.Double()), nullable=True), one)
    for each, path in zip(fields, ("$.items[].x", "$.m{}", "$.one.x"), strict=True):
        made = TableRows(table("t", each))
        assert [row[OP] for row in made.frame(rows).select(OP).collect()] == [WRITE, BAD, BAD]
        ready, problem, _ = made.problems(rows)
        assert ready.select(problem["path"]).collect()[1][0] == path


def test_a_text_of_which_the_database_would_drop_a_part_does_not_fit(session: SparkSession) -> None:
    rows = session.createDataFrame(
        [("2026-11-15", ["2026-11-15", None]), ("2026-11-15 10:00:00", None), (None, ["today"])],
        "d string, many array<string>",
    ).coalesce(1)
    made = TableRows(
        table("t", field("d", t.Text(), nullable=True, native="date"),
              field("many", t.Array(t.Text()), nullable=True, native="date[]"))
    )  # fmt: skip
    assert [row[OP] for row in made.frame(rows).select(OP).collect()] == [WRITE, BAD, BAD]
    ready, problem, _ = made.problems(rows)
    told = [tuple(row) for row in ready.select(problem["path"], problem["expected"]).collect()]
    assert told == [(None, None), ("$.d", "date"), ("$.many", "date[]")]
