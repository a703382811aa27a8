"""The gRPC services of materializations ON DEMAND, as descriptors: one service with a message of its own for each, and one for all. Pure.

The fields of a message keep their numbers from one version to the next, as those of a published Protobuf schema do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from google.protobuf import descriptor_pb2 as pb

from headgate.plan.target_definitions import OnDemandDefinition
from headgate.schema import types as t
from headgate.schema.formats.protobuf.print import print_proto
from headgate.schema.formats.protobuf.protoc import read_files
from headgate.schema.formats.protobuf.write import to_protobuf

PACKAGE, ROWS_PACKAGE, SHARED_PACKAGE = "headgate.ondemand", "headgate.ondemand.rows", "headgate.v1"
SHARED_SERVICE = f"{SHARED_PACKAGE}.OnDemand"
_SHARED_FILE = "headgate/v1/on_demand.proto"

# The rows that are the same for all materializations.
JSON_ROW = t.Record(
    (
        t.Field("object_id", t.Text(), nullable=False, doc="The key, or a JSON array of its parts."),
        t.Field("fields", t.Map(t.Text(), False), nullable=False, doc="The JSON text of each field."),
    ),
    doc="A row with the JSON text of each field.",
)
FLAT_ROW = t.Record(
    (
        t.Field("object_id", t.Text(), nullable=False, doc="The key, or a JSON array of its parts."),
        t.Field(
            "fields",
            t.Map(t.Record((t.Field("value", t.Text()), t.Field("type", t.Text(), nullable=False))), False),
            nullable=False,
            doc="The text and the type of each leaf, by its path with dots. Null has no value.",
        ),
    ),
    doc="A row with the text and the type of each leaf.",
)

_SHARED = """
syntax = "proto3";
package headgate.v1;
import "headgate/v1/JsonRow.proto";
import "headgate/v1/FlatRow.proto";

// Which rows of a materialization are wanted.
message RowsRequest {
  // One SQL condition over the fields, as after WHERE. Empty: all rows.
  string filter = 1;
  // The fields that are filled in. Empty: all.
  repeated string fields = 2;
  // At most so many rows.
  optional int64 limit = 3;
  // The row of this key, written as object_id is.
  optional string key = 4;
}

// The same of a materialization that is named in the request.
message OnDemandRequest {
  // Its name, with its schema if that is not in the default search path.
  string materialization = 1;
  string filter = 2;
  repeated string fields = 3;
  optional int64 limit = 4;
  optional string key = 5;
}

// Rows of every materialization ON DEMAND in forms that need no generated message.
service OnDemand {
  rpc JsonRows(OnDemandRequest) returns (stream JsonRow);
  rpc FlatRows(OnDemandRequest) returns (stream FlatRow);
}
"""


def row_file(definition: OnDemandDefinition, service: str, previous: bytes | None) -> pb.FileDescriptorProto:
    """The file with the message of a materialization. ``previous`` is the file before, serialized, or None."""
    old = None if previous is None else pb.FileDescriptorProto.FromString(previous)
    record = t.Record(definition.row.fields, doc=definition.doc)
    return to_protobuf(record, name=service, package=ROWS_PACKAGE, previous=old)


def service_file(service: str) -> pb.FileDescriptorProto:
    """The file with the service of a materialization."""
    made = pb.FileDescriptorProto(
        syntax="proto3", name=f"headgate/ondemand/{service}.proto", package=PACKAGE,
        dependency=[_SHARED_FILE, f"headgate/ondemand/rows/{service}.proto"],
    )  # fmt: skip
    made.service.add(name=service).method.add(
        name="Rows", input_type=f".{SHARED_PACKAGE}.RowsRequest", output_type=f".{ROWS_PACKAGE}.{service}",
        server_streaming=True,
    )  # fmt: skip
    return made


@lru_cache(maxsize=1)
def shared_files() -> tuple[pb.FileDescriptorProto, ...]:
    """The files of `headgate.v1`, each after those that it imports."""
    rows = [to_protobuf(JSON_ROW, name="JsonRow", package=SHARED_PACKAGE), to_protobuf(FLAT_ROW, name="FlatRow", package=SHARED_PACKAGE)]  # fmt: skip
    own, *_ = read_files(_SHARED, [(file.name, print_proto(file)) for file in rows])
    own.name = _SHARED_FILE
    return (*rows, own)


def imported_files(files: Sequence[pb.FileDescriptorProto]) -> tuple[pb.FileDescriptorProto, ...]:
    """The files of Protobuf's own types that the given ones import, each after those that it imports itself."""
    names = sorted({name for file in files for name in file.dependency if name.startswith("google/")})
    return _library_files(tuple(names))


@lru_cache(maxsize=64)
def _library_files(names: tuple[str, ...]) -> tuple[pb.FileDescriptorProto, ...]:
    if not names:
        return ()
    imports = "\n".join(f'import "{name}";' for name in names)
    _, *found = read_files(f'syntax = "proto3";\n{imports}\n')
    return tuple(found)


def descriptors(file: pb.FileDescriptorProto) -> bytes:
    """A file and what it imports, serialized, for the process that writes messages."""
    return pb.FileDescriptorSet(file=[file, *imported_files([file])]).SerializeToString()
