"""The graph of dependencies: users of an object, the order in which objects can be dropped, and cycles.

All walks are loops, not recursion: a chain of views may be longer than Python's stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from headgate.catalog.catalog import Catalog
from headgate.catalog.errors import InUse, NotEmpty
from headgate.catalog.objects import ROOT, Dependency, DependencyKind, Object, namespace_of
from headgate.schema.types import Array, Enum, Map, Named, Record, Type, map_named
from headgate.sql.statement import Kind

CONTAINERS = (Kind.DATABASE, Kind.SCHEMA)


def blocking_users(catalog: Catalog, id_: int) -> tuple[Object, ...]:
    """Objects that use this one and keep it from being dropped, in the order they were created."""
    users = (catalog.objects[i] for i in catalog.users.get(id_, ()))
    return tuple(u for u in users if u.id != id_ and any(d.on == id_ and d.blocks_drop for d in u.dependencies))


def downstream(catalog: Catalog, id_: int) -> tuple[Object, ...]:
    """Everything that uses this object at any depth, nearest first."""
    return _reachable(catalog, id_, lambda at: catalog.users.get(at, ()))


def upstream(catalog: Catalog, id_: int) -> tuple[Object, ...]:
    """Everything that this object uses at any depth, nearest first."""
    return _reachable(catalog, id_, lambda at: [d.on for d in catalog.get(at).dependencies])


def drop_order(catalog: Catalog, ids: Iterable[int]) -> tuple[Object, ...]:
    """Everything that DROP … CASCADE of these objects drops, in order: contents and users come before what they use."""
    starts = tuple(ids)
    contents = _contents(catalog) if any(catalog.get(i).kind in CONTAINERS for i in starts) else {}
    done: dict[int, Object] = {}
    entered: set[int] = set()
    waiting = list(reversed(starts))
    while waiting:
        at = waiting[-1]
        if at in entered:  # met again: all that must be dropped before it is done
            waiting.pop()
            done.setdefault(at, catalog.get(at))
            continue
        entered.add(at)
        before = (*contents.get(at, ()), *(o.id for o in blocking_users(catalog, at)))
        waiting.extend(i for i in reversed(before) if i not in entered)
    return tuple(done.values())


def check_droppable(catalog: Catalog, id_: int) -> None:
    """Raises if the object cannot be dropped alone, because something is in it or uses it."""
    target = catalog.get(id_)
    inside = tuple(catalog.children(id_)) if target.kind in CONTAINERS else ()
    if inside:
        raise NotEmpty(target.kind, catalog.display_name(id_), _named(catalog, inside))
    if blocking_users(catalog, id_):
        hidden = hidden_parts(catalog)
        users = [o for o in reversed(drop_order(catalog, (id_,))) if o.id != id_ and o.id not in hidden]
        raise InUse(target.kind, catalog.display_name(id_), _named(catalog, users))


# parts: the hidden objects of a stream or table that a query fills

COLUMNS = "columns"
"""What the hidden view that names the columns of a stream is called, behind the name of the stream."""


def parts_of(catalog: Catalog, stream: Object) -> tuple[Object, ...]:
    """The parts of a stream that was made by AS, in the order in which they are dropped; none for another object."""
    found: list[Object] = []
    for need in stream.dependencies:
        if need.use is DependencyKind.FILLED_BY:
            at = catalog.get(need.on)
            found.append(at)
            while (below := _hidden_below(catalog, at)) is not None:
                found.append(below)
                at = below
    return tuple(found)


def _hidden_below(catalog: Catalog, at: Object) -> Object | None:
    """The hidden view that a part reads. A sink of a stream always reads one, the view of columns the one of the query."""
    if at.kind is not Kind.SINK and not at.name.endswith(f" {COLUMNS}"):
        return None
    read = next((need.on for need in at.dependencies if need.use is DependencyKind.READS), None)
    return None if read is None else catalog.get(read)


def hidden_parts(catalog: Catalog) -> frozenset[int]:
    """The parts of all streams. SHOW leaves them out."""
    return frozenset(part.id for o in catalog.of_kind(Kind.STREAM, Kind.TABLE) for part in parts_of(catalog, o))


def find_cycle(catalog: Catalog, id_: int, dependencies: Iterable[Dependency]) -> tuple[Object, ...]:
    """The cycle through the object that these dependencies would close; empty if there is none."""
    came_from: dict[int, int] = {d.on: id_ for d in dependencies}
    open_ = list(came_from)
    while open_:
        at = open_.pop()
        if at == id_:
            return _way_back(catalog, id_, came_from)
        for dependency in catalog.objects[at].dependencies:
            if dependency.on not in came_from:
                came_from[dependency.on] = at
                open_.append(dependency.on)
    return ()


def named_types(type_: Type) -> Iterator[tuple[str, ...]]:
    """The full name of every type of the catalog that a type mentions, once for each mention."""
    match type_:
        case Named():
            yield type_.parts
        case Array():
            yield from named_types(type_.element)
        case Map():
            yield from named_types(type_.value)
        case Record():
            for inner in type_.fields:
                yield from named_types(inner.type)
        case _:
            pass


def type_dependencies(catalog: Catalog, types: Iterable[Type]) -> tuple[Dependency, ...]:
    """The dependencies of columns of these types, one for each named type. Unknown names are left out."""
    found = {path: type_by_path(catalog, path) for type_ in types for path in named_types(type_)}
    return tuple(Dependency(t.id, DependencyKind.TYPE) for t in found.values() if t is not None)


def type_by_path(catalog: Catalog, path: tuple[str, ...]) -> Object | None:
    """The type of exactly this full name."""
    parent, kinds = ROOT, (Kind.DATABASE, Kind.SCHEMA, Kind.TYPE)
    found: Object | None = None
    for kind, name in zip(kinds, path, strict=False):
        found = catalog.find_exact(parent, namespace_of(kind), name)
        if found is None:
            return None
        parent = found.id
    return found if found is not None and found.kind is Kind.TYPE else None


def without_aliases(catalog: Catalog, type_: Type) -> Type:
    """The type with lists, maps and scalars in place of the names that types of the catalog give them. Records and enums keep
    their names: what is in them belongs to the type, not to the column."""

    def opened(named: Named) -> Type:
        found = type_by_path(catalog, named.parts)
        body = None if found is None else found.body
        return named if body is None or isinstance(body, Enum) else without_aliases(catalog, body)

    return map_named(type_, opened)


def _contents(catalog: Catalog) -> dict[int, list[int]]:
    """The objects directly in each database and schema. One pass over the catalog: `children` would make one for each."""
    inside: dict[int, list[int]] = {}
    for entry in catalog.objects.values():
        inside.setdefault(entry.parent, []).append(entry.id)
    return inside


def _reachable(catalog: Catalog, start: int, step: Callable[[int], Iterable[int]]) -> tuple[Object, ...]:
    """What ``step`` leads to from an object, at any depth, without the object itself. Breadth first."""
    reached: dict[int, None] = {start: None}
    for at in (queue := [start]):
        for next_ in step(at):
            if next_ not in reached:
                reached[next_] = None
                queue.append(next_)
    return tuple(catalog.get(i) for i in reached if i != start)


def _way_back(catalog: Catalog, start: int, came_from: dict[int, int]) -> tuple[Object, ...]:
    """The cycle in the order of its dependencies. ``came_from`` has the object from which each one was reached."""
    way = [start]
    while (at := came_from[way[-1]]) != start:
        way.append(at)
    return tuple(catalog.get(i) for i in (start, *reversed(way)))


def _named(catalog: Catalog, objects: Iterable[Object]) -> tuple[tuple[str, str], ...]:
    return tuple((o.kind.value, catalog.display_name(o.id)) for o in objects)
