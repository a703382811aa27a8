"""A record to a file with one message, and all that it needs inside of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    SourceCodeInfo,
)

from headgate.schema.errors import UnresolvedType
from headgate.schema.formats.errors import SchemaTooDeep, UnsupportedType
from headgate.schema.formats.proto_text.cursor import Path
from headgate.schema.formats.proto_text.literals import is_identifier, json_name, map_entry_name
from headgate.schema.formats.proto_text.messages import MAX_DEPTH, add_synthetic_oneofs
from headgate.schema.formats.protobuf.docs import comment_at
from headgate.schema.formats.protobuf.names import (
    FILES,
    are_symbols,
    field_names,
    free,
    json_names,
    type_name,
)
from headgate.schema.formats.protobuf.numbers import Made, number_fields, number_symbols
from headgate.schema.types import (
    Array,
    Bigint,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Double,
    Enum,
    Field,
    Integer,
    Json,
    Map,
    Named,
    Real,
    Record,
    Scalar,
    Text,
    Time,
    Timestamp,
    TimestampTz,
    Type,
    Uuid,
)

_F = FieldDescriptorProto


def to_protobuf(
    record: Record, *, name: str, package: str, previous: FileDescriptorProto | None = None
) -> FileDescriptorProto:
    """A proto3 file whose first message, `package.name`, has the record's columns; names resolved, docs as comments.

    Fields are numbered from 1; with `previous`, the file generated before, a column keeps its number as long as its
    old values can be read, new ones get numbers never used, and those of removed columns are reserved. A nullable
    scalar is `optional`. Raises `UnsupportedType`, `UnresolvedType` or `SchemaTooDeep`, each with the path.
    """
    file = FileDescriptorProto(
        syntax="proto3", name="/".join((*filter(None, package.split(".")), f"{name}.proto"))
    )
    if package:
        file.package = package
    writer = _Writer()
    before = (
        next((found for found in previous.message_type if found.name == name), None) if previous else None
    )
    full = f".{package}.{name}" if package else f".{name}"
    message = writer.message(record, _Place(full, (4, 0), "$", before))
    message.name = name
    file.message_type.append(message)
    file.dependency.extend(sorted(writer.imports))
    file.source_code_info.location.extend(writer.comments)
    return file


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a message is being made: its full name, its path in the descriptor, the column's path, its old self."""

    name: str
    path: Path
    column: str
    previous: DescriptorProto | None

    def nested(self, name: str, index: int, column: str, previous: DescriptorProto | None) -> _Place:
        if len(self.path) // 2 >= MAX_DEPTH:
            raise SchemaTooDeep("Protobuf", column)
        return _Place(f"{self.name}.{name}", (*self.path, 3, index), column, previous)


@dataclass(frozen=True, slots=True)
class _Home:
    """A message under construction, its old self and the names that are taken in it."""

    message: DescriptorProto
    place: _Place
    before: Made
    taken: set[str]
    entries: dict[str, DescriptorProto]  # of maps


@dataclass(frozen=True, slots=True)
class _Value:
    """One value to be typed: the field that messages are named after, its type and path, what held it before."""

    base: str
    type: Type
    path: str
    old: FieldDescriptorProto | None


