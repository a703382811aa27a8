"""Metrics of the engine's tasks in Prometheus' text format.

Every sample has the labels ``task`` and ``kind``. A value that is not known yet has no sample. Counters start at 0 when the
engine starts and when a task is changed; Prometheus handles such resets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from headgate.catalog.catalog import Catalog
from headgate.catalog.tasks import State, TaskStatus

CONTENT_TYPE = "text/plain; version=0.0.4"

Sample = tuple[str, str, float | int | None]  # suffix of the name, further labels, value
Samples = Callable[[TaskStatus], Iterator[Sample]]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: its name, type and help text, and how its samples are read from the status of a task."""

    name: str
    type: str
    help: str
    samples: Samples


def _single(value: Callable[[TaskStatus], float | int | None]) -> Samples:
    def samples(status: TaskStatus) -> Iterator[Sample]:
        yield "", "", value(status)

    return samples


def _states(status: TaskStatus) -> Iterator[Sample]:
    for state in State:
        yield "", f',state="{state.value}"', int(status.state is state)


def _batches(status: TaskStatus) -> Iterator[Sample]:
    yield "_sum", "", status.batch_seconds
    yield "_count", "", status.batches


FAMILIES = (
    Family("headgate_task_up", "gauge", "1 while the task runs.", _single(lambda s: int(s.state is State.RUNNING))),
    Family("headgate_task_state", "gauge", "1 for the state that the task is in, 0 for the others.", _states),
    Family(
        "headgate_task_state_since_timestamp_seconds", "gauge", "When the task came into its state.",
        _single(lambda s: s.since.timestamp()),
    ),
    Family(
        "headgate_task_lag_records", "gauge", "Records of its input that the task had not processed after its last batch.",
        _single(lambda s: s.lag),
    ),
    Family(
        "headgate_task_stored_bytes", "gauge", "Files of the rows that the task keeps for a materialized view.",
        _single(lambda s: s.stored_bytes),
    ),
    Family("headgate_task_rows_total", "counter", "Records that the task has read.", _single(lambda s: s.rows)),
    Family(
        "headgate_task_skipped_records_total", "counter",
        "Records that could not be decoded and were left out or put into the quarantine.", _single(lambda s: s.skipped),
    ),
    Family(
        "headgate_task_errors_total", "counter", "Failures that halted or restarted the task.", _single(lambda s: s.failures)
    ),
    Family("headgate_task_batch_seconds", "summary", "Time that batches took from intent to ledger.", _batches),
    Family(
        "headgate_task_last_commit_timestamp_seconds", "gauge", "When the task's last batch was done.",
        _single(lambda s: None if s.last_commit is None else s.last_commit.timestamp()),
    ),
)  # fmt: skip


def metrics(catalog: Catalog, statuses: Sequence[TaskStatus]) -> str:
    """The whole text. Tasks that the catalog no longer has are left out."""
    known = [(s, _labels(catalog, s.task)) for s in statuses if s.task in catalog.objects]
    lines: list[str] = []
    for family in FAMILIES:
        lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.type}"]
        for status, labels in known:
            for suffix, more, value in family.samples(status):
                if value is not None:
                    lines.append(f"{family.name}{suffix}{{{labels}{more}}} {value}")
    return "\n".join(lines) + "\n"


def _labels(catalog: Catalog, task: int) -> str:
    name = catalog.display_name(task).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'task="{name}",kind="{catalog.get(task).kind.value}"'
