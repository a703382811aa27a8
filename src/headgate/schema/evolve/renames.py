"""Fields that were renamed: which field of a schema is which field of the side that reads it.

An Avro field is the one that its aliases name, a Protobuf field the one with its number. A side keeps the name under
which it met a field first, whatever later schemas call it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import assert_never

from headgate.schema import types as t
from headgate.schema.formats.avro import tree
from headgate.schema.formats.avro.read import load_tree
from headgate.schema.formats.protobuf import read_files
from headgate.schema.formats.protobuf.read import numbered_fields
from headgate.schema.names import Path, Step
from headgate.schema.written import Member, SchemaFormat, WrittenSchema


@dataclass(frozen=True, slots=True)
class KnownField:
    """A field of one schema, and the name that the side has for it."""

    name: str
    member: Member
    inner: tuple[KnownField, ...] = ()


KnownFields = tuple[KnownField, ...]


@lru_cache(maxsize=1024)
def members(format_: SchemaFormat, schema: WrittenSchema, message: str | None) -> tuple[Member, ...]:
    """The fields of a schema. Fields of JSON Schema have only their names, so there are none to compare."""
    match format_:
        case SchemaFormat.AVRO:
            return _avro(load_tree(schema.text, [text for _, text in schema.references]), frozenset())
        case SchemaFormat.PROTOBUF:
            file, *imported = read_files(schema.text, schema.references)
            return numbered_fields(file, message, imported)
        case SchemaFormat.JSON:
            return ()
        case _:
            assert_never(format_)


def _avro(node: tree.AvroType, around: frozenset[int]) -> tuple[Member, ...]:
    """The fields of a record, also of one in an array, a map or a union with null. A record inside itself has none."""
    match node:
        case tree.Record() if id(node) not in around:
            inside = around | {id(node)}
            return tuple(Member(f.name, f.aliases, None, _avro(f.type, inside)) for f in node.fields)
        case tree.Array():
            return _avro(node.items, around)
        case tree.Map():
            return _avro(node.values, around)
        case tree.Union() if len(tree.values_of(node)) == 1:
            return _avro(tree.values_of(node)[0], around)
        case _:
            return ()


def own_names(fields: Sequence[Member]) -> KnownFields:
    """The fields of the first schema, which give a side its names."""
    return tuple(KnownField(f.name, f, own_names(f.inner)) for f in fields)


class _Index:
    """The fields of one schema by their names. A linear search for each field would take seconds for a record of 2,000 fields.
    If two fields have the same name, the first one counts. Each view is made when it is first used: most fields are found in
    the newest of many schemas, by their own names."""

    def __init__(self, fields: KnownFields) -> None:
        self._fields = fields

    @cached_property
    def by_name(self) -> Mapping[str, KnownField]:
        return {one.name: one for one in self._fields[::-1]}

    @cached_property
    def by_own_name(self) -> Mapping[str, KnownField]:
        return {one.member.name: one for one in self._fields[::-1]}

    @cached_property
    def by_number(self) -> Mapping[int, KnownField]:
        return {one.member.number: one for one in self._fields[::-1] if one.member.number is not None}

    @cached_property
    def by_earlier_name(self) -> Mapping[int | str, Sequence[str]]:
        found: dict[int | str, list[str]] = {}
        for one in self._fields:
            for key in _earlier_keys(one.member):
                found.setdefault(key, []).append(one.name)
        return found


def _earlier_keys(later: Member) -> Iterator[int | str]:
    """What tells that a field is an earlier version of this one: its number or, in formats without numbers, its name."""
    if later.number is not None:
        yield later.number
    else:
        yield from dict.fromkeys((later.name, *later.aliases))


def names_of_later(known: Sequence[KnownFields], fields: Sequence[Member]) -> KnownFields:
    """The fields of a schema that came after the known ones, given oldest first."""
    if not fields:
        return ()
    indexes = [_Index(version) for version in known]
    found = {index: match for index, field in enumerate(fields) if (match := _match(indexes, field)) is not None}
    taken: dict[str, int] = {}
    for index, (_, name) in sorted(found.items(), key=lambda item: item[1][0]):
        taken.setdefault(name, index)
    names = {index: name for name, index in taken.items()}
    for index, field in enumerate(fields):
        if index not in names:
            names[index] = _free(field.name, taken)
            taken[names[index]] = index
    return tuple(
        KnownField(
            names[index], field, names_of_later(_inside(indexes, names[index]), field.inner) if field.inner else ()
        )
        for index, field in enumerate(fields)
    )


def names_of_earlier(later: Sequence[KnownFields], fields: Sequence[Member]) -> KnownFields:
    """The fields of a schema that came before others, by the aliases and numbers of those, the next one first."""
    if not fields:
        return ()
    indexes = [_Index(version) for version in later]
    made: list[KnownField] = []
    taken: dict[str, int] = {}
    for position, field in enumerate(fields):
        key = field.name if field.number is None else field.number
        names = (name for index in indexes for name in index.by_earlier_name.get(key, ()))
        same = next((name for name in names if name not in taken), None)
        name = _free(field.name, taken) if same is None else same
        taken[name] = position
        inner = names_of_earlier(_inside(indexes, name), field.inner) if field.inner else ()
        made.append(KnownField(name, field, inner))
    return tuple(made)


Rank = tuple[int, int]  # how many schemas ago, and how many names were tried


def _match(known: Sequence[_Index], field: Member) -> tuple[Rank, str] | None:
    """The name of the field that this one is. The newest schema counts most: a name may have moved to another field."""
    for age, version in enumerate(reversed(known)):
        for rank, one in enumerate(_same(version, field)):
            if one is not None:
                return (age, rank), one.name
    return None


def _same(version: _Index, field: Member) -> Iterator[KnownField | None]:
    """The fields of a version that may be this one, the most certain first. None stands for a miss."""
    if field.number is not None:
        yield version.by_number.get(field.number)
    for name in (field.name, *field.aliases):
        yield version.by_own_name.get(name)


def _inside(known: Sequence[_Index], name: str) -> list[KnownFields]:
    """The fields of the records that a field holds, in each of the schemas that have it."""
    found = (version.by_name.get(name) for version in known)
    return [one.inner for one in found if one is not None]


def _free(name: str, taken: dict[str, int]) -> str:
    """A name that no other field of the record has. A field may get the name that another one had."""
    while name in taken:
        name += "_"
    return name


def present_name(known: Sequence[KnownFields], path: Sequence[str]) -> str | None:
    """What the newest schema that has a field calls it. ``path`` has the names of the side."""
    for name in path[:-1]:
        known = _inside([_Index(version) for version in known], name)
    same = [one for version in known for one in version if one.name == path[-1]]
    return same[-1].member.name if same else None


def renamed_type(type_: t.Type, fields: KnownFields) -> t.Type:
    """A type of the schema with the names of the side."""
    match type_:
        case t.Record():
            names = {one.member.name: one for one in fields}
            return replace(type_, fields=tuple(_renamed_field(f, names.get(f.name)) for f in type_.fields))
        case t.Array():
            return replace(type_, element=renamed_type(type_.element, fields))
        case t.Map():
            return replace(type_, value=renamed_type(type_.value, fields))
        case _:
            return type_


def _renamed_field(field: t.Field, known: KnownField | None) -> t.Field:
    if known is None or (known.name == field.name and not known.inner):
        return field
    return replace(field, name=known.name, type=renamed_type(field.type, known.inner))


def new_names(
    known: Sequence[KnownFields], fields: KnownFields, type_: t.Type, path: Path = ()
) -> Iterator[tuple[Path, str]]:
    """The paths of fields that no known schema calls as this one does, each with its new name. ``type_`` has the names
    of the side."""
    match type_:
        case t.Array():
            yield from new_names(known, fields, type_.element, (*path, Step.ELEMENT))
        case t.Map():
            yield from new_names(known, fields, type_.value, (*path, Step.VALUE))
        case t.Record():
            indexes = [_Index(version) for version in known]
            types = {field.name: field.type for field in reversed(type_.fields)}
            for one in fields:
                if one.name not in types:
                    continue
                same = [version.by_name[one.name] for version in indexes if one.name in version.by_name]
                if same and all(k.member.name != one.member.name for k in same):
                    yield (*path, one.name), one.member.name
                if one.inner:
                    yield from new_names(_inside(indexes, one.name), one.inner, types[one.name], (*path, one.name))
        case _:
            return