class _Writer:
    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.comments: list[SourceCodeInfo.Location] = []

    def message(self, record: Record, place: _Place) -> DescriptorProto:
        self._comment(place.path, record.doc)
        message = DescriptorProto()
        names = field_names((column.name for column in record.fields), place.column)
        spelt = json_names(names)
        if len({json_name(field) for field in names.values()}) < len(names):
            message.options.deprecated_legacy_json_field_conflicts = True  # else protoc refuses aB beside a_b
        home = _Home(message, place, Made(place.previous), {*names.values()}, {})
        for column in record.fields:
            if isinstance(column.type, Map):
                _add_entry(home, names[column.name], f"{place.column}.{column.name}")
        for index, column in enumerate(record.fields):
            field = message.field.add(
                name=names[column.name], json_name=spelt[column.name], label=_F.LABEL_OPTIONAL
            )
            self._column(home, field, column)
            self._comment((*place.path, 2, index), column.doc)
        number_fields(message, place.previous)
        add_synthetic_oneofs(message)
        return message

    def _column(self, home: _Home, field: FieldDescriptorProto, column: Field) -> None:
        path = f"{home.place.column}.{column.name}"
        old = home.before.fields.get(column.name)
        match column.type:
            case Array(element):
                field.label = _F.LABEL_REPEATED
                self._single(home, field, _Value(field.name, element, f"{path}[]", old))
            case Map(value):
                field.label = _F.LABEL_REPEATED
                inner = _Value(field.name, value, f"{path}{{}}", home.before.values_of(old))
                self._map(home, field, inner)
            case _:
                self._single(home, field, _Value(field.name, column.type, path, old))
                if column.nullable and field.type != _F.TYPE_MESSAGE:
                    field.proto3_optional = True

    def _single(self, home: _Home, field: FieldDescriptorProto, value: _Value) -> None:
        match value.type:
            case Array() | Map():
                wrapped = Record((Field("items", value.type, nullable=False),))
                self._record(home, field, type_name(value.base, "Items"), wrapped, value)
            case Record():
                self._record(home, field, type_name(value.base, ""), value.type, value)
            case Enum() if are_symbols(value.type.symbols):
                self._enum(home, field, value.type, value)
            case Named():
                raise UnresolvedType(value.path, ".".join(value.type.parts))
            case _:
                field.type, field.type_name = _scalar(value.type)
                if field.type_name:
                    self.imports.add(FILES[field.type_name])
                else:
                    field.ClearField("type_name")

    def _record(
        self, home: _Home, field: FieldDescriptorProto, name: str, record: Record, value: _Value
    ) -> None:
        name = free(name, home.taken)
        nested = home.message.nested_type.add()
        previous = home.before.message_of(value.old)
        place = home.place.nested(name, len(home.message.nested_type) - 1, value.path, previous)
        nested.CopyFrom(self.message(record, place))
        nested.name = name
        field.type, field.type_name = _F.TYPE_MESSAGE, place.name

    def _enum(self, home: _Home, field: FieldDescriptorProto, type_: Enum, value: _Value) -> None:
        """In a message of its own, because the symbols of an enum are names in whatever it is declared in."""
        name = free(type_name(value.base, "Enum"), home.taken)
        nested = home.message.nested_type.add(name=name)
        previous = home.before.message_of(value.old)
        place = home.place.nested(name, len(home.message.nested_type) - 1, value.path, previous)
        enum = nested.enum_type.add(name="Value")
        if "Value" in type_.symbols:
            enum.name = free("Values", set(type_.symbols))
        old = place.previous.enum_type if place.previous else ()
        number_symbols(enum, type_.symbols, old[0] if old else None)
        self._comment((*place.path, 4, 0), type_.doc)
        field.type, field.type_name = _F.TYPE_ENUM, f"{place.name}.{enum.name}"

    def _map(self, home: _Home, field: FieldDescriptorProto, value: _Value) -> None:
        name = map_entry_name(field.name)
        self._single(home, home.entries[name].field[1], value)
        field.type, field.type_name = _F.TYPE_MESSAGE, f"{home.place.name}.{name}"

    def _comment(self, path: Path, doc: str | None) -> None:
        if doc and doc.strip():
            self.comments.append(comment_at(path, doc))


def _add_entry(home: _Home, field: str, path: str) -> None:
    """The message of a map field, its value's type still open."""
    name = map_entry_name(field)
    if name in home.taken or not is_identifier(name):
        why = f'the message "{name}" that Protobuf makes for a map has no name of its own'
        raise UnsupportedType(path, "Protobuf", "map", why, "another column name")
    home.taken.add(name)
    entry = home.message.nested_type.add(name=name)
    home.entries[name] = entry
    entry.options.map_entry = True
    entry.field.add(name="key", json_name="key", number=1, label=_F.LABEL_OPTIONAL, type=_F.TYPE_STRING)
    entry.field.add(name="value", json_name="value", number=2, label=_F.LABEL_OPTIONAL)


def _scalar(type_: Scalar) -> tuple[_F.Type.ValueType, str]:
    match type_:
        case Boolean():
            return _F.TYPE_BOOL, ""
        case Integer():
            return _F.TYPE_INT32, ""
        case Bigint():
            return _F.TYPE_INT64, ""
        case Real():
            return _F.TYPE_FLOAT, ""
        case Double():
            return _F.TYPE_DOUBLE, ""
        case Text() | Decimal() | Timestamp() | Uuid() | Enum():
            return _F.TYPE_STRING, ""
        case Bytes():
            return _F.TYPE_BYTES, ""
        case Date():
            return _F.TYPE_MESSAGE, ".google.type.Date"
        case Time():
            return _F.TYPE_MESSAGE, ".google.type.TimeOfDay"
        case TimestampTz():
            return _F.TYPE_MESSAGE, ".google.protobuf.Timestamp"
        case Json():
            return _F.TYPE_MESSAGE, ".google.protobuf.Value"
        case _:
            assert_never(type_)
