"""A schema that arrives with a record: whether an encoding can read it, and what following it would change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from headgate.schema.encodings import FieldPath, SchemaEncoding, decoded_type, type_of_schema
from headgate.schema.errors import SchemaError
from headgate.schema.evolve.changes import DocChanged, FieldMoved, TypeRenamed
from headgate.schema.evolve.diff import diff
from headgate.schema.evolve.merge import can_hold, merge_fields
from headgate.schema.types import Field, Record, Type
from headgate.schema.written import WrittenSchema


def is_readable(encoding: SchemaEncoding, schema: WrittenSchema) -> bool:
    """Whether the schema can be read and has a type."""
    return _read_error(encoding, schema) is None


def _read_error(encoding: SchemaEncoding, schema: WrittenSchema) -> SchemaError | None:
    try:
        type_of_schema(encoding.format, schema, encoding.message)
    except SchemaError as wrong:
        return wrong
    return None


@lru_cache(maxsize=1024)
def breaking_fields(encoding: SchemaEncoding, schema: WrittenSchema) -> tuple[FieldPath, ...]:
    """Paths of the fields that prevent following the schema.

    If there is one, the whole schema is not followed. The result then also lists fields that could be followed alone but
    do not fit the present type.
    """
    known, arriving = decoded_type(encoding), type_of_schema(encoding.format, schema, encoding.message)
    # A change that was accepted with an earlier schema may arrive again.
    taken = [type_of_schema(encoding.format, one, encoding.message) for one in encoding.schemas]
    if _fits_one_of([one.type for one in (merge_fields(known, arriving), *taken)], arriving.type):
        return ()
    within = [{*_fields_that_do_not_fit(one, arriving, ())} for one in taken]
    return tuple(
        path
        for path in _fields_that_do_not_fit(known, arriving, ())
        if all(any(path[:n] in broken for n in range(len(path) + 1)) for broken in within)
    )


def _fits_one_of(known: Sequence[Type], type_: Type) -> bool:
    """Whether a value of the type can be read as one of the known types, where each field may choose its own."""
    if any(can_hold(one, type_) for one in known):
        return True
    records = [one for one in known if isinstance(one, Record)]
    if not isinstance(type_, Record) or not records:
        return False
    return all(
        _fits_one_of([found.type for one in records if (found := one.field(field.name))], field.type)
        for field in type_.fields
    )


def _fields_that_do_not_fit(known: Field, arriving: Field, path: FieldPath) -> Iterator[FieldPath]:
    """Paths of the fields whose values the known field cannot hold: of another type, too wide, nullable, missing or new."""
    if arriving.nullable and not known.nullable:
        yield path
    elif isinstance(known.type, Record) and isinstance(arriving.type, Record):
        for field in known.type.fields:
            found = arriving.type.field(field.name)
            if found is not None:
                yield from _fields_that_do_not_fit(field, found, (*path, field.name))
            elif not field.nullable:
                yield (*path, field.name)
        yield from ((*path, f.name) for f in arriving.type.fields if known.type.field(f.name) is None)
    elif not can_hold(known.type, arriving.type):
        yield path


@lru_cache(maxsize=1024)
def adds_to(encoding: SchemaEncoding, schema: WrittenSchema) -> bool:
    """Whether following the schema would change the decoded type."""
    known = decoded_type(encoding)
    return merge_fields(known, type_of_schema(encoding.format, schema, encoding.message)) != known


def describe_changes(encoding: SchemaEncoding, schema: WrittenSchema) -> tuple[str, ...]:
    """What a schema changes, one sentence per change."""
    if (wrong := _read_error(encoding, schema)) is not None:
        return (f"it cannot be read: {wrong.message()}",)
    known, arriving = decoded_type(encoding), type_of_schema(encoding.format, schema, encoding.message)
    old = known.type if isinstance(known.type, Record) else Record((known,))
    new = (
        arriving.type if isinstance(arriving.type, Record) else Record((replace(arriving, name=known.name),))
    )
    return tuple(
        c.describe() for c in diff(old, new) if not isinstance(c, DocChanged | TypeRenamed | FieldMoved)
    )
