"""A client's session, the results of its statements, and how a running script is cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from headgate.catalog.names import DEFAULT_PATH, SearchPath
from headgate.runtime.values import Json


@dataclass(slots=True)
class Session:
    """The settings of one client: its search path."""

    path: SearchPath = field(default=DEFAULT_PATH)


# results


@dataclass(frozen=True, slots=True)
class Notice:
    message: str


@dataclass(frozen=True, slots=True)
class ResultColumns:
    """Names and types in their printed form."""

    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ResultRows:
    rows: tuple[tuple[Json, ...], ...]


@dataclass(frozen=True, slots=True)
class JsonRows:
    """Rows as the JSON text of an array of arrays, as the query process gives them."""

    json: bytes


@dataclass(frozen=True, slots=True)
class Done:
    tag: str


Result: TypeAlias = Notice | ResultColumns | ResultRows | JsonRows | Done


# cancellation


class Cancellation:
    """Cancels one script. ``cancel`` is called by another thread than the one that runs the script."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._cancelled = False
        self._stop: Callable[[], None] | None = None

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    @contextmanager
    def stops(self, stop: Callable[[], None]) -> Iterator[None]:
        """``stop`` ends what runs meanwhile. It is called at once if the script is cancelled already, and may be called
        again."""
        with self._guard:
            self._stop = stop
            late = self._cancelled
        try:
            if late:
                stop()
            yield
        finally:
            with self._guard:
                self._stop = None

    def cancel(self) -> None:
        with self._guard:
            self._cancelled = True
            stop = self._stop
        if stop is not None:
            stop()
