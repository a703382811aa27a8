"""Whether columns fit a registered schema: they must be a subset of its fields, in the same order and with the same types.

Whether a field may be null does not matter here. What nulls do when they are written is said by `null_fields`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headgate.schema.names import force_quotes, quote_identifier
from headgate.schema.render import print_type
from headgate.schema.types import (
    Array,
    Bytes,
    Enum,
    Field,
    Map,
    Record,
    Text,
    Type,
    plain,
)

_NESTED = Record | Array | Map


def misfits(columns: Sequence[Field], fields: Sequence[Field]) -> tuple[str, ...]:
    """What keeps columns from being a subset of fields, one clause for each; empty if they are."""
    return tuple(_misfits(columns, fields, ""))


def stands_for(column: Field, record: Record) -> bool:
    """Whether a column of a record type is the whole of a record, and not the field of its name."""
    if not isinstance(column.type, Record):
        return False
    field = record.field(column.name)
    return field is None or (
        bool(misfits((column,), (field,))) and not misfits((column,), (Field(column.name, record),))
    )


def _misfits(columns: Sequence[Field], fields: Sequence[Field], path: str) -> Iterator[str]:
    places = {field.name: at for at, field in enumerate(fields)}
    last = -1
    for column in columns:
        name = f"{path}{column.name}"
        at = places.get(column.name)
        if at is None:
            yield _missing(column, name, fields)
            continue
        if at < last:
            yield f'"{name}" comes after "{path}{fields[last].name}", which the schema has behind it'
        last = max(last, at)
        yield from _type_misfits(column.type, fields[at].type, name)


def _missing(column: Field, name: str, fields: Sequence[Field]) -> str:
    near = [field.name for field in fields if field.name.lower() == column.name.lower()]
    if near:
        return f'"{name}" differs from "{near[0]}" only by case: write {force_quotes(near[0])} in quotes'
    return f'"{name}" is missing in the schema'


def _type_misfits(column: Type, field: Type, name: str) -> Iterator[str]:
    match column, field:
        case Record(), Record():
            yield from _misfits(column.fields, field.fields, f"{name}.")
        case Array(), Array():
            yield from _type_misfits(column.element, field.element, name)
        case Map(), Map():
            yield from _type_misfits(column.value, field.value, name)
        case (Text(), Enum()) | (Bytes(None), Bytes()):
            return  # checked row by row
        case Enum(), Enum() if set(column.symbols) <= set(field.symbols):
            return
        case _:
            if plain(column) != plain(field):
                yield _other_type(column, field, name)


def _other_type(column: Type, field: Type, name: str) -> str:
    found = f'"{name}" is {print_type(column)} and in the schema {print_type(field)}'
    if isinstance(column, _NESTED) or isinstance(field, _NESTED | Bytes):
        return found
    into = "text" if isinstance(field, Enum) else print_type(field)  # a text may go into an enum
    return f"{found}: write CAST({quote_identifier(name.rpartition('.')[2])} AS {into})"


def shown_fields(fields: Sequence[Field]) -> tuple[str, ...]:
    """Each field with its type, for an error that shows two schemas."""
    return tuple(f"{field.name} {print_type(field.type)}" for field in fields)


# nulls


@dataclass(frozen=True, slots=True)
class NullFields:
    """``refused``: fields in which a null cannot be written. ``filled``: fields in which a null is written as the default."""

    refused: tuple[str, ...] = ()
    filled: tuple[str, ...] = ()
    always_refused: tuple[str, ...] = ()  # fields without a column, so that no row can be written


def null_fields(columns: Sequence[Field], fields: Sequence[Field]) -> NullFields:
    """What becomes of nulls in columns that fit the fields of a schema. Columns that are never null need not be told."""
    refused: list[str] = []
    filled: list[str] = []
    always: list[str] = []
    _collect(columns, fields, "", refused, filled, always)
    return NullFields(tuple(refused), tuple(filled), tuple(always))


def _collect(
    columns: Sequence[Field], fields: Sequence[Field], path: str,
    refused: list[str], filled: list[str], always: list[str],
) -> None:  # fmt: skip
    known = {column.name: column for column in columns}
    for field in fields:
        name, column = f"{path}{field.name}", known.get(field.name)
        if column is None:
            if not field.nullable and field.default is None:
                (refused if path else always).append(name)
            continue
        if not field.nullable and column.nullable:
            (refused if field.default is None else filled).append(name)
        refused += _null_elements(column.type, field.type, name)
        inner, within = _innermost(column.type), _innermost(field.type)
        if isinstance(inner, Record) and isinstance(within, Record):
            _collect(inner.fields, within.fields, f"{name}.", refused, filled, always)


def _null_elements(column: Type, field: Type, name: str) -> Iterator[str]:
    """The arrays and maps that may hold nulls which those of the schema do not."""
    match column, field:
        case Array(), Array():
            if column.element_nullable and not field.element_nullable:
                yield f"{name}[]"
            yield from _null_elements(column.element, field.element, f"{name}[]")
        case Map(), Map():
            if column.value_nullable and not field.value_nullable:
                yield f"{name}{{}}"
            yield from _null_elements(column.value, field.value, f"{name}{{}}")
        case _:
            return


def _innermost(type_: Type) -> Type:
    """The type of what arrays and maps hold in the end."""
    while isinstance(type_, Array | Map):
        type_ = type_.element if isinstance(type_, Array) else type_.value
    return type_
