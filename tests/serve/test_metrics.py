"""Prometheus' text format, read by hand."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

from headgate.catalog.objects import Kind
from headgate.catalog.tasks import State, TaskStatus
from headgate.serve.metrics import metrics
from tests.catalog.building import NOW, Building

pytestmark = pytest.mark.unit

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
            assert kind in ("counter", "gauge")
            assert name not in families, "a family may not come twice"
            families[name] = Family(kind)
        else:
            found = SAMPLE.match(line)
            assert found is not None, line
            labels = {name: _unescaped(value) for name, value in LABEL.findall(found[2])}
            families[found[1]].samples.append((labels, float(found[3])))
    assert helped == set(families)
    return families


def _unescaped(value: str) -> str:
    return re.sub(r'\\(["\\n])', lambda m: "\n" if m[1] == "n" else m[1], value)


def status(task: int, state: State = State.RUNNING) -> TaskStatus:
    return TaskStatus(task, state, NOW, None, 3, 120, 2, 7)


def test_every_task_has_a_sample_in_every_family() -> None:
    building = Building()
    first = building.add(Kind.SINK, "first")
    second = building.add(Kind.SINK, "second")
    families = parse(metrics(building.catalog, [status(first), status(second, State.HALTED)]))
    values = {name: [value for _, value in f.samples] for name, f in families.items()}
    assert values == {
        "headgate_task_up": [1, 0],
        "headgate_task_lag": [7, 7],
        "headgate_task_rows_total": [120, 120],
        "headgate_task_skipped_total": [2, 2],
        "headgate_task_batch": [3, 3],
        "headgate_task_since_seconds": [NOW.timestamp(), NOW.timestamp()],
    }
    assert [labels for labels, _ in families["headgate_task_up"].samples] == [
        {"task": "first", "kind": "sink"},
        {"task": "second", "kind": "sink"},
    ]


def test_totals_are_counters_and_the_rest_gauges() -> None:
    families = parse(metrics(Building().catalog, []))
    assert {name for name, f in families.items() if f.kind == "counter"} == {
        "headgate_task_rows_total",
        "headgate_task_skipped_total",
    }


def test_what_is_not_known_yet_has_no_sample() -> None:
    building = Building()
    task = building.add(Kind.SINK, "s")
    families = parse(metrics(building.catalog, [TaskStatus(task, State.STARTING, NOW)]))
    assert families["headgate_task_lag"].samples == []
    assert families["headgate_task_batch"].samples == []
    assert [value for _, value in families["headgate_task_up"].samples] == [0]


def test_a_task_that_was_dropped_is_not_shown() -> None:
    assert "task=" not in metrics(Building().catalog, [status(99)])


@pytest.mark.parametrize("name", ['with "quotes"', "back\\slash", "größe"])
def test_any_name_makes_a_valid_label(name: str) -> None:
    building = Building()
    task = building.add(Kind.SINK, name)
    families = parse(metrics(building.catalog, [status(task)]))
    ((labels, _),) = families["headgate_task_up"].samples
    assert labels["task"] == building.catalog.shown(task)
