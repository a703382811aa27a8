"""A snapshot of the catalog: immutable, complete, and indexed by name and by use. Threads may share it.

`CatalogBuilder` makes the next snapshot. It copies the indexes once for any number of changes (0.3 ms for 10,000 objects).
The rules of what may change are in `changes`. Which comment is shown for an object or a column is decided here too.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from headgate.catalog.objects import ROOT, Column, Comment, DesiredTaskState, Namespace, Object
from headgate.catalog.secrets import SecretSource
from headgate.errors import InternalError
from headgate.schema.names import print_name
from headgate.sql.statement import Kind

DEFAULT_DATABASE = "headgate"
DEFAULT_SCHEMA = "public"
SYSTEM_SCHEMAS = ("information_schema", "headgate_catalog")  # computed from the catalog; in every database

K_ = TypeVar("K_")
NameKey = tuple[int, Namespace, str]  # parent, namespace, folded name


def fold(name: str) -> str:
    """Fold a name so that names that differ only by case are equal."""
    return name.lower()


@dataclass(frozen=True, slots=True)
class Catalog:
    """`version` counts the changes since the catalog was created. `next_id` was never the id of an object.

    `desired` has an entry for every task. The two indexes follow from `objects`. `analyses` is a cache that a snapshot
    shares with those made from it. `plan.relations` fills it, and checks on each use that an entry still holds.
    """

    version: int
    next_id: int
    objects: Mapping[int, Object]
    secrets: Mapping[int, SecretSource] = field(default_factory=dict)
    desired: Mapping[int, DesiredTaskState] = field(default_factory=dict)
    by_name: Mapping[NameKey, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    users: Mapping[int, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    analyses: dict[object, object] = field(default_factory=dict, compare=False, repr=False)

    def get(self, id_: int) -> Object:
        """The object with this id, which must exist."""
        found = self.objects.get(id_)
        if found is None:
            raise InternalError(f"there is no object with id {id_} in the catalog")
        return found

    def find_any_case(self, parent: int, namespace: Namespace, name: str) -> tuple[Object, ...]:
        """Objects whose name differs from `name` at most by case, in the order of their ids."""
        return tuple(self.objects[i] for i in self.by_name.get((parent, namespace, fold(name)), ()))

    def find_exact(self, parent: int, namespace: Namespace, name: str) -> Object | None:
        return next((o for o in self.find_any_case(parent, namespace, name) if o.name == name), None)

    def children(self, parent: int) -> Iterator[Object]:
        return (o for o in self.objects.values() if o.parent == parent)

    def of_kind(self, *kinds: Kind) -> Iterator[Object]:
        return (o for o in self.objects.values() if o.kind in kinds)

    def path(self, id_: int) -> tuple[str, ...]:
        """The full name, e.g. ("headgate", "public", "orders")."""
        parts: list[str] = []
        while id_ != ROOT:
            found = self.get(id_)
            parts.append(found.name)
            id_ = found.parent
        return tuple(reversed(parts))

    def display_name(self, id_: int) -> str:
        """The name as the shortest text that finds the object on the default search path."""
        path, default = self.path(id_), (DEFAULT_DATABASE, DEFAULT_SCHEMA)
        if len(path) == 3:
            path = path[2:] if path[:2] == default else path[1:] if path[0] == default[0] else path
        elif len(path) == 2 and path[0] == default[0]:
            path = path[1:]
        return print_name(path)


class CatalogBuilder:
    """Builds a snapshot. Keeps the indexes up to date and checks nothing."""

    def __init__(self, base: Catalog) -> None:
        self.version = base.version
        self.next_id = base.next_id
        self.objects = dict(base.objects)
        self.secrets = dict(base.secrets)
        self.desired = dict(base.desired)
        self.by_name = dict(base.by_name)
        self.users = dict(base.users)
        self.analyses = base.analyses

    def view(self) -> Catalog:
        """The present state as a catalog, for queries. It changes with the builder."""
        return Catalog(
            self.version,
            self.next_id,
            self.objects,
            self.secrets,
            self.desired,
            self.by_name,
            self.users,
            self.analyses,
        )

    def put(self, new: Object) -> None:
        """Add the object, or replace the one with its id."""
        old = self.objects.get(new.id)
        if old is not None:
            self._unindex(old)
        self.objects[new.id] = new
        self._index(new)

    def remove(self, id_: int) -> None:
        self._unindex(self.objects.pop(id_))
        self.secrets.pop(id_, None)
        self.desired.pop(id_, None)

    def _index(self, new: Object) -> None:
        key = _key(new)
        self.by_name[key] = tuple(sorted((*self.by_name.get(key, ()), new.id)))
        for on in {d.on for d in new.dependencies}:
            self.users[on] = tuple(sorted((*self.users.get(on, ()), new.id)))

    def _unindex(self, old: Object) -> None:
        _take_out(self.by_name, _key(old), old.id)
        for on in {d.on for d in old.dependencies}:
            _take_out(self.users, on, old.id)


def _key(entry: Object) -> NameKey:
    return entry.parent, entry.namespace, fold(entry.name)


def _take_out(index: dict[K_, tuple[int, ...]], key: K_, id_: int) -> None:
    left = tuple(i for i in index[key] if i != id_)
    if left:
        index[key] = left
    else:
        del index[key]


def build_catalog(
    version: int,
    next_id: int,
    objects: Iterable[Object],
    secrets: Mapping[int, SecretSource],
    desired: Mapping[int, DesiredTaskState],
) -> Catalog:
    """A snapshot from the rows of a store."""
    by_name: dict[NameKey, list[int]] = {}
    users: dict[int, list[int]] = {}
    by_id = {o.id: o for o in sorted(objects, key=lambda o: o.id)}
    for entry in by_id.values():
        by_name.setdefault(_key(entry), []).append(entry.id)
        for on in {d.on for d in entry.dependencies}:
            users.setdefault(on, []).append(entry.id)
    return Catalog(
        version,
        next_id,
        by_id,
        secrets,
        desired,
        {key: tuple(ids) for key, ids in by_name.items()},
        {on: tuple(ids) for on, ids in users.items()},
    )


def empty_catalog(created: datetime) -> Catalog:
    """The catalog that a new project starts with: the database headgate and in it the schema public."""
    database = Object(1, Kind.DATABASE, ROOT, DEFAULT_DATABASE, created)
    schema = Object(2, Kind.SCHEMA, database.id, DEFAULT_SCHEMA, created)
    return build_catalog(0, 3, (database, schema), {}, {})


# Which comment is shown: that of `COMMENT ON`, otherwise the one from the source's schema, otherwise that of the column
# upstream of which a column is a plain projection. So a doc that is written once reaches every relation and target that
# passes the column on. `COMMENT … IS NULL` silences the latter two.


class Origin(enum.StrEnum):
    EXPLICIT = "explicit"
    IMPORTED = "imported"
    FOLLOWED = "followed"


@dataclass(frozen=True, slots=True)
class Effective:
    text: str
    origin: Origin


def object_comment(target: Object) -> str | None:
    """The comment that is shown for the object."""
    found = own_comment(target.comment)
    return None if found is None else found.text


def column_comment(catalog: Catalog, column: Column) -> str | None:
    """The comment that is shown for the column."""
    found = effective_comment(catalog, column)
    return None if found is None else found.text


def effective_comment(catalog: Catalog, column: Column) -> Effective | None:
    here = own_comment(column.comment)
    if here is not None or column.comment.suppressed:
        return here
    for upstream in _upstream(catalog, column):
        said = own_comment(upstream.comment)
        if said is not None:
            return Effective(said.text, Origin.FOLLOWED)
        if upstream.comment.suppressed:
            return None
    return None


def field_comment(catalog: Catalog, column: Column, path: tuple[str, ...], imported: str | None) -> Effective | None:
    """The comment on a field of a record in a column: its own, one of a column upstream, or ``imported``, which is the doc
    of the field in the column's type."""
    for number, at in enumerate((column, *_upstream(catalog, column))):
        said = next((known for known in at.fields if known.path == path), None)
        if said is not None:
            origin = Origin.FOLLOWED if number else Origin.EXPLICIT
            return None if said.text is None else Effective(said.text, origin)
    return None if imported is None else Effective(imported, Origin.IMPORTED)


def own_comment(comment: Comment) -> Effective | None:
    """The comment without those of columns upstream."""
    if comment.explicit is not None:
        return Effective(comment.explicit, Origin.EXPLICIT)
    if comment.imported is not None and not comment.suppressed:
        return Effective(comment.imported, Origin.IMPORTED)
    return None


def _upstream(catalog: Catalog, column: Column) -> Iterator[Column]:
    """The columns that this one is a projection of, nearest first. Stops at an origin that was dropped."""
    seen = set()
    at: Column | None = column
    while at is not None and at.origin is not None and at.origin not in seen:
        seen.add(at.origin)
        above = catalog.objects.get(at.origin.object)
        at = None if above is None else above.column(at.origin.column)
        if at is not None:
            yield at
