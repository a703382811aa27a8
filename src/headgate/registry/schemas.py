"""A registered schema as a value, and reading it: with its references, and in canonical form."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SchemaType(StrEnum):
    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema used by another: the name it is known by there, and where it is registered."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema's text as its author wrote it (or as the registry returned it)."""

    text: str
    type: SchemaType = SchemaType.AVRO
    references: tuple[Reference, ...] = ()
