"""The next version of a published Avro schema."""

from __future__ import annotations

from dataclasses import replace

from headgate.schema.formats.avro import tree


def next_version(old: tree.AvroType, new: tree.AvroType) -> tree.AvroType:
    """The new schema as the next version of the old one.

    Everything that the old schema has keeps the docs that it was published with. A field that the old schema lacks brings
    its own doc and has the default null. Without a default no reader of the new schema could read older records, and a
    registry with the level BACKWARD refuses the schema.
    """
    match old, new:
        case tree.Record(), tree.Record():
            known = {member.name: member for member in old.fields}
            fields = [_field(known.get(member.name), member) for member in new.fields]
            return replace(new, doc=old.doc, fields=tuple(fields))
        case tree.Enum(), tree.Enum():
            return replace(new, doc=old.doc)
        case tree.Array(), tree.Array():
            return replace(new, items=next_version(old.items, new.items))
        case tree.Map(), tree.Map():
            return replace(new, values=next_version(old.values, new.values))
        case _, tree.Union((null, branch)) if tree.is_null(null):
            return tree.Union((null, next_version(_value_type(old), branch)))
        case _:
            return new


def differs(old: tree.AvroType, new: tree.AvroType) -> bool:
    """Whether two versions differ in more than their docs."""
    texts = [tree.canonical_text(tree.without_docs(one), normalize=True) for one in (old, new)]
    return texts[0] != texts[1]


def _field(old: tree.Field | None, new: tree.Field) -> tree.Field:
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


def _is_nullable(node: tree.AvroType) -> bool:
    return isinstance(node, tree.Union) and tree.is_null(node.branches[0])


def _value_type(node: tree.AvroType) -> tree.AvroType:
    match node:
        case tree.Union((null, branch)) if tree.is_null(null):
            return branch
        case _:
            return node
