"""What ALTER does to objects of many kinds alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headgate.sql.ast.names import ObjectName
from headgate.sql.ast.statement import ObjectKind, Statement
from headgate.text.cursor import Identifier


@dataclass(frozen=True, slots=True)
class RenameObject(Statement):
    kind: ObjectKind
    name: ObjectName
    new_name: Identifier
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeTaskState(Statement):
    """PAUSE (also written DISABLE) or RESUME (ENABLE) of a task, or of one stream of a capture."""

    kind: ObjectKind
    name: ObjectName
    action: Literal["PAUSE", "RESUME"]
    binding: str | None = None
    if_exists: bool = False
