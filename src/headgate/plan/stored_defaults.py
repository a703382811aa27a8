"""The defaults of columns in rows that were stored before the columns came: those of the sources' fields that they pass on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import Object
from headgate.plan.chain import valid_query
from headgate.plan.definitions import ELEMENT, FieldDefault
from headgate.plan.reading import layout_of
from headgate.resolve.streams import READ_KINDS
from headgate.schema import types as t
from headgate.sql.query import tree as n


@dataclass(frozen=True, slots=True)
class Default:
    """The default of a column as JSON text, None for null, and those of fields inside of it."""

    value: str | None = None
    inner: tuple[FieldDefault, ...] = ()


Defaults: TypeAlias = frozenset[Default]
"""The defaults of a column. There is none for a computed one, and may be several where UNION puts the rows of two relations
together."""
_NONE: Defaults = frozenset()


class StoredDefaults:
    """Finds the defaults of columns in one state of the catalog. What was found for a relation is kept."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[int, Mapping[str, Defaults]] = {}

    def of_query(self, tree: n.Node) -> Sequence[Defaults]:
        """The defaults of each column of a query."""
        found = self._of_node(tree)
        return [found.get(ref, _NONE) for ref in n.columns_of(tree)]

    def of_relation(self, relation: Object) -> Mapping[str, Defaults]:
        """The defaults of the columns of a relation, by their names."""
        if relation.id not in self._known:
            self._known[relation.id] = self._of_relation(relation)
        return self._known[relation.id]

    def _of_relation(self, relation: Object) -> Mapping[str, Defaults]:
        if relation.kind in READ_KINDS:
            columns = layout_of(relation).columns
            return {c.name: frozenset((Default(c.default, tuple(_inner(c.type))),)) for c in columns}
        found = self.of_query(valid_query(self._catalog, relation).pinned.tree)
        return {column.name: each for column, each in zip(relation.columns, found, strict=True)}

    def _of_node(self, node: n.Node) -> Mapping[n.Ref, Defaults]:
        below = [self._of_node(each) for each in n.inputs_of(node)]
        known = {ref: each for one in below for ref, each in one.items()}
        match node:
            case n.Scan():
                return self._of_scan(node)
            case n.Project():
                return _passed_on(known, node.columns)
            case n.Aggregate():
                return _passed_on(known, node.keys)
            case n.SetOperation(operator="union"):
                left = _renamed(below[0], n.columns_of(node.left), node.columns)
                right = _renamed(below[1], n.columns_of(node.right), node.columns)
                return {ref: left.get(ref, _NONE) | right.get(ref, _NONE) for ref in node.columns}
            case n.SetOperation():  # its rows are rows of the left side
                return _renamed(below[0], n.columns_of(node.left), node.columns)
            case n.Subquery():
                return _renamed(known, n.columns_of(node.input), node.columns)
            case _:
                return known

    def _of_scan(self, node: n.Scan) -> Mapping[n.Ref, Defaults]:
        if node.relation.id is None:
            return {}
        relation = self._catalog.get(node.relation.id)
        defaults = self.of_relation(relation)
        columns = {o.ref: relation.column(o.origin.column) for o in node.columns if o.origin is not None}
        return {ref: defaults.get(column.name, _NONE) for ref, column in columns.items() if column is not None}


def _inner(type_: t.Type, path: tuple[str, ...] = ()) -> Iterator[FieldDefault]:
    """The defaults of fields inside of a type."""
    match type_:
        case t.Record(fields):
            for field in fields:
                if field.default is not None:
                    yield FieldDefault((*path, field.name), field.default)
                yield from _inner(field.type, (*path, field.name))
        case t.Array(element):
            yield from _inner(element, (*path, ELEMENT))
        case t.Map(value):
            yield from _inner(value, (*path, ELEMENT))
        case _:
            pass


def _passed_on(known: Mapping[n.Ref, Defaults], columns: Sequence[n.Output]) -> Mapping[n.Ref, Defaults]:
    pairs = ((o.ref, o.value.column) for o in columns)
    return {new: known[old] for new, old in pairs if old is not None and old in known}


def _renamed(known: Mapping[n.Ref, Defaults], old: Sequence[n.Ref], new: Sequence[n.Ref]) -> Mapping[n.Ref, Defaults]:
    pairs = zip(new, old, strict=True)
    return {ref: known[before] for ref, before in pairs if before in known}
