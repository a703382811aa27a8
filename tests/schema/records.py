"""Record types written as text."""

from __future__ import annotations

from headgate.schema.parse import parse_type
from headgate.schema.types import Record


def record_type(text: str) -> Record:
    type_ = parse_type(text)
    assert isinstance(type_, Record)
    return type_
