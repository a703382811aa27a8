"""How a mapper that writes definitions asks for what a named type of the catalog is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from headgate.schema.errors import UnresolvedType
from headgate.schema.names import print_name
from headgate.schema.paths import ROOT
from headgate.schema.types import Named, Type

Resolve: TypeAlias = Callable[[Named], Type]


def unresolved(type_: Named) -> Type:
    """For types that hold no named ones."""
    raise UnresolvedType(ROOT, print_name(type_.parts))
