"""The text of .proto files: to descriptors as protoc makes them, and back.

In: proto2, proto3 and editions text. Out: ``FileDescriptorProto`` from ``parse_proto`` (names as written, comments
in ``source_code_info``), ``resolve`` (names made absolute and the rules of the language checked, the well-known
``google/`` and ``confluent/`` files being there without asking), text again from ``print_proto``.
``parse_proto(print_proto(f)) == f`` but for source positions. Inside, a text goes through ``lexer``, ``cursor``
(tokens, places, comments), ``parser`` and the file of each statement. Imports ``headgate.errors``,
``headgate.schema.errors`` and protobuf only; no I/O.
"""

from headgate.schema.formats.proto_text.parser import parse_proto
from headgate.schema.formats.proto_text.printer import print_proto
from headgate.schema.formats.proto_text.resolve import resolve

__all__ = ["parse_proto", "print_proto", "resolve"]
