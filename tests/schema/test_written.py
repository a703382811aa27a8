"""Words of formats and the directions of compatibility levels."""

from __future__ import annotations

import typing

import pytest

from headgate.schema.written import CompatibilityLevel, SchemaFormat
from headgate.sql.registry_formats import RegistryKind

pytestmark = pytest.mark.unit


def test_the_words_of_a_format_are_those_of_statements() -> None:
    assert {format_.words for format_ in SchemaFormat} == set(typing.get_args(RegistryKind))
    assert [SchemaFormat.from_words(format_.words) for format_ in SchemaFormat] == list(SchemaFormat)


def test_a_full_level_looks_both_ways_and_none_looks_nowhere() -> None:
    ways = {level: (level.reads_old, level.is_read_by_old) for level in CompatibilityLevel}
    assert ways[CompatibilityLevel.FULL] == ways[CompatibilityLevel.FULL_TRANSITIVE] == (True, True)
    assert ways[CompatibilityLevel.BACKWARD] == (True, False)
    assert ways[CompatibilityLevel.FORWARD] == (False, True)
    assert ways[CompatibilityLevel.NONE] == (False, False)
