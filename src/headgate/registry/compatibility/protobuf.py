"""Whether a Protobuf reader can read what a writer wrote. Fields are compared by number, messages by name.

The kinds of changes are those of Confluent's registry; those that it calls compatible are not looked for. This check is
stricter where Confluent's lets data be lost: a repeated number is never read as a single one, even if proto3 leaves the label out; a
field that becomes required is refused whatever its type; a group is not a message; fields of two oneofs cannot move
into one. "Compatible" means what Protobuf's own guide means: types of one wire form can replace each other, a value
that the reader's type cannot hold is cut, and of a list that is read as a single value the last one stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import cast

from google.protobuf import descriptor_pb2 as pb

from headgate.registry.errors import Incompatibility
from headgate.registry.schemas import ParsedSchema

_F = pb.FieldDescriptorProto

# How values lie on the wire. A reader can read types of one form as each other.
_WIRE_FORMS: Mapping[int, str] = {
    **dict.fromkeys((_F.TYPE_INT32, _F.TYPE_INT64, _F.TYPE_UINT32, _F.TYPE_UINT64, _F.TYPE_BOOL), "varint"),
    **dict.fromkeys((_F.TYPE_SINT32, _F.TYPE_SINT64), "zigzag"),
    **dict.fromkeys((_F.TYPE_STRING, _F.TYPE_BYTES), "length"),
    **dict.fromkeys((_F.TYPE_FIXED32, _F.TYPE_SFIXED32), "fixed32"),
    **dict.fromkeys((_F.TYPE_FIXED64, _F.TYPE_SFIXED64), "fixed64"),
    _F.TYPE_FLOAT: "float",
    _F.TYPE_DOUBLE: "double",
}


class Kind(Enum):
    """How a field's value lies on the wire, as far as kinds exclude each other."""

    SCALAR = "scalar"
    MESSAGE = "message"
    GROUP = "group"
    MAP = "map"


class Label(Enum):
    """How often a field may occur."""

    NONE = "singular"  # nothing written, and not repeated
    OPTIONAL = "optional"
    REQUIRED = "required"
    REPEATED = "repeated"


@dataclass(frozen=True, slots=True)
class Shape:
    """The type of a field. `text` is its full name; types of the same `wire` form can replace each other."""

    kind: Kind
    text: str
    wire: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """A field. `oneof` is never the one that protoc makes for `optional`; `parts` are key and value of a map."""

    name: str
    number: int
    label: Label
    oneof: str | None
    shape: Shape
    parts: tuple[Member, ...] = ()

    @property
    def title(self) -> str:
        return f'field "{self.name}" (number {self.number})'


@dataclass(frozen=True, slots=True)
class _Defined:
    """A message: its name without package, and whether it is in the file itself or imported."""

    message: pb.DescriptorProto
    local: str
    own: bool


@dataclass(frozen=True, slots=True)
class _Definitions:
    """A file, and by full name all messages that it can use."""

    file: pb.FileDescriptorProto
    messages: Mapping[str, _Defined]

    @classmethod
    def of(cls, schema: ParsedSchema) -> _Definitions:
        file, *imported = cast(tuple[pb.FileDescriptorProto, ...], schema.definition)
        messages = {name: found for other in imported for name, found in _messages(other, own=False)}
        return cls(file, {**messages, **dict(_messages(file, own=True))})

    def member(self, field: pb.FieldDescriptorProto, owner: pb.DescriptorProto) -> Member:
        """A field of the message `owner`."""
        shown = field.HasField("oneof_index") and not field.proto3_optional
        oneof = owner.oneof_decl[field.oneof_index].name if shown else None
        shape, parts = self._shape(field)
        return Member(field.name, field.number, self._label(field), oneof, shape, parts)

    def _label(self, field: pb.FieldDescriptorProto) -> Label:
        """The label as the author wrote it. proto2 writes `optional`; editions have a feature in its place."""
        if field.label == _F.LABEL_REPEATED:
            return Label.REPEATED
        if field.label == _F.LABEL_REQUIRED or (field.options.features.field_presence == pb.FeatureSet.LEGACY_REQUIRED):
            return Label.REQUIRED
        written = field.proto3_optional or (not self.file.syntax and not field.HasField("oneof_index"))
        return Label.OPTIONAL if written else Label.NONE

    def _shape(self, field: pb.FieldDescriptorProto) -> tuple[Shape, tuple[Member, ...]]:
        """The type of a field, and for a map its key and value."""
        if not field.type_name:
            return Shape(Kind.SCALAR, _F.Type.Name(field.type)[5:].lower(), _WIRE_FORMS[field.type]), ()
        name = field.type_name.removeprefix(".")
        if field.type == _F.TYPE_ENUM:
            return Shape(Kind.SCALAR, name, "varint"), ()
        found = self.messages.get(name)
        if found is not None and found.message.options.map_entry:
            parts = tuple(self.member(part, found.message) for part in found.message.field)
            return Shape(Kind.MAP, f"map<{parts[0].shape.text}, {parts[1].shape.text}>"), parts
        delimited = field.options.features.message_encoding == pb.FeatureSet.DELIMITED
        return Shape(Kind.GROUP if delimited or field.type == _F.TYPE_GROUP else Kind.MESSAGE, name), ()


