"""Logs of records -> the state that they leave, beside a dictionary that is told the same."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.plan.source import SourcePlan
from headgate.runtime.decode import NO_AFTER, NO_KEY, NO_KEY_IN_VALUE, UNDECODABLE, UNKNOWN_OP, Decoder
from headgate.runtime.formats.side import NOT_UTF8, WriterSchemas
from headgate.runtime.source import latest_per_key
from headgate.schema.encodings import SchemaEncoding
from headgate.schema.written import SchemaFormat
from tests.plan.planning import Planning
from tests.runtime.formats.decoding import framed

pytestmark = pytest.mark.spark

AT = "FROM KAFKA CONNECTION kafka (TOPIC 't')"
RAW = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"
INLINE = "VALUE DECODING ERRORS = INLINE"


class Told(NamedTuple):
    """A record of a log: its partition, its time in seconds, its key and its value."""

    partition: int
    seconds: int
    key: bytes | None
    value: bytes | None


def planned(text: str) -> SourcePlan:
    world = Planning()
    world.topic("t")
    return world.source(f"{AT} {text}")


def raw(session: SparkSession, log: Sequence[Told]) -> DataFrame:
    rows, ends = [], [0, 0]
    for told in log:
        at = datetime.fromtimestamp(told.seconds, UTC)
        rows.append((told.key, told.value, "t", told.partition, ends[told.partition], at))
        ends[told.partition] += 1
    return session.createDataFrame(rows, RAW)


def decoder(plan: SourcePlan) -> Decoder:
    def writers(side: Any) -> WriterSchemas:
        schemas = side.schemas if isinstance(side, SchemaEncoding) else ()
        return WriterSchemas({schema.id or 0: schema for schema in schemas})

    return Decoder(plan, writers(plan.key), writers(plan.value))


def state(session: SparkSession, plan: SourcePlan, log: Sequence[Told]) -> list[dict[str, Any]]:
    """The rows that are left of a log."""
    made = decoder(plan)
    last = latest_per_key(made.accepted(made.decode(raw(session, log))), plan)
    return [row.asDict(recursive=True) for row in made.columns(made.not_deleted(last)).collect()]


def problems(session: SparkSession, plan: SourcePlan, log: Sequence[Told]) -> list[tuple[str, str]]:
    made = decoder(plan)
    problems = made.with_problems(made.decode(raw(session, log))).where("hg_problem IS NOT NULL")
    found = problems.orderBy("offset").collect()
    return [(row.hg_problem.side, row.hg_problem.reason) for row in found]


# upsert


@pytest.mark.parametrize("seed", range(3))
def test_the_last_offset_of_a_partition_wins_and_between_partitions_the_time(session: SparkSession, seed: int) -> None:
    chance = random.Random(seed)
    log = [
        Told(
            chance.randrange(2),
            chance.randrange(10_000),
            b"k%d" % chance.randrange(12),
            chance.choice([None, b"v%d" % number]),
        )
        for number in range(120)
    ]
    lasts: dict[tuple[bytes | None, int], Told] = {(told.key, told.partition): told for told in log}
    wanted = {}
    for key in {told.key for told in log}:
        there = [told for (of, _), told in lasts.items() if of == key]
        last = max(there, key=lambda told: (told.seconds, told.partition))
        if last.value is not None:
            wanted[key] = last.value
    found = state(session, planned("FORMAT BYTES ENVELOPE UPSERT"), log)
    assert {bytes(row["key"]): bytes(row["data"]) for row in found} == wanted
    assert len(found) == len(wanted)


def test_a_record_without_its_key_is_a_problem_and_one_without_anything_is_none(
    session: SparkSession,
) -> None:
    log = [Told(0, 0, None, b"x"), Told(0, 0, None, None), Told(0, 0, b"k", None), Told(0, 0, b"k", b"x,y")]
    assert problems(session, planned("FORMAT TEXT ENVELOPE UPSERT"), log) == [("key", NO_KEY)]
    in_value = planned("FORMAT CSV WITH HEADER (a, b) ENVELOPE UPSERT (KEY (a))")
    assert problems(session, in_value, log)[1:] == [("value", NO_KEY_IN_VALUE)]


# errors of values as a column


def test_a_value_that_cannot_be_decoded_is_a_row_until_the_next_record_of_its_key(
    session: SparkSession,
) -> None:
    plan = planned(f"FORMAT TEXT ENVELOPE UPSERT ({INLINE})")
    log = [Told(0, 0, b"good", b"x"), Told(0, 0, b"bad", b"\xc3("), Told(0, 0, b"gone", b"\xff")]
    log += [Told(0, 0, b"gone", None), Told(0, 0, b"cleared", b"\xff"), Told(0, 0, b"cleared", b"y")]
    found = {row["key"]: (row["error"], row["text"]) for row in state(session, plan, log)}
    assert found == {
        "good": (None, "x"),
        "bad": ({"description": UNDECODABLE + NOT_UTF8}, None),
        "cleared": (None, "y"),
    }
    assert problems(session, plan, [*log, Told(0, 0, b"\xff", b"x")]) == [("key", NOT_UTF8)]


def test_what_was_read_of_a_value_that_does_not_fit_is_not_shown(session: SparkSession) -> None:
    plan = planned(f"KEY FORMAT TEXT VALUE FORMAT CSV WITH HEADER (a, b) ENVELOPE UPSERT ({INLINE})")
    (row,) = state(session, plan, [Told(0, 0, b"k", b"x,y,z")])
    assert (row["a"], row["b"]) == (None, None)
    assert row["error"] == {"description": f"{UNDECODABLE}it has 3 columns, not 2"}


# Debezium


def debezium() -> SourcePlan:
    row = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "n": {"type": "integer"}},
        "required": ["id", "n"],
    }
    optional = {"oneOf": [{"type": "null"}, row]}
    event = {
        "type": "object",
        "properties": {"before": optional, "after": optional, "op": {"type": "string"}},
        "required": ["op"],
    }
    key = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    world = Planning()
    world.topic("t")
    world.outside.add_subject("t-key", key, SchemaFormat.JSON)
    world.outside.add_subject("t-value", event, SchemaFormat.JSON)
    registry = "USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
    return world.source(f"{AT} FORMAT JSON SCHEMA {registry} ENVELOPE DEBEZIUM")


def change(op: str, id_: int, n: int | None = None) -> Told:
    after = None if n is None else {"id": id_, "n": n}
    event = json.dumps({"before": None, "after": after, "op": op}).encode()
    return Told(0, 0, framed(1, json.dumps({"id": id_}).encode()), framed(2, event))


def test_change_events_leave_the_table_that_they_tell_of(session: SparkSession) -> None:
    chance = random.Random(1)
    log: list[Told] = []
    table: dict[int, int] = {}
    for number in range(80):
        id_ = chance.randrange(9)
        if id_ in table and chance.random() < 0.4:
            del table[id_]
            log.append(change("d", id_))
            log += [Told(0, 0, log[-1].key, None)] * chance.randrange(2)
        else:
            log.append(change("u" if id_ in table else chance.choice("cr"), id_, number))
            table[id_] = number
    found = state(session, debezium(), log)
    assert sorted((row["id"], row["n"]) for row in found) == sorted(table.items())


def test_an_event_that_is_no_change_of_a_row_is_a_problem(session: SparkSession) -> None:
    log = [change("c", 1, 1), change("x", 1, 2), change("u", 1), change("d", 1), change("", 1, 2)]
    log.append(log[0]._replace(key=None))
    assert problems(session, debezium(), log) == [
        ("value", UNKNOWN_OP),
        ("value", NO_AFTER),
        ("value", UNKNOWN_OP),
        ("key", NO_KEY),
    ]
