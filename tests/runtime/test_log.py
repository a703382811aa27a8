"""What Spark logs of a failed job: where it failed, and nothing of the record that it failed at."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark

PROGRAM = """
from headgate.embedded.spark import open_spark
session = open_spark(master="local[1]")
session.range(1).selectExpr("concat('swordfish', char(10), 'java.io.X: marlin', id) AS a").createTempView("t")
session.sql("SELECT CAST(a AS int) FROM t WHERE rand() < 2").collect()
"""


def test_words_of_exceptions_stay_unsaid() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    log = ran.stderr.partition("Traceback")[0]
    assert "ERROR Executor: Exception in task " in log
    assert "\norg.apache.spark.SparkNumberFormatException\n" in log
    assert "\tat org.apache.spark." in log
    assert "swordfish" not in log
    assert "marlin" not in log
