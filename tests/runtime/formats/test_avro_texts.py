"""Texts in Avro values that must be JSON or uuids, beside Python's own judgement of them."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headgate.runtime.formats.avro_reader import text_error
from headgate.schema.types import Array, Field, Json, Map, Record, Text, Type, Uuid

pytestmark = pytest.mark.spark

GOOD = ["null", '"x"', "[1.10]", '{"a": {"b": []}}', " 1 ", "-0", "1e400", "123456789012345678901234567890"]
BAD = [
    "", "{no json", "1 2", "1,2", "1],[2", "1,0],[2", "{} {}", "NaN", "{'a': 1}", '{"a": 1, "a": 2}', "01", "[1,]", '"a\tb"',
]  # fmt: skip
ID = "16fd95b0-65b7-4249-9b66-1547cd95923d"


def reasons(session: SparkSession, type_: Type, ddl: str, values: list[object]) -> list[str | None]:
    wrong = text_error(F.col("v"), type_)
    assert wrong is not None
    rows = session.createDataFrame([(v,) for v in values], f"v {ddl}").select(wrong.alias("why")).collect()
    return [row["why"] for row in rows]


def test_json_texts_are_told_from_others(session: SparkSession) -> None:
    for text in GOOD:
        json.loads(text)
    assert reasons(session, Json(), "string", [None, *GOOD]) == [None] * (1 + len(GOOD))
    assert reasons(session, Json(), "string", list(BAD)) == ["what is at $ is not JSON"] * len(BAD)


def test_uuids_have_their_form(session: SparkSession) -> None:
    told = reasons(
        session, Uuid(), "string", [None, ID, ID.upper(), ID[:-1], f"{ID}0", f"x{ID[1:]}", f"{ID}\n", ""]
    )
    assert told == [None] * 3 + ["what is at $ is not a uuid"] * 5


def test_a_text_is_found_wherever_it_lies(session: SparkSession) -> None:
    type_ = Record(
        (Field("a", Text()), Field("l", Array(Json())), Field("m", Map(Record((Field("u", Uuid()),)))))
    )
    ddl = "struct<a string, l array<string>, m map<string, struct<u string>>>"
    values: list[object] = [
        ("x", ["1", None], {"k": (ID,)}),
        ("x", ["1", "{"], None),
        ("x", None, {"k": (ID,), "n": ("x",)}),
        None,
    ]
    assert reasons(session, type_, ddl, values) == [
        None, "what is at $.l[] is not JSON", "what is at $.m{}.u is not a uuid", None,
    ]  # fmt: skip


def test_types_without_such_texts_need_no_look(session: SparkSession) -> None:
    assert session.version
    assert text_error(F.col("v"), Record((Field("a", Array(Text())),))) is None
