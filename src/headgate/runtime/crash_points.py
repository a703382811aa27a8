"""Named places at which a test kills the engine for certain: `HEADGATE_CRASH_AT=after_write:3`.

The number is that of the batch. The points are `after_choose`, `after_mark`, `in_write` (a part of the rows is written; for a
sink that delivers exactly once, in an open transaction),
`after_write` (the target has all, the ledger has not moved), `after_quarantine` (many bad records are in their folder, which
no commit names yet) and `after_commit`.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "HEADGATE_CRASH_AT"


def is_armed(point: str, number: int) -> bool:
    """Whether the environment asks for a crash at this point of this batch."""
    return os.environ.get(VARIABLE) == f"{point}:{number}"


def crash_point(point: str, number: int) -> None:
    """Kill this process if it is to crash here. Nothing is cleaned up, as with a power cut."""
    if is_armed(point, number):
        os.kill(os.getpid(), signal.SIGKILL)
