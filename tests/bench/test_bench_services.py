"""The benchmarks that start services run too, once each and small.

`HEADGATE_APICURIO=full` compares as many schemas with Apicurio as the benchmark does.
"""

from __future__ import annotations

import os

import pytest

from bench.__main__ import BENCHMARKS
from bench.figures import Size

pytestmark = pytest.mark.e2e

APICURIO: Size = "full" if os.environ.get("HEADGATE_APICURIO") == "full" else "small"


def test_the_world_is_measured_beside_a_broker_started_by_hand() -> None:
    report = BENCHMARKS["world"]("small")
    first = report.rows[0]
    assert "by hand" in first.peer
    assert first.ratio is not None
    assert first.ratio > 0
    assert [row.what.split(",")[0] for row in report.rows] == ["Kafka", "registry"]


@pytest.mark.soak
def test_every_disagreement_with_apicurio_is_explained() -> None:
    report = BENCHMARKS["registry"](APICURIO)
    assert [row.kept for row in report.rows] == [True, True]
    assert all(row.ratio is not None and row.ratio > 0.3 for row in report.rows)
    assert any("it refuses" in note for note in report.notes)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_tables_indexes_and_rows_on_demand_are_measured_beside_their_peers() -> None:
    report = BENCHMARKS["materializations"]("small")
    assert [row.promised for row in report.rows].count("–") == 1
    assert all(row.ratio is not None and row.ratio > 0 for row in report.rows)
