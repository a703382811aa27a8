"""DROP."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.sql.ast.names import ObjectName
from headgate.sql.ast.statement import ObjectKind, Statement


@dataclass(frozen=True, slots=True)
class DropObject(Statement):
    """``delete_topic`` is for streams and tables, ``drop_target`` for materializations."""

    kind: ObjectKind
    name: ObjectName
    if_exists: bool = False
    cascade: bool = False
    delete_topic: bool = False
    drop_target: bool = False
