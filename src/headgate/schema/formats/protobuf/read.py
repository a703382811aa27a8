"""Compiled files: a message to a record, and linked descriptors for decoding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from google.protobuf import descriptor_pb2 as pb
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from headgate.errors import similar_names
from headgate.schema import types as t
from headgate.schema.errors import RecursiveSchema, SchemaTooDeep, UnknownMessage, UnsupportedType
from headgate.schema.formats.protobuf.names import columns_of
from headgate.schema.formats.protobuf.protoc import read_files
from headgate.schema.formats.protobuf.write import Path
from headgate.schema.values import dumps
from headgate.schema.written import Member, SizeLimit

_F = pb.FieldDescriptorProto
# Unsigned numbers have one bit more than the signed type of their size, so they take the next larger type.
_SCALARS: Mapping[int, t.Type] = {
    **dict.fromkeys((_F.TYPE_INT32, _F.TYPE_SINT32, _F.TYPE_SFIXED32), t.Integer()),
    **dict.fromkeys((_F.TYPE_INT64, _F.TYPE_SINT64, _F.TYPE_SFIXED64), t.Bigint()),
    **dict.fromkeys((_F.TYPE_UINT32, _F.TYPE_FIXED32), t.Bigint()),
    **dict.fromkeys((_F.TYPE_UINT64, _F.TYPE_FIXED64), t.Decimal(20, 0)),
    _F.TYPE_DOUBLE: t.Double(),
    _F.TYPE_FLOAT: t.Real(),
    _F.TYPE_BOOL: t.Boolean(),
    _F.TYPE_STRING: t.Text(),
    _F.TYPE_BYTES: t.Bytes(),
}
# Messages of Protobuf's own that stand for one value.
_WELL_KNOWN: Mapping[str, t.Type] = {
    ".google.protobuf.Timestamp": t.TimestampTz(),
    ".google.type.Date": t.Date(),
    ".google.type.TimeOfDay": t.Time(),
    ".google.protobuf.Struct": t.Json(),
    ".google.protobuf.Value": t.Json(),
    ".google.protobuf.ListValue": t.Json(),
    ".google.protobuf.DoubleValue": t.Double(),
    ".google.protobuf.FloatValue": t.Real(),
    ".google.protobuf.Int64Value": t.Bigint(),
    ".google.protobuf.UInt64Value": t.Decimal(20, 0),
    ".google.protobuf.Int32Value": t.Integer(),
    ".google.protobuf.UInt32Value": t.Bigint(),
    ".google.protobuf.BoolValue": t.Boolean(),
    ".google.protobuf.StringValue": t.Text(),
    ".google.protobuf.BytesValue": t.Bytes(),
}


def from_protobuf(
    file: pb.FileDescriptorProto, message: str | None = None, dependencies: Sequence[pb.FileDescriptorProto] = ()
) -> t.Record:
    """The columns of a message of a compiled file, with docs from comments.

    `message` is a full name or one without package; None means the first message, as registries have it.
    `dependencies` are the files that it imports, also indirectly. NOT NULL is what cannot be missing: proto3 scalars
    without `optional`, required fields, lists and maps. Raises `UnknownMessage`, `RecursiveSchema`, `SchemaTooDeep`,
    `SchemaTooLarge` or `UnsupportedType`.
    """
    reader = _Reader(file, dependencies)
    return reader.record(reader.choose(message), "$", ())


def numbered_fields(
    file: pb.FileDescriptorProto, message: str | None = None, dependencies: Sequence[pb.FileDescriptorProto] = ()
) -> tuple[Member, ...]:
    """The fields of a message, to be compared with those of another version."""
    reader = _Reader(file, dependencies)
    return reader.numbered(reader.choose(message), ())


@dataclass(frozen=True, slots=True)
class _Message:
    """A message with its file, its path there, and whether its fields have presence by default."""

    proto: pb.DescriptorProto
    file: pb.FileDescriptorProto
    path: Path
    presence: pb.FeatureSet.FieldPresence.ValueType


@dataclass(frozen=True, slots=True)
class _EnumType:
    proto: pb.EnumDescriptorProto
    file: pb.FileDescriptorProto
    path: Path


class _Reader:
    """Reads messages of one file and of those that it imports, all known by full name."""

    def __init__(self, file: pb.FileDescriptorProto, dependencies: Sequence[pb.FileDescriptorProto]) -> None:
        self.file = file
        self._messages: dict[str, _Message] = {}
        self._enums: dict[str, _EnumType] = {}
        self._docs: dict[str, Mapping[Path, str]] = {}
        self._size_limit = SizeLimit("Protobuf")
        for other in (*dependencies, file):
            self._index(other)

    def choose(self, name: str | None) -> str:
        """The full name of a message of the file that is given with or without its package.

        Messages of imported files are not found: a record names its message by its place in the file itself.
        """
        package = f".{self.file.package}" if self.file.package else ""
        if name is None:
            if not self.file.message_type:
                raise UnknownMessage("")
            return f"{package}.{self.file.message_type[0].name}"
        own = [full for full, message in self._messages.items() if message.file is self.file]
        for full in (f".{name.removeprefix('.')}", f"{package}.{name}"):
            if full in own:
                return full
        raise UnknownMessage(name, similar_names(name, (known[1:] for known in own)))

    def numbered(self, name: str, outer: tuple[str, ...]) -> tuple[Member, ...]:
        """The fields of a message by number. A message inside itself, and a well-known one, have none."""
        found = self._messages.get(name)
        if found is None or name in outer or name in _WELL_KNOWN:
            return ()
        fields = zip(columns_of(found.proto), found.proto.field, strict=True)
        return tuple(Member(column, (), f.number, self._held(f, (*outer, name))) for column, f in fields)

    def _held(self, field: pb.FieldDescriptorProto, outer: tuple[str, ...]) -> tuple[Member, ...]:
        """The fields of the message that a field holds; of a map, those of its values."""
        inner = self._messages.get(field.type_name) if field.type == _F.TYPE_MESSAGE else None
        if inner is not None and inner.proto.options.map_entry:
            return self._held(inner.proto.field[1], outer)
        return self.numbered(field.type_name, outer) if inner is not None else ()

    def record(self, name: str, path: str, outer: tuple[str, ...]) -> t.Record:
        """The columns of a message. `outer` are the messages around it."""
        if name in outer:
            raise RecursiveSchema("Protobuf", path, name[1:])
        if len(outer) >= t.MAX_DEPTH:
            raise SchemaTooDeep("Protobuf", path)
        found = self._messages[name]
        docs = self._docs_of(found.file)
        columns = columns_of(found.proto)
        fields = tuple(
            self._field(found, index, columns[index], docs.get((*found.path, 2, index)), path, (*outer, name))
            for index in range(len(columns))
        )
        return t.Record(fields, name[1:], docs.get(found.path))

    def _field(
        self, owner: _Message, index: int, name: str, doc: str | None, path: str, outer: tuple[str, ...]
    ) -> t.Field:
        """The column of a field. Lists and maps are never null: Protobuf has no such value."""
        field = owner.proto.field[index]
        here = f"{path}.{name}"
        self._size_limit.count(1, here)
        doc = doc or _meta_of(field.options).doc or None
        entry = self._messages.get(field.type_name) if field.type == _F.TYPE_MESSAGE else None
        if entry is not None and entry.proto.options.map_entry:
            value = self._type(entry.proto.field[1], f"{here}{{}}", outer)
            return t.Field(name, t.Map(value, value_nullable=False), False, doc, "{}")
        if field.label == _F.LABEL_REPEATED:
            element = self._type(field, f"{here}[]", outer)
            return t.Field(name, t.Array(element, element_nullable=False), False, doc, "[]")
        type_, nullable = self._type(field, here, outer), self._is_nullable(owner, field)
        required = field.label == _F.LABEL_REQUIRED or field.type in (_F.TYPE_MESSAGE, _F.TYPE_GROUP)
        return t.Field(name, type_, nullable, doc, None if nullable or required else _zero(type_))

    def _is_nullable(self, owner: _Message, field: pb.FieldDescriptorProto) -> bool:
        """Whether a field can be missing, which depends on the syntax, the edition and the field."""
        if field.label == _F.LABEL_REQUIRED:
            return False
        if field.HasField("oneof_index") or field.type in (_F.TYPE_MESSAGE, _F.TYPE_GROUP):
            return field.options.features.field_presence != pb.FeatureSet.LEGACY_REQUIRED
        return (field.options.features.field_presence or owner.presence) == pb.FeatureSet.EXPLICIT

    def _type(self, field: pb.FieldDescriptorProto, path: str, outer: tuple[str, ...]) -> t.Type:
        """The type of one value of the field."""
        match field.type:
            case _F.TYPE_ENUM:
                return self._enum(field.type_name)
            case _F.TYPE_MESSAGE | _F.TYPE_GROUP:
                known = _WELL_KNOWN.get(field.type_name) or _confluent_decimal(field, path)
                return known or self.record(field.type_name, path, outer)
            case _:
                return _SCALARS[field.type]

    def _enum(self, name: str) -> t.Enum:
        found = self._enums[name]
        symbols = tuple(value.name for value in found.proto.value)
        return t.Enum(symbols, name[1:], None, self._docs_of(found.file).get(found.path))

    def _docs_of(self, file: pb.FileDescriptorProto) -> Mapping[Path, str]:
        if file.name not in self._docs:
            self._docs[file.name] = _docs_of(file)
        return self._docs[file.name]

    def _index(self, file: pb.FileDescriptorProto) -> None:
        scope = f".{file.package}" if file.package else ""
        presence = file.options.features.field_presence or _presence(file)
        for index, message in enumerate(file.message_type):
            for name, found in _nested(_Message(message, file, (4, index), presence), scope):
                self._messages[name] = found
                for number, enum in enumerate(found.proto.enum_type):
                    self._enums[f"{name}.{enum.name}"] = _EnumType(enum, file, (*found.path, 4, number))
        for index, enum in enumerate(file.enum_type):
            self._enums[f"{scope}.{enum.name}"] = _EnumType(enum, file, (5, index))


def _nested(message: _Message, scope: str) -> Iterator[tuple[str, _Message]]:
    """The message and all that are nested in it, by full name."""
    name = f"{scope}.{message.proto.name}"
    presence = message.proto.options.features.field_presence or message.presence
    yield name, _Message(message.proto, message.file, message.path, presence)
    for index, nested in enumerate(message.proto.nested_type):
        yield from _nested(_Message(nested, message.file, (*message.path, 3, index), presence), name)


def _presence(file: pb.FileDescriptorProto) -> pb.FeatureSet.FieldPresence.ValueType:
    return pb.FeatureSet.IMPLICIT if file.syntax == "proto3" else pb.FeatureSet.EXPLICIT


def _confluent_decimal(field: pb.FieldDescriptorProto, path: str) -> t.Type | None:
    """A decimal if precision or scale are known. Otherwise it could hold anything and stays a message."""
    if field.type_name != ".confluent.type.Decimal":
        return None
    params = _meta_of(field.options).params
    precision, scale = params.get("precision", str(t.MAX_PRECISION)), params.get("scale", "0")
    if not params.keys() & {"precision", "scale"} or not (precision.isdecimal() and scale.isdecimal()):
        return None
    if not 1 <= int(precision) <= t.MAX_PRECISION or int(scale) > int(precision):
        why = f"a decimal has at most {t.MAX_PRECISION} digits, and not more of them after the point"
        raise UnsupportedType(path, "Headgate", f"confluent.type.Decimal({precision},{scale})", why)
    return t.Decimal(int(precision), int(scale))


@dataclass(frozen=True, slots=True)
class _Meta:
    """Confluent's option `(confluent.field_meta)`: the doc of a field, and parameters of its type."""

    doc: str = ""
    params: Mapping[str, str] = field(default_factory=dict)


