"""The readers of formats as columns of Spark, beside Python's own csv and re, and beside fresh workers."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal as Number
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions as F

from headgate.plan.definitions import RecordEncoding
from headgate.runtime.decode import evaluate_once, side_reader
from headgate.runtime.formats.frame import UNKNOWN_ID
from headgate.runtime.formats.given.writer import row_writer
from headgate.runtime.formats.json_text import json_text
from headgate.runtime.formats.side import NO_WRITERS, WriterSchemas
from headgate.schema.encodings import CsvEncoding, Encoding, RegexEncoding, SchemaEncoding
from headgate.schema.formats.regex import read_pattern
from headgate.schema.render import print_type
from headgate.schema.types import (
    Bigint,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Double,
    Field,
    Integer,
    Record,
    Text,
    Timestamp,
    TimestampTz,
    Type,
)
from headgate.schema.values import from_json
from headgate.schema.written import SchemaFormat
from tests.runtime.formats.decoding import Bad, framed, written
from tests.runtime.formats.writing import written as encoded
from tests.schema.strategies import values_of
from tests.spark import in_own_jvm

pytestmark = pytest.mark.spark


def read(
    session: SparkSession, side: Encoding, bodies: Sequence[bytes], writers: WriterSchemas = NO_WRITERS
) -> list[Any]:
    """What each of the bytes is, or why it is nothing."""
    reader = side_reader(side, writers)
    rows = [(number, bytearray(body)) for number, body in enumerate(bodies)]
    data, inner = F.col("data"), F.col("inner")
    raw = session.createDataFrame(rows, "number int, data binary")
    barred = evaluate_once(raw.withColumn("inner", reader.decode(data)))
    fits = F.coalesce(reader.accepts(data, inner), F.lit(False))
    valued = barred.select("*", reader.value(data, inner).alias("value"))
    told = valued.select(
        "number", fits.alias("fits"), F.when(fits, F.col("value")).alias("value"), F.when(~fits, reader.error(data, inner)).alias("reason")
    )  # fmt: skip
    found = sorted(told.collect(), key=lambda row: int(row.number))
    return [_plain(row.value) if row.fits else Bad(row.reason) for row in found]


def _plain(value: Any) -> Any:
    return value.asDict(recursive=True) if hasattr(value, "asDict") else value


# CSV


def by_python(text: str, delimiter: str) -> list[str] | None:
    """The fields of one line in the strict reading of RFC 4180; None if it is not one."""
    text = re.sub(r"\r?\n\Z", "", text)
    quoted, bare = r'"(?:[^"]|"")*"', rf'[^"\r\n{re.escape(delimiter)}]*'
    one = f"(?:{quoted}|{bare})"
    if re.fullmatch(f"{one}(?:{re.escape(delimiter)}{one})*", text) is None:
        return None
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    return rows[0] if rows else [""]


@pytest.mark.parametrize("delimiter", [",", "|", "\t", ".", "ö"])
def test_lines_of_csv_are_those_of_rfc_4180(session: SparkSession, delimiter: str) -> None:
    texts: set[str] = set()

    @given(st.text(f'a "\r\n{delimiter}', max_size=8))
    @settings(max_examples=300, deadline=None, database=None)
    def collect(text: str) -> None:
        texts.add(text)

    collect()
    bodies = sorted(texts)
    found = read(session, CsvEncoding(("a", "b"), delimiter), [body.encode() for body in bodies])
    for text, value in zip(bodies, found, strict=True):
        fields = by_python(text, delimiter)
        if fields is None or len(fields) != 2:
            assert isinstance(value, Bad), text
        else:
            assert value == {"a": fields[0], "b": fields[1]}, text


def long_lines_of_csv(session: SparkSession) -> None:
    """A reader that took a frame of the stack for each quote would need more than the 8 MB that there are."""
    body = b'"' + b'x""' * 500_000 + b'",y'
    assert read(session, CsvEncoding(("a", "b")), [body]) == [{"a": 'x"' * 500_000, "b": "y"}]


TYPED = Record((
    Field("i", Integer()), Field("b", Bigint()), Field("d", Double()), Field("n", Decimal(10, 2)), Field("o", Boolean()),
    Field("t", Text()), Field("x", Bytes()), Field("da", Date()), Field("ts", Timestamp()), Field("tz", TimestampTz()),
))  # fmt: skip


@pytest.mark.parametrize("delimiter", [",", "-", "5"])
def test_rows_of_delimited_text_come_back_from_both_writers(session: SparkSession, delimiter: str) -> None:
    names = tuple(field.name for field in TYPED.fields)
    rows: set[tuple[Any, ...]] = {(None,) * len(names)}

    @given(values_of(TYPED))
    @settings(max_examples=60, deadline=None, database=None)
    def collect(row: dict[str, Any]) -> None:
        if row["d"] is None or math.isfinite(row["d"]):
            rows.add(tuple(row[name] for name in names))

    collect()
    made = RecordEncoding("DELIMITED", names, TYPED, delimiter=delimiter)
    values = [dict(zip(names, row, strict=True)) for row in sorted(rows, key=repr)]
    encoding = CsvEncoding(names, delimiter, tuple(field.type for field in TYPED.fields))
    in_jvm, write = encoded(session, made, values), row_writer(made)
    assert [one for one in in_jvm if isinstance(one, Bad)] == []
    # What both have written in one job: to plan it takes seconds.
    bodies = [*in_jvm, *(write(value) for value in values)]
    frame = session.createDataFrame([(n, bytearray(body)) for n, body in enumerate(bodies)], "n int, data binary")  # type: ignore[arg-type]
    reader = side_reader(encoding, NO_WRITERS)
    decoded = reader.decode(F.col("data"))
    read = frame.select(
        "n", reader.accepts(F.col("data"), decoded), json_text(reader.value(F.col("data"), decoded), TYPED)
    )
    found = [(row[1], from_json(json.loads(row[2], parse_float=Number), TYPED)) for row in sorted(read.collect())]
    assert found == [(True, value) for value in values] * 2


def test_delimited_text_that_is_no_value_of_its_type_is_told(session: SparkSession) -> None:
    bad: dict[Type, list[str]] = {
        Integer(): ["x", "1.0", "2147483648", " 1", "1e2"], Bigint(): ["9223372036854775808"],
        Double(): ["1e400", "1d", "0x1p3", "inf"], Decimal(4, 2): ["1.234", "100", "1e1"], Boolean(): ["1", "yes"],
        Date(): ["2026-02-30", "2026", "2026-01-01T"], Timestamp(): ["2026-01-01", "2026-01-01T00:00:00Z", "2026-01-01 00:00:00.0000001"],
        TimestampTz(): ["2026-01-01T00:00:00", "2026-01-01T25:00:00Z"], Bytes(): ["abc", "a===", "ä"],
    }  # fmt: skip
    for type_, texts in bad.items():
        found = read(session, CsvEncoding(("c", "t"), ",", (type_, Text())), [f"{text},x".encode() for text in texts])
        assert found == [Bad(f'its column "c" is not {print_type(type_)}')] * len(texts)
    good = [b"+1,a", b'"1","a"', b",", b'"",""']
    found = read(session, CsvEncoding(("c", "t"), ",", (Integer(), Text())), good)
    assert found == [
        {"c": 1, "t": "a"}, {"c": 1, "t": "a"}, {"c": None, "t": None}, Bad('its column "c" is not integer'),
    ]  # fmt: skip


# REGEX

PIECES = st.sampled_from(["(a)", "(b)?", "(a|b)", "(?:(a)|b)", "(a*)", ".", "b", "(?:a(b)?)+", "^", "$"])


def test_groups_are_those_of_java_with_null_for_what_took_no_part(session: SparkSession) -> None:
    patterns: set[str] = set()

    @given(st.lists(PIECES, min_size=1, max_size=4).map("".join))
    @settings(max_examples=60, deadline=None, database=None)
    def collect(pattern: str) -> None:
        patterns.add(pattern)

    collect()
    texts = ["", "a", "b", "ab", "ba", "aab", "bb", "xab"]
    known = sorted(p for p in patterns if re.compile(p).groups)
    data = F.col("text").cast("binary")
    sides = [RegexEncoding(read_pattern(p).java, tuple(f"c{n}" for n in range(re.compile(p).groups))) for p in known]
    columns = [side_reader(side, NO_WRITERS).decode(data).alias(f"p{n}") for n, side in enumerate(sides)]
    rows = session.createDataFrame([(text,) for text in texts], "text string").select("text", *columns)
    for row in rows.collect():  # all patterns in one job: each one costs seconds
        for number, pattern in enumerate(known):
            found = re.search(pattern, row.text)
            value = None if row[f"p{number}"] is None else tuple(row[f"p{number}"])
            assert value == (None if found is None else found.groups()), (pattern, row.text)


def test_what_is_only_javas_is_taken_by_java(session: SparkSession) -> None:
    java = read_pattern(r"(?<w>\p{L}++)\h(?<q>['x])\Q(\E(\d{2,})\k<q>[a-z&&[^b]]\z").java
    side = RegexEncoding(java, ("w", "q", "n"))
    assert read(session, side, ["ö x(123xa".encode(), b"o x(1xa", b"\xff"]) == [
        {"w": "ö", "q": "x", "n": "123"}, Bad("the pattern does not match it"), Bad("it is not valid UTF-8")
    ]  # fmt: skip


# registry formats

JSON = written(
    {"type": "object", "properties": {"n": {"type": "integer"}, "at": {"type": "string", "format": "time"}}},
    3,
)
PROTO = written('syntax = "proto3"; message M { int32 n = 1; map<string, string> m = 2; }', 4)


def test_values_reasons_and_frames_come_through_spark(session: SparkSession) -> None:
    writers = WriterSchemas({3: JSON}, frozenset((9,)))
    bodies = [
        framed(3, b'{"n": 1, "at": "01:02:03"}'),
        framed(3, b'{"n": "x"}'),
        framed(9, b"{}"),
        b"\x00\x00",
        b"\x01\x00\x00\x00\x03{}",
    ]
    found = read(session, SchemaEncoding(SchemaFormat.JSON, (JSON,)), bodies, writers)
    assert found[0]["n"] == 1
    assert str(found[0]["at"]) == "01:02:03"
    assert [value.reason for value in found[1:]] == [
        'what is at $.n is against "type" of its schema', "schema id 9 is not known to the registry",
        "it is too short for a registry's frame", "its first byte is not the 0 of a registry's frame",
    ]  # fmt: skip
    proto = read(
        session,
        SchemaEncoding(SchemaFormat.PROTOBUF, (PROTO,)),
        [framed(4, b"\x08\x05\x12\x06\x0a\x01a\x12\x01b", (0,))],
        WriterSchemas({4: PROTO}),
    )
    assert proto == [{"n": 5, "m": {"a": "b"}}]


def test_an_id_that_nobody_knows_yet_raises_so_that_it_is_learned(session: SparkSession) -> None:
    with pytest.raises(PySparkException, match=f"{UNKNOWN_ID}77"):
        read(session, SchemaEncoding(SchemaFormat.JSON, (JSON,)), [framed(77, b"{}")], WriterSchemas({3: JSON}))


def test_an_id_that_nobody_knows_yet_raises_also_where_bad_records_are_left_out(
    session: SparkSession,
) -> None:
    reader = side_reader(SchemaEncoding(SchemaFormat.JSON, (JSON,)), WriterSchemas({3: JSON}))
    raw = session.createDataFrame([(bytearray(framed(77, b"{}")),)], "data binary")
    barred = evaluate_once(raw.withColumn("inner", reader.decode(F.col("data"))))
    problem = F.when(
        ~reader.accepts(F.col("data"), F.col("inner")), F.struct(reader.error(F.col("data"), F.col("inner")))
    )
    with pytest.raises(PySparkException, match=f"{UNKNOWN_ID}77"):
        barred.where(problem.isNull()).count()


def test_records_of_ten_megabytes_come_through_and_long_lines_of_csv_do_not_overflow_a_stack() -> None:
    in_own_jvm(records_of_ten_megabytes, long_lines_of_csv)


def records_of_ten_megabytes(session: SparkSession) -> None:
    schema = written({"type": "object", "properties": {"f": {"type": "string"}}}, 3)
    bodies = [framed(3, json.dumps({"f": letter * 10_000_000}).encode()) for letter in "abc"]
    found = read(session, SchemaEncoding(SchemaFormat.JSON, (schema,)), bodies, WriterSchemas({3: schema}))
    assert [value["f"][:1] + str(len(value["f"])) for value in found] == [
        "a10000000",
        "b10000000",
        "c10000000",
    ]
