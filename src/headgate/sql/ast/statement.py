"""What all statements share: their place, and the kinds of objects they speak of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from headgate.errors import Span
from headgate.sql.ast.names import NO_SPAN

ObjectKind: TypeAlias = Literal[
    "DATABASE", "SCHEMA", "SECRET", "CONNECTION", "SOURCE", "TYPE", "VIEW", "MATERIALIZED VIEW", "SINK",
    "SINK POLICY", "STREAM", "TABLE", "COLLECTION", "CAPTURE", "MATERIALIZATION",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Statement:
    """The base of all statements. ``span`` is the statement in its script, without the semicolon."""

    span: Span = field(default=NO_SPAN, compare=False, kw_only=True)
