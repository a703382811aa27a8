"""In which parts two resolved statements differ, whatever their layout, case and quotes, and whatever was frozen into
them when they were purified."""

from __future__ import annotations

import dataclasses
from typing import Any

from headgate.sql.registry_formats import DocOn, SchemaStrategy
from headgate.sql.statement import Create, DataField, Expression, ObjectName, Query, rewrite
from headgate.text.cursor import Identifier
from headgate.text.lexer import TokenKind, tokenize

FIELD_TITLES = {
    "kafka": "topic or connection",
    "formats": "format",
    "with_options": "WITH options",
    "body": "definition",
}
IGNORED_FIELDS = frozenset({"name", "or_replace", "if_not_exists"})
FROZEN_FIELDS = frozenset({"seed_offset", "frozen"})  # answers from outside


def differences(existing: Create, wanted: Create) -> tuple[str, ...]:
    """The titles of the fields in which two statements of one class differ; none if they mean the same."""
    first, second = _meaning(existing), _meaning(wanted)
    fields = [f.name for f in dataclasses.fields(existing) if f.compare and f.name not in IGNORED_FIELDS]
    return tuple(
        FIELD_TITLES.get(name, name.replace("_", " "))
        for name in fields
        if getattr(first, name) != getattr(second, name)
    )


def _meaning(statement: Create) -> Create:
    """The statement in a form that is equal for equal meanings."""
    return rewrite(statement, _plain)


def _plain(value: Any, field: DataField | None) -> Any:
    if field is not None and field.name in FROZEN_FIELDS:
        return None
    match value:
        case Query():
            return _query_words(value)
        case Expression(text):
            return tuple(word for _, word in _words(text))
        case ObjectName(id=int(id_)):
            return id_
        case Identifier(name, False):
            return Identifier(name.lower(), quoted=True)
        case tuple() if value and all(isinstance(item, DocOn | SchemaStrategy) for item in value):
            in_order = tuple(sorted(value, key=repr))
            return value if in_order == value else in_order
        case _:
            return value


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
    """Each word without its case and each literal, with its offset. Layout and comments are left out."""
    tokens = [token for token in tokenize(text) if token.kind is not TokenKind.END]
    return [(token.start, token.word or (token.kind.value, token.value)) for token in tokens]
