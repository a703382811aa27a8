"""Scripts for an engine that runs as a process."""

from __future__ import annotations

from headgate.serve.client import EngineProcess
from headgate.serve.protocol import Failed, Rows


def run(engine: EngineProcess, sql: str) -> list[tuple[object, ...]]:
    """The rows that a script answers. Fails with what the engine says."""
    rows: list[tuple[object, ...]] = []
    for event in engine.client.run(sql):
        assert not isinstance(event, Failed), event.diagnostic.render()
        if isinstance(event, Rows):
            rows += event.rows
    return rows


def skipped(engine: EngineProcess) -> dict[str, object]:
    """How many records each task has skipped, as SHOW TASKS has it. A SELECT would start the process that runs queries."""
    return {str(row[0]): row[6] for row in run(engine, "SHOW TASKS;")}


def all_run(engine: EngineProcess) -> bool:
    """Whether every task runs."""
    return {row[2] for row in run(engine, "SHOW TASKS;")} == {"running"}
