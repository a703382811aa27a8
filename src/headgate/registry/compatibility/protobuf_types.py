"""What a Protobuf field is, as far as reading it is concerned: its kind, its form on the wire, its label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FeatureSet,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from headgate.schema.formats.proto_text.symbols import Symbol, find, symbols_of, table
from headgate.schema.formats.proto_text.well_known import well_known
from headgate.schema.formats.proto_text.wire import WIRE_FORMS

_F = FieldDescriptorProto


class Kind(Enum):
    SCALAR = "scalar"
    MESSAGE = "message"
    GROUP = "group"
    MAP = "map"


class Label(Enum):
    NONE = "singular"  # nothing written, and not repeated
    OPTIONAL = "optional"
    REQUIRED = "required"
    REPEATED = "repeated"


@dataclass(frozen=True, slots=True)
class Shape:
    """`text` is the name of the type, absolute without a leading dot where it is known."""

    kind: Kind
    text: str
    wire: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """A field. `oneof` is the one that the text shows; `parts` are key and value of a map."""

    name: str
    number: int
    label: Label
    oneof: str | None
    shape: Shape
    parts: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class Defined:
    """A message: its name without package, and whether it is in the file itself or imported."""

    message: DescriptorProto
    local: str
    own: bool


@dataclass(frozen=True, slots=True)
class Definitions:
    """A file and all that it can see. Nothing here fails on a name that nobody defines."""

    file: FileDescriptorProto
    symbols: Mapping[str, Symbol]
    messages: Mapping[str, Defined]

    @classmethod
    def of(cls, file: FileDescriptorProto, imported: Mapping[str, FileDescriptorProto]) -> Definitions:
        symbols, messages = dict(_well_known_symbols()), dict(_well_known_messages())
        for source, own in (*((other, False) for other in imported.values()), (file, True)):
            symbols.update(symbols_of(source))
            messages.update(_messages(source, own=own))
        return cls(file, symbols, messages)

    def find(self, name: str) -> Defined | None:
        return self.messages.get(name)

    def member(self, field: FieldDescriptorProto, owner: DescriptorProto, scope: str) -> Member:
        """A field of a message; `scope` is the message's full name."""
        shown = field.HasField("oneof_index") and not field.proto3_optional
        oneof = owner.oneof_decl[field.oneof_index].name if shown else None
        shape, parts = self._shape(field, owner, scope)
        return Member(field.name, field.number, self._label(field), oneof, shape, parts)

    def _label(self, field: FieldDescriptorProto) -> Label:
        if field.label == _F.LABEL_REPEATED:
            return Label.REPEATED
        if field.label == _F.LABEL_REQUIRED or (
            field.options.features.field_presence == FeatureSet.LEGACY_REQUIRED
        ):
            return Label.REQUIRED
        written = field.proto3_optional or (not self.file.syntax and not field.HasField("oneof_index"))
        return Label.OPTIONAL if written else Label.NONE

    def _shape(
        self, field: FieldDescriptorProto, owner: DescriptorProto, scope: str
    ) -> tuple[Shape, tuple[Member, ...]]:
        if not field.type_name:
            return Shape(Kind.SCALAR, _F.Type.Name(field.type)[5:].lower(), WIRE_FORMS[field.type]), ()
        local = field.type_name.rpartition(".")[2]
        entry = next((nested for nested in owner.nested_type if nested.name == local), None)
        if entry is not None and entry.options.map_entry:
            parts = tuple(self.member(part, entry, f"{scope}.{local}") for part in entry.field)
            return Shape(Kind.MAP, f"map<{parts[0].shape.text}, {parts[1].shape.text}>"), parts
        name = find(field.type_name, scope, self.symbols, types=True) or field.type_name.removeprefix(".")
        if self.symbols.get(name) is Symbol.ENUM or (field.type == _F.TYPE_ENUM and field.HasField("type")):
            return Shape(Kind.SCALAR, name, "varint"), ()
        delimited = field.options.features.message_encoding == FeatureSet.DELIMITED
        group = delimited or (field.type == _F.TYPE_GROUP and field.HasField("type"))
        return Shape(Kind.GROUP if group else Kind.MESSAGE, name), ()


def _messages(file: FileDescriptorProto, *, own: bool) -> Iterator[tuple[str, Defined]]:
    """All messages by full name, nested ones too."""
    prefix = f"{file.package}." if file.package else ""
    waiting = [(message.name, message) for message in file.message_type]
    while waiting:
        local, message = waiting.pop()
        yield prefix + local, Defined(message, local, own)
        waiting += [(f"{local}.{nested.name}", nested) for nested in message.nested_type]


@cache
def _well_known_symbols() -> Mapping[str, Symbol]:
    return table(well_known().values())


@cache
def _well_known_messages() -> Mapping[str, Defined]:
    return {name: found for file in well_known().values() for name, found in _messages(file, own=False)}
