"""The mapper for Protobuf: `from_protobuf` reads a message of a file, `to_protobuf` generates a file.

In: .proto texts, which `protoc` compiles to descriptors; or a record, with the name that its message gets and the file
that was generated before. Out: a record; or a proto3 descriptor whose docs are comments, which `print` shows as text.
`proto/` has the files that every schema may import beside Protobuf's own. Imports `headgate.schema`, protobuf and
grpcio-tools, the latter only when a text is compiled. The only I/O is protoc's temporary folder.
"""

from headgate.schema.formats.protobuf.print import print_proto
from headgate.schema.formats.protobuf.protoc import read_files
from headgate.schema.formats.protobuf.read import from_protobuf, message_in
from headgate.schema.formats.protobuf.write import to_protobuf

__all__ = ["from_protobuf", "message_in", "print_proto", "read_files", "to_protobuf"]