def _meta_of(options: pb.FieldOptions) -> _Meta:
    """The library knows the option only if other code loaded its definition, so that it is read by a pool of our
    own."""
    if not options.ByteSize():
        return _Meta()
    known = GetMessageClass(_meta_pool().FindMessageTypeByName("google.protobuf.FieldOptions"))()
    known.MergeFromString(options.SerializeToString())
    for extension, value in known.ListFields():
        if extension.full_name == "confluent.field_meta":
            return _Meta(value.doc, dict(value.params))
    return _Meta()


@cache
def _meta_pool() -> DescriptorPool:
    return link(read_files('syntax = "proto3"; import "confluent/meta.proto";')).pool


# docs


def _docs_of(file: pb.FileDescriptorProto) -> Mapping[Path, str]:
    """The doc of each declaration: its leading comment, or otherwise the one that trails it."""
    found: dict[Path, str] = {}
    for location in file.source_code_info.location:
        doc = _doc(location.leading_comments or location.trailing_comments)
        if doc:
            found.setdefault(tuple(location.path), doc)
    return found


def _doc(comment: str) -> str:
    lines = [line.removeprefix(" ").rstrip() for line in comment.split("\n")]
    return "\n".join(lines).strip()


# linked descriptors


def link(files: Sequence[pb.FileDescriptorProto]) -> FileDescriptor:
    """The first of the files as Protobuf's library links it. The others are those that `read_files` gives."""
    pool = DescriptorPool()
    for file in (*files[1:], files[0]):
        plain = pb.FileDescriptorProto()
        plain.CopyFrom(file)
        plain.ClearField("source_code_info")
        pool.Add(plain)
    return pool.FindFileByName(files[0].name)


