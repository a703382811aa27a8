"""Docs and comments: one is the other with a blank before each line."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.descriptor_pb2 import FileDescriptorProto, SourceCodeInfo

from headgate.schema.formats.proto_text.cursor import Path


def docs_of(file: FileDescriptorProto) -> Mapping[Path, str]:
    """The doc of each declaration: its leading comment, or else the one that trails it."""
    found: dict[Path, str] = {}
    for location in file.source_code_info.location:
        doc = _doc(location.leading_comments or location.trailing_comments)
        if doc:
            found.setdefault(tuple(location.path), doc)
    return found


def _doc(comment: str) -> str:
    lines = [line.removeprefix(" ").rstrip() for line in comment.split("\n")]
    return "\n".join(lines).strip()


def comment_at(path: Path, doc: str) -> SourceCodeInfo.Location:
    """The place of a declaration that is not in any text yet, with its doc."""
    lines = (f" {line}".rstrip() for line in doc.strip().split("\n"))
    return SourceCodeInfo.Location(
        path=path, span=[0, 0, 0], leading_comments="".join(f"{line}\n" for line in lines)
    )
