"""Write a record as a file with one message. What the columns need, messages and enums, is nested in it.

Field numbers are stable: a column keeps its number from one version to the next, and a number is never used twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from google.protobuf import descriptor_pb2 as pb

from headgate.schema import types as t
from headgate.schema.errors import SchemaTooDeep, UnresolvedType, UnsupportedType
from headgate.schema.formats.protobuf.names import (
    are_symbols,
    columns_of,
    enum_name,
    field_names,
    free,
    is_identifier,
    json_name,
    json_names,
    map_entry_name,
    type_name,
)

_F = pb.FieldDescriptorProto
Path: TypeAlias = tuple[int, ...]  # of a declaration in its file, as `SourceCodeInfo.Location.path`
MAX_MESSAGE_DEPTH = 31  # protoc's own limit of messages within messages
_RESERVED_NUMBERS = range(19000, 20000)  # Protobuf keeps these field numbers for itself
# The messages that are not made for a column, and the files that have them.
FILES: Mapping[str, str] = {
    ".google.type.Date": "google/type/date.proto",
    ".google.type.TimeOfDay": "google/type/timeofday.proto",
    ".google.protobuf.Timestamp": "google/protobuf/timestamp.proto",
    ".google.protobuf.Value": "google/protobuf/struct.proto",
}


def to_protobuf(
    record: t.Record,
    *,
    name: str,
    package: str,
    previous: pb.FileDescriptorProto | None = None,
    same_numbers: bool = False,
) -> pb.FileDescriptorProto:
    """A proto3 file whose first message, `package.name`, has the record's columns. Docs become comments.

    Fields are numbered from 1; with `previous`, the file generated before, a column keeps its number as long as its
    old values can be read, new ones get numbers never used, and those of removed columns are reserved. With
    `same_numbers` a column keeps its number whatever its type becomes. A nullable scalar is `optional`. Raises `UnsupportedType`, `UnresolvedType` or `SchemaTooDeep`, each with the path.
    """
    file = pb.FileDescriptorProto(syntax="proto3", name="/".join((*filter(None, package.split(".")), f"{name}.proto")))
    if package:
        file.package = package
    writer = _Writer(same_numbers)
    before = next((found for found in previous.message_type if found.name == name), None) if previous else None
    full = f".{package}.{name}" if package else f".{name}"
    message = writer.message(record, _Target(full, (4, 0), "$", before))
    message.name = name
    file.message_type.append(message)
    file.dependency.extend(sorted(writer.imports))
    file.source_code_info.location.extend(writer.comments)
    return file


@dataclass(frozen=True, slots=True)
class _Target:
    """The message to make: its full name, its path in the descriptor, the path of its column, its previous version."""

    name: str
    path: Path
    column: str
    previous: pb.DescriptorProto | None

    def nested(self, name: str, index: int, column: str, previous: pb.DescriptorProto | None) -> _Target:
        """The same for a message that is nested in this one."""
        if len(self.path) // 2 >= MAX_MESSAGE_DEPTH:
            raise SchemaTooDeep("Protobuf", column)
        return _Target(f"{self.name}.{name}", (*self.path, 3, index), column, previous)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A message under construction, its previous version, and the names that are taken in it."""

    message: pb.DescriptorProto
    target: _Target
    before: MessageIndex
    taken: set[str]
    entries: dict[str, pb.DescriptorProto]  # the messages of maps, by name


@dataclass(frozen=True, slots=True)
class _Value:
    """A value that needs a type: the field that names its message, its type and path, and its previous field."""

    base: str
    type: t.Type
    path: str
    old: pb.FieldDescriptorProto | None


