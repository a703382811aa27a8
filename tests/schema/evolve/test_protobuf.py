"""Evolution against really reading: a message written with the old schema, parsed with the new one.

A column that keeps its number has its old value; one whose old values cannot be read has another number, and is then
missing. A wrong value is what never comes out.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import Message
from hypothesis import assume, given, strategies as st

from headgate.schema.errors import UnsupportedType
from headgate.schema.evolve.changes import diff
from headgate.schema.evolve.merge import merge
from headgate.schema.evolve.verdicts import Level, Target, verdict
from headgate.schema.formats.protobuf import to_protobuf
from headgate.schema.formats.protobuf.write import FILES
from headgate.schema.parse import parse_type
from headgate.schema.types import Array, Bigint, Decimal, Enum, Field, Integer, Map, Record, Type, plain
from tests.laws import examples
from tests.schema import strategies as s
from tests.schema.evolve.evolutions import changed_records, follows
from tests.schema.proto_messages import (
    class_of,
    columns,
    descriptor_of,
    fill,
    is_map,
    show,
    show_one,
    value_of_entry,
)
from tests.schema.records import record_type

pytestmark = pytest.mark.unit

NUMBERS = ("integer", "bigint", "real", "double", "decimal(5,2)", "decimal(9,2)")
# Where a value can stand: Protobuf has another way of writing it in each.
SHAPES: tuple[Callable[[Type], Type], ...] = (
    lambda type_: type_,
    Array,
    Map,
    lambda type_: Record((Field("x", type_),)),
    lambda type_: Array(Array(type_)),
    lambda type_: Map(Record((Field("x", type_),))),
)


def _files(old: Record, new: Record) -> tuple[FileDescriptorProto, FileDescriptorProto]:
    before = to_protobuf(old, name="Row", package="p")
    return before, to_protobuf(new, name="Row", package="p", previous=before)


def _written_and_read(old: Record, new: Record, value: object) -> tuple[Message, Message]:
    """The message as it was written, and what the new schema makes of its bytes."""
    try:
        before, after = _files(old, new)
    except UnsupportedType:
        assume(False)
    written = class_of(before)()
    fill(written, old, value)
    return written, class_of(after).FromString(written.SerializeToString())


# --- what must hold of any two messages


def _check(old: Descriptor, new: Descriptor, was: Any, now: Any) -> None:
    before = columns(old)
    for column, field in columns(new).items():
        same = before.get(column)
        if same is not None and same.number == field.number:
            _check_kept(same, field, was[column], now[column])
        else:
            assert now[column] in (None, [], {}, _default(field)), column


def _check_kept(old: FieldDescriptor, new: FieldDescriptor, was: Any, now: Any) -> None:
    if is_map(new):
        assert was.keys() == now.keys()
        for key in was:
            _check_one(value_of_entry(old), value_of_entry(new), was[key], now[key])
    elif new.is_repeated:
        assert len(was) == len(now)
        for one, other in zip(was, now, strict=True):
            _check_one(old, new, one, other)
    elif was is None:
        assert now is None or now == _default(new)
    elif now is None:  # a NOT NULL column has no presence, and its zero is not written
        assert not old.has_presence
        assert was == _default(old)
    else:
        _check_one(old, new, was, now)


def _check_one(old: FieldDescriptor, new: FieldDescriptor, was: Any, now: Any) -> None:
    if old.message_type is not None:
        assert new.message_type is not None
        if f".{new.message_type.full_name}" in FILES:
            assert was == now
        else:
            _check(old.message_type, new.message_type, was, now)
    elif old.enum_type is not None and new.enum_type is not None and was not in new.enum_type.values_by_name:
        assert now == old.enum_type.values_by_name[was].number  # a symbol that is gone is nobody else's
    else:
        assert type(was) is type(now)
        assert was == now


def _default(field: FieldDescriptor) -> object:
    return None if field.is_repeated or field.message_type is not None else show_one(field, field.default_value)


# --- the laws


@examples(60)
@given(changed_records(), st.data())
def test_no_change_at_all_makes_an_old_value_a_wrong_one(both: tuple[Record, Record], data: st.DataObject) -> None:
    old, new = both
    written, read = _written_and_read(old, new, data.draw(s.values_of(old)))
    _check(descriptor_of(written), descriptor_of(read), show(written), show(read))


@examples(40)
@given(changed_records(), st.data())
def test_a_reader_that_followed_reads_what_was_written_before(both: tuple[Record, Record], data: st.DataObject) -> None:
    old, merged = both[0], merge(*both)
    written, read = _written_and_read(old, merged, data.draw(s.values_of(old)))
    _check(descriptor_of(written), descriptor_of(read), show(written), show(read))
    assert show(read).keys() >= show(written).keys()


@examples(60)
@given(changed_records())
def test_a_column_that_is_followed_keeps_its_number_where_the_wire_can_widen(
    both: tuple[Record, Record],
) -> None:
    old, new = both
    assume(follows(old, new))
    try:
        before, after = (descriptor_of(class_of(file)) for file in _files(old, new))
    except UnsupportedType:
        assume(False)
    for column in new.fields:
        if was := old.field(column.name):
            same = columns(before)[column.name].number == columns(after)[column.name].number
            assert same == _is_kept(was.type, column.type), column.name


def _is_kept(old: Type, new: Type) -> bool:
    match old, new:
        case (Record(), Record()) | (Enum(), Enum()) | (Decimal(), Decimal()) | (Integer(), Bigint()):
            return True
        case Array(), Array():
            return _is_kept_inside(old.element, new.element)
        case Map(), Map():
            return _is_kept_inside(old.value, new.value)
        case _:
            return plain(old) == plain(new)


def _is_kept_inside(old: Type, new: Type) -> bool:
    """A list in a list is in a message of its own, whose field may get another number by itself."""
    return isinstance(old, Array | Map) or _is_kept(old, new)


@examples(80)
@given(s.scalars(), s.scalars(), st.sampled_from(SHAPES), st.data())
def test_a_value_of_another_type_is_read_as_it_was_or_not_at_all(
    old_type: Type, new_type: Type, shape: Callable[[Type], Type], data: st.DataObject
) -> None:
    old, new = (Record((Field("a", shape(type_)),)) for type_ in (old_type, new_type))
    value = {"a": data.draw(s.values_of(old.fields[0].type))}
    written, read = _written_and_read(old, new, value)
    _check(descriptor_of(written), descriptor_of(read), show(written), show(read))


@pytest.mark.parametrize(("old_type", "new_type"), [*product(NUMBERS, NUMBERS)])
@examples(3)
@given(st.data())
def test_a_number_is_read_exactly_or_not_at_all(old_type: str, new_type: str, data: st.DataObject) -> None:
    old, new = (Record((Field("a", parse_type(text)),)) for text in (old_type, new_type))
    assert follows(old, new)
    written, read = _written_and_read(old, new, {"a": data.draw(s.values_of(old.fields[0].type))})
    kept = _is_kept(old.fields[0].type, new.fields[0].type)
    assert show(read)["a"] == (show(written)["a"] if kept else None)


READ = [
    ("record(a integer not null)", "record(a bigint not null)", {"a": -5}, {"a": -5}),
    ("record(a integer)", "record(b text, a bigint)", {"a": None}, {"a": None, "b": None}),
    ("record(a text, b text)", "record(b text)", {"a": "x", "b": "y"}, {"b": "y"}),
    ("record(a text not null)", "record(a text)", {"a": "x"}, {"a": "x"}),
    (
        "record(m map<text, integer not null>)",
        "record(m map<text, bigint not null>)",
        {"m": {"k": 5}},
        {"m": {"k": 5}},
    ),
    (
        "record(a array<record(x integer) not null>)",
        "record(a array<record(y text, x bigint) not null>)",
        {"a": [{"x": 1}, {"x": None}]},
        {"a": [{"x": 1, "y": None}, {"x": None, "y": None}]},
    ),
    # Two columns whose messages want one name keep their own when they change places, and when one of them goes.
    (
        "record(a_b enum('x', 'y'), \"aB\" enum('p', 'q'))",
        "record(\"aB\" enum('p', 'q'), a_b enum('x', 'y'))",
        {"a_b": "y", "aB": "p"},
        {"a_b": "y", "aB": "p"},
    ),
    (
        "record(a_b enum('x', 'y'), \"aB\" enum('p', 'q'))",
        "record(\"aB\" enum('p', 'q'))",
        {"a_b": "y", "aB": "p"},
        {"aB": "p"},
    ),
    (
        'record(a_b record(x text, y text), "aB" record(y text))',
        'record("aB" record(y text))',
        {"a_b": {"x": "1", "y": "2"}, "aB": {"y": "3"}},
        {"aB": {"y": "3"}},
    ),
    (
        "record(state_enum record(x text))",
        "record(state_enum record(x text), state enum('a'))",
        {"state_enum": {"x": "1"}},
        {"state_enum": {"x": "1"}, "state": None},
    ),
    (
        "record(state_enum record(x text))",
        "record(state enum('a'))",
        {"state_enum": {"x": "1"}},
        {"state": None},
    ),
]


@pytest.mark.parametrize(("old", "new", "value", "expected"), READ)
def test_what_is_followed_is_read(old: str, new: str, value: dict[str, object], expected: dict[str, object]) -> None:
    assert follows(record_type(old), record_type(new))
    assert show(_written_and_read(record_type(old), record_type(new), value)[1]) == expected


BREAKING = [
    ("bigint", "boolean", 2**40),
    ("boolean", "bigint", True),
    ("boolean", "enum('a', 'b')", True),
    ("enum('a', 'b')", "integer", "b"),
    ("enum('a', 'b')", "text", "b"),
    ("integer", "text", 5),
    ("text", "bytes", "x"),
    ("bytes", "text", b"\xff"),
    ("date", "timestamptz", None),
    ("map<text, integer>", "map<text, text>", {"k": 5}),
    ("map<text, boolean>", "map<text, bigint>", {"k": True}),
    ("map<text, text>", "array<record(key text, value text)>", {"k": "v"}),
    ("array<integer>", "integer", [5]),
    ("record(a text)", "map<text, text>", {"a": "x"}),
    ("array<array<integer>>", "array<text>", [[5]]),
]


@pytest.mark.parametrize(("old", "new", "value"), BREAKING)
def test_a_column_of_a_type_that_breaks_the_reader_has_another_number_and_no_value(
    old: str, new: str, value: object
) -> None:
    was, becomes = (Record((Field("a", parse_type(text)),)) for text in (old, new))
    assert any(verdict(change, Target.READER).level is Level.BREAKING for change in diff(was, becomes))
    written, read = _written_and_read(was, becomes, {"a": value})
    assert [field.number for field in written.DESCRIPTOR.fields] == [1]
    assert [field.number for field in read.DESCRIPTOR.fields] == [2]
    assert show(read)["a"] in (None, [], {})


def test_a_narrower_integer_has_another_number_for_it_would_be_cut() -> None:
    for text in ("{}", "array<{}>", "map<text, {}>", "record(x {})"):
        old, new = (Record((Field("a", parse_type(text.format(of))),)) for of in ("bigint", "integer"))
        value = {"{}": 2**40, "array<{}>": [2**40], "map<text, {}>": {"k": 2**40}}.get(text, {"x": 2**40})
        _, read = _written_and_read(old, new, {"a": value})
        assert show(read)["a"] in (None, [], {}, {"x": None})


def test_a_zero_that_was_not_null_is_missing_once_the_column_is_nullable() -> None:
    old, new = record_type("record(a bigint not null)"), record_type("record(a bigint)")
    assert show(_written_and_read(old, new, {"a": 7})[1]) == {"a": 7}
    assert show(_written_and_read(old, new, {"a": 0})[1]) == {"a": None}
