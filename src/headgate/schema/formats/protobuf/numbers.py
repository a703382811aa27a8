"""Numbers that stay: a field keeps the one it had, and one that was ever used is never given to another."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto

from headgate.schema.formats.proto_text.wire import WIRE_FORMS
from headgate.schema.formats.protobuf.names import column_of

_NOT_OURS = range(19000, 20000)  # protobuf keeps them for itself


def number_fields(message: DescriptorProto, previous: DescriptorProto | None) -> None:
    """Give every field its number, and reserve the numbers and names of those that are gone."""
    before = previous or DescriptorProto()
    old = {column_of(field): field for field in before.field}
    for field in message.field:
        if (same := old.get(column_of(field))) and _is_read_alike(same, field):
            field.number = same.number
    reserved = {number for found in before.reserved_range for number in range(found.start, found.end)}
    following = max({field.number for field in before.field} | reserved, default=0) + 1
    for field in message.field:
        if not field.number:
            following = _NOT_OURS.stop if following in _NOT_OURS else following
            field.number, following = following, following + 1
    gone = {field.number for field in before.field} - {field.number for field in message.field}
    for number in sorted(reserved | gone):
        message.reserved_range.add(start=number, end=number + 1)
    names = {field.name for field in message.field}
    message.reserved_name.extend(
        _without((*before.reserved_name, *(field.name for field in before.field)), names)
    )


def number_symbols(
    enum: EnumDescriptorProto, symbols: Iterable[str], previous: EnumDescriptorProto | None
) -> None:
    """Give every symbol its number. The first number is 0 and stays, because proto3 asks for it."""
    before = previous or EnumDescriptorProto()
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


def _is_read_alike(old: FieldDescriptorProto, new: FieldDescriptorProto) -> bool:
    if (old.label == FieldDescriptorProto.LABEL_REPEATED) != (
        new.label == FieldDescriptorProto.LABEL_REPEATED
    ):
        return False
    old_form, new_form = WIRE_FORMS.get(old.type), WIRE_FORMS.get(new.type)
    if old_form is None or new_form is None:
        return old.type == new.type and old.type_name == new.type_name
    return old_form == new_form


def _without(names: Iterable[str], used: set[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name not in used]
