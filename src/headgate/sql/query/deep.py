"""Room for deep recursion: sqlglot and our own walk recurse once per level of a query."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from headgate.sql.query.errors import QueryTooDeep
from headgate.sql.query.normalise import MAX_DEPTH

FRAMES = 60_000  # a level of parentheses takes about 20
STACK = 512 * 1024 * 1024  # address space only; pages are touched as the stack grows
_EASY = 40  # levels that fit into an ordinary stack, also when the caller is deep in it already

Result = TypeVar("Result")
_one_at_a_time = threading.Lock()  # the stack size and the limit are settings of the whole process


def with_room(depth: int, work: Callable[[], Result]) -> Result:
    """Do the work on a stack that is deep enough for a query of this depth."""
    if depth <= _EASY:
        try:
            return work()
        except RecursionError:
            pass
    try:
        return _on_big_stack(work)
    except RecursionError:
        raise QueryTooDeep(MAX_DEPTH) from None


def _on_big_stack(work: Callable[[], Result]) -> Result:
    done: list[Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits for this one
            failed.append(error)

    with _one_at_a_time:
        limit, size = sys.getrecursionlimit(), threading.stack_size(STACK)
        sys.setrecursionlimit(FRAMES)
        try:
            thread = threading.Thread(target=run, name="deep query")
            thread.start()
            thread.join()
        finally:
            sys.setrecursionlimit(limit)
            threading.stack_size(size)
    if failed:
        raise failed[0]
    return done[0]
