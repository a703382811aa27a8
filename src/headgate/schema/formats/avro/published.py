"""What a schema that was published says about the type that it was made from: names of types, and fields that it lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.schema import types as t
from headgate.schema.formats.avro import tree
from headgate.schema.formats.avro.write import Path
from headgate.schema.names import avro_names
from headgate.schema.written import Resolve


@dataclass(frozen=True, slots=True)
class Published:
    """``names`` has the full Avro name of every type of the catalog that the schema defines. Given to `to_avro`, they stay
    the same when a type is renamed. ``missing`` are the outermost fields of the type that the schema lacks, as SQL names
    from the outermost record on."""

    names: Mapping[tuple[str, ...], str]
    missing: tuple[Path, ...]


def published(type_: t.Type, schema: tree.AvroType, resolve: Resolve) -> Published:
    """Compare a type with a schema that was generated from an earlier version of it."""
    walk = _Walk(resolve)
    walk.type(type_, schema, ())
    return Published(walk.names, tuple(walk.missing))


@dataclass(slots=True)
class _Walk:
    """Walks a type and a schema side by side."""

    resolve: Resolve
    names: dict[tuple[str, ...], str] = field(default_factory=dict)
    missing: list[Path] = field(default_factory=list)

    def type(self, type_: t.Type, node: tree.AvroType, path: Path) -> None:
        values = tree.values_of(node) if isinstance(node, tree.Union) else (node,)
        node = values[0] if len(values) == 1 else node
        match type_, node:
            case t.Named(parts), _:
                if parts not in self.names and isinstance(node, tree.Record | tree.Enum):
                    self.names[parts] = node.name.full
                    self.type(self.resolve(type_), node, path)
                elif parts not in self.names:
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
        names = avro_names([member.name for member in record.fields])
        for member, name in zip(record.fields, names, strict=True):
            inner = (*path, member.name)
            if name in known:
                self.type(member.type, known[name].type, inner)
            else:
                self.missing.append(inner)
