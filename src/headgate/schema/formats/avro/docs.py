"""Docs of one version of a schema on another version."""

from __future__ import annotations

from dataclasses import replace

from headgate.schema.formats.avro import tree


def with_docs_of(node: tree.AvroType, like: tree.AvroType) -> tree.AvroType:
    """The same schema with the docs of another one, wherever both have the same record, field or enum."""
    match node, like:
        case tree.Record(), tree.Record():
            documented = {member.name: member for member in like.fields}
            fields = tuple(_field(member, documented.get(member.name)) for member in node.fields)
            return replace(node, doc=like.doc, fields=fields)
        case tree.Enum(), tree.Enum():
            return replace(node, doc=like.doc)
        case tree.Array(), tree.Array():
            return replace(node, items=with_docs_of(node.items, like.items))
        case tree.Map(), tree.Map():
            return replace(node, values=with_docs_of(node.values, like.values))
        case tree.Union(branches), _:
            of = tree.values_of(like)
            if len(tree.values_of(node)) != 1 or len(of) != 1:
                return node
            return tree.Union(tuple(b if tree.is_null(b) else with_docs_of(b, of[0]) for b in branches))
        case _:
            return node


def _field(member: tree.Field, like: tree.Field | None) -> tree.Field:
    return member if like is None else replace(member, doc=like.doc, type=with_docs_of(member.type, like.type))
