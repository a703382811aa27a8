"""REPLAY QUARANTINE FOR a task, or for a source: all tasks over it. Answers with a row for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from headgate.catalog.catalog import Catalog
from headgate.catalog.graph import upstream
from headgate.catalog.names import SearchPath, find, resolve
from headgate.control.results import Done, Notice, Result, ResultColumns, ResultRows
from headgate.errors import HeadgateError
from headgate.runtime.replay import Replayed
from headgate.sql.show import ReplayQuarantine
from headgate.sql.statement import Kind

COLUMNS = (("task", "text"), ("replayed", "bigint"), ("outdated", "bigint"), ("kept", "bigint"))


def quarantining(statement: ReplayQuarantine, catalog: Catalog, path: SearchPath) -> Sequence[int]:
    """The tasks that are meant. A name that both a sink and a source have means the sink."""
    kinds = (statement.kind,) if statement.kind else (Kind.SINK, Kind.SOURCE)
    found = None if statement.kind else find(catalog, path, statement.name, Kind.SINK)
    if found is None:
        found = resolve(catalog, path, statement.name, *kinds)
    if found.id in catalog.desired:
        return (found.id,)
    return [task for task in sorted(catalog.desired) if found in upstream(catalog, task)]


def replayed(
    tasks: Sequence[int], catalog: Catalog, replay: Callable[[int, str], Replayed]
) -> Iterator[Result]:
    """One that cannot be done does not keep the others; it is told of at the end."""
    failed: HeadgateError | None = None
    yield ResultColumns(COLUMNS)
    for task in tasks:
        name = catalog.shown(task)
        try:
            done = replay(task, name)
        except HeadgateError as error:
            failed = failed or error
            continue
        yield ResultRows(((name, done.replayed, done.outdated, done.kept),))
        if done.outdated:
            yield Notice(
                f"{name}: {_records(done.outdated)} no longer the last of a key, and left the quarantine unwritten"
            )
    if failed is not None:
        raise failed
    yield Done("REPLAY QUARANTINE")


def _records(count: int) -> str:
    return "1 record was" if count == 1 else f"{count} records were"
