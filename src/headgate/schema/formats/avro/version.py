"""The next version of a published Avro schema."""

from __future__ import annotations

from dataclasses import replace

from headgate.schema.formats.avro.tree import (
    Array,
    AvroType,
    Enum,
    Field,
    Map,
    Record,
    Union,
    canonical_text,
    is_null,
    without_docs,
)


def next_version(old: AvroType, new: AvroType) -> AvroType:
    """The new schema as the next version of the old one.

    Everything that the old schema has keeps the docs that it was published with. A field that the old schema lacks brings
    its own doc and has the default null. Without a default no reader of the new schema could read older records, and a
    registry with the level BACKWARD refuses the schema.
    """
    match old, new:
        case Record(), Record():
            known = {member.name: member for member in old.fields}
            fields = [_field(known.get(member.name), member) for member in new.fields]
            return replace(new, doc=old.doc, fields=tuple(fields))
        case Enum(), Enum():
            return replace(new, doc=old.doc)
        case Array(), Array():
            return replace(new, items=next_version(old.items, new.items))
        case Map(), Map():
            return replace(new, values=next_version(old.values, new.values))
        case _, Union((null, branch)) if is_null(null):
            return Union((null, next_version(_value_type(old), branch)))
        case _:
            return new


def differs(old: AvroType, new: AvroType) -> bool:
    """Whether two versions differ in more than their docs."""
    texts = [canonical_text(without_docs(one), normalize=True) for one in (old, new)]
    return texts[0] != texts[1]


def _field(old: Field | None, new: Field) -> Field:
    if old is None:
        return replace(new, has_default=True) if _is_nullable(new.type) and not new.has_default else new
    return replace(
        new,
        type=next_version(old.type, new.type),
        has_default=old.has_default or new.has_default,
        default=old.default if old.has_default else new.default,
        aliases=old.aliases or new.aliases,
        doc=old.doc,
        order=old.order,
        attributes={**new.attributes, **old.attributes},
    )


def _is_nullable(node: AvroType) -> bool:
    return isinstance(node, Union) and is_null(node.branches[0])


def _value_type(node: AvroType) -> AvroType:
    match node:
        case Union((null, branch)) if is_null(null):
            return branch
        case _:
            return node
