"""What can happen to a catalog: a closed list. A plan is a list of these, and nothing else changes a catalog.

Changes carry ids, so they mean the same whatever the objects are called when they are applied. Whoever makes an
`ObjectCreated` takes its id from `Catalog.next_id`; columns get theirs from `Object.next_column`.
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
    """A schema change that was followed, or a view whose query has another meaning: all columns from now on, in order.
    Without ``growth``, rows come as before.

    Here and in `DefinitionChanged`, columns with a known id are the old ones, whatever they are called now.
    """

    id: int
    columns: tuple[Column, ...]
    growth: Growth | None = None


@dataclass(frozen=True, slots=True)
class CommentSet:
    """COMMENT ON … IS text. None is IS NULL, which also suppresses a comment from the source's schema."""

    id: int
    column: int | None
    text: str | None


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

    `cause` is "statement" or what else brought them; `position` is the record that did, if one did.
    """

    changes: tuple[Change, ...]
    cause: str
    statement: str | None = None
    position: RecordPosition | None = None
