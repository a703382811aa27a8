"""Values as Spark gives them -> JSON."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.sql import types as spark

from headgate.runtime.values import json_value

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("given", "precision", "scale", "text"),
    [
        ("-1.00E-10", 10, 10, "-0.0000000001"),  # so Spark gives it
        ("1E+2", 5, 2, "100.00"),
        ("0", 38, 38, "0." + "0" * 38),
        ("9" * 38, 38, 0, "9" * 38),
    ],
)
def test_a_decimal_has_the_digits_of_its_type(given: str, precision: int, scale: int, text: str) -> None:
    assert json_value(Decimal(given), spark.DecimalType(precision, scale)) == text
