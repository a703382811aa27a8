"""How Avro records of many schema ids are read at once: the schemas that Spark gets, made from the trees of the writers.

- One `from_avro` per writer is too much code: with about twenty of them Java no longer compiles what Spark generates. Avro
  itself has a type for "written with one of these": the union. So the writers become the branches of one union, every
  record gets the number of its branch in front, and Avro picks the branch by that number. Two records of a union cannot
  have the same name, so records are renamed. Avro does not compare their names. It does compare the names of enums and
  fixed, so these stay.
- One reader has room for all schemas that a source followed (`merged_reader`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count

from headgate.schema.evolve.renames import KnownField, KnownFields
from headgate.schema.formats.avro import tree
from headgate.schema.formats.avro.read import connect_decimal, load_tree
from headgate.schema.written import Json, WrittenSchema

# The attributes that make other values of the same bytes. All other attributes are for people.
MEANING = ("logicalType", "precision", "scale", "connect.name", "connect.parameters")
WIDER = {
    frozenset(("int", "long")): "long",
    frozenset(("int", "float")): "double",
    frozenset(("int", "double")): "double",
    frozenset(("float", "double")): "double",
}
NULL = tree.Primitive("null")
_UNUSED = tree.Fixed(tree.Name("nothing", "headgate"), 1)


class NameConflict(Exception):
    """A name would stand for two different types."""


# trees


@lru_cache(maxsize=1024)
def writer_tree(schema: WrittenSchema) -> tree.AvroType:
    """The tree of a schema without docs, in the words that Spark knows. It is kept, so nobody may change it."""
    whole = load_tree(schema.text, [text for _, text in schema.references])
    return tree.rebuild(tree.without_docs(whole), spark_node)


def with_known_names(node: tree.AvroType, fields: KnownFields) -> tree.AvroType:
    """The tree of a writer with the names that the side has for its fields, and without aliases. Bytes have no names."""
    match node:
        case tree.Record():
            known = {one.member.name: one for one in fields}
            made = tuple(_known_field(member, known[member.name]) for member in node.fields)
            same = all(new is old for new, old in zip(made, node.fields, strict=True))
            return node if same else replace(node, fields=made)
        case tree.Array():
            items = with_known_names(node.items, fields)
            return node if items is node.items else replace(node, items=items)
        case tree.Map():
            values = with_known_names(node.values, fields)
            return node if values is node.values else replace(node, values=values)
        case tree.Union() if len(tree.values_of(node)) == 1:
            made_branches = tuple(with_known_names(branch, fields) for branch in node.branches)
            same = all(new is old for new, old in zip(made_branches, node.branches, strict=True))
            return node if same else tree.Union(made_branches)
        case _:
            return node


def with_aliases(node: tree.AvroType, past: Sequence[KnownFields]) -> tree.AvroType:
    """The tree of a reader in which each field has the names of earlier versions as aliases."""
    match node:
        case tree.Record() if any(past):
            same: dict[str, list[KnownField]] = {}
            for one in (one for version in past for one in version):
                same.setdefault(one.name, []).append(one)
            return replace(node, fields=tuple(_aliased(member, same.get(member.name, [])) for member in node.fields))
        case tree.Array():
            return replace(node, items=with_aliases(node.items, past))
        case tree.Map():
            return replace(node, values=with_aliases(node.values, past))
        case tree.Union() if len(tree.values_of(node)) == 1:
            return tree.Union(tuple(with_aliases(branch, past) for branch in node.branches))
        case _:
            return node


def _aliased(member: tree.Field, same: Sequence[KnownField]) -> tree.Field:
    """``same`` are the field in earlier versions."""
    names = (*member.aliases, *(one.member.name for one in same if one.member.name != member.name))
    return replace(
        member, type=with_aliases(member.type, [one.inner for one in same]), aliases=tuple(dict.fromkeys(names))
    )


def _known_field(member: tree.Field, known: KnownField) -> tree.Field:
    type_ = with_known_names(member.type, known.inner)
    if type_ is member.type and known.name == member.name and not member.aliases:
        return member
    return replace(member, name=known.name, type=type_, aliases=())


def spark_node(node: tree.AvroType) -> tree.AvroType:
    """The node with a decimal of Kafka Connect as a decimal of Avro, and without `avro.java.string`.

    That attribute makes Avro decode texts to Java strings, which replaces bytes that are not UTF-8 by another character.
    """
    if not isinstance(node, tree.Primitive | tree.Array | tree.Map) or not node.attributes:
        return node
    attributes = {key: value for key, value in node.attributes.items() if key != "avro.java.string"}
    if tree.kind_of(node) == "bytes" and "logicalType" not in attributes:
        precision, scale = connect_decimal(attributes)
        if precision is not None and scale is not None:
            attributes |= {"logicalType": "decimal", "precision": precision, "scale": scale}
    return node if attributes == node.attributes else replace(node, attributes=attributes)


@lru_cache(maxsize=256)  # by identity: a reader of several schemas asks for each of them again
def is_simple(node: tree.AvroType) -> bool:
    """Whether the names of its records do not matter: nothing has an alias, no union has two types besides null, and no
    record contains itself."""
    nodes = list(tree.walk(node))
    records = [one for one in nodes if isinstance(one, tree.Record)]
    return all(map(_is_simple, nodes)) and not any(map(contains_itself, records))


def _is_simple(node: tree.AvroType) -> bool:
    match node:
        case tree.Union():
            return len(tree.values_of(node)) == 1
        case tree.Record():
            return not node.aliases and not any(member.aliases for member in node.fields)
        case tree.Enum() | tree.Fixed():
            return not node.aliases
        case _:
            return True


def contains_itself(node: tree.AvroType) -> bool:
    return any(one is node for child in tree.children(node) for one in tree.walk(child))


def meaning(node: tree.AvroType) -> dict[str, Json]:
    if isinstance(node, tree.Union):
        return {}
    return {key: node.attributes[key] for key in MEANING if key in node.attributes}


def is_same(a: tree.AvroType, b: tree.AvroType) -> bool:
    """Whether two trees are the same schema. Nodes themselves compare by identity."""
    return a is b or tree.to_json(a) == tree.to_json(b)


# texts for Spark


def to_json_text(node: tree.AvroType) -> str:
    """The schema as text with the names that it has. Raises NameConflict."""
    named: dict[str, tree.AvroType] = {}
    for one in tree.walk(node):
        if isinstance(one, tree.Record | tree.Enum | tree.Fixed) and not is_same(
            named.setdefault(one.name.full, one), one
        ):
            raise NameConflict
    return json.dumps(tree.to_json(node))


def mark_ambiguous_unions(node: tree.AvroType) -> tree.AvroType:
    """Add an unused branch to unions such as `[int, long]`. Without it Spark merges both into one column, and the branch
    is lost."""

    return tree.rebuild(node, _marked)


def _marked(node: tree.AvroType) -> tree.AvroType:
    if not isinstance(node, tree.Union):
        return node
    kinds = {tree.kind_of(value) for value in tree.values_of(node)}
    return tree.Union((*node.branches, _UNUSED)) if kinds in ({"int", "long"}, {"float", "double"}) else node


def writer_union(trees: Sequence[tree.AvroType]) -> tuple[str, list[int]]:
    """The text of one union of the trees, and the numbers of the trees that are its branches. A tree is left out if it
    defines an enum or a fixed in another way than one before it."""
    branches: list[tree.AvroType] = []
    members: list[int] = []
    defined: dict[str, tree.Enum | tree.Fixed] = {}
    for number, one in enumerate(trees):
        names = dict(defined)
        try:
            branches.append(_renamed(one, names, f"headgate_{number}"))
        except NameConflict:
            continue
        members.append(number)
        defined = names
    return json.dumps(tree.to_json(tree.Union(tuple(branches)))), members


def standalone(node: tree.AvroType) -> tree.AvroType:
    """The tree with a name of its own for every record. Raises NameConflict for two enums or fixed of one name."""
    return _renamed(node, {}, "headgate")


def _renamed(node: tree.AvroType, defined: dict[str, tree.Enum | tree.Fixed], prefix: str) -> tree.AvroType:
    numbers = count(1)

    def renamed(one: tree.AvroType) -> tree.AvroType:
        match one:
            case tree.Record():
                return replace(one, name=tree.Name(f"{prefix}_{next(numbers)}"))
            case tree.Enum() | tree.Fixed():
                first = defined.setdefault(one.name.full, one)
                if _bytes_of(first) != _bytes_of(one):
                    raise NameConflict
                return first
            case _:
                return one

    return tree.rebuild(node, renamed)


def _bytes_of(node: tree.Enum | tree.Fixed) -> tuple[object, ...]:
    """What decides how values are written."""
    return tree.kind_of(node), node.symbols if isinstance(node, tree.Enum) else node.size, meaning(node)


def varint(number: int) -> bytes:
    """A number of at least 0 as Avro writes it, if its sign is its lowest bit already."""
    head = b""
    while number > 0x7F:
        head, number = head + bytes((number & 0x7F | 0x80,)), number >> 7
    return head + bytes((number,))


# one reader for all schemas that were followed


def merged_reader(trees: Sequence[tree.AvroType]) -> tree.AvroType | None:
    """A reader for the values of all trees: a field that one of them lacks is null. None if Avro cannot resolve them to
    one type. Only for simple trees."""
    merged: tree.AvroType | None = tree.rebuild(trees[0], _without_defaults)
    for each in trees[1:]:
        merged = None if merged is None else _merged(merged, each)
    return merged


def _merged(a: tree.AvroType, b: tree.AvroType) -> tree.AvroType | None:
    (old, old_null), (new, new_null) = _value_type(a), _value_type(b)
    made = _merged_type(old, new)
    return tree.Union((NULL, made)) if made is not None and (old_null or new_null) else made


def _merged_type(old: tree.AvroType, new: tree.AvroType) -> tree.AvroType | None:
    match old, new:
        case tree.Record(), tree.Record():
            return _merged_record(old, new)
        case tree.Array(), tree.Array():
            items = _merged(old.items, new.items)
            return None if items is None else replace(old, items=items)
        case tree.Map(), tree.Map():
            values = _merged(old.values, new.values)
            return None if values is None else replace(old, values=values)
        case tree.Enum(), tree.Enum() if old.name == new.name:
            added = (symbol for symbol in new.symbols if symbol not in old.symbols)
            return replace(old, symbols=(*old.symbols, *added))
        case _ if tree.kind_of(old) == tree.kind_of(new):
            return old if is_readable_as(new, old) else None
        case _:
            wider = _wider(old, new)
            return None if wider is None else tree.Primitive(wider)


def _merged_record(old: tree.Record, new: tree.Record) -> tree.Record | None:
    theirs = {member.name: member.type for member in new.fields}
    fields = []
    for member in old.fields:
        made = _merged(member.type, theirs[member.name]) if member.name in theirs else member.type
        if made is None:
            return None
        optional = member.has_default or member.name not in theirs
        fields.append(_optional(member.name, made) if optional else tree.Field(member.name, made))
    ours = {member.name for member in fields}
    added = [(name, type_) for name, type_ in theirs.items() if name not in ours]
    fields += [_optional(name, tree.rebuild(type_, _without_defaults)) for name, type_ in added]
    return replace(old, fields=tuple(fields))


def _optional(name: str, type_: tree.AvroType) -> tree.Field:
    return tree.Field(name, tree.Union((NULL, _value_type(type_)[0])), has_default=True, default=None)


def _without_defaults(node: tree.AvroType) -> tree.AvroType:
    match node:
        case tree.Record():
            return replace(node, fields=tuple(tree.Field(member.name, member.type) for member in node.fields))
        case tree.Enum():
            return replace(node, default=None)
        case _:
            return node


def is_readable_as(writer: tree.AvroType, reader: tree.AvroType) -> bool:
    """Whether Avro reads every value of the writer as the reader's type, and the value means the same. Only for simple
    trees."""
    (have, have_null), (want, want_null) = _value_type(writer), _value_type(reader)
    if have_null and not want_null:
        return False
    match have, want:
        case tree.Record(), tree.Record():
            theirs = {member.name: member.type for member in have.fields}
            return all(
                is_readable_as(theirs[member.name], member.type) if member.name in theirs else member.has_default
                for member in want.fields
            )
        case tree.Array(), tree.Array():
            return is_readable_as(have.items, want.items)
        case tree.Map(), tree.Map():
            return is_readable_as(have.values, want.values)
        case tree.Enum(), tree.Enum():
            return have.name == want.name and set(have.symbols) <= set(want.symbols)
        case tree.Fixed(), tree.Fixed():
            return have.name == want.name and _bytes_of(have) == _bytes_of(want)
        case _ if tree.kind_of(have) == tree.kind_of(want):
            return meaning(have) == meaning(want)
        case _:
            return _wider(have, want) == tree.kind_of(want)


def _wider(a: tree.AvroType, b: tree.AvroType) -> str | None:
    """The number that holds both numbers."""
    return None if meaning(a) or meaning(b) else WIDER.get(frozenset((tree.kind_of(a), tree.kind_of(b))))


def _value_type(node: tree.AvroType) -> tuple[tree.AvroType, bool]:
    """The type of a place in a simple tree, and whether it may be null."""
    if not isinstance(node, tree.Union):
        return node, False
    return tree.values_of(node)[0], any(tree.is_null(branch) for branch in node.branches)
