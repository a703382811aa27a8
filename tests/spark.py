"""A pytest plugin: one Spark for all tests of a process, a session of its own for every module.

A JVM that dies costs the test that killed it, and nothing else: that test fails with one line, and the next one gets a
new JVM. A test that needs much memory runs in a process of its own (`in_own_jvm`).
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.conversion import LocalDataToArrowConversion
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headgate.embedded.spark import open_spark
from tools.run_tests import SHORT_LIVED

ROOT = Path(__file__).parent.parent
ENDING = 10.0  # seconds in which a JVM that no longer answers must have ended


class SharedSpark:
    """The JVM of this process and the sessions in it, opened when a test first asks for one."""

    def __init__(self) -> None:
        self._root: SparkSession | None = None
        self._sessions: dict[str, SparkSession] = {}

    def session(self, module: str) -> SparkSession:
        """The module's session: its settings, views and functions are its own, the JVM is everybody's."""
        if self.death() is not None:
            self._abandon()
        if self._root is None:
            self._root = open_spark(master="local[2]", settings=SHORT_LIVED)
        if module not in self._sessions:
            self._sessions[module] = self._root.newSession()
        return self._sessions[module]

    def death(self) -> str | None:
        """Why the JVM cannot be used any more, in one line. None while it can be, or if none was opened."""
        if self._root is None:
            return None
        context = self._root.sparkContext._jsc  # None after stop()
        try:
            if context is not None and not context.sc().isStopped():
                return None
        except (Py4JError, OSError):  # py4j raises what its socket raises when nobody listens
            return f"Spark's JVM has ended with status {_wait_for_end()}"
        return "Spark's context was stopped"

    def stop(self) -> None:
        if self.death() is not None:
            self._abandon()
        elif self._root is not None:
            self._root.stop()
        self._root = None

    def _abandon(self) -> None:
        """Make PySpark forget its JVM, which it has no public way to do: it would talk to the dead one for ever."""
        assert self._root is not None
        context = self._root.sparkContext
        context._jsc = None  # or stop() would ask the dead JVM to stop
        context.stop()
        gateway = SparkContext._gateway
        if gateway is not None:
            gateway.proc.kill()
            gateway.proc.wait()
            gateway.shutdown()
        SparkContext._gateway = SparkContext._jvm = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None
        self._root = None
        self._sessions.clear()


def _wait_for_end() -> int | None:
    assert SparkContext._gateway is not None
    try:
        return int(SparkContext._gateway.proc.wait(ENDING))
    except subprocess.TimeoutExpired:
        return None


def small_frame(session: SparkSession, rows: Sequence[tuple[object, ...]], ddl: str) -> DataFrame:
    """A few rows by way of Arrow. A list would go through a Python worker whenever the frame is read: 70 ms of CPU each time."""
    schema = _struct(ddl)
    table = (
        LocalDataToArrowConversion.convert(list(rows), schema, False) if rows else to_arrow_schema(schema).empty_table()
    )
    return session.createDataFrame(table, schema)


@cache
def _struct(ddl: str) -> StructType:
    """The type that Spark makes of a list of columns."""
    made = StructType.fromDDL(ddl)
    assert isinstance(made, StructType)
    return made


def in_own_jvm(*tests: Callable[[SparkSession], None], settings: Mapping[str, str] | None = None) -> None:
    """Call functions of a test module with a session, one after the other, in a process and a JVM of their own. ``settings`` are
    Spark's."""
    arguments = f"{tests[0].__module__!r}, {[test.__name__ for test in tests]!r}, {dict(settings or {})!r}"
    call = f"from tests.spark import call_alone; call_alone({arguments})"
    ran = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=False, cwd=ROOT)
    if ran.returncode:
        pytest.fail(f"it failed in a JVM of its own:\n{ran.stderr[-3000:]}", pytrace=False)


def call_alone(module: str, functions: Sequence[str], settings: Mapping[str, str]) -> None:
    """What the process of `in_own_jvm` does."""
    session = open_spark(master="local[2]", settings={**SHORT_LIVED, **settings})
    for function in functions:
        getattr(importlib.import_module(module), function)(session)


# The plugin

SPARK = pytest.StashKey[SharedSpark]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SPARK] = SharedSpark()


def pytest_sessionfinish(session: pytest.Session) -> None:
    session.config.stash[SPARK].stop()


@pytest.fixture
def session(request: pytest.FixtureRequest) -> SparkSession:
    """The Spark session of the test's module."""
    return request.config.stash[SPARK].session(request.module.__name__)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Say that the JVM died, in place of the exception that it died with.

    pytest itself ended at one of these: to show py4j's traceback it parsed more than Python's parser can take.
    """
    try:
        return (yield)
    except Exception:
        death = item.config.stash[SPARK].death()
        if death is None:
            raise
    pytest.fail(death, pytrace=False)
