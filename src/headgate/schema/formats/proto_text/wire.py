"""How values lie on the wire: types of one form can be read as each other."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.descriptor_pb2 import FieldDescriptorProto

_F = FieldDescriptorProto

WIRE_FORMS: Mapping[int, str] = {
    **dict.fromkeys(
        (_F.TYPE_INT32, _F.TYPE_INT64, _F.TYPE_UINT32, _F.TYPE_UINT64, _F.TYPE_BOOL, _F.TYPE_ENUM), "varint"
    ),
    **dict.fromkeys((_F.TYPE_SINT32, _F.TYPE_SINT64), "zigzag"),
    **dict.fromkeys((_F.TYPE_STRING, _F.TYPE_BYTES), "length"),
    **dict.fromkeys((_F.TYPE_FIXED32, _F.TYPE_SFIXED32), "fixed32"),
    **dict.fromkeys((_F.TYPE_FIXED64, _F.TYPE_SFIXED64), "fixed64"),
    _F.TYPE_FLOAT: "float",
    _F.TYPE_DOUBLE: "double",
}