class _Writer:
    """Makes one file. ``imports`` and ``comments`` are collected on the way."""

    def __init__(self, same_numbers: bool) -> None:
        self.same_numbers = same_numbers
        self.imports: set[str] = set()
        self.comments: list[pb.SourceCodeInfo.Location] = []

    def message(self, record: t.Record, target: _Target) -> pb.DescriptorProto:
        self._comment(target.path, record.doc)
        message = pb.DescriptorProto()
        before = MessageIndex(target.previous)
        published = {column: field.name for column, field in before.fields.items()}
        names = field_names((column.name for column in record.fields), target.column, published)
        spelt = json_names(names)
        if len({json_name(field) for field in names.values()}) < len(names):
            message.options.deprecated_legacy_json_field_conflicts = True  # Otherwise protoc refuses aB beside a_b.
        draft = _Draft(message, target, before, {*names.values()}, {})
        for column in record.fields:
            if isinstance(column.type, t.Map):
                _add_entry(draft, names[column.name], f"{target.column}.{column.name}")
        for index, column in enumerate(record.fields):
            field = message.field.add(name=names[column.name], json_name=spelt[column.name], label=_F.LABEL_OPTIONAL)
            self._column(draft, field, column)
            self._comment((*target.path, 2, index), column.doc)
        number_fields(message, target.previous, same_numbers=self.same_numbers)
        _add_synthetic_oneofs(message)
        return message

    def _column(self, draft: _Draft, field: pb.FieldDescriptorProto, column: t.Field) -> None:
        """Set the type and the label of a column's field."""
        path = f"{draft.target.column}.{column.name}"
        old = draft.before.fields.get(column.name)
        match column.type:
            case t.Array(element):
                field.label = _F.LABEL_REPEATED
                self._single(draft, field, _Value(field.name, element, f"{path}[]", old))
            case t.Map(value):
                field.label = _F.LABEL_REPEATED
                inner = _Value(field.name, value, f"{path}{{}}", draft.before.values_of(old))
                self._map(draft, field, inner)
            case _:
                self._single(draft, field, _Value(field.name, column.type, path, old))
                if column.nullable and field.type != _F.TYPE_MESSAGE:
                    field.proto3_optional = True

    def _single(self, draft: _Draft, field: pb.FieldDescriptorProto, value: _Value) -> None:
        """Set the type of one value. An array in an array needs a message around it, because Protobuf cannot
        nest lists."""
        match value.type:
            case t.Array() | t.Map():
                wrapped = t.Record((t.Field("items", value.type, nullable=False),))
                self._record(draft, field, type_name(value.base, "Items"), wrapped, value)
            case t.Record():
                self._record(draft, field, type_name(value.base, ""), value.type, value)
            case t.Enum() if _fits_enum(value.type, draft.before.message_of(value.old)):
                self._enum(draft, field, value.type, value)
            case t.Named():
                raise UnresolvedType(value.path, ".".join(value.type.parts))
            case _:
                field.type, field.type_name = _SCALARS[type(value.type)]
                if field.type_name:
                    self.imports.add(FILES[field.type_name])
                else:
                    field.ClearField("type_name")

    def _record(
        self, draft: _Draft, field: pb.FieldDescriptorProto, name: str, record: t.Record, value: _Value
    ) -> None:
        """Nest the message of a record and refer to it."""
        name = free(name, draft.taken)
        nested = draft.message.nested_type.add()
        previous = draft.before.message_of(value.old)
        target = draft.target.nested(name, len(draft.message.nested_type) - 1, value.path, previous)
        nested.CopyFrom(self.message(record, target))
        nested.name = name
        field.type, field.type_name = _F.TYPE_MESSAGE, target.name

    def _enum(self, draft: _Draft, field: pb.FieldDescriptorProto, type_: t.Enum, value: _Value) -> None:
        """The enum gets a message of its own, because its symbols are names of the scope that declares it."""
        name = free(type_name(value.base, "Enum"), draft.taken)
        nested = draft.message.nested_type.add(name=name)
        previous = draft.before.message_of(value.old)
        target = draft.target.nested(name, len(draft.message.nested_type) - 1, value.path, previous)
        enum = nested.enum_type.add()
        old = target.previous.enum_type if target.previous else ()
        number_symbols(enum, type_.symbols, old[0] if old else None)
        enum.name = enum_name(symbol.name for symbol in enum.value)
        self._comment((*target.path, 4, 0), type_.doc)
        field.type, field.type_name = _F.TYPE_ENUM, f"{target.name}.{enum.name}"

    def _map(self, draft: _Draft, field: pb.FieldDescriptorProto, value: _Value) -> None:
        name = map_entry_name(field.name)
        self._single(draft, draft.entries[name].field[1], value)
        field.type, field.type_name = _F.TYPE_MESSAGE, f"{draft.target.name}.{name}"

    def _comment(self, path: Path, doc: str | None) -> None:
        if doc and doc.strip():
            self.comments.append(comment_at(path, doc))