def find_message(file: FileDescriptor, name: str | None) -> Descriptor:
    """A message by its full name or as it is called within the package; None means the first one.

    Raises `UnknownMessage`.
    """
    known = {one.full_name: one for one in _with_nested(file.message_types_by_name.values())}
    if name is None:
        if not known:
            raise UnknownMessage("")
        return next(iter(file.message_types_by_name.values()))
    package = f"{file.package}." if file.package else ""
    found = known.get(name.removeprefix(".")) or known.get(package + name)
    if found is None:
        raise UnknownMessage(name, similar_names(name, known))
    return found


def message_in(files: Sequence[pb.FileDescriptorProto], name: str) -> str | None:
    """The full name of a message of the first file; None if it is in none, or in one that this file imports."""
    try:
        return find_message(link(files), name).full_name
    except UnknownMessage:
        return None


def message_indexes(message: Descriptor) -> tuple[int, ...]:
    """The path of a message type in its file, which a registry's frame holds."""
    outer = message.containing_type
    if outer is None:
        return (list(message.file.message_types_by_name).index(message.name),)
    return (*message_indexes(outer), [one.name for one in outer.nested_types].index(message.name))


def _with_nested(messages: Iterable[Descriptor]) -> list[Descriptor]:
    found = list(messages)
    for one in found:
        found.extend(one.nested_types)
    return found


def _zero(type_: t.Type) -> str:
    """The value of a field that is not set and has no presence, as JSON text."""
    match type_:
        case t.Boolean():
            return "false"
        case t.Integer() | t.Bigint() | t.Decimal():
            return "0"
        case t.Real() | t.Double():
            return "0.0"
        case t.Enum(symbols):
            return dumps(symbols[0])
        case _:
            return '""'
