"""The one type that every value of several alternatives fits, with json as the last resort."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.schema.types import Bigint, Double, Enum, Field, Integer, Json, Real, Record, Text, Type, plain

_WHOLE = (Integer, Bigint)
_NUMBER = (Integer, Bigint, Real, Double)


def join(types: Sequence[Type]) -> Type:
    """The joined type of at least one alternative. Names and docs are kept where the alternatives agree."""
    first = types[0]
    if all(type_ == first for type_ in types):
        return first
    records = [type_ for type_ in types if isinstance(type_, Record)]
    if len(records) == len(types):
        return _join_records(records)
    enums = [type_ for type_ in types if isinstance(type_, Enum)]
    if len(enums) == len(types):
        return _join_enums(enums)
    if all(plain(type_) == plain(first) for type_ in types):
        return plain(first)
    return _join_scalars(types)


def _join_scalars(types: Sequence[Type]) -> Type:
    if all(isinstance(type_, _WHOLE) for type_ in types):
        return Bigint()
    if all(isinstance(type_, _NUMBER) for type_ in types):
        return Double()
    if all(isinstance(type_, Text | Enum) for type_ in types):
        return Text()
    return Json()


def _join_records(records: Sequence[Record]) -> Record:
    """One record with the fields of all; a field that some of them lack may be null."""
    names = dict.fromkeys(field.name for record in records for field in record.fields)
    by_name = [{field.name: field for field in record.fields} for record in records]
    fields = (
        _join_fields([fields[name] for fields in by_name if name in fields], len(records)) for name in names
    )
    return Record(tuple(fields), _agreed([r.name for r in records]), _agreed([r.doc for r in records]))


def _join_fields(fields: Sequence[Field], alternatives: int) -> Field:
    nullable = len(fields) < alternatives or any(field.nullable for field in fields)
    doc = next((field.doc for field in fields if field.doc is not None), None)
    return Field(fields[0].name, join([field.type for field in fields]), nullable, doc)


def _join_enums(enums: Sequence[Enum]) -> Enum:
    symbols = dict.fromkeys(symbol for enum in enums for symbol in enum.symbols)
    return Enum(tuple(symbols), _agreed([e.name for e in enums]), None, _agreed([e.doc for e in enums]))


def _agreed(texts: Sequence[str | None]) -> str | None:
    return texts[0] if len(set(texts)) == 1 else None
