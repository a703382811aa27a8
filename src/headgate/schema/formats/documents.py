"""Schemas that are JSON documents, and limits against hostile ones; definitions of named types."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NoReturn, TypeAlias

from headgate.schema.errors import SchemaError, SchemaTooDeep, SchemaTooLarge, UnresolvedType
from headgate.schema.names import print_name
from headgate.schema.paths import ROOT
from headgate.schema.types import MAX_DEPTH, Named, Type, depth

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""Any JSON value."""

# Thirty records that each use the next one twice have a thousand million fields in all, and a walk over such a type
# would not end. The largest real schemas that we have seen have about 20,000 fields.
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

    A document made by a program may share nodes. Readers find recursion by the identity of nodes and would take a
    shared node for it.
    """
    try:
        text = json.dumps(document, allow_nan=False)
    except RecursionError:
        raise SchemaTooDeep(format, "$") from None
    except (TypeError, ValueError):
        raise malformed("$", "not a json document") from None
    return load_document(text, format, malformed)


def _refuse_constant(name: str) -> NoReturn:
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
