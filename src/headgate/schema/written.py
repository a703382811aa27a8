"""A schema that somebody else wrote, as text, and what a schema registry says about schemas.

These are plain values. They are here, below everything that plans or runs, so that a plan can hold a schema without
knowing the registry that it came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SchemaFormat(StrEnum):
    """The values are those of the registry's REST interface; `words` is how statements write the format."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"

    @property
    def words(self) -> str:
        return "JSON SCHEMA" if self is SchemaFormat.JSON else self.value

    @classmethod
    def from_words(cls, words: str) -> SchemaFormat:
        """Raises ValueError for words that no format has."""
        return cls(words.removesuffix(" SCHEMA"))


@dataclass(frozen=True, slots=True)
class WrittenSchema:
    """A schema from outside: from a registry, from a statement, or generated to be registered.

    `references` are the names and texts of all schemas that it refers to, also indirectly, each after those that it
    needs itself. `id` is the registry's. It is None for a schema that no registry has returned: one that is written
    in a statement, or that is still to be registered.
    """

    text: str
    references: tuple[tuple[str, str], ...] = ()
    id: int | None = None
    format: SchemaFormat = SchemaFormat.AVRO


class CompatibilityLevel(StrEnum):
    """Backward: the new schema reads old data. Forward: an old schema reads new data. Full: both.

    Without TRANSITIVE only the latest version counts, otherwise every version.
    """

    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"
    NONE = "NONE"

    @property
    def is_transitive(self) -> bool:
        return self.value.endswith("_TRANSITIVE")

    @property
    def reads_old(self) -> bool:
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def is_read_by_old(self) -> bool:
        return self.value.startswith(("FORWARD", "FULL"))
