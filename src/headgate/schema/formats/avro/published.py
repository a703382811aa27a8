"""The Avro names of types and fields in a schema that was published, and copying docs from one version of a schema to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headgate.schema import types as t
from headgate.schema.formats.avro import tree
from headgate.schema.formats.avro.write import Path
from headgate.schema.names import published_names
from headgate.schema.written import Resolve


@dataclass(frozen=True, slots=True)
class Published:
    """``names`` has the full Avro name of every type of the catalog that the schema defines, ``fields`` the Avro name of
    every field by its SQL names from the outermost record on. When they are given to `to_avro`, the names stay the same after a
    type is renamed, and after a new column gets a name that another field already has."""

    names: Mapping[tuple[str, ...], str]
    fields: Mapping[Path, str]


def published(
    type_: t.Type, schema: tree.AvroType, resolve: Resolve, renames: Mapping[Path, str] | None = None
) -> Published:
    """Compare a type with a schema that was generated from an earlier version of it. ``renames`` are the fields whose Avro
    names are not their SQL names."""
    walk = _Walk(resolve, renames or {})
    walk.type(type_, schema, ())
    return Published(walk.names, walk.fields)


@dataclass(slots=True)
class _Walk:
    """Walks a type and a schema side by side."""

    resolve: Resolve
    renames: Mapping[Path, str]
    names: dict[tuple[str, ...], str] = field(default_factory=dict)
    fields: dict[Path, str] = field(default_factory=dict)

    def type(self, type_: t.Type, node: tree.AvroType, path: Path) -> None:
        values = tree.values_of(node) if isinstance(node, tree.Union) else (node,)
        node = values[0] if len(values) == 1 else node
        match type_, node:
            case t.Named(parts), _:
                if isinstance(node, tree.Record | tree.Enum):
                    self.names.setdefault(parts, node.name.full)
                self.type(self.resolve(type_), node, path)
            case t.Record(), tree.Record():
                self._record(type_, node, path)
            case t.Array(element), tree.Array():
                self.type(element, node.items, path)
            case t.Map(value), tree.Map():
                self.type(value, node.values, path)
            case _:
                pass

    def _record(self, record: t.Record, node: tree.Record, path: Path) -> None:
        known = {member.name: member for member in node.fields}
        names = published_names([member.name for member in record.fields], path, self.renames)
        for member, name in zip(record.fields, names, strict=True):
            if name in known:
                inner = (*path, member.name)
                self.fields[inner] = name
                self.type(member.type, known[name].type, inner)


def with_docs_of(node: tree.AvroType, like: tree.AvroType) -> tree.AvroType:
    """The schema ``node`` with the docs of ``like`` on every record, field and enum that both have."""
    match node, like:
        case tree.Record(), tree.Record():
            documented = {member.name: member for member in like.fields}
            fields = tuple(_field(member, documented.get(member.name)) for member in node.fields)
            return replace(node, doc=like.doc, fields=fields)
        case tree.Enum(), tree.Enum():
            return replace(node, doc=like.doc)
        case tree.Array(), tree.Array():
            return replace(node, items=with_docs_of(node.items, like.items))
        case tree.Map(), tree.Map():
            return replace(node, values=with_docs_of(node.values, like.values))
        case tree.Union(branches), _:
            of = tree.values_of(like)
            if len(tree.values_of(node)) != 1 or len(of) != 1:
                return node
            return tree.Union(tuple(b if tree.is_null(b) else with_docs_of(b, of[0]) for b in branches))
        case _:
            return node


def _field(member: tree.Field, like: tree.Field | None) -> tree.Field:
    return member if like is None else replace(member, doc=like.doc, type=with_docs_of(member.type, like.type))
