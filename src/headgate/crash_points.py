"""Named steps of a batch at which a test kills the engine for certain.

`HEADGATE_CRASH_AT=in_write:3` kills it in the first batch from number 3 on that reaches the point `in_write`, and
`HEADGATE_CRASH_AT=7@in_write:3` in such a batch of the task with id 7.

The points are `after_choose`, `after_mark`, `in_write` (a part of the rows is written), `after_write` (the target has all,
the ledger has not moved), `after_collect`, `after_merge` and `before_commit` (in the transaction of a table),
`after_quarantine` (many bad records are in their folder, which no commit names yet) and `after_commit`.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "HEADGATE_CRASH_AT"


def is_armed(point: str, task: int, number: int) -> bool:
    """Whether the environment asks for a crash at this point of this batch."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return False
    named, _, step = text.rpartition("@")
    wanted, _, first = step.partition(":")
    return wanted == point and number >= int(first) and named in ("", str(task))


def crash_point(point: str, task: int, number: int) -> None:
    """Kill this process if it is to crash here. Nothing is cleaned up, as with a power cut."""
    if is_armed(point, task, number):
        os.kill(os.getpid(), signal.SIGKILL)
