"""What the bytes of an Avro value mean, where writer and reader disagree.

Avro resolves schemas by their bytes alone: milliseconds that are read as microseconds turn 2026 into 1970. So a writer is
resolved to the reader with the writer's own logical types at such places. The result has the fields and defaults of the
reader and the types of the writer. The values are then converted where that is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headgate.runtime.formats.avro_plan import is_same, meaning
from headgate.schema.errors import SchemaError
from headgate.schema.evolve.merge import can_hold
from headgate.schema.formats.avro import tree
from headgate.schema.formats.avro.read import PRIMITIVES, annotated, annotated_fixed
from headgate.schema.names import ROOT, element_path, field_path, value_path
from headgate.schema.types import Bytes, Json, Text, Type, Uuid

PROMOTED = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


class LogicalTypeConflict(Exception):
    """At the path, values of the writer are not values of the reader."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def with_writer_logical_types(writer: tree.AvroType, reader: tree.AvroType) -> tree.AvroType:
    """The reader with the logical types of the writer; the reader itself if they are the same.

    The reader must not contain itself; the writer may. Raises LogicalTypeConflict.
    """
    return _Walk(dict(_aliases(reader))).place(writer, reader, ROOT)


@dataclass(frozen=True, slots=True)
class _Walk:
    """Walks both trees at once, as Avro does: fields by their names, branches of unions by their types."""

    aliases: Mapping[tuple[str, str], str]

    def place(self, writer: tree.AvroType, reader: tree.AvroType, path: str) -> tree.AvroType:
        options = tree.branches_of(reader)
        made: dict[int, tree.AvroType] = {}
        for branch in tree.branches_of(writer):
            chosen = self._chosen(branch, options)
            for number in chosen:
                found = self._type(branch, options[number], path)
                undecided = len(chosen) > 1 and found is not options[number]
                if undecided or not is_same(made.get(number, found), found):
                    raise LogicalTypeConflict(path)
                made[number] = found
        if all(found is options[number] for number, found in made.items()):
            return reader
        together = tuple(made.get(number, option) for number, option in enumerate(options))
        return tree.Union(together) if isinstance(reader, tree.Union) else together[0]

    def _chosen(self, writer: tree.AvroType, options: Sequence[tree.AvroType]) -> list[int]:
        """The reader's branches that Avro may take for a value; none if such a value cannot be read."""
        kind = tree.kind_of(writer)
        alike = [number for number, option in enumerate(options) if tree.kind_of(option) == kind]
        if isinstance(writer, tree.Record | tree.Enum | tree.Fixed):
            name = self._name(writer)
            same = [number for number in alike if _full_name(options[number]) == name]
            return same[:1] or (alike if isinstance(writer, tree.Record) else [])
        promoted = [n for n, option in enumerate(options) if tree.kind_of(option) in PROMOTED.get(kind, ())]
        return (alike or promoted)[:1]

    def _type(self, writer: tree.AvroType, reader: tree.AvroType, path: str) -> tree.AvroType:
        match writer, reader:
            case tree.Record(), tree.Record():
                return self._record(writer, reader, path)
            case tree.Array(), tree.Array():
                items = self.place(writer.items, reader.items, element_path(path))
                return reader if items is reader.items else replace(reader, items=items)
            case tree.Map(), tree.Map():
                values = self.place(writer.values, reader.values, value_path(path))
                return reader if values is reader.values else replace(reader, values=values)
            case ((tree.Primitive() | tree.Fixed()), (tree.Primitive() | tree.Fixed())) if not tree.is_null(writer):
                return _leaf(writer, reader, path)
            case _:
                return reader

    def _record(self, writer: tree.Record, reader: tree.Record, path: str) -> tree.Record:
        name = self._name(writer)
        written = {self.aliases.get((name, f.name), f.name): f.type for f in writer.fields}
        fields = []
        for wanted in reader.fields:
            if wanted.name not in written:
                fields.append(wanted)
                continue
            type_ = self.place(written[wanted.name], wanted.type, field_path(path, wanted.name))
            # The default of a field that is always written is never used, and may not be a value of the other type.
            same = type_ is wanted.type
            fields.append(wanted if same else replace(wanted, type=type_, has_default=False, default=None))
        changed = any(made is not wanted for made, wanted in zip(fields, reader.fields, strict=True))
        return replace(reader, fields=tuple(fields)) if changed else reader

    def _name(self, writer: tree.Named) -> str:
        return self.aliases.get(("", writer.name.full), writer.name.full)


def _full_name(node: tree.AvroType) -> str:
    return node.name.full if isinstance(node, tree.Record | tree.Enum | tree.Fixed) else ""


def _aliases(reader: tree.AvroType) -> Iterator[tuple[tuple[str, str], str]]:
    """The reader's names by the names that a writer may use: types beside an empty text, fields beside their record."""
    for node in tree.walk(reader):
        if isinstance(node, tree.Record | tree.Enum | tree.Fixed):
            yield from ((("", alias), node.name.full) for alias in node.aliases)
        if isinstance(node, tree.Record):
            yield from (((node.name.full, alias), f.name) for f in node.fields for alias in f.aliases)


def _leaf(writer: tree.Primitive | tree.Fixed, reader: tree.Primitive | tree.Fixed, path: str) -> tree.AvroType:
    if (tree.kind_of(writer), meaning(writer)) == (tree.kind_of(reader), meaning(reader)):
        return reader
    have, want = _neutral(writer, path), _neutral(reader, path)
    if have is None or want is None:
        raise LogicalTypeConflict(path)
    is_text = tree.kind_of(writer) == tree.kind_of(reader) == "string" and isinstance(want, Text | Uuid | Json)
    # Avro's own rules hold for plain types. Texts are checked after they were read.
    if is_text or (_is_plain(have) and _is_plain(want)):
        return reader
    if not can_hold(want, have):
        raise LogicalTypeConflict(path)
    return writer


def _neutral(node: tree.Primitive | tree.Fixed, path: str) -> Type | None:
    """None for a decimal with more digits than any type here has."""
    try:
        return annotated_fixed(node, path) if isinstance(node, tree.Fixed) else annotated(node, path)
    except SchemaError:
        return None


def _is_plain(type_: Type) -> bool:
    return isinstance(type_, Bytes) or type_ in PRIMITIVES.values()
