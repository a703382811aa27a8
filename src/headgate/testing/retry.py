"""Trying again until it holds or the time is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from headgate.errors import HeadgateError
from headgate.testing.errors import Mismatch

Found = TypeVar("Found")

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
LAST = 15.0  # seconds that any attempt has, so that it ends with what is wrong and not for want of time
SETTLED = 5.0  # seconds without a change after which a result is taken for final when it is to be rewritten


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
    """The error within will not go away by trying again."""

    def __init__(self, error: HeadgateError) -> None:
        super().__init__(str(error))
        self.error = error


def until(attempt: Callable[[Deadline], Found], seconds: float, *, settles: bool = False) -> Found:
    """What ``attempt`` gives when it first succeeds; its last error when the time is over, whatever came before. With
    ``settles``, a mismatch that stays the same for a while is not waited out."""
    deadline, pause = Deadline(seconds), FIRST_PAUSE
    seen: tuple[str, ...] | None = None
    since = time.monotonic()
    while True:
        try:
            return attempt(Deadline(max(deadline.left, LAST)))
        except GiveUp as end:
            raise end.error from end
        except HeadgateError as error:
            told = error.rewritten if isinstance(error, Mismatch) else None
            if told is None or told != seen:
                seen, since = told, time.monotonic()
            if deadline.is_over or (settles and told is not None and time.monotonic() - since > SETTLED):
                raise
        time.sleep(min(pause, deadline.left))
        pause = min(pause * 1.5, LONGEST_PAUSE)
