"""REPLAY QUARANTINE: one row for each task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from headgate.catalog.catalog import Catalog
from headgate.control.sessions import Done, Notice, Result, ResultColumns, ResultRows
from headgate.errors import HeadgateError
from headgate.runtime.replay import Replayed

COLUMNS = (("task", "text"), ("replayed", "bigint"), ("outdated", "bigint"), ("kept", "bigint"))


def replayed(tasks: Sequence[int], catalog: Catalog, replay: Callable[[int, str], Replayed]) -> Iterator[Result]:
    """Replay the quarantines of the tasks. A task that fails does not stop the others; its error is raised at the end."""
    failed: HeadgateError | None = None
    yield ResultColumns(COLUMNS)
    for task in tasks:
        name = catalog.display_name(task)
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
