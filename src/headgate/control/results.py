"""What a statement answers with, one piece after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from headgate.runtime.values import Json


@dataclass(frozen=True, slots=True)
class Notice:
    message: str


@dataclass(frozen=True, slots=True)
class ResultColumns:
    """Names and types in their printed form."""

    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ResultRows:
    rows: tuple[tuple[Json, ...], ...]


@dataclass(frozen=True, slots=True)
class Done:
    tag: str


Result: TypeAlias = Notice | ResultColumns | ResultRows | Done
