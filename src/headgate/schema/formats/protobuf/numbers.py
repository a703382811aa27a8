"""Numbers that stay: a field keeps the one it had, and one that was ever used is never given to another."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto

from headgate.schema.formats.protobuf.names import FILES, column_of

_F = FieldDescriptorProto
_NOT_OURS = range(19000, 20000)  # protobuf keeps them for itself


class Made:
    """A message that was made of a record: its fields by column, and the messages inside of it by name."""

    def __init__(self, message: DescriptorProto | None) -> None:
        self.message = message or DescriptorProto()
        self.fields = {column_of(field): field for field in self.message.field}
        self._nested = {nested.name: nested for nested in self.message.nested_type}

    def values_of(self, field: FieldDescriptorProto | None) -> FieldDescriptorProto | None:
        """The field that holds the values of a map; None if the field is no map."""
        entry = self.message_of(field)
        return entry.field[1] if entry is not None and entry.options.map_entry else None

    def message_of(self, field: FieldDescriptorProto | None) -> DescriptorProto | None:
        """The message that was made for a field or around its enum. Asked by field and not by name: when columns
        change places, the names that are still free for their messages do so too."""
        if field is None or field.type_name in FILES:
            return None
        full = field.type_name.rpartition(".")[0] if field.type == _F.TYPE_ENUM else field.type_name
        return self._nested.get(full.rpartition(".")[2])


def number_fields(message: DescriptorProto, previous: DescriptorProto | None) -> None:
    """Give every field its number, and reserve the numbers and names of those that are gone."""
    old, new = Made(previous), Made(message)
    before = old.message
    for column, field in new.fields.items():
        if (same := old.fields.get(column)) and _is_read_alike(old, same, new, field):
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


def _is_read_alike(before: Made, old: FieldDescriptorProto, after: Made, new: FieldDescriptorProto) -> bool:
    """Whether the new field reads every old value as what it was. What the wire allows beyond that is not enough: an
    int64 read as int32 is cut, a bool is read as a number, and a map's value of another type as an empty one."""
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
