"""What the engine's tasks do, in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headgate.catalog.snapshot import Catalog
from headgate.catalog.tasks import TaskStatus

_GAUGES = {
    "headgate_task_up": "1 while the task runs",
    "headgate_task_lag": "records that the task has not read yet",
    "headgate_task_rows_total": "records that the task has read since it started",
    "headgate_task_skipped_total": "records that the task could not decode and left out",
    "headgate_task_batch": "number of the last batch",
    "headgate_task_since_seconds": "when the task came into its present state",
}


def metrics(catalog: Catalog, statuses: Sequence[TaskStatus]) -> str:
    known = [s for s in statuses if s.task in catalog.objects]
    lines: list[str] = []
    for name, help_ in _GAUGES.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# HELP {name} {help_}", f"# TYPE {name} {kind}"]
        lines += _samples(name, catalog, known)
    return "\n".join(lines) + "\n"


def _samples(name: str, catalog: Catalog, statuses: Iterable[TaskStatus]) -> list[str]:
    samples = []
    for status in statuses:
        value = _value(name, status)
        if value is not None:
            label = catalog.shown(status.task).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            kind = catalog.get(status.task).kind.value
            samples.append(f'{name}{{task="{label}",kind="{kind}"}} {value}')
    return samples


def _value(name: str, status: TaskStatus) -> float | int | None:
    match name:
        case "headgate_task_up":
            return int(status.state == "running")
        case "headgate_task_lag":
            return status.lag
        case "headgate_task_rows_total":
            return status.rows
        case "headgate_task_skipped_total":
            return status.skipped
        case "headgate_task_batch":
            return status.batch
        case _:
            return status.since.timestamp()
