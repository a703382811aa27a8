"""What the tests of the runtime share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from headgate.embedded.jars import fetch
from headgate.runtime.session import open_session


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """A Spark of the module's own, in this process."""
    opened = open_session(fetch("spark"), master="local[2]")
    yield opened
    opened.stop()
