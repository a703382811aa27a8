"""The mapper for Protobuf: `from_protobuf` reads a message of a file, `to_protobuf` generates a file.

In: descriptors, as `proto_text.parse_proto` or a registry gives them, with the files they import; or a record, with
the name its message shall have and the file that was generated before. Out: a record; or a proto3 descriptor whose
docs are comments, so that `proto_text.print_proto` shows them. Imports `headgate.schema` and protobuf; no I/O.
"""

from headgate.schema.formats.protobuf.read import from_protobuf
from headgate.schema.formats.protobuf.write import to_protobuf

__all__ = ["from_protobuf", "to_protobuf"]
