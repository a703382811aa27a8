"""Neutral type -> Avro schema, and the next version of a schema that was published before.

The order of attributes, the names and where a namespace is printed are part of the contract: equal types make equal
text, so that a registry does not see a new version where nothing changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from headgate.schema import types as t
from headgate.schema.errors import InvalidAvroName, SchemaTooDeep
from headgate.schema.formats.avro import tree
from headgate.schema.formats.avro.defaults import avro_default
from headgate.schema.formats.avro.read import read_tree
from headgate.schema.formats.avro.tree import AvroType, Name, Primitive, to_json
from headgate.schema.names import avro_name, avro_names
from headgate.schema.written import Json, Resolve, unresolved

# The namespace of types that have none of their own.
NAMESPACE = "com.headgate.sink"

# A name such as "string" would be read as Avro's own type wherever it stands without its namespace.
_AVROS_OWN = tree.TYPE_WORDS | {"error"}

Path = tuple[str, ...]
"""SQL names of fields from the outermost record on; arrays and maps on the way add nothing."""


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A generated schema as JSON, and the names that had to be changed.

    ``renames`` has the path of every field whose Avro name is not its SQL name. ``names`` has the full Avro name of
    every type of the catalog that became a record or an enum. If they are given as ``names`` the next time, the schema
    stays as it is when a type is renamed.
    """

    json: object
    renames: Mapping[Path, str] = field(default_factory=dict)
    names: Mapping[Path, str] = field(default_factory=dict)


def to_avro(
    type_: t.Type,
    *,
    name: str,
    null_defaults: bool = False,
    names: Mapping[Path, str] | None = None,
    fields: Mapping[Path, str] | None = None,
    resolve: Resolve = unresolved,
) -> AvroSchema:
    """The schema of a type whose outermost record or enum is called ``name``, which may hold a namespace.

    ``names`` and ``fields`` are the names that types and fields have in a version that was published before. They stay.
    ``null_defaults`` gives every nullable field the default null.
    """
    if any(avro_name(part) != part for part in name.split(".")):
        raise InvalidAvroName(name)
    given = TypeNames(name, dict(names or {}))
    given.reserve(type_, resolve)
    writer = _Writer(given, null_defaults, fields or {}, resolve)
    schema = writer.top(type_, name)
    return AvroSchema(to_json(schema), dict(writer.renames), dict(given.by_type))


