"""Trying again until something holds or the time is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from headgate.errors import HeadgateError
from headgate.testing.errors import Mismatch

Found = TypeVar("Found")

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 0.5
LAST = 15.0  # seconds that every attempt has at least, so that it fails with a reason and not for lack of time
SETTLED = 5.0  # seconds without a change after which `--rewrite` takes a result as final


class Deadline:
    """A moment in the future."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    @property
    def is_over(self) -> bool:
        return self.left == 0.0


class GiveUp(Exception):
    """Raised by an attempt to end all attempts: its error will not go away."""

    def __init__(self, error: HeadgateError) -> None:
        super().__init__(str(error))
        self.error = error


def until(
    attempt: Callable[[Deadline], Found],
    seconds: float,
    *,
    settles: bool = False,
    interrupted: threading.Event | None = None,
) -> Found:
    """Call ``attempt`` until it succeeds, and return its result. Raises its last error when the time is over.

    With ``settles``, a mismatch that stays the same for a while is raised before. When ``interrupted`` is set, this
    raises KeyboardInterrupt."""
    stop = interrupted or threading.Event()
    deadline, pause = Deadline(seconds), FIRST_PAUSE
    seen: tuple[str, ...] | None = None
    since = time.monotonic()
    while not stop.is_set():
        try:
            return attempt(Deadline(max(deadline.left, LAST)))
        except GiveUp as end:
            raise end.error from end
        except HeadgateError as error:
            actual = error.rewritten if isinstance(error, Mismatch) else None
            if actual is None or actual != seen:
                seen, since = actual, time.monotonic()
            if deadline.is_over or (settles and actual is not None and time.monotonic() - since > SETTLED):
                raise
        stop.wait(min(pause, deadline.left))
        pause = min(pause * 1.5, LONGEST_PAUSE)
    raise KeyboardInterrupt
