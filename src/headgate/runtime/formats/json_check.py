"""Whether bytes are one JSON text: in Arrow batches, by jiter, which refuses what Spark's parsers let pass."""

from __future__ import annotations

import re

import jiter
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.pandas.functions import arrow_udf


def json_problem(data: Column) -> Column:
    """NULL for a JSON text, else why it is none (never any of it). Trailing text and duplicate members are refused."""
    checked: Column = arrow_udf(_problems, "string")(data)  # type: ignore[call-overload]
    return checked


def _problems(texts: pa.Array) -> pa.Array:
    return pa.array([problem_of(text) for text in texts.to_pylist()], pa.string())


def problem_of(text: bytes | None) -> str | None:
    if text is None:
        return None
    try:
        jiter.from_json(text, float_mode="lossless-float", catch_duplicate_keys=True, allow_inf_nan=False)
    except ValueError as error:
        return told(error)
    return None


def told(error: ValueError) -> str:
    """What jiter found, without any of the text."""
    reason = str(error)
    if "duplicate" in reason.lower():
        return "it has a member twice"
    if "unicode" in reason.lower():
        return "it is not valid UTF-8"
    if "recursion" in reason.lower():
        return "it is nested too deeply"
    place = re.search(r"at line \d+ column \d+", reason)
    return f"it is not JSON{' ' + place[0] if place else ''}"
