"""The docs in a type: where they are, where they are missing, and how they are set.

A record, an enum and a field of any type can have a doc. A field and its type share one path: `$.address` is both
the field and the record in it. Arrays and maps have no docs, but the types inside them can have some.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from headgate.errors import similar_names
from headgate.schema import types as t
from headgate.schema.errors import UnknownPath
from headgate.schema.names import ROOT, element_path, field_path, value_path


class DocumentedPart(StrEnum):
    """Which of the two things at one path has the doc."""

    FIELD = "field"
    TYPE = "type"


@dataclass(frozen=True, slots=True)
class DocPath:
    """A field or a type that can have a doc."""

    path: str
    of: DocumentedPart


def doc_paths(type_: t.Type, path: str = ROOT) -> Iterator[tuple[DocPath, str | None]]:
    """Everything that can have a doc, with its doc, in order. A field comes before its type."""
    match type_:
        case t.Record():
            yield DocPath(path, DocumentedPart.TYPE), type_.doc
            for field in type_.fields:
                inner = field_path(path, field.name)
                yield DocPath(inner, DocumentedPart.FIELD), field.doc
                yield from doc_paths(field.type, inner)
        case t.Enum():
            yield DocPath(path, DocumentedPart.TYPE), type_.doc
        case t.Array():
            yield from doc_paths(type_.element, element_path(path))
        case t.Map():
            yield from doc_paths(type_.value, value_path(path))
        case _:
            return


def docs(type_: t.Type) -> dict[DocPath, str]:
    """The docs of a type, by path."""
    return {part: doc for part, doc in doc_paths(type_) if doc is not None}


def undocumented(type_: t.Type, of: DocumentedPart) -> tuple[str, ...]:
    """The paths of all fields, or of all records and enums, without a doc."""
    return tuple(part.path for part, doc in doc_paths(type_) if part.of is of and not doc)


def with_docs(type_: t.Type, docs_: Mapping[DocPath, str | None]) -> t.Type:
    """The type with these docs. None removes a doc. Raises UnknownPath for a path that the type does not have."""
    known = {part for part, _ in doc_paths(type_)}
    for part in docs_:
        if part not in known:
            raise UnknownPath(part.path, similar_names(part.path, sorted(p.path for p in known if p.of is part.of)))
    return _with_docs(type_, docs_, ROOT)


def without_docs(type_: t.Type) -> t.Type:
    """The type with its names and without docs."""
    return _with_docs(type_, {part: None for part, _ in doc_paths(type_)}, ROOT)


def _with_docs(type_: t.Type, docs_: Mapping[DocPath, str | None], path: str) -> t.Type:
    """The type with the docs below a path. Paths that are not in the mapping keep their docs."""
    match type_:
        case t.Record():
            fields = tuple([_field(field, docs_, path) for field in type_.fields])
            return replace(type_, fields=fields, doc=docs_.get(DocPath(path, DocumentedPart.TYPE), type_.doc))
        case t.Enum():
            return replace(type_, doc=docs_.get(DocPath(path, DocumentedPart.TYPE), type_.doc))
        case t.Array():
            return replace(type_, element=_with_docs(type_.element, docs_, element_path(path)))
        case t.Map():
            return replace(type_, value=_with_docs(type_.value, docs_, value_path(path)))
        case _:
            return type_


def _field(field: t.Field, docs_: Mapping[DocPath, str | None], path: str) -> t.Field:
    inner = field_path(path, field.name)
    doc = docs_.get(DocPath(inner, DocumentedPart.FIELD), field.doc)
    return replace(field, type=_with_docs(field.type, docs_, inner), doc=doc)
