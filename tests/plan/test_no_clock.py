"""Planning reads no clock: the time of a script is in its context, so that a plan can be made again and compared."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import headgate

pytestmark = pytest.mark.unit

SOURCES = Path(headgate.__file__).parent
CLOCKS = {"now", "utcnow", "today", "time", "monotonic", "time_ns", "perf_counter"}


@pytest.mark.parametrize("package", ["plan", "resolve"])
def test_planning_reads_no_clock(package: str) -> None:
    files = sorted((SOURCES / package).rglob("*.py"))
    assert files
    read = [
        f"{file.name}:{node.lineno}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS
    ]
    assert read == []
