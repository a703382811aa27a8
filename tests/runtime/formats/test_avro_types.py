"""Which Avro schemas are read by Spark as something else than we say they are."""

from __future__ import annotations

import pytest

from headgate.runtime.formats.avro_types import needs_conversion
from headgate.schema.formats.avro.read import load_tree
from tests.plan.planning import record

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (record("r", ("n", "int"), ("s", ["null", "string"])), False),
        ({**record("Value", ("n", "int")), "connect.name": "db.t.Value"}, False),
        (record("r", ("at", {"type": "int", "connect.name": "io.debezium.time.Date"})), True),
        (record("r", ("at", ["null", {"type": "int", "logicalType": "time-millis"}])), True),
        (record("r", ("x", ["int", "string"])), True),
    ],
)
def test_only_what_spark_reads_in_another_way_is_converted(schema: object, expected: bool) -> None:
    assert needs_conversion(load_tree(schema)) is expected
