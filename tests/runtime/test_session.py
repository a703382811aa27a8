"""What is said of a Spark that has ended."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import psutil
import pytest

from headgate.runtime.session import JAVA_OPTIONS, _exit_status, why_ended

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (3, "ran out of memory, though its heap is 2g. The setting memory in the table [spark]"),
        (52, "ran out of memory, though its heap is 2g"),
        (-9, "Signal 9 ended it"),
        (1, "It ended with status 1."),
        (None, "It ended."),
    ],
)
def test_the_exit_status_says_why_spark_ended(status: int | None, said: str) -> None:
    assert said in why_ended(status, "2g", "spark")


def test_a_process_that_nobody_can_ask_any_more_has_no_status() -> None:
    def wait(_: float) -> int:
        raise psutil.NoSuchProcess(1)

    assert _exit_status(cast("psutil.Process", SimpleNamespace(wait=wait))) is None


def test_java_ends_when_it_runs_out_of_memory() -> None:
    assert "-XX:+ExitOnOutOfMemoryError" in JAVA_OPTIONS
