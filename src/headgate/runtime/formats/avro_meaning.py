"""What the bytes of an Avro value mean, where writer and reader do not say the same.

Avro resolves schemas by their bytes alone: milliseconds that it reads as microseconds make 1970 of 2026. So a writer is
resolved to the reader with the writer's own meaning at such places: what comes out has the reader's fields and defaults
and the writer's types there, which are then brought over where that is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from headgate.runtime.formats.avro_schemas import NAMED, Tree, kind_of, meaning
from headgate.schema.errors import SchemaError
from headgate.schema.evolve.merge import can_hold
from headgate.schema.formats.avro.read import PRIMITIVES, annotated, annotated_fixed
from headgate.schema.formats.avro.tree import Fixed, Name, Primitive
from headgate.schema.paths import ROOT, element_path, field_path, value_path
from headgate.schema.types import Bytes, Json, Text, Type, Uuid

KINDS = {*PRIMITIVES, *NAMED, "null", "array", "map"}
PROMOTED = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


class OtherMeaning(Exception):
    """At the path, values of the writer are none of the reader's."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def meant(writer: Tree, reader: Tree, path: str = ROOT) -> Tree:
    """The reader with what the writer means; the reader itself if that is the same. Raises `OtherMeaning`."""
    return _Walk(_aliases(reader)).place(writer, reader, path)


@dataclass(frozen=True, slots=True)
class _Walk:
    """Through both trees at once, as Avro goes: fields by their names, branches of unions by their types.

    ``around`` are the writer's records that we are in, by name: one that holds itself names itself there.
    """

    aliases: Mapping[tuple[str, str], str]
    around: Mapping[str, Tree] = field(default_factory=dict)

    def place(self, writer: Tree, reader: Tree, path: str) -> Tree:
        options = reader if isinstance(reader, list) else [reader]
        made: dict[int, Tree] = {}
        for named in writer if isinstance(writer, list) else [writer]:
            branch = named if kind_of(named) in KINDS else self.around.get(kind_of(named), named)
            chosen = self._chosen(branch, options)
            for number in chosen:
                found = self._type(branch, options[number], path)
                if (len(chosen) > 1 and found != options[number]) or made.get(number, found) != found:
                    raise OtherMeaning(path)
                made[number] = found
        together = [made.get(number, option) for number, option in enumerate(options)]
        return together if isinstance(reader, list) else together[0]

    def _chosen(self, writer: Tree, options: Sequence[Tree]) -> list[int]:
        """The reader's branches that Avro may take for a value; none if such a value cannot be read."""
        kind = kind_of(writer)
        alike = [number for number, option in enumerate(options) if kind_of(option) == kind]
        if kind in NAMED:
            same = [n for n in alike if options[n]["name"] == self._name(writer)]
            return same[:1] or (alike if kind == "record" else [])
        promoted = [n for n, option in enumerate(options) if kind_of(option) in PROMOTED.get(kind, ())]
        return (alike or promoted)[:1]

    def _type(self, writer: Tree, reader: Tree, path: str) -> Tree:
        match kind_of(writer):
            case "record":
                return self._record(writer, reader, path)
            case "array":
                items = self.place(writer["items"], reader["items"], element_path(path))
                return {**reader, "items": items}
            case "map":
                values = self.place(writer["values"], reader["values"], value_path(path))
                return {**reader, "values": values}
            case "enum" | "null":
                return reader
            case _:
                return _leaf(writer, reader, path)

    def _record(self, writer: Tree, reader: Tree, path: str) -> Tree:
        name = self._name(writer)
        written = {self.aliases.get((name, f["name"]), f["name"]): f["type"] for f in writer["fields"]}
        inside = _Walk(self.aliases, {**self.around, **dict.fromkeys(_names(writer["name"]), writer)})
        fields = []
        for wanted in reader["fields"]:
            known = wanted["name"]
            if known not in written:
                fields.append(wanted)
                continue
            type_ = inside.place(written[known], wanted["type"], field_path(path, known))
            # A default of what is always there is never used, and may be none of the other type.
            kept = {key: value for key, value in wanted.items() if key != "default"}
            fields.append(wanted if type_ == wanted["type"] else {**kept, "type": type_})
        return {**reader, "fields": fields}

    def _name(self, writer: Tree) -> str:
        name = str(writer["name"])
        return self.aliases.get(("", name), name)


def _names(full: str) -> tuple[str, str]:
    return full, full.rpartition(".")[2]


def _aliases(reader: Tree) -> dict[tuple[str, str], str]:
    """The reader's names by what a writer may call them: of types beside an empty text, of fields beside their record."""
    return dict(_aliases_in(reader))


def _aliases_in(node: Tree) -> Iterator[tuple[tuple[str, str], str]]:
    if isinstance(node, list):
        for branch in node:
            yield from _aliases_in(branch)
    if not isinstance(node, dict):
        return
    name = str(node.get("name", ""))
    for alias in node.get("aliases", ()):
        namespace = name.rpartition(".")[0]
        yield ("", f"{namespace}.{alias}" if namespace and "." not in alias else alias), name
    for one in node.get("fields", ()):
        for alias in one.get("aliases", ()):
            yield (name, alias), one["name"]
        yield from _aliases_in(one["type"])
    yield from _aliases_in(node.get("items"))
    yield from _aliases_in(node.get("values"))


def _leaf(writer: Tree, reader: Tree, path: str) -> Tree:
    if (kind_of(writer), meaning(writer)) == (kind_of(reader), meaning(reader)):
        return reader
    have, want = _neutral(writer, path), _neutral(reader, path)
    if have is None or want is None:
        raise OtherMeaning(path)
    is_text = kind_of(writer) == kind_of(reader) == "string" and isinstance(want, Text | Uuid | Json)
    if is_text or (_is_plain(have) and _is_plain(want)):  # Avro's own rules; texts are looked at afterwards
        return reader
    if not can_hold(want, have):
        raise OtherMeaning(path)
    return writer


def _neutral(node: Tree, path: str) -> Type | None:
    """None for what we have no type for: a decimal with too many digits."""
    said = node if isinstance(node, dict) else {}
    try:
        if kind_of(node) == "fixed":
            return annotated_fixed(Fixed(Name(""), said["size"], attributes=said), path)
        return annotated(Primitive(kind_of(node), said), path)
    except SchemaError:
        return None


def _is_plain(type_: Type) -> bool:
    return isinstance(type_, Bytes) or type_ in PRIMITIVES.values()
