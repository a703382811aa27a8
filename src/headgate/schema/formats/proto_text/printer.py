"""Descriptors to text. What `parse_proto` reads from it is the same file, but for positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
    OneofDescriptorProto,
    ServiceDescriptorProto,
    SymbolVisibility,
)

from headgate.schema.formats.proto_text.cursor import Path
from headgate.schema.formats.proto_text.extensions import Extensions
from headgate.schema.formats.proto_text.fields import SCALARS
from headgate.schema.formats.proto_text.literals import MAX_INT32, json_name, quote
from headgate.schema.formats.proto_text.options import Options
from headgate.schema.formats.proto_text.print_options import print_options
from headgate.schema.formats.proto_text.ranges import MAX_FIELD_NUMBER
from headgate.schema.formats.proto_text.writer import Item, Writer

_SCALAR_NAMES = {number: name for name, number in SCALARS.items()}


def print_proto(file: FileDescriptorProto, dependencies: Sequence[FileDescriptorProto] = ()) -> str:
    """The text of a descriptor, comments included, names as they are in it.

    Statements are in the order in which they were written, where the descriptor knows it. A compiled file holds its
    custom options as bytes: they are printed if the file itself, one of `dependencies` or a well-known file defines
    them; what nobody defines has no name and is left out.
    """
    return _Printer(file, Extensions(file, dependencies)).print()


@dataclass(frozen=True, slots=True)
class _Level:
    """The messages that are declared side by side, by name, and the path of their list."""

    messages: Mapping[str, tuple[int, DescriptorProto]]
    path: Path

    @classmethod
    def of(cls, messages: Sequence[DescriptorProto], path: Path) -> _Level:
        return cls({message.name: (index, message) for index, message in enumerate(messages)}, path)


class _Printer:
    def __init__(self, file: FileDescriptorProto, extensions: Extensions) -> None:
        self.file, self.out, self.extensions = file, Writer(file), extensions
        self.syntax = file.syntax or "proto2"

    def print(self) -> str:
        self._head()
        for emit in self.out.in_order(self._top_level()):
            self.out.blank()
            emit()
        lines = self.out.lines
        while lines and not lines[-1]:
            lines.pop()
        return "\n".join(lines) + "\n"

    def _head(self) -> None:
        file, out = self.file, self.out
        first = (
            f'edition = "{Edition.Name(file.edition)[8:]}"'
            if self.syntax == "editions"
            else f'syntax = "{self.syntax}"'
        )
        out.declare((12,), f"{first};")
        if file.package:
            out.blank()
            out.declare((2,), f"package {file.package};")
        for index, name in enumerate(file.dependency):
            out.blank() if index == 0 else None
            kind = (
                "public "
                if index in file.public_dependency
                else "weak "
                if index in file.weak_dependency
                else ""
            )
            out.declare((3, index), f"import {kind}{quote(name)};")
        for index, name in enumerate(file.option_dependency):
            out.declare((15, index), f"import option {quote(name)};")
        if file.HasField("options"):
            out.blank()
            self._option_statements(file.options, (8,))

    def _top_level(self) -> Iterator[Item]:
        groups = {_local(field) for field in self.file.extension if _is_group(field)}
        for index, message in enumerate(self.file.message_type):
            if message.name not in groups:
                yield (4, index), partial(self._message, message, (4, index))
        for index, enum in enumerate(self.file.enum_type):
            yield (5, index), partial(self._enum, enum, (5, index))
        yield from self._extends(self.file.extension, (7,), _Level.of(self.file.message_type, (4,)))
        for index, service in enumerate(self.file.service):
            yield (6, index), partial(self._service, service, (6, index))

    def _message(self, message: DescriptorProto, path: Path) -> None:
        with self.out.block(path, f"{_visibility(message.visibility)}message {message.name}"):
            self._message_body(message, path)

    def _message_body(self, message: DescriptorProto, path: Path) -> None:
        self._option_statements(message.options, (*path, 7))
        self._message_ranges(message, path)
        for emit in self.out.in_order(self._members(message, path)):
            emit()

    def _members(self, message: DescriptorProto, path: Path) -> Iterator[Item]:
        """Fields and nested types, such that the messages made for maps and groups come in their old order."""
        level = _Level.of(message.nested_type, (*path, 3))
        made = {_local(field) for field in (*message.field, *message.extension) if _is_group(field)}
        made |= {nested.name for nested in message.nested_type if nested.options.map_entry}
        last = max((i for i, nested in enumerate(message.nested_type) if nested.name in made), default=-1)
        fields = list(self._fields(message, path, level))
        position = {name: index for index, (names, _) in enumerate(fields) for name in names}
        done = 0
        for index, nested in enumerate(message.nested_type[: last + 1]):
            if nested.name not in made:
                yield (*path, 3, index), partial(self._message, nested, (*path, 3, index))
                continue
            until = max(position.get(nested.name, -1) + 1, done)
            yield from (item for _, item in fields[done:until])
            done = until
        yield from (item for _, item in fields[done:])
        for index, nested in enumerate(message.nested_type[last + 1 :], last + 1):
            yield (*path, 3, index), partial(self._message, nested, (*path, 3, index))
        for index, enum in enumerate(message.enum_type):
            yield (*path, 4, index), partial(self._enum, enum, (*path, 4, index))
        yield from self._extends(message.extension, (*path, 6), level)

    def _fields(self, message: DescriptorProto, path: Path, level: _Level) -> Iterator[tuple[set[str], Item]]:
        """Each field or oneof, with the names of the types it mentions."""
        members: dict[int, list[tuple[Path, FieldDescriptorProto]]] = {}
        for index, field in enumerate(message.field):
            if (oneof := _oneof(field)) is not None:
                members.setdefault(oneof, []).append(((*path, 2, index), field))
        for index, field in enumerate(message.field):
            here, oneof = (*path, 2, index), _oneof(field)
            if oneof is None:
                yield {_local(field)}, (here, partial(self._field, field, here, level))
            elif found := members.pop(oneof, None):
                emit = partial(self._oneof, message.oneof_decl[oneof], found, (*path, 8, oneof), level)
                yield {_local(member) for _, member in found}, ((*path, 8, oneof), emit)

    def _oneof(
        self,
        oneof: OneofDescriptorProto,
        members: list[tuple[Path, FieldDescriptorProto]],
        path: Path,
        level: _Level,
    ) -> None:
        with self.out.block(path, f"oneof {oneof.name}"):
            self._option_statements(oneof.options, (*path, 2))
            for here, field in members:
                self._field(field, here, level)

    def _field(self, field: FieldDescriptorProto, path: Path, level: _Level) -> None:
        index, made = level.messages.get(_local(field), (0, None))
        if made is not None and made.options.map_entry:
            key, value = (_type(part) for part in made.field)
            head = f"map<{key}, {value}> {field.name}"
        elif made is not None and _is_group(field):
            text = (
                f"{_label(field, self.syntax)}group {made.name} = {field.number}{self._field_options(field)}"
            )
            with self.out.block((*level.path, index), text):
                self._message_body(made, (*level.path, index))
            return
        else:
            head = f"{_label(field, self.syntax)}{_type(field)} {field.name}"
        self.out.declare(path, f"{head} = {field.number}{self._field_options(field)};")

    def _field_options(self, field: FieldDescriptorProto) -> str:
        texts = []
        if field.HasField("default_value"):
            texts.append(f"default = {_default(field)}")
        if field.json_name and field.json_name != json_name(field.name):
            texts.append(f"json_name = {quote(field.json_name)}")
        return _bracketed([*texts, *(text for _, text in self._options(field.options))])

    def _extends(
        self, extensions: Sequence[FieldDescriptorProto], path: Path, level: _Level
    ) -> Iterator[Item]:
        for nth, indexes in self.out.statements(path, [field.extendee for field in extensions]):
            fields = [(extensions[index], (*path, index)) for index in indexes]
            yield fields[0][1], partial(self._extend, fields, nth, level)

    def _extend(self, fields: list[tuple[FieldDescriptorProto, Path]], nth: int, level: _Level) -> None:
        first, path = fields[0]
        with self.out.block(path[:-1], f"extend {first.extendee}", nth):
            for field, here in fields:
                self._field(field, here, level)

    def _message_ranges(self, message: DescriptorProto, path: Path) -> None:
        most = MAX_INT32 if message.options.message_set_wire_format else MAX_FIELD_NUMBER + 1
        options = [
            _bracketed([text for _, text in self._options(found.options)])
            for found in message.extension_range
        ]
        ranges = [_range(found.start, found.end - 1, most - 1) for found in message.extension_range]
        for nth, indexes in self.out.statements((*path, 5), options):
            listed = ", ".join(ranges[index] for index in indexes)
            self.out.declare((*path, 5), f"extensions {listed}{options[indexes[0]]};", nth)
        self._reserved(
            [_range(found.start, found.end - 1, most - 1) for found in message.reserved_range], (*path, 9)
        )
        self._reserved(_names(self.syntax, message.reserved_name), (*path, 10))

    def _reserved(self, texts: Sequence[str], path: Path) -> None:
        for nth, indexes in self.out.statements(path, [None] * len(texts)):
            self.out.declare(path, f"reserved {', '.join(texts[index] for index in indexes)};", nth)

    def _enum(self, enum: EnumDescriptorProto, path: Path) -> None:
        with self.out.block(path, f"{_visibility(enum.visibility)}enum {enum.name}"):
            self._option_statements(enum.options, (*path, 3))
            self._reserved(
                [_range(found.start, found.end, MAX_INT32) for found in enum.reserved_range], (*path, 4)
            )
            self._reserved(_names(self.syntax, enum.reserved_name), (*path, 5))
            for index, value in enumerate(enum.value):
                options = _bracketed([text for _, text in self._options(value.options)])
                self.out.declare((*path, 2, index), f"{value.name} = {value.number}{options};")

    def _service(self, service: ServiceDescriptorProto, path: Path) -> None:
        with self.out.block(path, f"service {service.name}"):
            self._option_statements(service.options, (*path, 3))
            for index, method in enumerate(service.method):
                self._method(method, (*path, 2, index))

    def _method(self, method: MethodDescriptorProto, path: Path) -> None:
        taken = ("stream " if method.client_streaming else "") + method.input_type
        given = ("stream " if method.server_streaming else "") + method.output_type
        head = f"rpc {method.name}({taken}) returns ({given})"
        if method.HasField("options"):
            with self.out.block(path, head):
                self._option_statements(method.options, (*path, 4))
        else:
            self.out.declare(path, f"{head};")

    def _options(self, options: Options) -> list[tuple[Path, str]]:
        return print_options(self.extensions.name(options), options.uninterpreted_option)

    def _option_statements(self, options: Options, path: Path) -> None:
        for below, text in self._options(options):
            self.out.declare((*path, *below), f"option {text};")


def _label(field: FieldDescriptorProto, syntax: str) -> str:
    match field.label:
        case FieldDescriptorProto.LABEL_REPEATED:
            return "repeated "
        case FieldDescriptorProto.LABEL_REQUIRED:
            return "required "
    plain = syntax == "proto2" and not field.HasField("oneof_index")
    return "optional " if plain or field.proto3_optional else ""


def _type(field: FieldDescriptorProto) -> str:
    return field.type_name or _SCALAR_NAMES[field.type]


def _names(syntax: str, names: Sequence[str]) -> Sequence[str]:
    """Reserved names as they are written: strings before editions, identifiers since."""
    return names if syntax == "editions" else [quote(name) for name in names]


def _local(field: FieldDescriptorProto) -> str:
    """The last part of the name of the field's type."""
    return field.type_name.rpartition(".")[2]


def _is_group(field: FieldDescriptorProto) -> bool:
    return field.type == FieldDescriptorProto.TYPE_GROUP and field.HasField("type")


def _oneof(field: FieldDescriptorProto) -> int | None:
    """The oneof that the text shows; the one made for a proto3 optional is not shown."""
    return field.oneof_index if field.HasField("oneof_index") and not field.proto3_optional else None


def _default(field: FieldDescriptorProto) -> str:
    if field.type == FieldDescriptorProto.TYPE_STRING and field.HasField("type"):
        return quote(field.default_value)
    if field.type == FieldDescriptorProto.TYPE_BYTES:
        return f'"{field.default_value}"'
    return field.default_value


def _visibility(visibility: SymbolVisibility.ValueType) -> str:
    return {SymbolVisibility.VISIBILITY_EXPORT: "export ", SymbolVisibility.VISIBILITY_LOCAL: "local "}.get(
        visibility, ""
    )


def _bracketed(texts: list[str]) -> str:
    return f" [{', '.join(texts)}]" if texts else ""


def _range(first: int, last: int, most: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {'max' if last == most else last}"
