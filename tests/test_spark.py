"""The Spark that tests share, in a run of pytest of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark import ROOT, in_own_jvm

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]  # five JVMs start one after the other

MODULE = """
import os
from pyspark.sql.functions import col

def test_1_spark_answers(session):
    session.range(3).createTempView("three")
    assert session.table("three").count() == 3

def test_2_the_session_is_that_of_the_module(session):
    assert session.table("three").count() == 3

def test_3_the_jvm_is_killed(session):
    os.kill(session.sparkContext._gateway.proc.pid, 9)
    session.table("three").count()

def test_4_spark_answers_again(session):
    assert session.range(3).where(col("id") > 0).count() == 2

def test_5_the_context_is_stopped(session):
    session.stop()
    session.range(3).count()

def test_6_spark_answers_once_more(session):
    assert session.range(3).count() == 3
"""


def test_a_dead_jvm_costs_one_test_and_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "test_killing.py").write_text(MODULE)
    options = ("-q", "-p", "tests.spark", "-p", "no:randomly", "-p", "no:cacheprovider", "--show-capture=no")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--rootdir={tmp_path}", "-c", "/dev/null", tmp_path],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    lines = ran.stdout.splitlines()
    assert lines[0].startswith("..F.F."), ran.stdout
    assert "Spark's JVM has ended with status -9" in lines
    assert "Spark's context was stopped" in lines
    assert lines[-1].startswith("2 failed, 4 passed")


def a_function(session: SparkSession) -> None:
    assert session.range(3).count() == 4, "not four"


def test_a_failure_in_a_jvm_of_its_own_is_told() -> None:
    with pytest.raises(pytest.fail.Exception, match="AssertionError: not four"):
        in_own_jvm(a_function)
