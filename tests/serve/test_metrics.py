"""Prometheus' text format, read by hand."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from headgate.catalog.tasks import State, TaskStatus
from headgate.serve.metrics import metrics
from headgate.sql.statement import Kind
from tests.catalog.building import NOW, Building

pytestmark = pytest.mark.unit

LATER = NOW + timedelta(seconds=30)
SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (\S+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"')


@dataclass
class Family:
    kind: str
    samples: list[tuple[dict[str, str], float]] = field(default_factory=list)


def parse(text: str) -> dict[str, Family]:
    """The families of a page; anything that the format does not allow fails."""
    assert text.endswith("\n")
    families: dict[str, Family] = {}
    helped: set[str] = set()
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            helped.add(line.split(" ", 3)[2])
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind in ("counter", "gauge", "summary")
            assert kind != "counter" or name.endswith("_total")
            assert name not in families, "a family may not come twice"
            families[name] = Family(kind)
        else:
            found = SAMPLE.match(line)
            assert found is not None, line
            labels = {name: _unescaped(value) for name, value in LABEL.findall(found[2])}
            name = found[1] if found[1] in families else found[1].rpartition("_")[0]
            if name != found[1]:
                assert families[name].kind == "summary"
                labels["part"] = found[1].rpartition("_")[2]
            families[name].samples.append((labels, float(found[3])))
    assert helped == set(families)
    return families


def _unescaped(value: str) -> str:
    return re.sub(r'\\(["\\n])', lambda m: "\n" if m[1] == "n" else m[1], value)


def status(task: int, state: State = State.RUNNING) -> TaskStatus:
    return TaskStatus(task, state, NOW, None, 3, 120, 2, 7, 4, 1.5, LATER, 1, stored_bytes=4096)


def test_every_task_has_a_sample_in_every_family() -> None:
    building = Building()
    first = building.add(Kind.SINK, "first")
    second = building.add(Kind.SINK, "second")
    families = parse(metrics(building.catalog, [status(first), status(second, State.HALTED)]))
    values = {name: [value for _, value in f.samples] for name, f in families.items()}
    assert len(values.pop("headgate_task_state")) == 2 * len(State)
    assert values == {
        "headgate_task_up": [1, 0],
        "headgate_task_state_since_timestamp_seconds": [NOW.timestamp()] * 2,
        "headgate_task_lag_records": [7, 7],
        "headgate_task_stored_bytes": [4096, 4096],
        "headgate_task_rows_total": [120, 120],
        "headgate_task_skipped_records_total": [2, 2],
        "headgate_task_errors_total": [1, 1],
        "headgate_task_batch_seconds": [1.5, 4, 1.5, 4],
        "headgate_task_last_commit_timestamp_seconds": [LATER.timestamp()] * 2,
    }
    assert [labels for labels, _ in families["headgate_task_up"].samples] == [
        {"task": "first", "kind": "sink"},
        {"task": "second", "kind": "sink"},
    ]


def test_a_task_is_in_one_state() -> None:
    building = Building()
    task = building.add(Kind.SINK, "s")
    samples = parse(metrics(building.catalog, [status(task, State.HALTED)]))["headgate_task_state"].samples
    assert {labels["state"]: value for labels, value in samples} == {
        state.value: int(state is State.HALTED) for state in State
    }


def test_the_time_of_batches_is_a_sum_and_a_count() -> None:
    building = Building()
    task = building.add(Kind.SINK, "s")
    family = parse(metrics(building.catalog, [status(task)]))["headgate_task_batch_seconds"]
    assert family.kind == "summary"
    assert [(labels["part"], value) for labels, value in family.samples] == [("sum", 1.5), ("count", 4)]


def test_an_unknown_value_has_no_sample() -> None:
    building = Building()
    task = building.add(Kind.SINK, "s")
    families = parse(metrics(building.catalog, [TaskStatus(task, State.STARTING, NOW)]))
    assert families["headgate_task_lag_records"].samples == []
    assert families["headgate_task_last_commit_timestamp_seconds"].samples == []
    assert [value for _, value in families["headgate_task_up"].samples] == [0]


def test_a_task_that_was_dropped_is_not_shown() -> None:
    assert "task=" not in metrics(Building().catalog, [status(99)])


@pytest.mark.parametrize("name", ['with "quotes"', "back\\slash", "größe"])
def test_any_name_makes_a_valid_label(name: str) -> None:
    building = Building()
    task = building.add(Kind.SINK, name)
    families = parse(metrics(building.catalog, [status(task)]))
    ((labels, _),) = families["headgate_task_up"].samples
    assert labels["task"] == building.catalog.display_name(task)
