"""Whether two statements mean the same object: however they are laid out, quoted or qualified, and whatever the
outside answered when each was purified. Pure."""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

from headgate.catalog.catalog import Catalog
from headgate.catalog.errors import CatalogError
from headgate.catalog.names import SearchPath, find, type_name
from headgate.errors import HeadgateError
from headgate.plan.respell import kinds_named
from headgate.plan.respell_query import with_ids
from headgate.schema.types import Named
from headgate.sql.json import from_json, to_json
from headgate.sql.options import Option
from headgate.sql.registry_formats import DocOn, FrozenSchema, SchemaStrategy
from headgate.sql.statement import Expression, Kind, ObjectName, Query, Statement
from headgate.text.cursor import Identifier
from headgate.text.lexer import TokenKind, tokenize

Meaning: TypeAlias = "str | int | bool | tuple[Meaning, ...] | None"

# Fields as a person calls them.
_SPOKEN = {
    "kafka": "topic or connection",
    "formats": "format",
    "with_options": "WITH options",
    "body": "definition",
}
_PASSED_OVER = frozenset({"name", "or_replace", "if_not_exists"})


def differences(
    there: Statement, there_path: SearchPath, wanted: Statement, wanted_path: SearchPath, catalog: Catalog
) -> tuple[str, ...]:
    """The parts in which two statements of one kind differ, by name; none if they mean the same."""
    first = _Reader(catalog, there_path).parts(there)
    second = _Reader(catalog, wanted_path).parts(from_json(to_json(wanted)))
    return tuple(
        _SPOKEN.get(part, part.replace("_", " ")) for part in first if first[part] != second.get(part)
    )


class _Reader:
    """Reads a statement as plain values that are equal where the meaning is."""

    def __init__(self, catalog: Catalog, path: SearchPath) -> None:
        self.catalog = catalog
        self.path = path

    def parts(self, statement: Statement) -> dict[str, Meaning]:
        return {
            field.name: self._field(statement, field)
            for field in dataclasses.fields(statement)
            if field.compare and field.name not in _PASSED_OVER
        }

    def _field(self, node: object, field: dataclasses.Field[object]) -> Meaning:
        value = getattr(node, field.name)
        if isinstance(value, ObjectName):
            return self._name(value, kinds_named(node, field.name))
        return self._value(value)

    def _value(self, value: object) -> Meaning:
        match value:
            case None | str() | int():
                return value
            case tuple():
                left = [item for item in value if not _is_seed(item)]
                items = [self._value(item) for item in left]
                in_any_order = all(isinstance(item, Option | DocOn | SchemaStrategy) for item in left)
                return tuple(sorted(items, key=repr) if in_any_order else items)
            case Query():
                return _text(self._by_ids(value))
            case Expression():
                return _text(value.text)
            case Named():
                return self._name(type_name(value), (Kind.TYPE,))
            case Identifier():
                return _identifier(value)
            case ObjectName():
                return tuple(map(_identifier, value.parts))
            case _ if dataclasses.is_dataclass(value):
                fields = (f for f in dataclasses.fields(value) if f.compare)
                return (type(value).__name__, *(self._field(value, f) for f in fields))
            case _:
                return repr(value)

    def _name(self, name: ObjectName, kinds: tuple[Kind, ...]) -> Meaning:
        """By id, where it is known; a name that means nothing yet stands for itself."""
        try:
            found = find(self.catalog, self.path, name, *kinds) if kinds else None
        except CatalogError:
            found = None
        return found.id if found is not None else tuple(map(_identifier, name.parts))

    def _by_ids(self, query: Query) -> str:
        """The query with ids in place of names of relations and types; one that means nothing yet stands for itself."""
        try:
            return with_ids(self.catalog, self.path, query.text)
        except HeadgateError:
            return query.text


def _is_seed(item: object) -> bool:
    return isinstance(item, FrozenSchema) or (isinstance(item, Option) and item.name == "SEED OFFSET")


def _identifier(identifier: Identifier) -> str:
    return identifier.name if identifier.quoted else identifier.name.lower()


def _text(sql: str) -> tuple[Meaning, ...]:
    """Words without their case, and nothing of layout and comments."""
    tokens = tokenize(sql)
    return tuple((t.word or (t.kind.value, t.value)) for t in tokens if t.kind is not TokenKind.END)
