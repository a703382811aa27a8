"""Schemas as text, from outside Headgate or for a registry, and the levels of compatibility of a registry.

Schemas that are JSON documents are loaded here. Limits protect against documents that are too deep or too large. All classes
are plain values, so that a plan can hold a schema without importing the client of a registry.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn, TypeAlias

from headgate.schema.errors import SchemaError, SchemaTooDeep, SchemaTooLarge, UnresolvedType
from headgate.schema.names import ROOT, print_name
from headgate.schema.types import MAX_DEPTH, Named, Type, depth


class SchemaFormat(StrEnum):
    """The values are those of the registry's REST interface; `words` are the words for the format in statements."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"

    @property
    def words(self) -> str:
        return "JSON SCHEMA" if self is SchemaFormat.JSON else self.value

    @classmethod
    def from_words(cls, words: str) -> SchemaFormat:
        """The format with these words. Raises ValueError if there is none."""
        return cls(words.removesuffix(" SCHEMA"))


@dataclass(frozen=True, slots=True)
class WrittenSchema:
    """A schema from outside: from a registry, from a statement, or generated to be registered.

    `references` are the names and texts of all schemas that it refers to, directly or indirectly. Each one comes after those
    that it needs itself. `id` is the id in the registry, or None for a schema that no registry has returned: one that is written
    in a statement, or that is still to be registered.
    """

    text: str
    references: tuple[tuple[str, str], ...] = ()
    id: int | None = None
    format: SchemaFormat = SchemaFormat.AVRO


class CompatibilityLevel(StrEnum):
    """Backward: the new schema reads old data. Forward: an old schema reads new data. Full: both.

    Without TRANSITIVE only the latest version counts, otherwise every version.
    """

    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"
    NONE = "NONE"

    @property
    def is_transitive(self) -> bool:
        """Whether a schema is checked against all earlier versions, not only the last."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def reads_old(self) -> bool:
        """Whether readers of the new schema must read old records."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def is_read_by_old(self) -> bool:
        """Whether readers of old schemas must read new records."""
        return self.value.startswith(("FORWARD", "FULL"))


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a record in one schema. ``inner`` are the fields of the record in it, or in its array or map.

    A later version of the schema may call it by another name. Avro then lists its earlier names as ``aliases``, and
    Protobuf keeps its ``number``.
    """

    name: str
    aliases: tuple[str, ...] = ()
    number: int | None = None
    inner: tuple[Member, ...] = ()


# JSON documents

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""Any JSON value."""

# Thirty records of which each uses the next one twice expand to a thousand million fields, and a walk over them would take
# too long. The largest real schemas that we have seen have about 20,000 fields.
MAX_FIELDS = 50_000


def load_document(text: str, format: str, malformed: Callable[[str, str], SchemaError]) -> object:
    """The JSON value of a text, with exact integers. `malformed` makes the error from a path and a problem."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise SchemaTooDeep(format, "$") from None
    except ValueError as problem:
        raise malformed("$", f"not valid json: {problem}") from None


def copy_document(document: object, format: str, malformed: Callable[[str, str], SchemaError]) -> object:
    """A copy in which no node occurs twice.

    A document that a program has built may use one node in several places. Readers detect recursion by the identity of nodes,
    and would mistake a shared node for recursion.
    """
    try:
        text = json.dumps(document, allow_nan=False)
    except RecursionError:
        raise SchemaTooDeep(format, "$") from None
    except (TypeError, ValueError):
        raise malformed("$", "not a json document") from None
    return load_document(text, format, malformed)


def _refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity. Python's parser accepts them, but JSON does not have them."""
    raise ValueError(f"{name} is not json")


def compact(value: Json, *, sort_keys: bool = False) -> str:
    """JSON text without insignificant white space. Equal values give equal text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)


def check_depth(type_: Type, format: str) -> None:
    """Refuse a type that became too deep when named types were replaced by their definitions."""
    if depth(type_) > MAX_DEPTH:
        raise SchemaTooDeep(format, "$")


class SizeLimit:
    """Counts the fields and elements of a schema in which every named type is replaced by its definition."""

    def __init__(self, format: str) -> None:
        self.counted = 0
        self._format = format

    def count(self, fields: int, path: str) -> None:
        """Raises SchemaTooLarge if there are more than MAX_FIELDS."""
        self.counted += fields
        if self.counted > MAX_FIELDS:
            raise SchemaTooLarge(self._format, path, MAX_FIELDS)


Resolve: TypeAlias = Callable[[Named], Type]


def unresolved(type_: Named) -> Type:
    """The `Resolve` for types that contain no named type."""
    raise UnresolvedType(ROOT, print_name(type_.parts))
