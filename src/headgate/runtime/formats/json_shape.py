"""Whether documents are what their type says, looked at column by column: pyarrow is too kind to be asked."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from headgate.runtime.formats.arrow import Doubt
from headgate.schema.types import Array, Bigint, Double, Enum, Integer, Map, Real, Record, Type

Look: TypeAlias = Callable[[list[Any]], None]

_NULL: type = type(None)
_WHOLE: frozenset[type] = frozenset((int, _NULL))
_NUMBER: frozenset[type] = frozenset((int, float, _NULL))


def shape(type_: Type) -> Look:
    """Raises Doubt if any of the values is not of a kind that pyarrow turns into the type without a loss. Texts and
    booleans are not looked at: pyarrow takes nothing else for them."""
    match type_:
        case Integer() | Bigint():
            return lambda values: _of_kinds(values, _WHOLE)
        case Real() | Double():
            return lambda values: _of_kinds(values, _NUMBER)
        case Enum(symbols):
            known = frozenset((*symbols, None))
            return lambda values: _among(values, known)
        case Record(fields):
            inner = [(f.name, shape(f.type)) for f in fields if _is_looked_at(f.type)]
            return lambda values: _records(values, inner)
        case Array(element):
            of_elements = shape(element)
            return lambda values: of_elements(list(chain.from_iterable(_present(values, list))))
        case Map(value):
            of_values = shape(value)
            return lambda values: of_values(
                list(chain.from_iterable([one.values() for one in _present(values, dict)]))
            )
        case _:
            return lambda _: None


def nothing_lost(made: pa.Array, type_: Type, nullable: bool) -> None:
    """Raises Doubt for a null where there must be none, and for a number that has become infinite."""
    if made.null_count and not nullable:
        raise Doubt
    match type_:
        case Real() | Double():
            if not pc.all(pc.is_finite(made), min_count=0).as_py():
                raise Doubt
        case Record(fields):
            present = made.filter(made.is_valid()) if made.null_count else made
            for number, field in enumerate(fields):
                nothing_lost(present.field(number), field.type, field.nullable)
        case Array(element, element_nullable):
            nothing_lost(made.flatten(), element, element_nullable)
        case Map(value, value_nullable):
            present = made.filter(made.is_valid()) if made.null_count else made
            nothing_lost(present.items, value, value_nullable)
        case _:
            pass


def _is_looked_at(type_: Type) -> bool:
    return isinstance(type_, Integer | Bigint | Real | Double | Enum | Record | Array | Map)


def _of_kinds(values: list[Any], kinds: frozenset[type]) -> None:
    if not kinds.issuperset(map(type, values)):
        raise Doubt


def _among(values: list[Any], known: frozenset[str | None]) -> None:
    if not known.issuperset(values):
        raise Doubt


def _records(values: list[Any], inner: list[tuple[str, Look]]) -> None:
    present = _present(values, dict)
    for name, look in inner:
        look([one.get(name) for one in present])


def _present(values: list[Any], kind: type) -> list[Any]:
    kinds = set(map(type, values))
    if kinds == {kind}:
        return values
    if not kinds <= {kind, _NULL}:
        raise Doubt
    return [value for value in values if value is not None]
