"""Records inside records, read as fields of the outer record.

A record that is always present inside another is, in bytes, just its fields. Spark makes every inner row anew and asks its
settings for each field of it: for one record of two fields that was a sixth of all CPU time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, functions as F

from headgate.schema.formats.avro.tree import Field, Record, walk

MAX_FLATTENED = 100  # types in a record whose nested records are flattened


@dataclass(frozen=True, slots=True)
class NestedRecord:
    """The record of a field: the names of the reader's fields in it, and those of them that are flattened too."""

    names: tuple[str, ...]
    nested: Mapping[str, NestedRecord]


def find_nested(records: Sequence[Record]) -> dict[str, NestedRecord]:
    """The fields that are records in all schemas, of which the first is the reader's. Only for simple trees. None in a wide
    record: every use of a field would list all nested records and all their fields."""
    return _nested(records) if sum(1 for _ in walk(records[0])) <= MAX_FLATTENED else {}


def _nested(records: Sequence[Record]) -> dict[str, NestedRecord]:
    found = {}
    for name in _names(records[0]):
        types = [member.type for record in records for member in record.fields if member.name == name]
        inner = [type_ for type_ in types if isinstance(type_, Record) and type_.fields]
        if len(inner) == len(records):
            found[name] = NestedRecord(_names(inner[0]), _nested(inner))
    return found


def flatten(record: Record, nested: Mapping[str, NestedRecord]) -> Record:
    """The record with the fields of nested records in their places."""
    fields = [field for member in record.fields for field in _flattened(member, nested)]
    return replace(record, fields=tuple(fields))


def _flattened(member: Field, nested: Mapping[str, NestedRecord], at: _FlatField | None = None) -> Iterator[Field]:
    here = _FlatField.of(member.name) if at is None else at
    inner = nested.get(member.name)
    if inner is None or not isinstance(member.type, Record):
        yield replace(member, name=here.name)
        return
    for one in member.type.fields:
        yield from _flattened(one, inner.nested, here.within(inner, one.name))


def unflatten(read: Column, nested: Mapping[str, NestedRecord]) -> Column:
    """What was read, with the nested records where they belong; their fields are still beside them. Spark can look through a
    change of fields: a query that uses a field of such a record gets the field that was read."""
    made = read
    for name, record in nested.items():
        made = made.withField(name, _record(read, record, _FlatField.of(name)))
    return made


def without_leaves(made: Column, nested: Mapping[str, NestedRecord]) -> Column:
    """What `unflatten` made, without the fields that are in nested records now."""
    leaves = [leaf for name, record in nested.items() for leaf in _leaves(record, _FlatField.of(name)) if leaf != name]
    return made.dropFields(*leaves) if leaves else made


def _record(read: Column, record: NestedRecord, around: _FlatField) -> Column:
    fields = []
    for name in record.names:
        at, inner = around.within(record, name), record.nested.get(name)
        value = read.getField(at.name) if inner is None else _record(read, inner, at)
        fields.append(value.alias(name))
    return F.struct(*fields)


def _leaves(record: NestedRecord, around: _FlatField) -> Iterator[str]:
    for name in record.names:
        at, inner = around.within(record, name), record.nested.get(name)
        if inner is None:
            yield at.name
        else:
            yield from _leaves(inner, at)


@dataclass(frozen=True, slots=True)
class _FlatField:
    """A field of a nested record. The first field inside an outermost field has its name, because `unflatten` puts the
    record there; ``leads`` marks it."""

    path: tuple[str, ...]
    leads: bool

    @staticmethod
    def of(name: str) -> _FlatField:
        return _FlatField((name,), True)

    @property
    def name(self) -> str:
        return self.path[0] if self.leads else "_headgate_".join(self.path)

    def within(self, record: NestedRecord, name: str) -> _FlatField:
        return _FlatField((*self.path, name), self.leads and name == record.names[0])


def _names(record: Record) -> tuple[str, ...]:
    return tuple(member.name for member in record.fields)
