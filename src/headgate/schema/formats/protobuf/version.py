"""The next version of a file that `to_protobuf` made.

A column keeps the number of its field, also if its type changes: whether readers can take the change is for the registry
to say. What both versions have keeps the comment that it was published with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from google.protobuf import descriptor_pb2 as pb

from headgate.schema import types as t
from headgate.schema.formats.protobuf.read import from_protobuf
from headgate.schema.formats.protobuf.write import to_protobuf


def next_version(
    old: pb.FileDescriptorProto,
    record: t.Record,
    imported: Sequence[pb.FileDescriptorProto] = (),
    *,
    keep_docs: bool = True,
) -> pb.FileDescriptorProto:
    """The file for the record as the next version of a published one, whose first message it continues. Without
    ``keep_docs`` the comments are the docs of the record."""
    documented = _with_docs_of(from_protobuf(old, None, imported), record) if keep_docs else record
    assert isinstance(documented, t.Record)
    name = old.message_type[0].name
    return to_protobuf(documented, name=name, package=old.package, previous=old, same_numbers=True)


def differs(old: pb.FileDescriptorProto, new: pb.FileDescriptorProto) -> bool:
    """Whether two compiled files differ in more than their comments and their names."""
    return _without_docs(old) != _without_docs(new)


def _without_docs(file: pb.FileDescriptorProto) -> pb.FileDescriptorProto:
    made = pb.FileDescriptorProto()
    made.CopyFrom(file)
    made.ClearField("source_code_info")
    made.ClearField("name")
    return made


def _with_docs_of(old: t.Type, new: t.Type) -> t.Type:
    """The new type with the docs of the old one, for all that the old one has."""
    match old, new:
        case t.Record(), t.Record():
            known = {field.name: field for field in old.fields}
            fields = tuple(_field(known.get(field.name), field) for field in new.fields)
            return replace(new, fields=fields, doc=old.doc)
        case t.Enum(), t.Enum():
            return replace(new, doc=old.doc)
        case t.Record((wrapped,)), (t.Array() | t.Map()):  # the message around a list in a list
            return _with_docs_of(wrapped.type, new)
        case t.Array(), t.Array():
            return replace(new, element=_with_docs_of(old.element, new.element))
        case t.Map(), t.Map():
            return replace(new, value=_with_docs_of(old.value, new.value))
        case _:
            return new


def _field(old: t.Field | None, new: t.Field) -> t.Field:
    return new if old is None else replace(new, type=_with_docs_of(old.type, new.type), doc=old.doc)