def _messages(file: pb.FileDescriptorProto, *, own: bool) -> Iterator[tuple[str, _Defined]]:
    """All messages by full name, nested ones too."""
    prefix = f"{file.package}." if file.package else ""
    waiting = [(message.name, message) for message in file.message_type]
    while waiting:
        local, message = waiting.pop()
        yield prefix + local, _Defined(message, local, own)
        waiting += [(f"{local}.{nested.name}", nested) for nested in message.nested_type]


def incompatibilities(reader: ParsedSchema, writer: ParsedSchema) -> tuple[Incompatibility, ...]:
    """The reasons why the reader cannot read what the writer wrote, each once and in the order of the file; empty if it
    can. Paths are `#/Message/field`."""
    new, old = _Definitions.of(reader), _Definitions.of(writer)
    comparison = _Comparison(new, old)
    return tuple(dict.fromkeys(comparison.messages(new.file.message_type, old.file.message_type, "#")))


class _Comparison:
    """Compares the messages of two files, and of the files that they import."""

    def __init__(self, reader: _Definitions, writer: _Definitions) -> None:
        self.reader, self.writer = reader, writer
        self.open: set[tuple[str, str]] = set()  # pairs of imported messages under comparison

    def messages(
        self, reader: Sequence[pb.DescriptorProto], writer: Sequence[pb.DescriptorProto], path: str
    ) -> Iterator[Incompatibility]:
        """Messages of one level, by name. Those made for maps are compared with their fields. Enums are not compared:
        a reader keeps a number that it does not know."""
        new = {message.name: message for message in reader}
        for old in writer:
            if old.options.map_entry:
                continue
            here = f"{path}/{old.name}"
            if old.name in new:
                yield from self._message(new[old.name], old, here)
            else:
                yield _found(here, "MESSAGE_REMOVED", f'message "{old.name}" was removed')

    def _message(self, reader: pb.DescriptorProto, writer: pb.DescriptorProto, path: str) -> Iterator[Incompatibility]:
        """Fields by number, then nested messages by name."""
        new = {field.number: self.reader.member(field, reader) for field in reader.field}
        old = {field.number: self.writer.member(field, writer) for field in writer.field}
        yield from _oneofs(reader, new, old, path)
        for number in sorted({*old, *new}):
            if number not in new:
                yield from _removed(old[number], {one.name for one in reader.oneof_decl}, path)
            elif number in old:
                yield from self._field(new[number], old[number], path)
            elif new[number].label is Label.REQUIRED:
                here = f"{path}/{new[number].name}"
                yield _found(here, "REQUIRED_FIELD_ADDED", f"required {new[number].title} was added")
        yield from self.messages(reader.nested_type, writer.nested_type, path)

    def _field(self, new: Member, old: Member, path: str) -> Iterator[Incompatibility]:
        here, what = f"{path}/{new.name}", new.title
        if new.label is Label.REQUIRED and old.label is not Label.REQUIRED:
            yield _found(here, "REQUIRED_FIELD_ADDED", f"{what} became required, and what was written may lack it")
        elif new.shape.kind is old.shape.kind is Kind.SCALAR and new.shape.wire == old.shape.wire:
            yield from _labels(new, old, here, what)
        yield from self._types(new, old, here, what)

    def _types(self, new: Member, old: Member, path: str, what: str) -> Iterator[Incompatibility]:
        """Whether the bytes of the old type can be read as the new one."""
        changed = f"{what} changed from {old.shape.text} to {new.shape.text}"
        if new.shape.kind is not old.shape.kind:
            yield _found(path, "FIELD_KIND_CHANGED", changed)
        elif new.shape.kind is Kind.SCALAR:
            if new.shape.wire != old.shape.wire:
                yield _found(path, "FIELD_SCALAR_KIND_CHANGED", f"{changed}, which is another form on the wire")
        elif new.shape.kind is Kind.MAP:
            for part, other in zip(new.parts, old.parts, strict=True):
                yield from self._types(part, other, path, f"the {part.name} of {what}")
        else:
            yield from self._named(new, old, path, what, changed)

    def _named(self, new: Member, old: Member, path: str, what: str, changed: str) -> Iterator[Incompatibility]:
        """Messages by their names without package. Those of the files themselves are compared elsewhere."""
        ours, theirs = self.reader.messages.get(new.shape.text), self.writer.messages.get(old.shape.text)
        if ours is None or theirs is None:
            if new.shape.text != old.shape.text:
                yield _found(path, "FIELD_NAMED_TYPE_CHANGED", changed)
            return
        if ours.local != theirs.local:
            yield _found(path, "FIELD_NAMED_TYPE_CHANGED", changed)
        elif not (ours.own and theirs.own) and ours.message != theirs.message:
            pair = (new.shape.text, old.shape.text)
            if pair in self.open:
                return
            self.open.add(pair)
            below = list(self._message(ours.message, theirs.message, "#/" + ours.local.replace(".", "/")))
            yield from below
            self.open.discard(pair)
            if below:
                yield _found(path, "FIELD_NAMED_TYPE_CHANGED", f"the message of {what} changed incompatibly")


