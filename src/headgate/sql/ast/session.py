"""SET and SHOW of the session's settings."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.sql.ast.names import ObjectName
from headgate.sql.ast.statement import Statement


@dataclass(frozen=True, slots=True)
class SetSearchPath(Statement):
    """The schemas, in order; none means DEFAULT."""

    path: tuple[ObjectName, ...]


@dataclass(frozen=True, slots=True)
class ShowSearchPath(Statement):
    pass
