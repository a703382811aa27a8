"""The frame around a record that names its schema: a zero byte, the schema's id, then the payload.

This is the one place that knows the layout. `runtime/formats/frame.py` builds its columns on it.

    | 0 | id, four bytes, big-endian | payload |

A Protobuf payload begins with the path of its message type within the file, as zigzag varints: the number of
indexes, then the indexes, outermost first. The most frequent path, the first message of the file, is a single
zero byte. Everything here is pure: bytes in, bytes out.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.registry import errors

MAGIC = 0
HEADER_LENGTH = 5
MAX_ID = 2**31 - 1

# Far beyond any real nesting of messages. It keeps a broken record from claiming a long list.
MAX_INDEXES = 100


@dataclass(frozen=True, slots=True)
class Framed:
    """A record taken apart: the id of its schema, and what follows."""

    schema_id: int
    payload: bytes


def header(schema_id: int) -> bytes:
    """The first bytes of a record of the schema. A record may hold any number of four bytes; `encode` checks its range."""
    return bytes((MAGIC,)) + schema_id.to_bytes(HEADER_LENGTH - 1, "big")


def encode(schema_id: int, payload: bytes) -> bytes:
    if not 0 <= schema_id <= MAX_ID:
        raise errors.SchemaIdOutOfRange(schema_id)
    return header(schema_id) + payload


def decode(record: bytes) -> Framed:
    """Raises FrameTooShort or UnknownMagic. The id is an unsigned number, so it may be one that no registry gives."""
    if len(record) < HEADER_LENGTH:
        raise errors.FrameTooShort(len(record))
    if record[0] != MAGIC:
        raise errors.UnknownMagic(record[0])
    return Framed(int.from_bytes(record[1:HEADER_LENGTH], "big"), record[HEADER_LENGTH:])


def encode_message_indexes(indexes: tuple[int, ...]) -> bytes:
    """The path of a message type in its file: ``(0,)`` is the first, ``(2, 1)`` the second one inside the third."""
    if not indexes or any(index < 0 for index in indexes):
        raise errors.MalformedMessageIndexes(f"{list(indexes)} is no path of a message type")
    if indexes == (0,):
        return b"\x00"
    return b"".join(_varint(number) for number in (len(indexes), *indexes))


def decode_message_indexes(payload: bytes) -> tuple[tuple[int, ...], bytes]:
    """The path of the message type, and the message itself."""
    count, position = _read_varint(payload, 0)
    if count == 0:
        return (0,), payload[position:]
    if not 0 < count <= MAX_INDEXES:
        raise errors.MalformedMessageIndexes(f"their number is given as {count}")
    indexes = []
    for _ in range(count):
        index, position = _read_varint(payload, position)
        if index < 0:
            raise errors.MalformedMessageIndexes(f"index {index} is negative")
        indexes.append(index)
    return tuple(indexes), payload[position:]


def _varint(number: int) -> bytes:
    """A zigzag varint, as Confluent's serialisers write the indexes."""
    zigzag = number << 1  # never negative here
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _read_varint(payload: bytes, position: int) -> tuple[int, int]:
    """A zigzag varint of at most 32 bits, and the position after it."""
    zigzag = 0
    for shift in range(0, 35, 7):
        if position >= len(payload):
            raise errors.MalformedMessageIndexes("the record ends within them")
        byte = payload[position]
        position += 1
        zigzag |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (zigzag >> 1) ^ -(zigzag & 1), position
    raise errors.MalformedMessageIndexes("a number is longer than five bytes")