@dataclass(slots=True)
class _Writer:
    """Makes one schema. ``defined`` has the types that are written already, by full name."""

    names: TypeNames
    null_defaults: bool
    fields: Mapping[Path, str]
    resolve: Resolve
    renames: dict[Path, str] = field(default_factory=dict)
    defined: dict[str, tree.Named] = field(default_factory=dict)

    def top(self, type_: t.Type, full: str) -> AvroType:
        """The whole schema. Its outermost record or enum has the given name."""
        resolved = self._resolved(type_)
        match resolved:
            case t.Record():
                return self._record(resolved, full, (), 1)
            case t.Enum() if _expressible(resolved):
                return _enum(resolved, full)
            case _:
                return self.type(resolved, "", (), 0)

    def type(self, type_: t.Type, space: str, path: Path, depth: int) -> AvroType:
        """The schema of a type inside the namespace ``space``."""
        if depth > t.MAX_DEPTH:
            raise SchemaTooDeep("avro schema", ".".join(("$", *path[:8])))
        match type_:
            case t.Array(element, nullable):
                return tree.Array(self._nullable_type(element, nullable, space, path, depth + 1))
            case t.Map(value, nullable):
                return tree.Map(self._nullable_type(value, nullable, space, path, depth + 1))
            case t.Record() | t.Named():
                return self._named(type_, space, path, depth)
            case t.Enum() if _expressible(type_):
                return self._named(type_, space, path, depth)
            case t.Bytes(int(length)):
                full, known = self.names.fixed(length)
                return self.defined[full] if known else self._define(tree.Fixed(Name.of(full), length))
            case _:
                return _scalar(type_)

    def _define(self, node: tree.Named) -> AvroType:
        self.defined[node.name.full] = node
        return node

    def _nullable_type(self, type_: t.Type, nullable: bool, space: str, path: Path, depth: int) -> AvroType:
        """A type that may be null becomes a union with null."""
        schema = self.type(type_, space, path, depth)
        return tree.Union((Primitive("null"), schema)) if nullable else schema

    def _named(self, type_: t.Record | t.Enum | t.Named, space: str, path: Path, depth: int) -> AvroType:
        """A record or enum: its definition where it is used first, later a reference."""
        definition = self._resolved(type_)
        if not isinstance(definition, t.Record) and not (isinstance(definition, t.Enum) and _expressible(definition)):
            return self.type(definition, space, path, depth)
        full, known = self.names.of(type_, isinstance(definition, t.Record), space)
        if known:
            self._note_renames(definition, path)
            return self.defined[full]
        if isinstance(definition, t.Enum):
            return self._define(_enum(definition, full))
        return self._record(definition, full, path, depth + 1)

    def _record(self, record: t.Record, full: str, path: Path, depth: int) -> AvroType:
        """A record. It is known before its fields, as in `tree.Record`."""
        made = tree.Record(Name.of(full), doc=record.doc)
        self._define(made)
        made.fields = tuple(
            self._field(member, name, made.name.space, (*path, member.name), depth)
            for member, name in zip(record.fields, self._names(record, path), strict=True)
        )
        return made

    def _names(self, record: t.Record, path: Path) -> tuple[str, ...]:
        """The names of a record's fields."""
        names = [member.name for member in record.fields]
        return avro_names(names, {name: self.fields[*path, name] for name in names if (*path, name) in self.fields})

    def _field(self, member: t.Field, name: str, space: str, path: Path, depth: int) -> tree.Field:
        """A field. A name that Avro does not allow is noted."""
        if name != member.name:
            self.renames[path] = name
        schema = self._nullable_type(member.type, member.nullable, space, path, depth)
        return tree.Field(name, schema, member.nullable and self.null_defaults, doc=member.doc)

    def _note_renames(self, type_: t.Type, path: Path) -> None:
        """The renames inside a definition that is only referred to here hold below this path too."""
        match self._resolved(type_):
            case t.Record(fields) as record:
                for field, name in zip(fields, self._names(record, path), strict=True):
                    if name != field.name:
                        self.renames[(*path, field.name)] = name
                    self._note_renames(field.type, (*path, field.name))
            case t.Array(inner, _) | t.Map(inner, _):
                self._note_renames(inner, path)
            case _:
                pass

    def _resolved(self, type_: t.Type) -> t.Type:
        """The definition of a type of the catalog, which may be another named type."""
        for _ in range(t.MAX_DEPTH):
            if not isinstance(type_, t.Named):
                return type_
            type_ = self.resolve(type_)
        raise SchemaTooDeep("avro schema", "$")


_SCALARS: Mapping[type, tuple[str, Mapping[str, Json]]] = {
    t.Boolean: ("boolean", {}),
    t.Integer: ("int", {}),
    t.Bigint: ("long", {}),
    t.Real: ("float", {}),
    t.Double: ("double", {}),
    t.Text: ("string", {}),
    t.Enum: ("string", {}),  # one whose symbols are not names in Avro
    t.Bytes: ("bytes", {}),
    t.Date: ("int", {"logicalType": "date"}),
    t.Time: ("long", {"logicalType": "time-micros"}),
    t.Timestamp: ("long", {"logicalType": "local-timestamp-micros"}),
    t.TimestampTz: ("long", {"logicalType": "timestamp-micros"}),
    t.Uuid: ("string", {"logicalType": "uuid"}),
    t.Json: ("string", {"connect.name": "io.debezium.data.Json"}),
}


def _scalar(type_: t.Scalar) -> Primitive:
    if isinstance(type_, t.Decimal):
        return Primitive("bytes", {"logicalType": "decimal", "precision": type_.precision, "scale": type_.scale})
    kind, attributes = _SCALARS[type(type_)]
    return Primitive(kind, dict(attributes))


def _enum(enum: t.Enum, full: str) -> tree.Enum:
    default = enum.default if enum.default in enum.symbols else None
    return tree.Enum(Name.of(full), enum.symbols, default, doc=enum.doc)


def _expressible(enum: t.Enum) -> bool:
    """Avro's symbols are names."""
    return bool(enum.symbols) and all(avro_name(symbol) == symbol for symbol in enum.symbols)


# names


