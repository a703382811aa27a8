"""COMMENT ON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headgate.sql.ast.names import ObjectName
from headgate.sql.ast.statement import ObjectKind, Statement


@dataclass(frozen=True, slots=True)
class CommentOn(Statement):
    """A comment of None (``IS NULL``) takes the comment away and suppresses an imported one."""

    kind: ObjectKind | Literal["COLUMN"]
    name: ObjectName
    comment: str | None
