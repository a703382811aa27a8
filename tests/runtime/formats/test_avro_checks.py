"""Texts in Avro bodies that are not what their schema says: JSON and uuids."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession, functions as F

from headgate.runtime.formats.avro_types import value_error
from headgate.schema.formats.avro.read import load_tree, read_tree
from tests.plan.planning import record

pytestmark = pytest.mark.spark

GOOD = ["null", '"x"', "[1.10]", '{"a": {"b": []}}', " 1 ", "-0", "1e400", "123456789012345678901234567890"]
BAD = [
    "", "{no json", "1 2", "1,2", "1],[2", "1,0],[2", "{} {}", "NaN", "{'a': 1}", '{"a": 1, "a": 2}', "01", "[1,]", '"a\tb"',
]  # fmt: skip
JSON = {"type": "string", "connect.name": "io.debezium.data.Json"}
UUID = {"type": "string", "logicalType": "uuid"}
UUID_BYTES = {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"}
ID = "16fd95b0-65b7-4249-9b66-1547cd95923d"


def reasons(session: SparkSession, schema: object, ddl: str, values: list[object]) -> list[str | None]:
    tree = load_tree(schema)
    wrong = value_error(F.col("v"), tree, read_tree(tree))
    assert wrong is not None
    rows = session.createDataFrame([(v,) for v in values], f"v {ddl}").select(wrong.alias("why")).collect()
    return [row["why"] for row in rows]


def test_json_texts_are_told_from_others(session: SparkSession) -> None:
    for text in GOOD:
        json.loads(text)
    assert reasons(session, JSON, "string", [None, *GOOD]) == [None] * (1 + len(GOOD))
    assert reasons(session, JSON, "string", list(BAD)) == ["what is at $ is not JSON"] * len(BAD)


def test_uuids_have_their_form(session: SparkSession) -> None:
    told = reasons(session, UUID, "string", [None, ID, ID.upper(), ID[:-1], f"{ID}0", f"x{ID[1:]}", f"{ID}\n", ""])
    assert told == [None] * 3 + ["what is at $ is not a uuid"] * 5


def test_a_text_is_found_wherever_it_lies(session: SparkSession) -> None:
    lists, maps = {"type": "array", "items": ["null", JSON]}, {"type": "map", "values": record("in", ("u", UUID))}
    schema = record("r", ("a", "string"), ("l", lists), ("m", maps))
    ddl = "struct<a string, l array<string>, m map<string, struct<u string>>>"
    values: list[object] = [
        ("x", ["1", None], {"k": (ID,)}),
        ("x", ["1", "{"], None),
        ("x", None, {"k": (ID,), "n": ("x",)}),
        None,
    ]
    assert reasons(session, schema, ddl, values) == [
        None, "what is at $.l[] is not JSON", "what is at $.m{}.u is not a uuid", None,
    ]  # fmt: skip


def test_types_without_such_texts_need_no_look(session: SparkSession) -> None:
    assert session.version
    tree = load_tree(record("r", ("a", {"type": "array", "items": "string"}), ("b", UUID_BYTES)))
    assert value_error(F.col("v"), tree, read_tree(tree)) is None
