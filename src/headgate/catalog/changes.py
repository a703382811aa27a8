"""The closed list of changes of a catalog, and `apply`, which makes the next snapshot. Plans consist of these changes, and
nothing else changes a catalog.

Changes refer to objects by id, so a rename in between does not matter. The id of a new object is `Catalog.next_id`, and
ids of new columns start at `Object.next_column`.

A mistake of a user (a name that is taken, an object in use, a cycle) raises an error of the catalog. A mistake that only a
planner can make (an id that does not exist) raises `InternalError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, assert_never

from headgate.catalog.catalog import SYSTEM_SCHEMAS, Catalog, CatalogBuilder
from headgate.catalog.errors import AlreadyExists, DependencyCycle, ReservedColumnName, ReservedName
from headgate.catalog.graph import check_droppable, find_cycle, named_types, type_by_path
from headgate.catalog.objects import (
    CAN_BE_TASKS,
    ROOT,
    TASKS,
    Column,
    Comment,
    Dependency,
    DependencyKind,
    DesiredTaskState,
    FieldComment,
    Growth,
    Object,
    is_on_demand,
    with_comment,
    with_field_comment,
)
from headgate.catalog.positions import RecordPosition
from headgate.catalog.secrets import SecretSource, redacted_statement
from headgate.errors import InternalError
from headgate.schema.names import is_internal
from headgate.schema.types import Named, Type, map_named
from headgate.sql.statement import TYPES, Create, DataField, Kind, rewrite


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
    """CREATE OR REPLACE and ALTER: the object gets another definition and keeps its id. ``fills`` says that its rows are
    given up for new ones, even if the definition is the same."""

    id: int
    statement: str
    definition: Create
    dependencies: tuple[Dependency, ...]
    columns: tuple[Column, ...]
    growth: Growth | None = None
    body: Type | None = None
    fills: bool = False


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


Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """A change, and its object before and after it. ``before`` is None for a new object, ``after`` for a dropped one."""

    change: Change
    before: Object | None
    after: Object | None
    name_before: str
    name_after: str


def apply(catalog: Catalog, *changes: Change) -> Catalog:
    """The snapshot after all changes in order. The given snapshot stays as it is, also if a change raises."""
    return apply_each(catalog, changes)[0]


def apply_each(catalog: Catalog, changes: Iterable[Change]) -> tuple[Catalog, tuple[AppliedChange, ...]]:
    """Like `apply`, and also returns what each change did."""
    draft = CatalogBuilder(catalog)
    done = tuple([_step(draft, change) for change in changes])
    return draft.view(), done


def object_id_of(change: Change) -> int:
    """The id of the object that the change creates, changes or drops."""
    return change.object.id if isinstance(change, ObjectCreated) else change.id


def _step(draft: CatalogBuilder, change: Change) -> AppliedChange:
    id_ = object_id_of(change)
    before, name_before = draft.objects.get(id_), _shown(draft, id_)
    _apply(draft, change)
    draft.version += 1
    after, name_after = draft.objects.get(id_), _shown(draft, id_)
    return AppliedChange(change, before, after, name_before or name_after, name_after or name_before)


def _shown(draft: CatalogBuilder, id_: int) -> str:
    return draft.view().display_name(id_) if id_ in draft.objects else ""


def _apply(draft: CatalogBuilder, change: Change) -> None:
    match change:
        case ObjectCreated():
            _create(draft, change)
        case ObjectDropped():
            _drop(draft, change.id)
        case ObjectRenamed():
            _rename(draft, change)
        case DefinitionChanged():
            _redefine(draft, change)
        case ColumnsChanged():
            _change_columns(draft, change)
        case CommentSet():
            _comment(draft, change)
        case SecretChanged():
            _change_secret(draft, change)
        case TaskStateSet():
            _set_task_state(draft, change)
        case _:
            assert_never(change)


def _create(draft: CatalogBuilder, change: ObjectCreated) -> None:
    new, view = change.object, draft.view()
    if new.id < draft.next_id:
        raise InternalError(f"object id {new.id} was used before")
    if (change.secret is None) is (new.kind is Kind.SECRET):
        raise InternalError("a secret, and nothing else, is created with its value")
    _check_parent(view, new)
    _check_name(view, new)
    if change.secret is not None:
        new = replace(new, statement=redacted_statement("CREATE", new.name, change.secret), definition=None)
        draft.secrets[new.id] = change.secret
    _check_definition(view, new)
    draft.put(new)
    draft.next_id = new.id + 1
    if new.kind in TASKS and not is_on_demand(new):
        draft.desired[new.id] = DesiredTaskState.RUNNING


def _drop(draft: CatalogBuilder, id_: int) -> None:
    view = draft.view()
    check_droppable(view, id_)
    for user in (view.get(i) for i in view.users.get(id_, ())):
        if user.id != id_:
            draft.put(replace(user, dependencies=tuple(d for d in user.dependencies if d.on != id_)))
    draft.remove(id_)


def _rename(draft: CatalogBuilder, change: ObjectRenamed) -> None:
    old = draft.view().get(change.id)
    new = replace(old, name=change.name)
    if new.name == old.name:
        return
    _check_name(draft.view(), new)
    moved = _types_below(draft.view(), old)
    before = {type_.id: draft.view().path(type_.id) for type_ in moved}
    if new.kind is Kind.SECRET:
        new = replace(new, statement=redacted_statement("CREATE", new.name, draft.secrets[new.id]))
    draft.put(new)
    names = {path: draft.view().path(id_) for id_, path in before.items()}
    for user in {i for id_ in before for i in draft.users.get(id_, ())}:
        draft.put(_with_type_names(draft.objects[user], names))


def _with_type_names(user: Object, names: Mapping[Path, Path]) -> Object:
    """The object with every old full name of a type in its columns and body replaced by the new one."""

    def renamed(type_: Type) -> Type:
        return map_named(type_, lambda named: Named(names[named.parts]) if named.parts in names else named)

    def change(value: Any, field: DataField | None) -> Any:
        written = field is not None and field.name == "written"  # the text of a query stays as it is
        return renamed(value) if isinstance(value, TYPES) and not written else value

    columns = tuple(replace(column, type=renamed(column.type)) for column in user.columns)
    body = None if user.body is None else renamed(user.body)
    definition = user.definition and rewrite(user.definition, change)
    return replace(user, columns=columns, body=body, definition=definition)


def _redefine(draft: CatalogBuilder, change: DefinitionChanged) -> None:
    old = draft.view().get(change.id)
    if old.kind is Kind.SECRET:
        raise InternalError("a secret is changed by SecretChanged")
    new = replace(
        old,
        statement=change.statement,
        definition=change.definition,
        dependencies=change.dependencies,
        columns=_merge_columns(old, change.columns),
        growth=change.growth,
        body=change.body,
        fillings=old.fillings + change.fills,
    )
    _check_definition(draft.view(), new)
    draft.put(new)


def _change_columns(draft: CatalogBuilder, change: ColumnsChanged) -> None:
    old = draft.view().get(change.id)
    new = replace(old, columns=_merge_columns(old, change.columns), growth=change.growth or old.growth)
    _check_definition(draft.view(), new)
    draft.put(new)


def _merge_columns(old: Object, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    known = {column.id: column for column in old.columns}
    reused = [column.id for column in columns if column.id not in known and column.id < old.next_column]
    if reused:
        raise InternalError(f'column ids {reused} of {old.kind} "{old.name}" were used before')
    return tuple(_keep_comment(known.get(column.id), column) for column in columns)


def _keep_comment(old: Column | None, new: Column) -> Column:
    """The new column with the comment that a user gave the old one. Only COMMENT ON changes such a comment."""
    if old is None:
        return new
    kept = Comment(old.comment.explicit, new.comment.imported, old.comment.suppressed)
    return replace(new, comment=kept, fields=old.fields)


def _comment(draft: CatalogBuilder, change: CommentSet) -> None:
    target = draft.view().get(change.id)
    place = target if change.column is None else target.column(change.column)
    if place is None:
        raise InternalError(f'{target.kind} "{target.name}" has no column with id {change.column}')
    if change.field and change.column is not None:
        draft.put(with_field_comment(target, change.column, FieldComment(change.field, change.text)))
        return
    comment = Comment(change.text, place.comment.imported, suppressed=change.text is None)
    draft.put(with_comment(target, change.column, comment))


def _change_secret(draft: CatalogBuilder, change: SecretChanged) -> None:
    target = draft.view().get(change.id)
    if target.kind is not Kind.SECRET:
        raise InternalError(f'{target.kind} "{target.name}" is not a secret')
    statement = redacted_statement("CREATE", target.name, change.secret)
    draft.secrets[target.id] = change.secret
    draft.put(replace(target, statement=statement))


def _set_task_state(draft: CatalogBuilder, change: TaskStateSet) -> None:
    target = draft.view().get(change.id)
    if target.kind not in CAN_BE_TASKS:
        raise InternalError(f'{target.kind} "{target.name}" is not a task')
    draft.desired[target.id] = change.desired


def _check_parent(view: Catalog, new: Object) -> None:
    if new.kind is Kind.DATABASE:
        fits = new.parent == ROOT
    else:
        wanted = Kind.DATABASE if new.kind is Kind.SCHEMA else Kind.SCHEMA
        fits = new.parent != ROOT and view.get(new.parent).kind is wanted
    if not fits:
        raise InternalError(f'{new.kind} "{new.name}" has parent {new.parent}, which cannot hold it')


def _check_name(view: Catalog, new: Object) -> None:
    if new.kind is Kind.SCHEMA and new.name.lower() in SYSTEM_SCHEMAS:
        raise ReservedName(new.kind, new.name)
    existing = view.find_exact(new.parent, new.namespace, new.name)
    if existing is not None and existing.id != new.id:
        raise AlreadyExists(existing.kind, new.name, existing.name)


def _check_definition(view: Catalog, new: Object) -> None:
    """Check that columns have different ids and names, that everything the object uses exists, and that there is no cycle."""
    if len({column.id for column in new.columns}) < len(new.columns) or len(
        {column.name for column in new.columns}
    ) < len(new.columns):
        raise InternalError(f'{new.kind} "{new.name}" has two columns with the same id or name')
    for column in new.columns:
        if new.kind is not Kind.TYPE and is_internal(column.name):
            raise ReservedColumnName(new.kind, new.name, column.name)
    missing = [d.on for d in new.dependencies if d.on not in view.objects and d.on != new.id]
    if missing:
        raise InternalError(f'{new.kind} "{new.name}" depends on objects {missing}, which do not exist')
    cycle = _cycle(view, new)
    if cycle:
        raise DependencyCycle(new.kind, new.name, cycle)
    _check_types_listed(view, new)


def _cycle(view: Catalog, new: Object) -> tuple[str, ...]:
    if any(d.on == new.id for d in new.dependencies):
        return new.name, new.name
    if new.id not in view.users:  # nobody uses it, so there can be no cycle through it
        return ()
    return tuple(view.display_name(o.id) for o in find_cycle(view, new.id, new.dependencies))


def _check_types_listed(view: Catalog, new: Object) -> None:
    """A rename finds the users of a type through their dependencies, so every type that is mentioned must be one."""
    listed = {d.on for d in new.dependencies if d.use is DependencyKind.TYPE}
    types = [column.type for column in new.columns] + ([new.body] if new.body is not None else [])
    for path in (path for type_ in types for path in named_types(type_)):
        used = type_by_path(view, path)
        if used is None or used.id not in listed:
            raise InternalError(f'{new.kind} "{new.name}" mentions type {".".join(path)} without depending on it')


def _types_below(view: Catalog, renamed: Object) -> list[Object]:
    """The types whose full name changes when this object's name does."""
    match renamed.kind:
        case Kind.TYPE:
            return [renamed]
        case Kind.SCHEMA:
            return [o for o in view.children(renamed.id) if o.kind is Kind.TYPE]
        case Kind.DATABASE:
            return [o for o in view.of_kind(Kind.TYPE) if view.get(o.parent).parent == renamed.id]
        case _:
            return []
