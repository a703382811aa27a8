from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from headgate.registry import wire
from headgate.registry.errors import (
    FrameTooShort,
    MalformedMessageIndexes,
    SchemaIdOutOfRange,
    UnknownMagic,
)

pytestmark = pytest.mark.unit

indexes = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=20).map(tuple)


@given(st.integers(0, wire.MAX_ID), st.binary(max_size=50))
def test_a_frame_is_read_as_it_was_written(schema_id: int, payload: bytes) -> None:
    assert wire.decode(wire.encode(schema_id, payload)) == wire.Framed(schema_id, payload)


def test_the_id_is_big_endian_after_a_zero_byte() -> None:
    assert wire.encode(0x01020304, b"x") == b"\x00\x01\x02\x03\x04x"


@pytest.mark.parametrize("record", [b"", b"\x00", b"\x00\x00\x00\x01"])
def test_a_record_shorter_than_a_header_is_told_so(record: bytes) -> None:
    with pytest.raises(FrameTooShort) as raised:
        wire.decode(record)
    assert raised.value.message() == f"record of {len(record)} bytes is too short for a schema id"


def test_an_unframed_record_is_told_from_a_framed_one() -> None:
    with pytest.raises(UnknownMagic) as raised:
        wire.decode(b'{"a": 1}')
    assert raised.value.magic == ord("{")
    assert "CONFLUENT WIRE FORMAT = false" in (raised.value.hint() or "")


@pytest.mark.parametrize("schema_id", [-1, 2**31, 2**40])
def test_an_id_that_no_registry_gives_cannot_be_framed(schema_id: int) -> None:
    with pytest.raises(SchemaIdOutOfRange):
        wire.encode(schema_id, b"")


@given(indexes, st.binary(max_size=20))
def test_message_indexes_are_read_as_they_were_written(path: tuple[int, ...], message: bytes) -> None:
    assert wire.decode_message_indexes(wire.encode_message_indexes(path) + message) == (path, message)


def test_the_first_message_of_a_file_is_a_single_zero() -> None:
    assert wire.encode_message_indexes((0,)) == b"\x00"
    assert wire.decode_message_indexes(b"\x00rest") == ((0,), b"rest")


def test_the_long_form_of_the_first_message_is_read_too() -> None:
    assert wire.decode_message_indexes(b"\x02\x00rest") == ((0,), b"rest")


def test_indexes_are_zigzag_varints() -> None:
    assert wire.encode_message_indexes((1, 0)) == b"\x04\x02\x00"
    assert wire.encode_message_indexes((64,)) == b"\x02\x80\x01"


@pytest.mark.parametrize(
    ("payload", "what"),
    [
        (b"", "the record ends within them"),
        (b"\x04\x02", "the record ends within them"),
        (b"\x80", "the record ends within them"),
        (b"\x01", "their number is given as -1"),
        (b"\xff\xff\xff\xff\x0f", "their number is given as -2147483648"),
        (b"\x80\x80\x80\x80\x80\x01", "a number is longer than five bytes"),
        (b"\x02\x01", "index -1 is negative"),
        (b"\xd0\x0f" + b"\x00" * 1000, "their number is given as 1000"),
    ],
)
def test_broken_message_indexes_say_what_is_wrong(payload: bytes, what: str) -> None:
    with pytest.raises(MalformedMessageIndexes) as raised:
        wire.decode_message_indexes(payload)
    assert raised.value.what == what


@pytest.mark.parametrize("path", [(), (-1,), (0, -2)])
def test_what_is_no_path_cannot_be_written(path: tuple[int, ...]) -> None:
    with pytest.raises(MalformedMessageIndexes):
        wire.encode_message_indexes(path)


@given(st.binary(max_size=30))
def test_any_bytes_are_read_or_refused_with_an_error_of_ours(payload: bytes) -> None:
    try:
        path, rest = wire.decode_message_indexes(payload)
    except MalformedMessageIndexes:
        return
    assert len(path) >= 1
    assert payload.endswith(rest)
