"""Messages -> columns: for each field of the type a function from a list of messages to an Arrow array."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any, NoReturn, TypeAlias

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from headgate.runtime.formats.protobuf_values import Make, message_maker, scalar_maker, zero
from headgate.schema.errors import ValueDoesNotFit
from headgate.schema.formats.protobuf.names import column_of
from headgate.schema.paths import element_path, field_path, value_path
from headgate.schema.render import print_type
from headgate.schema.types import Array, Field, Map, Record, Type

Build: TypeAlias = Callable[[list[Any]], pa.Array]


def record_column(
    message: Descriptor, type_: Record, arrow: pa.StructType, path: str, reader: Descriptor | None
) -> Build:
    """Of messages, of which None is a NULL. ``reader``: the same message in the schema that was frozen, if known."""
    columns = _columns(message, type_, arrow, path, reader)
    known = frozenset(field.number for field in message.fields)
    empty = GetMessageClass(message)()

    def build(messages: list[Any]) -> pa.Array:
        missing = None
        if None in messages:
            missing = pa.array([one is None for one in messages], pa.bool_())
            messages = [empty if one is None else one for one in messages]
        _nothing_stray(messages, known, path)
        if not columns:
            made = pa.array([{}] * len(messages), arrow)
            return made if missing is None else pa.StructArray.from_arrays([], fields=[], mask=missing)
        return pa.StructArray.from_arrays(
            [one(messages) for one in columns], fields=list(arrow), mask=missing
        )

    return build


def _columns(
    message: Descriptor, type_: Record, arrow: pa.StructType, path: str, reader: Descriptor | None
) -> list[Build]:
    by_name = {_column_name(field): field for field in message.fields}
    readers = {_column_name(field): field for field in reader.fields} if reader is not None else {}
    taken = {field.name for field in type_.fields}
    made = []
    for number, wanted in enumerate(type_.fields):
        here, old = field_path(path, wanted.name), readers.get(wanted.name)
        found = by_name.get(wanted.name)
        if found is None and old is not None:
            renamed = message.fields_by_number.get(old.number)
            found = renamed if renamed is not None and _column_name(renamed) not in taken else None
        type_here = arrow.field(number).type
        made.append(
            _absent(wanted, old, type_here, here)
            if found is None
            else _present(found, wanted, type_here, here, old)
        )
    return made


def _column_name(field: FieldDescriptor) -> str:
    return column_of(FieldDescriptorProto(name=field.name, json_name=field.json_name))


def _nothing_stray(messages: list[Any], known: frozenset[int], path: str) -> None:
    """A field of the schema among those that could not be read: another type on the wire, an unknown symbol."""
    for message in messages:
        unknown: Any = UnknownFieldSet(message)
        if len(unknown) and not known.isdisjoint([one.field_number for one in unknown]):
            raise ValueDoesNotFit(path, "message", "message", "a field is not as its schema says")


def _absent(wanted: Field, old: FieldDescriptor | None, arrow: pa.DataType, path: str) -> Build:
    if wanted.nullable:
        return lambda messages: pa.nulls(len(messages), arrow)
    if isinstance(wanted.type, Record) or (old is not None and old.is_required):
        return lambda _: _misfit(wanted.type, "nothing", path)
    value = zero(wanted.type)
    return lambda messages: pa.array([value] * len(messages), arrow)


def _present(
    field: FieldDescriptor, wanted: Field, arrow: pa.DataType, path: str, old: FieldDescriptor | None
) -> Build:
    reader = old.message_type if old is not None else None
    if _is_map(field):
        if not isinstance(wanted.type, Map):
            return lambda _: _misfit(wanted.type, "map", path)
        return _map(field, wanted.type, arrow, value_path(path), reader)
    if field.is_repeated:
        if not isinstance(wanted.type, Array):
            return lambda _: _misfit(wanted.type, "array", path)
        return _list(field, wanted.type, arrow, element_path(path), reader)
    make = _values(field, wanted.type, arrow, path, reader)
    get, name = attrgetter(field.name), field.name
    if not field.has_presence or (not wanted.nullable and field.message_type is None):
        return lambda messages: make(list(map(get, messages)))
    if not wanted.nullable:
        return lambda messages: make([_there(m, name, wanted.type, path) for m in messages])
    return lambda messages: make([get(m) if m.HasField(name) else None for m in messages])


def _there(message: Any, name: str, type_: Type, path: str) -> Any:
    return getattr(message, name) if message.HasField(name) else _misfit(type_, "nothing", path)


def _list(
    field: FieldDescriptor, type_: Array, arrow: pa.ListType, path: str, reader: Descriptor | None
) -> Build:
    make = _values(field, type_.element, arrow.value_type, path, reader)
    get = attrgetter(field.name)

    def build(messages: list[Any]) -> pa.Array:
        lists = list(map(get, messages))
        elements = make(list(chain.from_iterable(lists)))
        return pa.ListArray.from_arrays(_offsets(lists), elements, type=arrow)

    return build


def _map(
    field: FieldDescriptor, type_: Map, arrow: pa.MapType, path: str, reader: Descriptor | None
) -> Build:
    assert field.message_type is not None
    key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
    inner = reader.fields_by_name["value"].message_type if reader is not None and _is_entry(reader) else None
    make = _values(value, type_.value, arrow.item_type, path, inner)
    get, is_text = attrgetter(field.name), key.type == FieldDescriptor.TYPE_STRING

    def build(messages: list[Any]) -> pa.Array:
        maps = list(map(get, messages))
        keys = list(chain.from_iterable(maps))
        items = make([one[k] for one in maps for k in one])
        texts = pa.array(keys if is_text else list(map(_key, keys)), pa.string())
        return pa.MapArray.from_arrays(_offsets(maps), texts, items, type=arrow)

    return build


def _values(
    field: FieldDescriptor, type_: Type, arrow: pa.DataType, path: str, reader: Descriptor | None
) -> Make:
    """What makes an array of single values of a field, None among them."""
    if field.message_type is None:
        return scalar_maker(field, type_, arrow, path)
    known = message_maker(field.message_type, type_, arrow, path)
    if known is not None:
        return known
    if not isinstance(type_, Record):
        return lambda values: (
            _misfit(type_, "message", path)
            if any(v is not None for v in values)
            else pa.nulls(len(values), arrow)
        )
    return record_column(field.message_type, type_, arrow, path, reader)


def _offsets(containers: list[Any]) -> pa.Array:
    return pa.array(list(accumulate(map(len, containers), initial=0)), pa.int32())


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.is_repeated and _is_entry(field.message_type)


def _is_entry(message: Descriptor) -> bool:
    return message.GetOptions().map_entry


def _misfit(type_: Type, found: str, path: str) -> NoReturn:
    raise ValueDoesNotFit(path, print_type(type_), found)