def _add_entry(draft: _Draft, field: str, path: str) -> None:
    """Add the message of a map field. The type of its values is set later."""
    name = map_entry_name(field)
    if name in draft.taken or not is_identifier(name):
        why = f'the message "{name}" that Protobuf makes for a map has no name of its own'
        raise UnsupportedType(path, "Protobuf", "map", why, "another column name")
    draft.taken.add(name)
    entry = draft.message.nested_type.add(name=name)
    draft.entries[name] = entry
    entry.options.map_entry = True
    entry.field.add(name="key", json_name="key", number=1, label=_F.LABEL_OPTIONAL, type=_F.TYPE_STRING)
    entry.field.add(name="value", json_name="value", number=2, label=_F.LABEL_OPTIONAL)


def _fits_enum(type_: t.Enum, previous: pb.DescriptorProto | None) -> bool:
    """Whether a Protobuf enum can have all symbols of the type, and those that it keeps."""
    return are_symbols({*_kept_symbols(previous), *type_.symbols})


def _kept_symbols(previous: pb.DescriptorProto | None) -> list[str]:
    """The symbol of number 0 of an enum that was made before. It stays, because proto3 needs one."""
    enums = previous.enum_type if previous is not None else ()
    return [value.name for enum in enums for value in enum.value if value.number == 0]


def _add_synthetic_oneofs(message: pb.DescriptorProto) -> None:
    """Add the oneof that protoc makes for every optional field of proto3, under a name that is still free."""
    names = {field.name for field in message.field}
    for field in message.field:
        if field.proto3_optional:
            name = field.name if field.name.startswith("_") else f"_{field.name}"
            while name in names:
                name = "X" + name
            names.add(name)
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=name)


# The field type of each scalar, and the message that is written for it.
_SCALARS: Mapping[type, tuple[_F.Type.ValueType, str]] = {
    t.Boolean: (_F.TYPE_BOOL, ""),
    t.Integer: (_F.TYPE_INT32, ""),
    t.Bigint: (_F.TYPE_INT64, ""),
    t.Real: (_F.TYPE_FLOAT, ""),
    t.Double: (_F.TYPE_DOUBLE, ""),
    **dict.fromkeys((t.Text, t.Decimal, t.Timestamp, t.Uuid, t.Enum), (_F.TYPE_STRING, "")),
    t.Bytes: (_F.TYPE_BYTES, ""),
    t.Date: (_F.TYPE_MESSAGE, ".google.type.Date"),
    t.Time: (_F.TYPE_MESSAGE, ".google.type.TimeOfDay"),
    t.TimestampTz: (_F.TYPE_MESSAGE, ".google.protobuf.Timestamp"),
    t.Json: (_F.TYPE_MESSAGE, ".google.protobuf.Value"),
}


class MessageIndex:
    """A message with its fields by column and its nested messages by name. Without a message, both are empty."""

    def __init__(self, message: pb.DescriptorProto | None) -> None:
        self.message = message or pb.DescriptorProto()
        self.fields = dict(zip(columns_of(self.message), self.message.field, strict=True))
        self._nested = {nested.name: nested for nested in self.message.nested_type}

    def values_of(self, field: pb.FieldDescriptorProto | None) -> pb.FieldDescriptorProto | None:
        """The field that holds the values of a map; None if the field is no map."""
        entry = self.message_of(field)
        return entry.field[1] if entry is not None and entry.options.map_entry else None

    def message_of(self, field: pb.FieldDescriptorProto | None) -> pb.DescriptorProto | None:
        """The message that was made for a field or around its enum.

        It is found through the field and not by its name: names of messages depend on the order of the columns.
        """
        if field is None or field.type_name in FILES:
            return None
        full = field.type_name.rpartition(".")[0] if field.type == _F.TYPE_ENUM else field.type_name
        return self._nested.get(full.rpartition(".")[2])


