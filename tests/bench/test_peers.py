"""What `make bench-peers` makes of its figures and sends to the peers. The peers themselves run in the benchmark only: they are
500 MB of downloads."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.by_hand import DEAR
from bench.peers import connect, downloads, flink, tables, topics
from bench.peers.__main__ import COMPARISONS, main
from bench.peers.children import PeerFailed
from bench.peers.watching import counted, watch
from bench.pipeline import Course, Point
from bench.sinks import COMMENTS
from headgate.registry.client import RegisteredSchema
from headgate.registry.schemas import Schema

pytestmark = pytest.mark.unit

ADDRESS = tables.Address("jdbc:postgresql://127.0.0.1:5432/db", "me", "it's secret")


def course(rate: float, cost: float) -> Course:
    return Course([Point(100, 10.0, 1.0), Point(1_000_100, 10.0 + 1e6 / rate, 1.0 + cost)])


def test_a_rate_counts_from_the_first_look_with_a_tenth_of_the_rows() -> None:
    points = [Point(50, 1.0, 0.1), Point(200, 2.0, 0.5), Point(600, 3.0, 0.7), Point(1000, 6.0, 2.5)]
    found = counted("a side", points, 1000)
    assert found.points == points[1:]
    assert found.rate == (1000 - 200) / (6.0 - 2.0)
    assert found.cost == (2.5 - 0.5) / 800 * 1e6


def test_a_side_that_wrote_too_much_or_everything_at_once_has_no_rate() -> None:
    with pytest.raises(PeerFailed, match="1,001 rows instead of 1,000"):
        counted("a side", [Point(500, 1.0, 0.1), Point(1001, 2.0, 0.2)], 1000)
    with pytest.raises(PeerFailed, match="at once"):
        counted("a side", [Point(99, 1.0, 0.1), Point(1000, 2.0, 0.2)], 1000)


def test_watching_ends_when_all_rows_are_there_and_ignores_a_process_that_has_ended() -> None:
    seen = iter((0, 0, 3, 3, 7, 10))
    found = watch("a side", 10, lambda: next(seen), (2**22,), lambda: True)
    assert [(point.rows, point.cpu) for point in found.points] == [(3, 0.0), (7, 0.0), (10, 0.0)]


def test_a_side_that_writes_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.peers.watching.STALLED", 0.0)
    with pytest.raises(PeerFailed, match="0 of 10 rows"):
        watch("a side", 10, lambda: 0, (), lambda: True)


def test_a_side_that_ends_before_its_last_row_fails() -> None:
    with pytest.raises(PeerFailed, match="ended with 4 of 10 rows"):
        watch("a side", 10, lambda: 4, (), lambda: False)


def test_promises_are_judged_by_the_best_runs_of_both_sides() -> None:
    runs = {
        "headgate": [course(400, 4.0), course(500, 5.0)],
        "flink_equal": [course(450, 4.2), course(300, 9.0)],
        "flink_defaults": [course(300, 5.0)],
    }
    found = [(round(row.ratio or 0, 3), row.kept) for row in topics.rows(runs)]
    assert found == [(1.111, True), (1.667, True), (1.05, False), (1.25, True)]


def test_every_sink_of_a_table_is_judged() -> None:
    runs = {side: [course(100, 10.0)] for side in tables.SIDES} | {"headgate": [course(250, 5.0)]}
    found = list(tables.rows(runs))
    assert [row.kept for row in found] == [True, None] * 4
    assert {row.ratio for row in found} == {2.5, 2.0}


@pytest.mark.parametrize("records", [0, 99, 100, 101, 1000, 1099, 1101, 12_345])
def test_the_expected_rows_are_those_that_the_query_lets_pass(records: int) -> None:
    assert topics.expected_rows(records) == sum(n % 1000 >= 100 for n in range(records))


def test_flink_has_the_client_settings_of_headgate_or_none() -> None:
    equal = topics.flink_script("b:1", "http://r", "out", equal=True)
    assert "'properties.max.poll.records' = '5000'" in equal
    assert "'properties.linger.ms' = '20'" in equal
    defaults = topics.flink_script("b:1", "http://r", "out", equal=False)
    assert set(re.findall(r"'properties\.([\w.]+)'", defaults)) == {"bootstrap.servers"}


def test_both_sides_write_the_same_docs() -> None:
    schema = topics.documented(DEAR)
    topics.check_docs("out", RegisteredSchema("out-value", 1, 1, Schema(schema)))
    assert all(doc in COMMENTS for doc in topics.DOCS.values())
    with pytest.raises(PeerFailed, match="other docs"):
        topics.check_docs("out", RegisteredSchema("out-value", 1, 1, Schema(DEAR)))


def test_the_settings_of_connect_are_read_back_as_they_are() -> None:
    assert connect.properties({"a": "1", "b": 'x"\\y'}) == 'a=1\nb=x"\\\\y\n'


def test_all_sides_have_the_same_twelve_columns() -> None:
    (document,) = tables.flat_documents(1)
    assert tuple(document) == tables.NAMES
    assert tuple(field["field"] for field in tables.SCHEMA["fields"]) == tables.NAMES
    assert tuple(re.findall(r"(?:^|, |\n  )`?(\w+)`? [A-Z{]", tables.COLUMNS)) == tables.NAMES
    assert all(isinstance(value, str | int | float | None) for value in document.values())


def test_larger_batches_are_asked_for_where_they_are_wanted_only() -> None:
    plain = tables.debezium_settings(ADDRESS, "t", larger=False)
    larger = tables.debezium_settings(ADDRESS, "t", larger=True)
    assert "batch.size" not in plain
    assert larger["batch.size"] == larger["consumer.override.max.poll.records"] == "5000"
    assert "sink.buffer-flush" not in tables.flink_script("b:1", ADDRESS, "t", larger=False)
    assert "'sink.buffer-flush.max-rows' = '5000'" in tables.flink_script("b:1", ADDRESS, "t", larger=True)


def test_a_quote_in_an_option_of_flink_is_doubled() -> None:
    assert "'password' = 'it''s secret'" in tables.flink_script("b:1", ADDRESS, "t", larger=False)
    assert flink.quoted("a") == "'a'"


def test_an_address_of_postgres_becomes_one_of_jdbc() -> None:
    found = tables.Address.of("postgresql://me:secret@127.0.0.1:5432/db")
    assert found == tables.Address("jdbc:postgresql://127.0.0.1:5432/db", "me", "secret")


def test_all_that_is_downloaded_has_a_hash_and_no_address() -> None:
    jars = [jar for name in ("flink", "debezium", "connect") for jar in downloads.jar_set(name)]
    assert len(jars) > 60
    packages = downloads.PACKAGES.read_text("utf-8")
    assert len(re.findall(r"^[\w-]+==\S+ --hash=sha256:[0-9a-f]{64}$", packages, re.M)) == 1
    for file in Path(downloads.__file__).parent.glob("*.lock"):
        assert "://" not in file.read_text("utf-8")


def test_the_command_knows_its_comparisons() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert "Flink SQL" in result.output
    assert all(name in result.output for name in COMPARISONS)


def test_the_schema_of_connect_is_one_line_of_json() -> None:
    line = connect.properties({"schema": json.dumps(tables.SCHEMA)})
    assert line.count("\n") == 1
    assert json.loads(line.partition("=")[2]) == tables.SCHEMA