class TypeNames:
    """Gives full names to the records, enums and fixed of one schema, in the order in which they are written.

    A type of the catalog is called by the last part of its SQL name. An imported type keeps its full name. Any other
    type is numbered. A clash gets the smallest free number. No other type takes the name of an imported one, even if
    the imported type comes later.
    """

    def __init__(self, outermost: str, frozen: Mapping[tuple[str, ...], str]) -> None:
        self.by_type: dict[tuple[str, ...], str] = {}
        self._frozen = frozen
        self._taken = {outermost}
        self._foreign = set(frozen.values())
        self._imported: dict[str, list[tuple[t.Record | t.Enum, str]]] = {}
        self._fixeds: dict[int, str] = {}
        self._next: dict[str, int] = {}

    def reserve(self, type_: t.Type, resolve: Resolve) -> None:
        """Keep the names of the imported types inside this type free."""
        waiting, seen = [type_], set[tuple[str, ...]]()
        while waiting:
            match waiting.pop():
                case t.Named(parts) as named if parts not in seen:
                    seen.add(parts)
                    waiting.append(resolve(named))
                case t.Record(fields, name):
                    self._foreign.update([_valid(name)] if name else [])
                    waiting.extend(field.type for field in fields)
                case t.Enum(name=str(name)):
                    self._foreign.add(_valid(name))
                case t.Array(inner, _) | t.Map(inner, _):
                    waiting.append(inner)
                case _:
                    pass

    def of(self, type_: t.Record | t.Enum | t.Named, is_record: bool, space: str) -> tuple[str, bool]:
        """The full name of a type, and whether the schema has its definition already."""
        if isinstance(type_, t.Named):
            return self._of_catalog(type_)
        if type_.name is None:
            return self._numbered("record" if is_record else "enum"), False
        return self._of_import(type_, type_.name, space)

    def fixed(self, length: int) -> tuple[str, bool]:
        """The full name of a fixed of this length, and whether it is defined already."""
        if length in self._fixeds:
            return self._fixeds[length], True
        self._fixeds[length] = self._take(f"{NAMESPACE}.fixed{length}", self._foreign)
        return self._fixeds[length], False

    def _of_catalog(self, type_: t.Named) -> tuple[str, bool]:
        """The name of a type of the catalog. A frozen name wins, so that a renamed type keeps its name in Avro."""
        if type_.parts in self.by_type:
            return self.by_type[type_.parts], True
        if type_.parts in self._frozen:
            full = self._take(self._frozen[type_.parts])
        else:
            full = self._take(f"{NAMESPACE}.{avro_name(type_.parts[-1])}", self._foreign)
        self.by_type[type_.parts] = full
        return full, False

    def _of_import(self, type_: t.Record | t.Enum, name: str, space: str) -> tuple[str, bool]:
        """The name of an imported type. Two different types of one name get different names."""
        wanted = _valid(name)
        if "." not in wanted and space:
            # Inside a namespace, Avro cannot refer to a name that has none.
            wanted = f"{space}.{wanted}"
        known = self._imported.setdefault(wanted, [])
        for same_name, full in known:
            if same_name == type_:
                return full, True
        full = self._take(wanted)
        known.append((type_, full))
        return full, False

    def _numbered(self, kind: str) -> str:
        """A name for a type that has none: record0, record1, enum0."""
        number = self._next.get(kind, 0)
        while (full := f"{NAMESPACE}.{kind}{number}") in self._taken or full in self._foreign:
            number += 1
        self._next[kind] = number + 1
        return self._take(full)

    def _take(self, wanted: str, avoid: Collection[str] = ()) -> str:
        """The name, with the smallest free number behind it if it is taken."""
        full, number = wanted, 0
        while full in self._taken or full in avoid or full.rpartition(".")[2] in _AVROS_OWN:
            number += 1
            full = f"{wanted}{number}"
        self._taken.add(full)
        return full


def _valid(full_name: str) -> str:
    return ".".join(avro_name(part) for part in full_name.split("."))


# The next version of a published schema


def next_version(old: tree.AvroType, new: tree.AvroType, defaults: t.Type | None = None) -> tree.AvroType:
    """The new schema as the next version of the old one.

    Everything that the old schema has keeps the docs that it was published with. A field that the old schema lacks
    brings its own doc, and the default that it has in ``defaults``, which is the same type with the defaults of its
    fields; otherwise the default null. Without a default no reader of the new schema could read older records, and a
    registry with the level BACKWARD refuses the schema.
    """
    match old, new:
        case tree.Record(), tree.Record():
            known = {member.name: member for member in old.fields}
            given = {avro_name(f.name): f for f in defaults.fields} if isinstance(defaults, t.Record) else {}
            fields = [_next_field(known.get(m.name), m, given.get(m.name)) for m in new.fields]
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


def _next_field(old: tree.Field | None, new: tree.Field, given: t.Field | None) -> tree.Field:
    """A field that both versions have. It keeps its doc, default, aliases and order."""
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
    """A field that the old version lacks. It needs a default, so that readers can read older records."""
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
