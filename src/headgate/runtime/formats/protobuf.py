"""Protobuf: messages by Protobuf's own library, with the writer's schema, and columns made field by field.

A field is found by its name; one that was renamed, by its number, unless its new name is a column too. Where the
writer's schema has no such field, the column is NULL, or if it cannot be, what Protobuf has for a field that is not
there. Numbers of fields that the writer's schema does not have are passed over, as Protobuf has it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from headgate.registry import wire
from headgate.registry.errors import MalformedMessageIndexes
from headgate.registry.protobuf_files import find_message, load_files, place_in_file, read_files
from headgate.runtime.formats.arrow_reader import Bad, Decoding, Doubt, Parsed, arrow_type, one_by_one
from headgate.runtime.formats.protobuf_columns import record_column
from headgate.schema.errors import SchemaError, ValueDoesNotFit
from headgate.schema.formats.proto_text.errors import UnknownMessage
from headgate.schema.paths import ROOT
from headgate.schema.types import Record
from headgate.schema.written import WrittenSchema


def protobuf_bodies(decoding: Decoding, writer: WrittenSchema) -> ProtobufBodies:
    return ProtobufBodies(decoding, writer)


class ProtobufBodies:
    def __init__(self, decoding: Decoding, writer: WrittenSchema) -> None:
        assert isinstance(decoding.target.type, Record)
        self._framed = decoding.framed
        self._unusable = ""
        try:
            message, reader = _messages(decoding, writer)
        except SchemaError as wrong:
            self._unusable = f"the schema that it names cannot be used: {wrong.message()}"
            return
        self._place = place_in_file(message)
        self._class: Any = GetMessageClass(message)
        self._has_required = _has_required(message, set())
        self._column = record_column(message, decoding.target.type, arrow_type(decoding.target), ROOT, reader)

    def parse(self, bodies: list[bytes]) -> Parsed:
        return one_by_one(self._parsed, bodies)

    def _parsed(self, body: bytes) -> Any:
        if self._unusable:
            raise Bad(self._unusable)
        if self._framed:
            body = self._message_of(body)
        try:
            message = self._class.FromString(body)
        except DecodeError as wrong:
            utf8 = "UTF-8" in str(wrong)
            raise Bad(
                "a text in it is not valid UTF-8" if utf8 else "it is no message of its schema"
            ) from None
        if self._has_required and not message.IsInitialized():
            missing = ", ".join(message.FindInitializationErrors())
            raise Bad(f"required fields are missing: {missing}")
        return message

    def columns(self, parsed: list[Any]) -> pa.Array:
        return self._column(parsed)

    def exact(self, body: bytes) -> pa.Array:
        message = self._parsed(body)
        try:
            return self._column([message])
        except ValueDoesNotFit as misfit:
            raise Bad(misfit.message()) from None
        except (Doubt, pa.ArrowException, TypeError, ValueError, OverflowError):
            raise Bad("it does not fit the type of the source") from None

    def _message_of(self, body: bytes) -> bytes:
        """What follows the path of the message type, which must be the one that is planned."""
        if body[:1] == b"\x00" and self._place == (0,):
            return body[1:]
        try:
            place, rest = wire.decode_message_indexes(body)
        except MalformedMessageIndexes:
            raise Bad("the place of its message type is malformed") from None
        if place != self._place:
            raise Bad("it is a message of another type than the source has")
        return rest


def _messages(decoding: Decoding, writer: WrittenSchema) -> tuple[Descriptor, Descriptor]:
    """The message of the writer, and the same in the schema that was frozen at creation."""
    first = decoding.schemas[0]
    reader = find_message(load_files(read_files(first.text, first.references)), decoding.message)
    if writer == first:
        return reader, reader
    file = load_files(read_files(writer.text, writer.references))
    try:
        return find_message(file, reader.full_name), reader
    except UnknownMessage:
        if decoding.message is not None:
            raise
        return find_message(file, None), reader


def _has_required(message: Descriptor, seen: set[str]) -> bool:
    if message.full_name in seen:
        return False
    seen.add(message.full_name)
    return any(
        field.is_required or (field.message_type is not None and _has_required(field.message_type, seen))
        for field in message.fields
    )
