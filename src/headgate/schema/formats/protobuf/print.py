"""Descriptors as .proto text.

What protoc makes of the text is the descriptor again: types in the same order, names absolute, comments in
`source_code_info`. Left out are positions, comments that belong to no declaration, and custom options that no given
file defines, because these have no name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from google.protobuf import descriptor_pb2 as pb, text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from headgate.schema.formats.protobuf.names import json_name
from headgate.schema.formats.protobuf.write import Path

_F = pb.FieldDescriptorProto
_MAX_FIELD, _MAX_ENUM = 2**29 - 1, 2**31 - 1
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
# Written since edition 2024.
_VISIBILITY = {pb.SymbolVisibility.VISIBILITY_EXPORT: "export ", pb.SymbolVisibility.VISIBILITY_LOCAL: "local "}
Lines = list[str]


def print_proto(file: pb.FileDescriptorProto, dependencies: Sequence[pb.FileDescriptorProto] = ()) -> str:
    """The text of a compiled or generated file.

    `dependencies` are the files that it imports, each after those that it imports itself. They are needed only for
    custom options.
    """
    return _Printer(file, dependencies).file()


class _Printer:
    """Prints one file. Comments are found by the path of their declaration."""

    def __init__(self, file: pb.FileDescriptorProto, dependencies: Sequence[pb.FileDescriptorProto]) -> None:
        self._file = file
        self._syntax = file.syntax or "proto2"
        self._pool = _pool([*dependencies, file])
        self._comments: dict[Path, pb.SourceCodeInfo.Location] = {}
        for location in file.source_code_info.location:
            self._comments.setdefault(tuple(location.path), location)

    def file(self) -> str:
        file = self._file
        groups = {_local_type(field) for field in file.extension if _is_group(field)}
        parts = [self._first_line(), *self._head()]
        for index, message in enumerate(file.message_type):
            if message.name not in groups:
                parts.append(self._message(message, (4, index)))
        parts += [self._enum(enum, (5, index)) for index, enum in enumerate(file.enum_type)]
        parts += self._extends(file.extension, (7,), file.message_type, (4,))
        parts += [self._service(service, (6, index)) for index, service in enumerate(file.service)]
        return "\n".join("\n".join([*part, ""]) for part in parts if part)

    def _first_line(self) -> Lines:
        if self._syntax == "editions":
            return self._commented((12,), [f'edition = "{pb.Edition.Name(self._file.edition)[8:]}";'])
        return self._commented((12,), [f'syntax = "{self._syntax}";'])

    def _head(self) -> list[Lines]:
        file = self._file
        kinds = {**dict.fromkeys(file.public_dependency, "public "), **dict.fromkeys(file.weak_dependency, "weak ")}
        imports: Lines = []
        for index, name in enumerate(file.dependency):
            imports += self._commented((3, index), [f"import {kinds.get(index, '')}{_quote(name)};"])
        imports += [f"import option {_quote(name)};" for name in file.option_dependency]
        package = self._commented((2,), [f"package {file.package};"]) if file.package else []
        return [package, imports, self._option_statements(file.options)]

    # messages and their fields

    def _message(self, message: pb.DescriptorProto, path: Path) -> Lines:
        head = f"{_VISIBILITY.get(message.visibility, '')}message {message.name}"
        return self._commented(path, _block(head, self._body(message, path)))

    def _body(self, message: pb.DescriptorProto, path: Path) -> Lines:
        parts = [self._option_statements(message.options), self._ranges(message), *self._members(message, path)]
        parts += [self._enum(enum, (*path, 4, index)) for index, enum in enumerate(message.enum_type)]
        parts += self._extends(message.extension, (*path, 6), message.nested_type, (*path, 3))
        return _joined(parts)

    def _members(self, message: pb.DescriptorProto, path: Path) -> Iterator[Lines]:
        """Fields and nested messages.

        protoc makes the messages of maps and groups where their fields stand. A record names its message by its
        index among all of these, so that a field must stand where its message is made.
        """
        made = {one.name for one in message.nested_type if one.options.map_entry}
        made |= {_local_type(one) for one in (*message.field, *message.extension) if _is_group(one)}
        last = max((n for n, one in enumerate(message.nested_type) if one.name in made), default=-1)
        fields = list(self._fields(message, path))
        nested = [
            (one.name, self._message(one, (*path, 3, n)) if one.name not in made else [])
            for n, one in enumerate(message.nested_type)
        ]
        for name, lines in nested[: last + 1]:
            until = next((n + 1 for n, (types, _) in enumerate(fields) if name in types), 0) if not lines else 0
            yield from (field for _, field in fields[:until])
            del fields[:until]
            yield lines
        yield from (field for _, field in fields)
        yield from (lines for _, lines in nested[last + 1 :])

    def _fields(self, message: pb.DescriptorProto, path: Path) -> Iterator[tuple[set[str], Lines]]:
        """The lines of each field or oneof, with the last parts of the names of its types."""
        oneofs: dict[int, list[tuple[int, pb.FieldDescriptorProto]]] = {}
        for index, field in enumerate(message.field):
            if field.HasField("oneof_index") and not field.proto3_optional:
                oneofs.setdefault(field.oneof_index, []).append((index, field))
        for index, field in enumerate(message.field):
            if not field.HasField("oneof_index") or field.proto3_optional:
                lines = self._field(field, (*path, 2, index), message.nested_type, (*path, 3))
                yield {_local_type(field)}, lines
            elif members := oneofs.pop(field.oneof_index, None):
                oneof = message.oneof_decl[field.oneof_index]
                parts = [self._field(one, (*path, 2, n), message.nested_type, (*path, 3)) for n, one in members]
                body = _joined([self._option_statements(oneof.options), *parts])
                block = self._commented((*path, 8, field.oneof_index), _block(f"oneof {oneof.name}", body))
                yield {_local_type(one) for _, one in members}, block

    def _field(
        self, field: pb.FieldDescriptorProto, path: Path, beside: Sequence[pb.DescriptorProto], beside_path: Path
    ) -> Lines:
        """`beside` are the messages of the same scope, among them those made for maps and groups."""
        found = ((n, one) for n, one in enumerate(beside) if one.name == _local_type(field))
        index, made = next(found, (0, None))
        number = f"{field.number}{self._field_options(field)}"
        if made is not None and made.options.map_entry and field.label == _F.LABEL_REPEATED:
            key, value = (_type(part) for part in made.field)
            return self._commented(path, [f"map<{key}, {value}> {field.name} = {number};"])
        if made is not None and _is_group(field):
            here = (*beside_path, index)
            head = f"{self._label(field)}group {made.name} = {number}"
            return self._commented(here, _block(head, self._body(made, here)))
        return self._commented(path, [f"{self._label(field)}{_type(field)} {field.name} = {number};"])

    def _label(self, field: pb.FieldDescriptorProto) -> str:
        if field.label == _F.LABEL_REPEATED:
            return "repeated "
        if field.label == _F.LABEL_REQUIRED:
            return "required "
        written = self._syntax == "proto2" and not field.HasField("oneof_index")
        return "optional " if written or field.proto3_optional else ""

    def _field_options(self, field: pb.FieldDescriptorProto) -> str:
        texts = []
        if field.HasField("default_value"):
            texts.append(f"default = {_default(field)}")
        if field.json_name and field.json_name != json_name(field.name):
            texts.append(f"json_name = {_quote(field.json_name)}")
        return _bracketed([*texts, *self._options(field.options)])

    def _extends(
        self,
        extensions: Sequence[pb.FieldDescriptorProto],
        path: Path,
        beside: Sequence[pb.DescriptorProto],
        beside_path: Path,
    ) -> Iterator[Lines]:
        """Extensions, grouped by the message that they extend."""
        for extendee, fields in groupby(enumerate(extensions), key=lambda item: item[1].extendee):
            parts = [self._field(field, (*path, index), beside, beside_path) for index, field in fields]
            yield _block(f"extend {extendee}", _joined(parts))

    def _ranges(self, message: pb.DescriptorProto) -> Lines:
        """The ranges of extensions, and reserved numbers and names."""
        last = _MAX_ENUM - 1 if message.options.message_set_wire_format else _MAX_FIELD
        lines = [
            f"extensions {_range(one.start, one.end - 1, last)}{_bracketed(self._options(one.options))};"
            for one in message.extension_range
        ]
        numbers = [_range(one.start, one.end - 1, last) for one in message.reserved_range]
        return lines + self._reserved(numbers, message.reserved_name)

    def _reserved(self, numbers: Sequence[str], names: Iterable[str]) -> Lines:
        spelt = list(names) if self._syntax == "editions" else [_quote(name) for name in names]
        return [f"reserved {', '.join(parts)};" for parts in (numbers, spelt) if parts]

    # enums and services

    def _enum(self, enum: pb.EnumDescriptorProto, path: Path) -> Lines:
        body = self._option_statements(enum.options)
        numbers = [_range(one.start, one.end, _MAX_ENUM) for one in enum.reserved_range]
        body += self._reserved(numbers, enum.reserved_name)
        for index, value in enumerate(enum.value):
            options = _bracketed(self._options(value.options))
            body += self._commented((*path, 2, index), [f"{value.name} = {value.number}{options};"])
        head = f"{_VISIBILITY.get(enum.visibility, '')}enum {enum.name}"
        return self._commented(path, _block(head, body))

    def _service(self, service: pb.ServiceDescriptorProto, path: Path) -> Lines:
        body = self._option_statements(service.options)
        for index, method in enumerate(service.method):
            body += self._commented((*path, 2, index), self._method(method))
        return self._commented(path, _block(f"service {service.name}", body))

    def _method(self, method: pb.MethodDescriptorProto) -> Lines:
        taken = ("stream " if method.client_streaming else "") + method.input_type
        given = ("stream " if method.server_streaming else "") + method.output_type
        head = f"rpc {method.name}({taken}) returns ({given})"
        return _block(head, self._option_statements(method.options)) if method.HasField("options") else [f"{head};"]

    # options and comments

    def _option_statements(self, options: Message) -> Lines:
        return [f"option {text};" for text in self._options(options)]

    def _options(self, options: Message) -> Lines:
        """Each option as `name = value`. The pool knows custom options, which are bytes to the library itself."""
        if not options.ByteSize():
            return []
        try:
            known = GetMessageClass(self._pool.FindMessageTypeByName(options.DESCRIPTOR.full_name))()
        except KeyError:
            return list(_option_texts(options, ""))
        known.MergeFromString(options.SerializeToString())
        return list(_option_texts(known, ""))

    def _commented(self, path: Path, lines: Lines) -> Lines:
        """The lines of a declaration with its comments before, beside or below the first line."""
        found = self._comments.get(path)
        if found is None:
            return lines
        leading, trailing = _comment(found.leading_comments), _comment(found.trailing_comments)
        if len(trailing) == 1:
            lines, trailing = [f"{lines[0]} {trailing[0]}", *lines[1:]], []
        elif trailing:  # It trails the first line, and a blank line keeps it from leading the next one.
            return [*leading, lines[0], *(f"{_indent(lines)}{line}" for line in trailing), "", *lines[1:]]
        return leading + lines


def _pool(files: Iterable[pb.FileDescriptorProto]) -> DescriptorPool:
    pool = DescriptorPool()
    for file in files:
        try:
            pool.Add(file)
        except TypeError:  # A file that it imports was not given. The options that it defines stay without a name.
            continue
    return pool


def _option_texts(options: Message, prefix: str) -> Iterator[str]:
    """Options as `name = value`. A message with fields becomes one option for each field."""
    for field, value in options.ListFields():
        name = prefix + (f"({field.full_name})" if field.is_extension else field.name)
        if field.is_repeated:
            yield from (f"{name} = {_option_value(field, item)}" for item in value)
        elif field.message_type is not None and not field.is_extension and value.ListFields():
            yield from _option_texts(value, f"{name}.")
        else:
            yield f"{name} = {_option_value(field, value)}"


def _option_value(field: FieldDescriptor, value: object) -> str:
    match value:
        case Message():
            text = text_format.MessageToString(value, as_one_line=True, as_utf8=True)
            return f"{{ {text} }}" if text else "{}"
        case bool():
            return "true" if value else "false"
        case str():
            return _quote(value)
        case bytes():
            return '"' + "".join(f"\\{byte:03o}" for byte in value) + '"'
        case int() if field.enum_type is not None:
            symbol = field.enum_type.values_by_number.get(value)
            return symbol.name if symbol else str(value)
        case _:
            return str(value)


def _block(head: str, body: Lines) -> Lines:
    return [f"{head} {{", *(f"  {line}" if line else "" for line in body), "}"]


def _joined(parts: Iterable[Lines]) -> Lines:
    """All lines, with an empty one before and after a block."""
    lines: Lines = []
    for part in filter(None, parts):
        if lines and "}" in (lines[-1], part[-1]):
            lines.append("")
        lines += part
    return lines


def _indent(lines: Lines) -> str:
    return "  " if len(lines) > 1 else ""


def _comment(text: str) -> Lines:
    return [f"//{line.rstrip()}" for line in text.rstrip().split("\n")] if text.strip() else []


def _is_group(field: pb.FieldDescriptorProto) -> bool:
    return field.type == _F.TYPE_GROUP


def _local_type(field: pb.FieldDescriptorProto) -> str:
    """The last part of the name of the field's type."""
    return field.type_name.rpartition(".")[2]


def _type(field: pb.FieldDescriptorProto) -> str:
    return field.type_name or _F.Type.Name(field.type)[5:].lower()


def _default(field: pb.FieldDescriptorProto) -> str:
    if field.type == _F.TYPE_STRING:
        return _quote(field.default_value)
    return f'"{field.default_value}"' if field.type == _F.TYPE_BYTES else field.default_value


def _range(first: int, last: int, most: int) -> str:
    return str(first) if first == last else f"{first} to {'max' if last == most else last}"


def _bracketed(texts: Lines) -> str:
    return f" [{', '.join(texts)}]" if texts else ""


def _quote(text: str) -> str:
    return '"' + "".join(map(_quoted, text)) + '"'


def _quoted(character: str) -> str:
    if character.isprintable() and character not in _ESCAPES:
        return character
    return _ESCAPES.get(character) or "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "replace"))
