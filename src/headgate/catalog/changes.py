"""The closed list of changes of a catalog. Plans consist of these, and nothing else changes a catalog.

Changes refer to objects by id, so a rename in between does not matter. The id of a new object is `Catalog.next_id`, and
ids of new columns start at `Object.next_column`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from headgate.catalog.objects import Column, Dependency, DesiredTaskState, Growth, Object
from headgate.catalog.positions import RecordPosition
from headgate.catalog.secrets import SecretSource
from headgate.schema.types import Type
from headgate.sql.statement import Create


@dataclass(frozen=True, slots=True)
class ObjectCreated:
    object: Object
    secret: SecretSource | None = None  # given for a secret, and for nothing else


@dataclass(frozen=True, slots=True)
class ObjectDropped:
    """Dependencies that do not block the drop are removed. Objects with other dependencies must be dropped first."""

    id: int


@dataclass(frozen=True, slots=True)
class ObjectRenamed:
    """Objects name each other by id, so a rename changes nothing else. Only types are stored with full names: those of
    the users of a renamed type, or of a type in a renamed schema, are changed with it."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class DefinitionChanged:
    """CREATE OR REPLACE and ALTER: the object gets another definition and keeps its id."""

    id: int
    statement: str
    definition: Create
    dependencies: tuple[Dependency, ...]
    columns: tuple[Column, ...]
    growth: Growth | None = None
    body: Type | None = None


@dataclass(frozen=True, slots=True)
class ColumnsChanged:
    """All columns of an object from now on, in order, after a schema change that it followed or a replaced view below it.
    Without ``growth``, the growth stays the same.

    Here and in `DefinitionChanged`, a column with a known id is the old column, even if it has another name.
    """

    id: int
    columns: tuple[Column, ...]
    growth: Growth | None = None


@dataclass(frozen=True, slots=True)
class CommentSet:
    """COMMENT ON … IS text. None is IS NULL, which also suppresses a comment from the source's schema.

    ``field`` is the path of a field of a record in the column; it is empty for the column itself.
    """

    id: int
    column: int | None
    text: str | None
    field: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SecretChanged:
    id: int
    secret: SecretSource


@dataclass(frozen=True, slots=True)
class TaskStateSet:
    """PAUSE and RESUME, DISABLE and ENABLE."""

    id: int
    desired: DesiredTaskState


Change: TypeAlias = (
    ObjectCreated | ObjectDropped | ObjectRenamed | DefinitionChanged | ColumnsChanged
    | CommentSet | SecretChanged | TaskStateSet
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Commit:
    """The changes of one statement, or of one schema change that is followed, and what the history records about them.

    `cause` is "statement", or the reason of any other change. `position` is the record that brought a schema change.
    """

    changes: tuple[Change, ...]
    cause: str
    statement: str | None = None
    position: RecordPosition | None = None
