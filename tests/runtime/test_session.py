"""What is said of a Spark that has ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import psutil
import pytest

from headgate.runtime.session import JAVA_OPTIONS, _why_ended

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (3, "ran out of memory, though its heap is 2g"),
        (52, "ran out of memory, though its heap is 2g"),
        (-9, "Signal 9 ended it"),
        (1, "It ended with status 1."),
        (None, "It ended."),
    ],
)
def test_the_exit_status_says_why_spark_ended(status: int | None, said: str) -> None:
    process = cast("psutil.Process", SimpleNamespace(wait=lambda _: status))
    assert said in _why_ended(process, "2g")


def test_a_process_that_nobody_can_ask_any_more_has_ended() -> None:
    def wait(_: float) -> int:
        raise psutil.NoSuchProcess(1)

    assert _why_ended(cast("psutil.Process", SimpleNamespace(wait=wait)), "2g") == "It ended."


def test_java_ends_when_it_runs_out_of_memory() -> None:
    assert "-XX:+ExitOnOutOfMemoryError" in JAVA_OPTIONS