def _labels(new: Member, old: Member, path: str, what: str) -> Iterator[Incompatibility]:
    """Texts and bytes are read as one value or as several, whatever was written."""
    repeated = (new.label is Label.REPEATED) != (old.label is Label.REPEATED)
    stated = Label.NONE not in (new.label, old.label) and new.label is not old.label
    if (repeated or stated) and new.shape.wire != "length":
        message = f"{what} changed from {old.label.value} to {new.label.value}"
        yield _found(path, "FIELD_NUMERIC_LABEL_CHANGED", message)


def _removed(old: Member, kept_oneofs: set[str], path: str) -> Iterator[Incompatibility]:
    """A reader skips an optional field that it does not know. Of a oneof it would not know that another field is set."""
    if old.oneof in kept_oneofs:
        message = f'{old.title} was removed from oneof "{old.oneof}"'
        yield _found(f"{path}/{old.oneof}/{old.name}", "ONEOF_FIELD_REMOVED", message)
    elif old.oneof is None and old.label is Label.REQUIRED:
        yield _found(f"{path}/{old.name}", "REQUIRED_FIELD_REMOVED", f"required {old.title} was removed")


def _oneofs(
    reader: pb.DescriptorProto, new: dict[int, Member], old: dict[int, Member], path: str
) -> Iterator[Incompatibility]:
    """A oneof holds one value: fields that could be set together before must not meet in it."""
    shown = {member.oneof for member in new.values()}
    for oneof in (found.name for found in reader.oneof_decl if found.name in shown):
        sources = [old[number] for number, member in new.items() if member.oneof == oneof and number in old]
        single = sum(member.oneof is None for member in sources)
        shared = {member.oneof for member in sources if member.oneof is not None}
        here, what = f"{path}/{oneof}", f'oneof "{oneof}"'
        if single > 1 or (single == 0 and len(shared) > 1):
            yield _found(here, "MULTIPLE_FIELDS_MOVED_TO_ONEOF", f"several fields were moved into {what}")
        elif single == 1 and shared:
            message = f"a field was moved into {what}, which had fields already"
            yield _found(here, "FIELD_MOVED_TO_EXISTING_ONEOF", message)


def _found(path: str, kind: str, message: str) -> Incompatibility:
    return Incompatibility(path, kind, f"{message} at {path}")
