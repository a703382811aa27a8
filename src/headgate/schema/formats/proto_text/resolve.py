"""Names made absolute: which message or enum each field, extension and method means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from headgate.errors import similar_names
from headgate.schema.formats.proto_text.check import check_file
from headgate.schema.formats.proto_text.errors import InvalidProto, MissingImport, UnresolvedProtoType
from headgate.schema.formats.proto_text.symbols import Symbol, find, symbols_of, table
from headgate.schema.formats.proto_text.well_known import well_known


def resolve(file: FileDescriptorProto, dependencies: Sequence[FileDescriptorProto]) -> FileDescriptorProto:
    """A copy in which every type reference is a full name (`.package.Message`) and has its type, as protoc leaves it.

    `dependencies` are the imported files by their `name`, in any order, resolved or not; those that they import
    publicly must be among them. The files of `well_known` need not be given. The rules of the language are checked
    too. Raises `MissingImport`, `UnresolvedProtoType` or `InvalidProto`.
    """
    visible = _visible(file, {**well_known(), **{found.name: found for found in dependencies}})
    known = table((*visible, file))
    resolved = FileDescriptorProto()
    resolved.CopyFrom(file)
    resolver = _Resolver(known, resolved.package)
    resolver.file(resolved)
    check_file(resolved)
    _check_collisions(resolved, visible)
    return resolved


def _visible(
    file: FileDescriptorProto, files: Mapping[str, FileDescriptorProto]
) -> list[FileDescriptorProto]:
    """The imported files, and what these import publicly."""
    found: dict[str, FileDescriptorProto] = {}
    wanted = [(file.name, name) for name in file.dependency]
    while wanted:
        importer, name = wanted.pop()
        if name in found:
            continue
        if name not in files:
            raise MissingImport(importer, name, similar_names(name, files))
        found[name] = files[name]
        wanted += [(name, files[name].dependency[index]) for index in files[name].public_dependency]
    return list(found.values())


def _check_collisions(file: FileDescriptorProto, visible: Sequence[FileDescriptorProto]) -> None:
    taken = table(visible)
    for name, symbol in symbols_of(file):
        other = taken.get(name)
        if other is not None and not (symbol is Symbol.PACKAGE and other is Symbol.PACKAGE):
            raise InvalidProto(name, "an imported file defines this name too")


class _Resolver:
    def __init__(self, known: Mapping[str, Symbol], package: str) -> None:
        self.known, self.package = known, package

    def file(self, file: FileDescriptorProto) -> None:
        for message in file.message_type:
            self._message(message, self.package)
        for extension in file.extension:
            self._field(extension, self.package)
        for service in file.service:
            scope = f"{self.package}.{service.name}" if self.package else service.name
            for method in service.method:
                path = f"{scope}.{method.name}"
                method.input_type = self._message_name(method.input_type, scope, path)
                method.output_type = self._message_name(method.output_type, scope, path)

    def _message(self, message: DescriptorProto, scope: str) -> None:
        name = f"{scope}.{message.name}" if scope else message.name
        for field in (*message.field, *message.extension):
            self._field(field, name)
        for nested in message.nested_type:
            self._message(nested, name)

    def _field(self, field: FieldDescriptorProto, scope: str) -> None:
        path = f"{scope}.{field.name}" if scope else field.name
        if field.extendee:
            field.extendee = self._message_name(field.extendee, scope, path)
        if not field.type_name:
            return
        name, symbol = self._look_up(field.type_name, scope, path, types=True)
        field.type_name = f".{name}"
        group = field.HasField("type") and field.type == FieldDescriptorProto.TYPE_GROUP
        if symbol is Symbol.ENUM:
            field.type = FieldDescriptorProto.TYPE_ENUM
        elif not group:
            field.type = FieldDescriptorProto.TYPE_MESSAGE

    def _message_name(self, name: str, scope: str, path: str) -> str:
        found, symbol = self._look_up(name, scope, path, types=False)
        if symbol is not Symbol.MESSAGE:
            raise InvalidProto(path, f'"{name}" is no message')
        return f".{found}"

    def _look_up(self, name: str, scope: str, path: str, *, types: bool) -> tuple[str, Symbol]:
        found = find(name, scope, self.known, types=types)
        if found is None:
            named = [key for key, symbol in self.known.items() if symbol in (Symbol.MESSAGE, Symbol.ENUM)]
            raise UnresolvedProtoType(path, name, similar_names(name.removeprefix("."), named))
        symbol = self.known[found]
        if types and symbol not in (Symbol.MESSAGE, Symbol.ENUM):
            raise InvalidProto(path, f'"{name}" is no type')
        return found, symbol
