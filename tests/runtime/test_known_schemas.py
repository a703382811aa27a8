"""What a source knows of the schemas of its records."""

from __future__ import annotations

from typing import Any, cast

import pytest

from headgate.registry.wire import MAX_ID
from headgate.runtime import source
from headgate.runtime.source import KnownSchemas
from headgate.schema.encodings import SchemaEncoding
from headgate.schema.written import SchemaFormat, WrittenSchema

pytestmark = pytest.mark.unit


def test_of_ids_that_no_schema_has_only_the_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are no frames name ever other ids, and every id that is known is part of each batch's plan."""
    monkeypatch.setattr(source, "MAX_REFUSED", 3)
    side = SchemaEncoding(SchemaFormat.AVRO, (WrittenSchema('"string"', id=1),))
    known = KnownSchemas(side, "PIN", lambda: cast("Any", object()), "t-value")
    for number in range(1, 6):
        known.learn(MAX_ID + number)
    assert known.writers().unknown_ids == {MAX_ID + 3, MAX_ID + 4, MAX_ID + 5}
