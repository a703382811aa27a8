"""The port through which the comparison of one kind of node asks about the nodes inside."""

from __future__ import annotations

from typing import Protocol

from headgate.registry.compatibility.json_schema.kinds import Difference
from headgate.registry.compatibility.json_schema.nodes import Node


class Pairs(Protocol):
    """Compares pairs of nodes, following references and remembering answers."""

    def compare(self, old: Node | None, new: Node | None) -> list[Difference]:
        """Differences with paths from the two nodes. None stands for a schema that is not there."""
        ...
