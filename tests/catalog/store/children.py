"""Processes that tests start, watch and kill: `python -m tests.catalog.store.children <what> <catalog file> …`.

Each prints one line per step, so that the test knows how far it came.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import Change, apply
from headgate.catalog.errors import CatalogFull
from headgate.catalog.store.sqlite import SqliteStore, utc_now
from headgate.sql.statement import Kind
from tests.catalog.building import NOW, created


@contextmanager
def child(what: str, path: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The process, killed at the end if it lives still."""
    command = [sys.executable, "-m", __name__, what, str(path), *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def next_commit(catalog: Catalog) -> list[Change]:
    """Three changes that belong together, the same ones whoever asks."""
    view = created(catalog, Kind.VIEW, f"view{catalog.version}", "a integer", "b record(c text)")
    sink = created(apply(catalog, view), Kind.SINK, f"sink{catalog.version}", reads=(view.object.id,))
    policy = created(apply(catalog, view, sink), Kind.SINK_POLICY, f"policy{catalog.version}")
    return [view, sink, policy]


def commit_for_ever(store: SqliteStore) -> None:
    while True:
        catalog = store.commit(next_commit(store.load()), cause="statement", statement="x" * 2000)
        print(catalog.version, flush=True)  # noqa: T201 (how the child talks to its test)


def hold(store: SqliteStore) -> None:
    print("holding", flush=True)  # noqa: T201
    time.sleep(60)


def fill(store: SqliteStore, limit: int) -> None:
    """Commit until files may grow no more, then once again when they may."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        while True:
            store.commit(next_commit(store.load()), cause="statement", statement="x" * 20_000)
    except CatalogFull as full:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        print(full.code, store.load().version, flush=True)  # noqa: T201
    store.commit(next_commit(store.load()), cause="statement")
    print(store.load().version, flush=True)  # noqa: T201


def main(what: str, path: str, *arguments: str) -> None:
    clock = utc_now if what == "hold" else lambda: NOW  # an old heartbeat would not hold the lease
    with SqliteStore(Path(path), clock=clock) as store:
        if what == "commit":
            commit_for_ever(store)
        elif what == "hold":
            hold(store)
        else:
            fill(store, int(arguments[0]))


if __name__ == "__main__":
    main(*sys.argv[1:])
