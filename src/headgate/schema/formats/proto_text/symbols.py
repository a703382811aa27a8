"""Every name that a file defines, and looking one up from inside a scope, as protoc does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto


class Symbol(Enum):
    PACKAGE = auto()
    MESSAGE = auto()
    ENUM = auto()
    SERVICE = auto()
    OTHER = auto()  # a field, oneof, enum value, method or extension: known only to be in the way


_SCOPES = frozenset((Symbol.PACKAGE, Symbol.MESSAGE, Symbol.ENUM, Symbol.SERVICE))
_TYPES = frozenset((Symbol.MESSAGE, Symbol.ENUM))


def symbols_of(file: FileDescriptorProto) -> Iterator[tuple[str, Symbol]]:
    """Full names without a leading dot. A name defined twice comes twice."""
    prefix = f"{file.package}." if file.package else ""
    parts = file.package.split(".") if file.package else []
    for count in range(1, len(parts) + 1):
        yield ".".join(parts[:count]), Symbol.PACKAGE
    for message in file.message_type:
        yield from _of_message(message, prefix)
    for enum in file.enum_type:
        yield from _of_enum(enum, prefix)
    for extension in file.extension:
        yield prefix + extension.name, Symbol.OTHER
    for service in file.service:
        yield prefix + service.name, Symbol.SERVICE
        for method in service.method:
            yield f"{prefix}{service.name}.{method.name}", Symbol.OTHER


def _of_message(message: DescriptorProto, prefix: str) -> Iterator[tuple[str, Symbol]]:
    name = prefix + message.name
    yield name, Symbol.MESSAGE
    for field in (*message.field, *message.extension):
        yield f"{name}.{field.name}", Symbol.OTHER
    for oneof in message.oneof_decl:
        yield f"{name}.{oneof.name}", Symbol.OTHER
    for nested in message.nested_type:
        yield from _of_message(nested, f"{name}.")
    for enum in message.enum_type:
        yield from _of_enum(enum, f"{name}.")


def _of_enum(enum: EnumDescriptorProto, prefix: str) -> Iterator[tuple[str, Symbol]]:
    yield prefix + enum.name, Symbol.ENUM
    for value in enum.value:  # an enum's values are its siblings, as in C++
        yield prefix + value.name, Symbol.OTHER


def table(files: Iterable[FileDescriptorProto]) -> dict[str, Symbol]:
    return {name: symbol for file in files for name, symbol in symbols_of(file)}


def find(name: str, scope: str, known: Mapping[str, Symbol], *, types: bool) -> str | None:
    """The full name that `name` means inside of `scope`; None if there is none.

    The innermost scope that knows the first part of the name decides, even if it does not know the rest. With
    `types`, what is no type does not hide what is.
    """
    if name.startswith("."):
        return name[1:] if name[1:] in known else None
    first, dot, rest = name.partition(".")
    while scope:
        candidate = f"{scope}.{first}"
        symbol = known.get(candidate)
        if symbol is not None and dot and symbol in _SCOPES:
            return f"{candidate}.{rest}" if f"{candidate}.{rest}" in known else None
        if symbol is not None and not dot and (not types or symbol in _TYPES):
            return candidate
        scope = scope.rpartition(".")[0]
    return name if name in known else None
