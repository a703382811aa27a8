"""A stored definition under the names of today, as SHOW CREATE prints it.

The names are such that the default search path finds the same objects by them: as many parts as were written where
that suffices, and more where it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from headgate.catalog.catalog import Catalog, fold
from headgate.catalog.errors import CatalogError
from headgate.catalog.graph import type_by_path
from headgate.catalog.names import DEFAULT_PATH, find
from headgate.catalog.objects import Object
from headgate.schema.names import force_quotes, needs_quotes
from headgate.schema.render import print_type
from headgate.schema.types import Named, Type, map_named
from headgate.sql.query.text import is_plain_name
from headgate.sql.statement import RELATIONS, TYPES, Create, DataField, Kind, ObjectName, Query, kinds_named, rewrite
from headgate.text.cursor import Identifier

Statement = TypeVar("Statement", bound=Create)


def with_current_names(catalog: Catalog, entry: Object, definition: Statement) -> Statement:
    """The definition of the object, with the present names of itself and of all that it names."""

    def change(value: Any, field: DataField | None) -> Any:
        kinds = kinds_named(field)
        if isinstance(value, ObjectName) and kinds and value.id is not None:
            return current_name(catalog, value, value.id, kinds)
        if isinstance(value, Query):
            return Query(current_query(catalog, value))
        if isinstance(value, TYPES):
            return current_type(catalog, value)
        return value

    own = _as_written(definition.name, catalog.path(entry.id))
    return replace(rewrite(definition, change), name=ObjectName(own))


def current_name(catalog: Catalog, written: ObjectName, id_: int, kinds: Sequence[Kind]) -> ObjectName:
    """The present name of an object, as like the one that was written as possible."""
    path = catalog.path(id_)
    candidates = [_as_written(written, path)] if written.parts else []
    candidates += [tuple(map(spelled, path[-count:])) for count in range(len(written.parts) or 1, len(path) + 1)]
    for parts in candidates:
        if _means(catalog, ObjectName(parts), kinds) == id_:
            return ObjectName(parts)
    return ObjectName(tuple(Identifier(part, quoted=True) for part in path))


def current_type(catalog: Catalog, type_: Type) -> Type:
    """The type with the shortest names by which the catalog's types are found."""

    def short(named: Named) -> Type:
        found = type_by_path(catalog, named.parts)
        if found is None:
            return named
        name = current_name(catalog, ObjectName(()), found.id, (Kind.TYPE,))
        return Named(tuple(p.name for p in name.parts), tuple(p.quoted for p in name.parts))

    return map_named(type_, short)


def current_query(catalog: Catalog, query: Query) -> str:
    """The text of the query with the present names of the relations and types that it names."""
    text = query.text
    for start, end, new in sorted(_replacements(catalog, query), reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _replacements(catalog: Catalog, query: Query) -> Iterator[tuple[int, int, str]]:
    relations = {
        reference.start: _relation_name(catalog, reference.name)
        for reference in query.references
        if reference.of is None
    }
    for reference in query.references:
        named = relations[reference.start if reference.of is None else reference.of]
        written = reference.name.parts
        parts = named.parts if reference.of is None else named.parts[-len(written) :]
        if _differ(parts, written, query.text[reference.start : reference.end]):
            yield reference.start, reference.end, ".".join(map(_in_query, parts))
    for place in query.types:
        if (now := current_type(catalog, place.type)) != place.written:
            yield place.start, place.end, print_type(now, full=True)


def _relation_name(catalog: Catalog, name: ObjectName) -> ObjectName:
    """The name of a relation of the catalog; that of a system relation never changes."""
    return name if name.id is None else current_name(catalog, name, name.id, RELATIONS)


def _differ(parts: tuple[Identifier, ...], written: tuple[Identifier, ...], text: str) -> bool:
    """Whether a name must be printed anew. A system relation was written with fewer parts than its name has."""
    return parts != written or text.count(".") < len(parts) - 1


def _as_written(written: ObjectName, path: tuple[str, ...]) -> tuple[Identifier, ...]:
    """The last parts of a full name, as many as were written, with the case and quotes of those that are the same."""
    pairs = zip(written.parts, path[-len(written.parts) :], strict=True)
    return tuple(part if _same(part, name) else spelled(name) for part, name in pairs)


def _same(part: Identifier, name: str) -> bool:
    return part.name == name or (not part.quoted and fold(part.name) == fold(name))


def _means(catalog: Catalog, name: ObjectName, kinds: Sequence[Kind]) -> int | None:
    try:
        found = find(catalog, DEFAULT_PATH, name, *kinds)
    except CatalogError:
        return None
    return None if found is None else found.id


def spelled(name: str) -> Identifier:
    """A name as a statement writes it: in quotes where it must be."""
    return Identifier(name, quoted=needs_quotes(name))


def _in_query(part: Identifier) -> str:
    quoted = part.quoted or needs_quotes(part.name) or not is_plain_name(part.name)
    return force_quotes(part.name) if quoted else part.name
