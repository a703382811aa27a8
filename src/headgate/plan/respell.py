"""A stored statement with all that it names under the names of today. Its own name is left: the catalog knows that."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from typing import Any

from headgate.catalog.objects import RELATIONS
from headgate.plan.respell_query import respell_query
from headgate.plan.spelling import Spelling
from headgate.schema.types import Array, Map, Named, Record
from headgate.sql.options import SecretReference
from headgate.sql.registry_formats import DocTarget
from headgate.sql.statement import Kind, ObjectName, Query, Statement

_RELATIONS = tuple(sorted(RELATIONS))
# Fields of statements that name another object, and the kinds that it may have.
_REFERENCES: dict[str, tuple[Kind, ...]] = {
    "connection": (Kind.CONNECTION,),
    "registry": (Kind.CONNECTION,),
    "relation": _RELATIONS,
}


def kinds_named(node: object, field: str) -> tuple[Kind, ...]:
    """The kinds that a name in this field of the node may mean; none if it means no other object."""
    match node:
        case SecretReference():
            return (Kind.SECRET,)
        case DocTarget():
            return (*_RELATIONS, Kind.TYPE)
        case _:
            return _REFERENCES.get(field, ())


def respell(statement: Statement, spelling: Spelling) -> Statement:
    """The same object if nothing that it names was renamed. Raises Captured."""
    found = _Respelling(spelling).node(statement)
    assert isinstance(found, Statement)
    return found


@dataclass(frozen=True, slots=True)
class _Respelling:
    """A walk over a statement's tree. What does not change comes back as the same value."""

    spelling: Spelling

    def node(self, node: Any) -> Any:  # any class of the tree
        values = {f.name: getattr(node, f.name) for f in dataclasses.fields(node) if f.compare}
        new = {name: self._value(node, name, value) for name, value in values.items()}
        changed = {name: value for name, value in new.items() if value is not values[name]}
        return replace(node, **changed) if changed else node

    def _value(self, node: object, field: str, value: object) -> object:
        match value:
            case ObjectName():
                return self._reference(node, field, value)
            case Query():
                text = respell_query(value.text, self.spelling)
                return value if text == value.text else replace(value, text=text)
            case tuple():
                items = tuple(self._value(node, field, item) for item in value)
                return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
            case Named() | Array() | Map() | Record():
                type_ = self.spelling.type(value)
                return value if type_ == value else type_
            case _ if dataclasses.is_dataclass(value):
                return self.node(value)
            case _:
                return value

    def _reference(self, node: object, field: str, name: ObjectName) -> ObjectName:
        kinds = kinds_named(node, field)
        if not kinds:
            return name
        if isinstance(node, DocTarget) and node.on == "COLUMN":
            owner = ObjectName(name.parts[:-1])
            found = self.spelling.name(owner, *kinds)
            return name if found is owner else ObjectName((*found.parts, name.parts[-1]))
        return self.spelling.name(name, *kinds)
