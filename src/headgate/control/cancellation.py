"""Whether a script is still wanted, and what to stop when it is not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Cancellation:
    """Of one script. ``cancel`` is called by another thread than the one that runs the script."""

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
