"""The next version of a published Avro schema."""

from __future__ import annotations

from dataclasses import replace

from headgate.schema import types as t
from headgate.schema.formats.avro import tree
from headgate.schema.formats.avro.defaults import avro_default
from headgate.schema.formats.avro.read import read_tree
from headgate.schema.names import avro_name


def next_version(old: tree.AvroType, new: tree.AvroType, defaults: t.Type | None = None) -> tree.AvroType:
    """The new schema as the next version of the old one.

    Everything that the old schema has keeps the docs that it was published with. A field that the old schema lacks brings
    its own doc, and the default that it has in ``defaults``, which is the same type with the defaults of its fields;
    otherwise the default null. Without a default no reader of the new schema could read older records, and a registry with
    the level BACKWARD refuses the schema.
    """
    match old, new:
        case tree.Record(), tree.Record():
            known = {member.name: member for member in old.fields}
            given = {avro_name(f.name): f for f in defaults.fields} if isinstance(defaults, t.Record) else {}
            fields = [_field(known.get(m.name), m, given.get(m.name)) for m in new.fields]
            return replace(new, doc=old.doc, fields=tuple(fields))
        case tree.Enum(), tree.Enum():
            return replace(new, doc=old.doc)
        case tree.Array(), tree.Array():
            element = defaults.element if isinstance(defaults, t.Array) else None
            return replace(new, items=next_version(old.items, new.items, element))
        case tree.Map(), tree.Map():
            value = defaults.value if isinstance(defaults, t.Map) else None
            return replace(new, values=next_version(old.values, new.values, value))
        case _, tree.Union((null, branch)) if tree.is_null(null):
            return tree.Union((null, next_version(_value_type(old), branch, defaults)))
        case _:
            return new


def differs(old: tree.AvroType, new: tree.AvroType) -> bool:
    """Whether two versions differ in more than their docs."""
    texts = [tree.canonical_text(tree.without_docs(one), normalize=True) for one in (old, new)]
    return texts[0] != texts[1]


def _field(old: tree.Field | None, new: tree.Field, given: t.Field | None) -> tree.Field:
    if old is None:
        return _added(new, given)
    type_ = next_version(old.type, new.type, given.type if given is not None else None)
    return replace(
        new,
        type=_value_first(type_) if old.has_default and old.default is not None else type_,
        has_default=old.has_default or new.has_default,
        default=old.default if old.has_default else new.default,
        aliases=old.aliases or new.aliases,
        doc=old.doc,
        order=old.order,
        attributes={**new.attributes, **old.attributes},
    )


def _added(new: tree.Field, given: t.Field | None) -> tree.Field:
    if given is not None and given.default is not None:
        value = tree.values_of(new.type)[0]
        try:
            default = avro_default(given.default, value, read_tree(value))
        except ValueError:  # the column's type is another one than the field's
            return replace(new, has_default=True) if _is_nullable(new.type) else new
        return replace(new, type=_value_first(new.type), has_default=True, default=default)
    return replace(new, has_default=True) if _is_nullable(new.type) and not new.has_default else new


def _value_first(node: tree.AvroType) -> tree.AvroType:
    """The type with null behind the value: up to Avro 1.11 a default is a value of the first branch."""
    return tree.Union((*tree.values_of(node), tree.Primitive("null"))) if _is_nullable(node) else node


def _is_nullable(node: tree.AvroType) -> bool:
    return isinstance(node, tree.Union) and tree.is_null(node.branches[0])


def _value_type(node: tree.AvroType) -> tree.AvroType:
    match node:
        case tree.Union() if len(tree.values_of(node)) == 1:
            return tree.values_of(node)[0]
        case _:
            return node
