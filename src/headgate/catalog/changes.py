"""What can happen to a catalog: a closed list. A plan is a list of these, and nothing else changes a catalog.

Changes carry ids, so they mean the same whatever the objects are called when they are applied. Whoever makes an
`ObjectCreated` takes its id from `Catalog.next_id`; columns get theirs from `Object.next_column`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from headgate.catalog.objects import Column, Dependency, DesiredTaskState, Growth, Object
from headgate.catalog.secrets import SecretSource


@dataclass(frozen=True, slots=True)
class ObjectCreated:
    object: Object
    secret: SecretSource | None = None  # given for a secret, and for nothing else


@dataclass(frozen=True, slots=True)
class ObjectDropped:
    """What is disabled and still refers to the object lets go of it; whatever else uses it must go first."""

    id: int


@dataclass(frozen=True, slots=True)
class ObjectRenamed:
    """A renamed type, or one whose schema is renamed, keeps its users: their stored types name it anew."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class DefinitionChanged:
    """CREATE OR REPLACE and ALTER: another statement behind the same id."""

    id: int
    statement: str
    purified: str
    dependencies: tuple[Dependency, ...]
    columns: tuple[Column, ...]
    growth: Growth | None = None
    body: str | None = None


@dataclass(frozen=True, slots=True)
class StatementRespelled:
    """Something that the object's statement names was renamed: it says the same with the new name."""

    id: int
    statement: str
    purified: str


@dataclass(frozen=True, slots=True)
class ColumnsChanged:
    """A schema change that was followed: all columns from now on, in order.

    Here and in `DefinitionChanged`, columns with a known id are the old ones, whatever they are called now.
    """

    id: int
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class CommentSet:
    """COMMENT ON … IS text; None is IS NULL, which also silences a comment that the source's schema brings."""

    id: int
    column: int | None
    text: str | None


@dataclass(frozen=True, slots=True)
class CommentImported:
    """The doc that the source's schema has now; None where it has none."""

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
    ObjectCreated | ObjectDropped | ObjectRenamed | DefinitionChanged | StatementRespelled | ColumnsChanged
    | CommentSet | CommentImported | SecretChanged | TaskStateSet
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unit:
    """The changes of one statement, or of one schema change that was followed, with what the history says of them.

    `cause` is "statement" or what else brought them; `position` is the record that did, if one did.
    """

    changes: tuple[Change, ...]
    cause: str
    statement: str | None = None
    position: str | None = None
