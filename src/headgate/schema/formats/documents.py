"""Foreign schemas that are JSON documents, within bounds that keep a hostile one harmless; definitions of named types."""

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

# Thirty records that each use the next one twice unfold to a thousand million fields; every walk over such a type
# would never end. The largest schemas seen in the wild have some 20,000.
MAX_PLACES = 50_000


def load_document(text: str, format: str, malformed: Callable[[str, str], SchemaError]) -> object:
    """The document that a text holds, integers exact. ``malformed`` makes the error from a path and a problem."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise SchemaTooDeep(format, "$") from None
    except ValueError as problem:
        raise malformed("$", f"not valid json: {problem}") from None


def copy_document(document: object, format: str, malformed: Callable[[str, str], SchemaError]) -> object:
    """The same document with no node in two places, which only one made in a program has: nodes are told apart by
    identity when a recursion is looked for."""
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
    """JSON text without insignificant white space; numbers and escapes in one form."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)


def check_depth(type_: Type, format: str) -> None:
    """Refuse a type that became too deep where named types were put into each other."""
    if depth(type_) > MAX_DEPTH:
        raise SchemaTooDeep(format, "$")


class Budget:
    """Counts the fields and elements of a schema with every named type written out where it is used."""

    def __init__(self, format: str) -> None:
        self.spent = 0
        self._format = format

    def spend(self, places: int, path: str) -> None:
        self.spent += places
        if self.spent > MAX_PLACES:
            raise SchemaTooLarge(self._format, path, MAX_PLACES)


Resolve: TypeAlias = Callable[[Named], Type]


def unresolved(type_: Named) -> Type:
    """For types that hold no named ones."""
    raise UnresolvedType(ROOT, print_name(type_.parts))
