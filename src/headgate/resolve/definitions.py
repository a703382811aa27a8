"""Stored definitions: printed with the names of today, as by SHOW CREATE, and compared with the statements of a script.

A printed name finds the same object on the default search path. It has as many parts as were written if that is enough.
"""

from __future__ import annotations

import dataclasses
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
from headgate.sql import statement as s
from headgate.sql.query.text import is_plain_name
from headgate.sql.registry_formats import DocOn, SchemaStrategy
from headgate.sql.sinks import PolicyScope
from headgate.sql.statement import Create, Kind, ObjectName, Query
from headgate.text.cursor import Identifier
from headgate.text.lexer import TokenKind, tokenize

Statement = TypeVar("Statement", bound=Create)


def with_current_names(catalog: Catalog, entry: Object, definition: Statement) -> Statement:
    """The definition of the object, with the present names of itself and of everything that it names."""

    def change(value: Any, field: s.DataField | None) -> Any:
        kinds = s.kinds_named(field)
        if isinstance(value, ObjectName) and kinds and value.id is not None:
            return current_name(catalog, value, value.id, kinds)
        if isinstance(value, Query):
            return Query(current_query(catalog, value))
        if isinstance(value, s.TYPES):
            return current_type(catalog, value)
        if isinstance(value, PolicyScope) and value.name.id is not None:
            return replace(value, name=ObjectName(tuple(map(spelled, catalog.path(value.name.id)))))
        return value

    own = _as_written(definition.name, catalog.path(entry.id))
    return replace(s.rewrite(definition, change), name=ObjectName(own))


def current_name(catalog: Catalog, written: ObjectName, id_: int, kinds: Sequence[Kind]) -> ObjectName:
    """The present name of an object, with the parts, case and quotes that were written where they still fit."""
    path = catalog.path(id_)
    candidates = [_as_written(written, path)] if written.parts else []
    candidates += [tuple(map(spelled, path[-count:])) for count in range(len(written.parts) or 1, len(path) + 1)]
    for parts in candidates:
        if _means(catalog, ObjectName(parts), kinds) == id_:
            return ObjectName(parts)
    return ObjectName(tuple(Identifier(part, quoted=True) for part in path))


def current_type(catalog: Catalog, type_: Type) -> Type:
    """The type with the shortest names that find the catalog's types."""

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
    """The present name of a relation. The name of a system relation never changes."""
    return name if name.id is None else current_name(catalog, name, name.id, s.RELATIONS)


def _differ(parts: tuple[Identifier, ...], written: tuple[Identifier, ...], text: str) -> bool:
    """Whether a name in the text must be replaced. A system relation may be written with fewer parts than its name has."""
    return parts != written or text.count(".") < len(parts) - 1


def _as_written(written: ObjectName, path: tuple[str, ...]) -> tuple[Identifier, ...]:
    """The last parts of a full name, as many as were written. Parts that are the same keep their case and quotes."""
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
    """A name as it is written in a statement, with quotes if it needs them."""
    return Identifier(name, quoted=needs_quotes(name))


def _in_query(part: Identifier) -> str:
    quoted = part.quoted or needs_quotes(part.name) or not is_plain_name(part.name)
    return force_quotes(part.name) if quoted else part.name


# the comparison of two definitions

FIELD_TITLES = {
    "kafka": "topic or connection",
    "formats": "format",
    "with_options": "WITH options",
    "body": "definition",
}
IGNORED_FIELDS = frozenset({"name", "or_replace", "if_not_exists", "pending", "reads", "projection", "settled"})
FROZEN_FIELDS = frozenset(
    {"seed_offset", "seed_batch", "frozen"}
)  # answers of purification, which a script does not have


def differences(existing: Create, wanted: Create) -> tuple[str, ...]:
    """The titles of the fields in which two statements of one class differ; none if they mean the same."""
    first, second = _comparable(existing), _comparable(wanted)
    fields = [f.name for f in dataclasses.fields(existing) if f.compare and f.name not in IGNORED_FIELDS]
    return tuple(
        FIELD_TITLES.get(name, name.replace("_", " "))
        for name in fields
        if getattr(first, name) != getattr(second, name)
    )


def _comparable(statement: Create) -> Create:
    """The statement in a form that is equal for statements of one meaning, whatever their layout, case and quotes."""
    return s.rewrite(statement, _plain)


def _plain(value: Any, field: s.DataField | None) -> Any:
    if field is not None and field.name in FROZEN_FIELDS:
        return None
    match value:
        case Query():
            return _query_words(value)
        case s.Expression(text):
            return tuple(word for _, word in _words(text))
        case ObjectName(id=int(id_)):
            return id_
        case Identifier(name, False):
            return Identifier(name.lower(), quoted=True)
        case tuple() if value and all(isinstance(item, SchemaStrategy) for item in value):
            in_order = tuple(sorted(value, key=repr))
            return value if in_order == value else in_order
        case tuple() if value and all(isinstance(item, DocOn) for item in value):
            return tuple(sorted(_doc_words(item) for item in value if not item.frozen))
        case _:
            return value


def _doc_words(doc: DocOn) -> tuple[str, ...]:
    """A doc in a form that is equal for docs of one meaning. Those that were frozen are not part of a script."""
    target = doc.target
    names = [part.name.lower() for part in target.column]
    return target.side or "", str(target.name if target.name.id is None else target.name.id), *names, doc.doc


def _query_words(query: Query) -> tuple[object, ...]:
    """The words of the text, with ids in place of names."""
    named: dict[int, tuple[int, object]] = {
        r.start: (r.end, r.name.id if r.name.id is not None else _system_name(r.name)) for r in query.references
    }
    named |= {place.start: (place.end, place.type) for place in query.types}
    found: list[object] = []
    end = 0
    for start, word in _words(query.text):
        if start >= end:
            end, meaning = named.get(start, (start, word))
            found.append(meaning)
    return tuple(found)


def _system_name(name: ObjectName) -> tuple[str, ...]:
    return tuple(part.name.lower() for part in name.parts)


def _words(text: str) -> list[tuple[int, object]]:
    """The words in lower case and the literals of a text, each with its offset. Layout and comments are left out."""
    tokens = [token for token in tokenize(text) if token.kind is not TokenKind.END]
    return [(token.start, token.word or (token.kind.value, token.value)) for token in tokens]
