"""Defaults that fill: what a field has in records that were written without it.

Avro fills a field from the default of the reader. So a reader gets every field of the side's type, each with the default
that the type says: that of the oldest version which has the field, otherwise null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from headgate.schema import types as t
from headgate.schema.formats.avro import tree
from headgate.schema.formats.avro.defaults import avro_default
from headgate.schema.formats.avro.read import read_tree


def with_defaults(reader: tree.AvroType, versions: Sequence[tree.AvroType], target: t.Type) -> tree.AvroType:
    """The reader with all fields of the target. ``versions`` are the trees of all versions, oldest first: a field that the
    reader lacks is taken from the first that has it. A union of several types stays as it is."""
    return _Filling().node(reader, versions, target)


class _Filling:
    def __init__(self) -> None:
        self._numbers = count(1)

    def node(self, node: tree.AvroType, versions: Sequence[tree.AvroType], target: t.Type) -> tree.AvroType:
        match node, target:
            case tree.Union(), _ if len(tree.values_of(node)) == 1:
                value = tree.values_of(node)[0]
                made = self.node(value, versions, target)
                return tree.Union(tuple(made if branch is value else branch for branch in node.branches))
            case tree.Record(), t.Record():
                return self._record(node, versions, target)
            case tree.Array(), t.Array():
                items = [one.items for one in map(_value, versions) if isinstance(one, tree.Array)]
                return replace(node, items=self.node(node.items, items, target.element))
            case tree.Map(), t.Map():
                values = [one.values for one in map(_value, versions) if isinstance(one, tree.Map)]
                return replace(node, values=self.node(node.values, values, target.value))
            case _:
                return node

    def _record(self, node: tree.Record, versions: Sequence[tree.AvroType], target: t.Record) -> tree.Record:
        records = [one for one in map(_value, versions) if isinstance(one, tree.Record)]
        known = {member.name: member for member in node.fields}
        others: dict[str, list[tree.Field]] = {}
        for member in (member for record in records for member in record.fields):
            others.setdefault(member.name, []).append(member)
        wanted = {field.name: field for field in target.fields}
        fields = [self._field(member, others.get(name, []), wanted.get(name)) for name, member in known.items()]
        for name, members in others.items():
            if name not in known and _column_name(members[0]) in wanted:
                added = replace(members[0], type=self._own_names(members[0].type), aliases=())
                made = self._field(added, members, wanted.get(name))
                # A schema that is not followed may lack a field that is never null elsewhere.
                fields.append(made if made.has_default else _nullable(made, *tree.values_of(made.type)[:1]))
        return replace(node, fields=tuple(fields))

    def _field(self, member: tree.Field, others: Sequence[tree.Field], wanted: t.Field | None) -> tree.Field:
        if wanted is None or len(tree.values_of(member.type)) != 1:
            oldest = others[0] if others else member
            return replace(member, has_default=oldest.has_default, default=oldest.default)
        inner = self.node(member.type, [other.type for other in others], wanted.type)
        value = tree.values_of(inner)[0]
        if wanted.default is not None:
            try:
                default = avro_default(wanted.default, value, read_tree(value))
            except ValueError:  # the reader's type is narrower than the target's
                return _nullable(member, value)
            # Up to Avro 1.11 a default is a value of the first branch.
            type_ = tree.Union((value, tree.Primitive("null"))) if wanted.nullable else value
            return replace(member, type=type_, has_default=True, default=default)
        if wanted.nullable:
            return _nullable(member, value)
        return replace(member, type=inner, has_default=False, default=None)

    def _own_names(self, node: tree.AvroType) -> tree.AvroType:
        """The type with names that no writer has. Avro does not compare them: no writer has the field."""

        def renamed(one: tree.AvroType) -> tree.AvroType:
            if isinstance(one, tree.Record | tree.Enum | tree.Fixed):
                return replace(one, name=tree.Name(f"headgate_added_{next(self._numbers)}"), aliases=())
            return one

        return tree.rebuild(node, renamed)


def _nullable(member: tree.Field, value: tree.AvroType) -> tree.Field:
    return replace(member, type=tree.Union((tree.Primitive("null"), value)), has_default=True, default=None)


def _column_name(member: tree.Field) -> str:
    """The name of the field in the target. A union of several types has a field for each of them; this is the first."""
    several = len(tree.values_of(member.type)) > 1
    return f"{member.name}1" if several else member.name


def _value(node: tree.AvroType) -> tree.AvroType:
    """The type of a place besides null. A union of several types stays as it is."""
    values = tree.values_of(node)
    return values[0] if len(values) == 1 else node