def number_fields(
    message: pb.DescriptorProto, previous: pb.DescriptorProto | None, *, same_numbers: bool = False
) -> None:
    """Give every field its number, and reserve the numbers and names of those that are gone. With `same_numbers` a
    field whose old values cannot be read keeps its number, too."""
    old, new = MessageIndex(previous), MessageIndex(message)
    before = old.message
    for column, field in new.fields.items():
        if (same := old.fields.get(column)) and (same_numbers or _is_read_alike(old, same, new, field)):
            field.number = same.number
    reserved = {number for found in before.reserved_range for number in range(found.start, found.end)}
    following = max({field.number for field in before.field} | reserved, default=0) + 1
    for field in message.field:
        if not field.number:
            following = _RESERVED_NUMBERS.stop if following in _RESERVED_NUMBERS else following
            field.number, following = following, following + 1
    gone = {field.number for field in before.field} - {field.number for field in message.field}
    for number in sorted(reserved | gone):
        message.reserved_range.add(start=number, end=number + 1)
    names = {field.name for field in message.field}
    message.reserved_name.extend(_without((*before.reserved_name, *(field.name for field in before.field)), names))


def number_symbols(
    enum: pb.EnumDescriptorProto, symbols: Iterable[str], previous: pb.EnumDescriptorProto | None
) -> None:
    """Give every symbol its number. The symbol of number 0 stays, because proto3 needs one."""
    before = previous or pb.EnumDescriptorProto()
    old = {value.name: value.number for value in before.value}
    reserved = {number for found in before.reserved_range for number in range(found.start, found.end + 1)}
    following = max({*old.values(), *reserved}, default=-1) + 1
    numbers = {name: number for name, number in old.items() if number == 0}
    for symbol in symbols:
        if symbol not in numbers:
            numbers[symbol] = old.get(symbol, following)
            following += symbol not in old
    for name, number in numbers.items():
        enum.value.add(name=name, number=number)
    for number in sorted((reserved | set(old.values())) - set(numbers.values())):
        enum.reserved_range.add(start=number, end=number)
    enum.reserved_name.extend(_without((*before.reserved_name, *old), set(numbers)))


def _is_read_alike(
    before: MessageIndex, old: pb.FieldDescriptorProto, after: MessageIndex, new: pb.FieldDescriptorProto
) -> bool:
    """Whether the new field reads every old value unchanged.

    The wire allows more, which is not enough: an int64 that is read as int32 is cut, a bool becomes a number, and a
    value of a map that has another type becomes empty.
    """
    if (old.label == _F.LABEL_REPEATED) != (new.label == _F.LABEL_REPEATED):
        return False
    if old.type != new.type:
        return (old.type, new.type) == (_F.TYPE_INT32, _F.TYPE_INT64)
    if old.type != _F.TYPE_MESSAGE:
        return True
    was, becomes = before.values_of(old), after.values_of(new)
    if was is not None and becomes is not None:
        return _is_read_alike(before, was, after, becomes)
    if was is not None or becomes is not None:
        return False
    # A message made for the column has the numbers of the old one, whatever the two are called.
    return old.type_name == new.type_name or not {old.type_name, new.type_name} & FILES.keys()


def _without(names: Iterable[str], used: set[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name not in used]


def comment_at(path: Path, doc: str) -> pb.SourceCodeInfo.Location:
    """The doc of a declaration as its comment. It has no position, because there is no text yet."""
    lines = (f" {line}".rstrip() for line in doc.strip().split("\n"))
    return pb.SourceCodeInfo.Location(
        path=path, span=[0, 0, 0], leading_comments="".join(f"{line}\n" for line in lines)
    )
