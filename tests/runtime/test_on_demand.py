"""Rows on demand on Spark: every form of every type, rows that do not fit, and look-ups by key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import DataFrame, SparkSession

from headgate.catalog.tasks import Ledger
from headgate.plan.definitions import StoredColumn
from headgate.plan.on_demand_messages import descriptors, row_file, shared_files
from headgate.plan.target_definitions import OnDemandDefinition, OnDemandRows, RowForm, TargetField, ValuePath
from headgate.runtime.formats.protobuf_files import linked
from headgate.runtime.on_demand import on_demand_frame
from headgate.runtime.views.store import ViewStore
from headgate.schema import types as t
from headgate.schema.formats.spark import to_spark

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def leaf(name: str, type_: t.Type, *, nullable: bool = True) -> TargetField:
    return TargetField(name, ValuePath(name), type_, type_, nullable)


INNER = t.Record((t.Field("a", t.Integer()), t.Field("b", t.Text())))
TYPES: dict[str, tuple[t.Type, str]] = {
    "yes": (t.Boolean(), "true"),
    "whole": (t.Bigint(), "9007199254740993"),
    "half": (t.Double(), "0.5D"),
    "word": (t.Text(), "'x \"y\" [1]'"),
    "data": (t.Bytes(), "X'00ff'"),
    "day": (t.Date(), "DATE'2026-11-18'"),
    "moment": (t.TimestampTz(), "TIMESTAMP'2026-11-18 10:00:00.25Z'"),
    "local": (t.Timestamp(), "TIMESTAMP_NTZ'2026-11-18 10:00:00'"),
    "money": (t.Decimal(10, 2), "CAST(1.10 AS DECIMAL(10,2))"),
    "doc": (t.Json(), "'{\"z\": 1.50}'"),
    "list": (t.Array(t.Bigint()), "array(1L, 2L)"),
    "map": (t.Map(t.Text()), "map('k', 'v')"),
    "rows": (t.Array(INNER), "array(named_struct('a', 1, 'b', 'c'))"),
    "record": (INNER, "named_struct('a', 1, 'b', CAST(NULL AS STRING))"),
    "nothing": (t.Text(), "CAST(NULL AS STRING)"),
}


def definition(names: Sequence[str], on_error: Any = "HALT") -> OnDemandDefinition:
    fields = tuple(leaf(name, TYPES[name][0]) for name in names)
    return OnDemandDefinition("m", 1, fields, (("whole", t.Bigint()),), on_error)


def call(names: Sequence[str], form: RowForm) -> OnDemandRows:
    made = definition(names)
    files = {
        "message": lambda: row_file(made, "M", None),
        "json": lambda: shared_files()[0],
        "flat": lambda: shared_files()[1],
    }
    of_form = descriptors(files[form]()) if form in files else b""
    return OnDemandRows(made, form, made.fields, descriptors=of_form)


def all_types(session: SparkSession) -> DataFrame:
    session.conf.set("spark.sql.session.timeZone", "UTC")
    listed = ", ".join(
        f"CAST({sql} AS {to_spark(type_).simpleString()}) AS {name}" for name, (type_, sql) in TYPES.items()
    )
    return session.sql(f"SELECT {listed}")


def decoded(asked: OnDemandRows, data: bytes) -> Any:
    file = linked(asked.descriptors)
    message: Any = GetMessageClass(next(iter(file.message_types_by_name.values())))
    return MessageToDict(message.FromString(data), preserving_proto_field_name=True)


def test_every_type_in_every_form(session: SparkSession) -> None:
    rows = all_types(session)
    found = {}
    for form in ("message", "json", "flat", "object"):
        asked = call(list(TYPES), form)
        (row,) = on_demand_frame(session, rows, asked).collect()
        assert row["problem"] is None
        found[form] = json.loads(row["row"]) if form == "object" else decoded(asked, bytes(row["row"]))

    message = found["message"]
    assert message["whole"] == "9007199254740993"
    assert message["day"] == {"year": 2026, "month": 11, "day": 18}
    assert message["moment"] == "2026-11-18T10:00:00.250Z"
    assert message["rows"] == [{"a": 1, "b": "c"}]
    assert message["record"] == {"a": 1}
    assert message["map"] == {"k": "v"}
    assert "nothing" not in message

    assert found["json"]["object_id"] == found["flat"]["object_id"] == "9007199254740993"
    texts = found["json"]["fields"]
    assert {name: json.loads(text) for name, text in texts.items()} == found["object"]
    assert texts["doc"] == '{"z": 1.50}'
    assert found["object"]["money"] == "1.10"

    flat = found["flat"]["fields"]
    assert flat["yes"] == {"value": "true", "type": "bool"}
    assert flat["whole"] == {"value": "9007199254740993", "type": "i64"}
    assert flat["half"] == {"value": "0.5", "type": "f64"}
    assert flat["word"] == {"value": 'x "y" [1]', "type": "string"}
    assert flat["data"] == {"value": "AP8=", "type": "bytes"}
    assert flat["day"] == {"value": "2026-11-18", "type": "date"}
    assert flat["money"] == {"value": "1.10", "type": "decimal(10,2)"}
    assert flat["list"]["value"] == "[1,2]"
    assert flat["record.a"] == {"value": "1", "type": "i32"}
    assert flat["nothing"] == {"type": "string"}


def test_a_value_that_a_form_cannot_hold_is_a_problem_of_that_form_alone(session: SparkSession) -> None:
    rows = session.sql("SELECT 1L AS whole, array(1L, NULL) AS list")
    problems = {}
    for form in ("message", "object"):
        (row,) = on_demand_frame(session, rows, call(["whole", "list"], form)).collect()
        assert (row["row"] is None) is (row["problem"] is not None)
        problems[form] = row["problem"]
    assert problems["object"] is None
    assert problems["message"]["path"] == "$.list[]"


def test_a_key_is_looked_up_by_the_statistics_of_files(session: SparkSession, tmp_path: Path) -> None:
    """Both tables of a stored view are asked with the condition, so that Delta leaves out files that cannot have the key."""
    store = ViewStore(str(tmp_path), (StoredColumn("whole", "BIGINT"), StoredColumn("word", "STRING")), 7)
    store.create(session)
    for number, first in ((1, 0), (2, 1000)):
        made = session.sql(f"SELECT id AS whole, 'w' AS word, 1 AS `hg:weight` FROM range({first}, {first + 1000})")
        store.append(store.written(made, number), Ledger(7, 1, number, 1, {}, "d"), "fence")
        if number == 1:
            pinned = store.pin(session)
            assert pinned is not None
            store.compact(session, pinned)
    pinned = store.pin(session)
    assert pinned is not None
    asked = replace(call(["whole", "word"], "object"), key=("1500",))
    found = on_demand_frame(session, store.shown(session, pinned), asked)
    assert [json.loads(row["row"]) for row in found.collect()] == [{"whole": 1500, "word": "w"}]
    plan = _plan(session, found)
    scans = [line for line in plan.splitlines() if "PushedFilters" in line]
    assert len(scans) == 2
    assert all("EqualTo(whole,1500)" in line for line in scans)


def _plan(session: SparkSession, frame: DataFrame) -> str:
    frame.createOrReplaceTempView("asked")
    (row,) = session.sql("EXPLAIN FORMATTED SELECT * FROM asked").collect()
    return str(row[0])
