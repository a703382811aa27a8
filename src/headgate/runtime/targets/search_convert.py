"""Documents of an index -> documents with the wider types that some of its fields get."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headgate.runtime.targets.search_mapping import Changed
from headgate.schema.parse import parse_type
from headgate.schema.types import Array, Json, Map, Record, Text, Type
from headgate.schema.values import dumps, from_json, to_json

Document = dict[str, Any]


def converter(
    held: Mapping[str, Any], wanted: Mapping[str, Any], changed: Sequence[Changed]
) -> Callable[[Document], Document]:
    """A function that gives the changed fields of a document their new JSON. ``held`` and ``wanted`` are what `_meta.headgate`
    says of the old and of the new index: the types of their documents."""
    old, new = _record(held), _record(wanted)
    top = {one.path.split(".")[0] for one in changed}
    casts = {
        field.name: (before.type, field.type)
        for field in new.fields
        if field.name in top and (before := old.field(field.name)) is not None
    }

    def convert(document: Document) -> Document:
        for name, (before, after) in casts.items():
            if document.get(name) is not None:
                document[name] = converted(document[name], before, after)
        return document

    return convert


def _record(about: Mapping[str, Any]) -> Record:
    found = parse_type(about["type"]) if "type" in about else Record(())
    assert isinstance(found, Record), "the type of a document is a record"
    return found


def converted(value: Any, before: Type, after: Type) -> Any:
    """A JSON value of one type as JSON of a wider type. An index does not tell one value from an array of one."""
    if value is None or before == after:
        return value
    match before, after:
        case Array(), Array():
            return [converted(one, before.element, after.element) for one in value]
        case Map(), Map():
            return {key: converted(one, before.value, after.value) for key, one in value.items()}
        case Record(), Record():
            return {name: _member(name, one, before, after) for name, one in value.items()}
        case Json(), Text():
            return dumps(value)
        case _, Text() if not isinstance(before, Record | Map | Array):
            return value if isinstance(value, str) else dumps(value)
        case _, Json():
            return value
        case _:
            return to_json(from_json(value, after), after)


def _member(name: str, value: Any, before: Record, after: Record) -> Any:
    old, new = before.field(name), after.field(name)
    return value if old is None or new is None else converted(value, old.type, new.type)
