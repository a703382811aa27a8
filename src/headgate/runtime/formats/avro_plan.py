"""How Avro records of many schema ids are read at once: the schemas that Spark gets, made from the trees of the writers.

- One `from_avro` per writer is too much code: with about twenty of them Java no longer compiles what Spark generates. Avro
  itself has a type for "written with one of these": the union. So the writers become the branches of one union, every
  record gets the number of its branch in front, and Avro picks the branch by that number. Two records of a union cannot
  have the same name, so records are renamed. Avro does not compare their names. It does compare the names of enums and
  fixed, so these stay.
- One reader has room for all schemas that a source followed (`merged_reader`).
- A record that is always present inside another is, in bytes, just its fields. They are read as fields of the outer record
  (`flatten`). Spark makes every inner row anew and asks its settings for each field of it: for one record of two fields
  that was a sixth of all CPU time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate.schema.evolve.renames import KnownField, KnownFields
from headgate.schema.formats.avro.read import connect_decimal, load_tree
from headgate.schema.formats.avro.tree import (
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Name,
    Primitive,
    Record,
    Union,
    children,
    is_null,
    kind_of,
    rebuild,
    to_json,
    values_of,
    walk,
    without_docs,
)
from headgate.schema.written import Json, WrittenSchema

# The attributes that make other values of the same bytes. All other attributes are for people.
MEANING = ("logicalType", "precision", "scale", "connect.name", "connect.parameters")
WIDER = {
    frozenset(("int", "long")): "long",
    frozenset(("int", "float")): "double",
    frozenset(("int", "double")): "double",
    frozenset(("float", "double")): "double",
}
NULL = Primitive("null")
_UNUSED = Fixed(Name("nothing", "headgate"), 1)


class NameConflict(Exception):
    """A name would stand for two different types."""


# trees


@lru_cache(maxsize=1024)
def writer_tree(schema: WrittenSchema) -> AvroType:
    """The tree of a schema without docs, in the words that Spark knows. It is kept, so nobody may change it."""
    whole = load_tree(schema.text, [text for _, text in schema.references])
    return rebuild(without_docs(whole), spark_node)


def with_known_names(node: AvroType, fields: KnownFields) -> AvroType:
    """The tree of a writer with the names that the side has for its fields, and without aliases. Bytes have no names."""
    match node:
        case Record():
            known = {one.member.name: one for one in fields}
            made = tuple(_known_field(member, known[member.name]) for member in node.fields)
            same = all(new is old for new, old in zip(made, node.fields, strict=True))
            return node if same else replace(node, fields=made)
        case Array():
            items = with_known_names(node.items, fields)
            return node if items is node.items else replace(node, items=items)
        case Map():
            values = with_known_names(node.values, fields)
            return node if values is node.values else replace(node, values=values)
        case Union() if len(values_of(node)) == 1:
            made_branches = tuple(with_known_names(branch, fields) for branch in node.branches)
            same = all(new is old for new, old in zip(made_branches, node.branches, strict=True))
            return node if same else Union(made_branches)
        case _:
            return node


def with_aliases(node: AvroType, past: Sequence[KnownFields]) -> AvroType:
    """The tree of a reader in which each field has the names of earlier versions as aliases."""
    match node:
        case Record() if any(past):
            return replace(node, fields=tuple(_aliased(member, past) for member in node.fields))
        case Array():
            return replace(node, items=with_aliases(node.items, past))
        case Map():
            return replace(node, values=with_aliases(node.values, past))
        case Union() if len(values_of(node)) == 1:
            return Union(tuple(with_aliases(branch, past) for branch in node.branches))
        case _:
            return node


def _aliased(member: Field, past: Sequence[KnownFields]) -> Field:
    same = [one for version in past for one in version if one.name == member.name]
    names = (*member.aliases, *(one.member.name for one in same if one.member.name != member.name))
    return replace(
        member,
        type=with_aliases(member.type, [one.inner for one in same]),
        aliases=tuple(dict.fromkeys(names)),
    )


def _known_field(member: Field, known: KnownField) -> Field:
    type_ = with_known_names(member.type, known.inner)
    if type_ is member.type and known.name == member.name and not member.aliases:
        return member
    return replace(member, name=known.name, type=type_, aliases=())


def spark_node(node: AvroType) -> AvroType:
    """The node with a decimal of Kafka Connect as a decimal of Avro, and without `avro.java.string`.

    That attribute makes Avro decode texts to Java strings, which replaces bytes that are not UTF-8 by another character.
    """
    if not isinstance(node, Primitive | Array | Map) or not node.attributes:
        return node
    attributes = {key: value for key, value in node.attributes.items() if key != "avro.java.string"}
    if kind_of(node) == "bytes" and "logicalType" not in attributes:
        precision, scale = connect_decimal(attributes)
        if precision is not None and scale is not None:
            attributes |= {"logicalType": "decimal", "precision": precision, "scale": scale}
    return node if attributes == node.attributes else replace(node, attributes=attributes)


def is_simple(node: AvroType) -> bool:
    """Whether the names of its records do not matter: nothing has an alias, no union has two types besides null, and no
    record contains itself."""
    nodes = list(walk(node))
    records = [one for one in nodes if isinstance(one, Record)]
    return all(map(_is_simple, nodes)) and not any(map(contains_itself, records))


def _is_simple(node: AvroType) -> bool:
    match node:
        case Union():
            return len(values_of(node)) == 1
        case Record():
            return not node.aliases and not any(member.aliases for member in node.fields)
        case Enum() | Fixed():
            return not node.aliases
        case _:
            return True


def contains_itself(node: AvroType) -> bool:
    return any(one is node for child in children(node) for one in walk(child))


def meaning(node: AvroType) -> dict[str, Json]:
    if isinstance(node, Union):
        return {}
    return {key: node.attributes[key] for key in MEANING if key in node.attributes}


def is_same(a: AvroType, b: AvroType) -> bool:
    """Whether two trees are the same schema. Nodes themselves compare by identity."""
    return a is b or to_json(a) == to_json(b)


# texts for Spark


def to_json_text(node: AvroType) -> str:
    """The schema as text with the names that it has. Raises NameConflict."""
    named: dict[str, AvroType] = {}
    for one in walk(node):
        if isinstance(one, Record | Enum | Fixed) and not is_same(named.setdefault(one.name.full, one), one):
            raise NameConflict
    return json.dumps(to_json(node))


def mark_ambiguous_unions(node: AvroType) -> AvroType:
    """Add an unused branch to unions such as `[int, long]`. Without it Spark merges both into one column, and the branch
    is lost."""

    return rebuild(node, _marked)


def _marked(node: AvroType) -> AvroType:
    if not isinstance(node, Union):
        return node
    kinds = {kind_of(value) for value in values_of(node)}
    return Union((*node.branches, _UNUSED)) if kinds in ({"int", "long"}, {"float", "double"}) else node


def writer_union(trees: Sequence[AvroType]) -> tuple[str, list[int]]:
    """The text of one union of the trees, and the numbers of the trees that are its branches. A tree is left out if it
    defines an enum or a fixed in another way than one before it."""
    branches: list[AvroType] = []
    members: list[int] = []
    defined: dict[str, Enum | Fixed] = {}
    for number, one in enumerate(trees):
        names = dict(defined)
        try:
            branches.append(_renamed(one, names, f"headgate_{number}"))
        except NameConflict:
            continue
        members.append(number)
        defined = names
    return json.dumps(to_json(Union(tuple(branches)))), members


def standalone(node: AvroType) -> AvroType:
    """The tree with a name of its own for every record. Raises NameConflict for two enums or fixed of one name."""
    return _renamed(node, {}, "headgate")


def _renamed(node: AvroType, defined: dict[str, Enum | Fixed], prefix: str) -> AvroType:
    numbers = count(1)

    def renamed(one: AvroType) -> AvroType:
        match one:
            case Record():
                return replace(one, name=Name(f"{prefix}_{next(numbers)}"))
            case Enum() | Fixed():
                first = defined.setdefault(one.name.full, one)
                if _bytes_of(first) != _bytes_of(one):
                    raise NameConflict
                return first
            case _:
                return one

    return rebuild(node, renamed)


def _bytes_of(node: Enum | Fixed) -> tuple[object, ...]:
    """What decides how values are written."""
    return kind_of(node), node.symbols if isinstance(node, Enum) else node.size, meaning(node)


def varint(number: int) -> bytes:
    """A number of at least 0 as Avro writes it, if its sign is its lowest bit already."""
    head = b""
    while number > 0x7F:
        head, number = head + bytes((number & 0x7F | 0x80,)), number >> 7
    return head + bytes((number,))


# one reader for all schemas that were followed


def merged_reader(trees: Sequence[AvroType]) -> AvroType | None:
    """A reader for the values of all trees: a field that one of them lacks is null. None if Avro cannot resolve them to
    one type. Only for simple trees."""
    merged: AvroType | None = rebuild(trees[0], _without_defaults)
    for tree in trees[1:]:
        merged = None if merged is None else _merged(merged, tree)
    return merged


def _merged(a: AvroType, b: AvroType) -> AvroType | None:
    (old, old_null), (new, new_null) = _value_type(a), _value_type(b)
    made = _merged_type(old, new)
    return Union((NULL, made)) if made is not None and (old_null or new_null) else made


def _merged_type(old: AvroType, new: AvroType) -> AvroType | None:
    match old, new:
        case Record(), Record():
            return _merged_record(old, new)
        case Array(), Array():
            items = _merged(old.items, new.items)
            return None if items is None else replace(old, items=items)
        case Map(), Map():
            values = _merged(old.values, new.values)
            return None if values is None else replace(old, values=values)
        case Enum(), Enum() if old.name == new.name:
            added = (symbol for symbol in new.symbols if symbol not in old.symbols)
            return replace(old, symbols=(*old.symbols, *added))
        case _ if kind_of(old) == kind_of(new):
            return old if is_readable_as(new, old) else None
        case _:
            wider = _wider(old, new)
            return None if wider is None else Primitive(wider)


def _merged_record(old: Record, new: Record) -> Record | None:
    theirs = {member.name: member.type for member in new.fields}
    fields = []
    for member in old.fields:
        made = _merged(member.type, theirs[member.name]) if member.name in theirs else member.type
        if made is None:
            return None
        optional = member.has_default or member.name not in theirs
        fields.append(_optional(member.name, made) if optional else Field(member.name, made))
    ours = {member.name for member in fields}
    added = [(name, type_) for name, type_ in theirs.items() if name not in ours]
    fields += [_optional(name, rebuild(type_, _without_defaults)) for name, type_ in added]
    return replace(old, fields=tuple(fields))


def _optional(name: str, type_: AvroType) -> Field:
    return Field(name, Union((NULL, _value_type(type_)[0])), has_default=True, default=None)


def _without_defaults(node: AvroType) -> AvroType:
    match node:
        case Record():
            return replace(node, fields=tuple(Field(member.name, member.type) for member in node.fields))
        case Enum():
            return replace(node, default=None)
        case _:
            return node


def is_readable_as(writer: AvroType, reader: AvroType) -> bool:
    """Whether Avro reads every value of the writer as the reader's type, and the value means the same. Only for simple
    trees."""
    (have, have_null), (want, want_null) = _value_type(writer), _value_type(reader)
    if have_null and not want_null:
        return False
    match have, want:
        case Record(), Record():
            theirs = {member.name: member.type for member in have.fields}
            return all(
                is_readable_as(theirs[member.name], member.type) if member.name in theirs else member.has_default
                for member in want.fields
            )
        case Array(), Array():
            return is_readable_as(have.items, want.items)
        case Map(), Map():
            return is_readable_as(have.values, want.values)
        case Enum(), Enum():
            return have.name == want.name and set(have.symbols) <= set(want.symbols)
        case Fixed(), Fixed():
            return have.name == want.name and _bytes_of(have) == _bytes_of(want)
        case _ if kind_of(have) == kind_of(want):
            return meaning(have) == meaning(want)
        case _:
            return _wider(have, want) == kind_of(want)


def _wider(a: AvroType, b: AvroType) -> str | None:
    """The number that holds both numbers."""
    return None if meaning(a) or meaning(b) else WIDER.get(frozenset((kind_of(a), kind_of(b))))


def _value_type(node: AvroType) -> tuple[AvroType, bool]:
    """The type of a place in a simple tree, and whether it may be null."""
    if not isinstance(node, Union):
        return node, False
    return values_of(node)[0], any(is_null(branch) for branch in node.branches)


# records inside records


@dataclass(frozen=True, slots=True)
class NestedRecord:
    """The record of a field: the names of the reader's fields in it, and those of them that are flattened too."""

    names: tuple[str, ...]
    nested: Mapping[str, NestedRecord]


def find_nested(records: Sequence[Record]) -> dict[str, NestedRecord]:
    """The fields that are records in all schemas, of which the first is the reader's. Only for simple trees."""
    found = {}
    for name in _names(records[0]):
        types = [member.type for record in records for member in record.fields if member.name == name]
        inner = [type_ for type_ in types if isinstance(type_, Record) and type_.fields]
        if len(inner) == len(records):
            found[name] = NestedRecord(_names(inner[0]), find_nested(inner))
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
    """What was read, with the nested records where they belong. Spark can look through a change of fields: a query that
    uses a field of such a record gets the field that was read."""
    made, spare = read, []
    for name, record in nested.items():
        at = _FlatField.of(name)
        made = made.withField(name, _record(read, record, at))
        spare += [leaf for leaf in _leaves(record, at) if leaf != name]
    return made.dropFields(*spare) if spare else made


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
