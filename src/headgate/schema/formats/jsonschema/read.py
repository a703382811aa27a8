"""JSON Schema -> neutral type.

The result is the narrowest of our types that every valid document fits, json if no other does. A property that is
not required may be null. The docs at a property describe the field. The docs of its `$ref` or of its alternatives
describe the type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headgate.schema import errors, types as t
from headgate.schema.formats.jsonschema import keywords as k
from headgate.schema.names import ROOT, element_path, field_path, value_path
from headgate.schema.values import dumps, from_json, to_json
from headgate.schema.written import SizeLimit, check_depth, copy_document, load_document

# A title that can be the name of a type: words with dots between them.
_NAME = re.compile(r"[A-Za-z_][\w$-]*(\.[A-Za-z_][\w$-]*)*\Z", re.ASCII)


def from_json_schema(schema: object, references: Mapping[str, object] | None = None) -> t.Type:
    """The type of the documents that are valid, without null. The schema may be text or parsed.

    `references` are the documents that it may refer to, as text or parsed, by address or by the name that it uses.
    """
    return read_schema(schema, references)[0]


def read_schema(schema: object, references: Mapping[str, object] | None = None) -> tuple[t.Type, bool]:
    """The type that `from_json_schema` returns, and whether null is valid, too."""
    type_, nullable, _ = _read(schema, references)
    return type_, nullable


def logical_titles(schema: object, references: Mapping[str, object] | None = None) -> Mapping[str, str]:
    """The paths of whole numbers that are dates or times, each with the title by which Connect names the type."""
    return _read(schema, references)[2]


def _read(schema: object, references: Mapping[str, object] | None) -> tuple[t.Type, bool, Mapping[str, str]]:
    """The type, whether null is valid, and the titles of logical types."""
    root = _load(schema)
    documents = {address: _load(document) for address, document in (references or {}).items()}
    reader = _Reader(k.References(root, documents))
    found = reader.read(root, _Location(ROOT))
    if found is None:
        raise errors.ImpossibleSchema(ROOT)
    type_ = _with_doc(found)
    check_depth(type_, k.FORMAT)
    return type_, found.nullable, reader.titles


def _load(schema: object) -> object:
    if isinstance(schema, str):
        return load_document(schema, k.FORMAT, errors.MalformedJsonSchema)
    return copy_document(schema, k.FORMAT, errors.MalformedJsonSchema)


@dataclass(frozen=True, slots=True)
class _Location:
    """A path, and the nodes that are being read. To meet one of these nodes again is a recursion."""

    path: str
    depth: int = 0
    open: frozenset[int] = frozenset()

    def into(self, path: str) -> _Location:
        """One level deeper, at another path."""
        if self.depth >= t.MAX_DEPTH:
            raise errors.SchemaTooDeep(k.FORMAT, self.path)
        return _Location(path, self.depth + 1, self.open)

    def opening(self, nodes: frozenset[int]) -> _Location:
        """The same path inside further nodes."""
        return _Location(self.path, self.depth, self.open | nodes)


@dataclass(frozen=True, slots=True)
class _ReadType:
    """The result for one schema. If `type` is None, null is the only valid value."""

    type: t.Type | None
    nullable: bool
    doc: str | None = None


class _Reader:
    """Reads one schema. Nodes are known by identity, because the same node may be reached in several ways."""

    def __init__(self, references: k.References) -> None:
        self._references = references
        self._size_limit = SizeLimit(k.FORMAT)
        self.titles: dict[str, str] = {}
        self._reference_texts: dict[int, str] = {}  # the last `$ref` that led to a node
        self._seen: dict[
            int, tuple[object, k.Keywords]
        ] = {}  # with the node, so that its id is not given to another object

    def read(self, schema: object, at: _Location) -> _ReadType | None:
        """None if no value is valid."""
        flat = self._flatten(schema, at)
        if flat is None:
            return None
        keywords, nodes = flat
        return self._read_keywords(keywords, at.opening(nodes))

    def _flatten(self, schema: object, at: _Location) -> tuple[k.Keywords, frozenset[int]] | None:
        """The keywords of a schema with those of its `$ref` and allOf, and the nodes that were read for it."""
        self._size_limit.count(1, at.path)
        if isinstance(schema, bool):
            return (k.Keywords(), frozenset()) if schema else None
        if not isinstance(schema, dict):
            raise errors.MalformedJsonSchema(at.path, "a schema is an object, true or false")
        if id(schema) in at.open:
            raise errors.RecursiveSchema(k.FORMAT, at.path, self._reference_texts.get(id(schema), "#"))
        if id(schema) not in self._seen:
            self._seen[id(schema)] = schema, k.keywords_of(schema, at.path)
        keywords, nodes = self._seen[id(schema)][1], frozenset((id(schema),))
        for member in self._members(schema, at):
            flat = self._flatten(member, at.opening(frozenset((id(schema),))).into(at.path))
            merged = k.intersect(keywords, flat[0]) if flat is not None else None
            if flat is None or merged is None:
                return None
            keywords, nodes = merged, nodes | flat[1]
        return keywords, nodes

    def _members(self, schema: Mapping[str, object], at: _Location) -> list[object]:
        """The schemas that must hold beside a schema: the target of `$ref`, and allOf."""
        members: list[object] = []
        for key in ("$ref", "$dynamicRef", "$recursiveRef"):
            reference = schema.get(key)
            if reference is not None and not isinstance(reference, str):
                raise errors.MalformedJsonSchema(at.path, f'"{key}" is not a text')
            if reference is not None:
                members.append(self._references.find(schema, reference, at.path))
                self._reference_texts[id(members[-1])] = reference
        together = schema.get("allOf", [])
        if not isinstance(together, list):
            raise errors.MalformedJsonSchema(at.path, '"allOf" is not a list')
        return members + together

    def _read_keywords(self, keywords: k.Keywords, at: _Location) -> _ReadType | None:
        """The type that flattened keywords describe; None if no value is valid."""
        if keywords.unions:
            return self._alternatives(keywords, at)
        nullable, kinds = _kinds(keywords)
        if keywords.enum is not None:
            return _fixed_values(keywords, nullable, kinds, at.path)
        if kinds == {"integer", "number"}:
            kinds = frozenset(("number",))
        if not kinds:
            return _ReadType(None, True, keywords.description)
        type_ = self._type(next(iter(kinds)), keywords, at) if len(kinds) == 1 else t.Json()
        return _described(type_, nullable, keywords)

    def _alternatives(self, keywords: k.Keywords, at: _Location) -> _ReadType | None:
        """anyOf and oneOf. Each alternative is read together with the rest of the schema, and the types are joined."""
        base = replace(keywords, unions=())
        found_types: list[_ReadType] = []
        for branch in (branch for group in keywords.unions for branch in group):
            flat = self._flatten(branch, at.into(at.path))
            merged = k.intersect(base, flat[0]) if flat is not None else None
            if flat is None or merged is None:
                continue
            found = self._read_keywords(merged, at.opening(flat[1]).into(at.path))
            found_types += [found] if found is not None else []
        if not found_types:
            return None
        types = [found.type for found in found_types if found.type is not None]
        nullable, doc = any(found.nullable for found in found_types), found_types[0].doc
        doc = keywords.description if len(types) > 1 else next((p.doc for p in found_types if p.type is not None), doc)
        return _ReadType(join(types) if types else None, nullable, doc)

    def _type(self, kind: str, keywords: k.Keywords, at: _Location) -> t.Type:
        match kind:
            case "boolean":
                return t.Boolean()
            case "integer":
                if k.title(keywords) in k.LOGICAL_TITLES:
                    self.titles[at.path] = k.title(keywords)
                return k.integer_type(keywords, at.path)
            case "number":
                return k.number_type(keywords, at.path)
            case "string":
                return k.text_type(keywords, at.path)
            case "array":
                return self._array(keywords, at)
            case _:
                return self._object(keywords, at)

    def _array(self, keywords: k.Keywords, at: _Location) -> t.Type:
        """An array if all elements have one schema, otherwise json."""
        if keywords.is_tuple or not isinstance(keywords.items, dict):
            return t.Json()
        found = self.read(keywords.items, at.into(element_path(at.path)))
        return t.Array(_with_doc(found), found.nullable) if found is not None else t.Json()

    def _object(self, keywords: k.Keywords, at: _Location) -> t.Type:
        """A record if properties are named, a map if only their values have a schema, otherwise json."""
        if keywords.properties:
            return t.Record(self._fields(keywords, at))
        values = [keywords.additional] if isinstance(keywords.additional, dict) else list(keywords.patterns)
        if keywords.additional is False and not values:
            return t.Record(())
        if len(values) != 1 or not isinstance(values[0], dict):
            return t.Json()
        found = self.read(values[0], at.into(value_path(at.path)))
        return t.Map(_with_doc(found), found.nullable) if found is not None else t.Json()

    def _fields(self, keywords: k.Keywords, at: _Location) -> tuple[t.Field, ...]:
        """The fields of a record. A property without a default that is not required may be null."""
        fields = []
        for name, schema in _in_order(keywords.properties or {}):
            if schema is False:  # the property is forbidden
                continue
            path = field_path(at.path, name)
            found = self.read(schema, at.into(path))
            if found is None:
                raise errors.ImpossibleSchema(path)
            type_ = found.type or t.Json()
            default = None if path in self.titles else _default(schema, type_)
            nullable = found.nullable or (name not in keywords.required and default is None)
            fields.append(t.Field(name, type_, nullable, found.doc, default))
        return tuple(fields)


def _default(schema: object, type_: t.Type) -> str | None:
    """The default of a property as JSON text. None if it has none, or null, or one that is not of its type."""
    value = schema.get("default") if isinstance(schema, dict) else None
    if value is None:
        return None
    try:
        return dumps(to_json(from_json(value, type_), type_))
    except errors.ValueDoesNotFit:
        return None


def _kinds(keywords: k.Keywords) -> tuple[bool, frozenset[str]]:
    """Whether null is valid, and the other JSON types that are. Without `type`, keywords of one type imply it."""
    if keywords.types is not None:
        return "null" in keywords.types, keywords.types - {"null"}
    if keywords.enum is not None:
        return None in keywords.enum, frozenset()
    if keywords.properties or isinstance(keywords.additional, dict):
        return False, frozenset(("object",))
    if isinstance(keywords.items, dict):
        return False, frozenset(("array",))
    return True, frozenset(("object", "array", "string", "number", "boolean"))


def _fixed_values(keywords: k.Keywords, nullable: bool, kinds: frozenset[str], path: str) -> _ReadType | None:
    """The type of enum and const."""
    allowed = [v for v in keywords.enum or () if v is not None and (not kinds or _kind(v) & kinds)]
    nullable = nullable and None in (keywords.enum or ())
    if not allowed:
        return _ReadType(None, True, keywords.description) if nullable else None
    symbols = [value for value in allowed if isinstance(value, str)]
    if len(symbols) == len(allowed):
        return _described(t.Enum(tuple(dict.fromkeys(symbols))), nullable, keywords)
    return _described(k.enum_type(allowed, keywords, path), nullable, keywords)


def _kind(value: object) -> frozenset[str]:
    match value:
        case bool():
            return frozenset(("boolean",))
        case int():
            return frozenset(("integer", "number"))
        case float():
            return frozenset(("integer", "number") if value.is_integer() else ("number",))
        case str():
            return frozenset(("string",))
        case list():
            return frozenset(("array",))
        case _:
            return frozenset(("object",))


def _described(type_: t.Type, nullable: bool, keywords: k.Keywords) -> _ReadType:
    """Add the docs. A title is the name of a record or enum if it can be one, otherwise it serves as a doc."""
    outer, inner = keywords.description, keywords.inner_description
    name = k.title(keywords)
    if isinstance(type_, t.Record | t.Enum):
        if _NAME.match(name):
            return _ReadType(replace(type_, name=name, doc=inner), nullable, outer)
        type_ = replace(type_, doc=inner if inner is not None else keywords.inner_title)
        return _ReadType(type_, nullable, outer if outer is not None else keywords.title)
    title_doc = name if name and name not in k.LOGICAL_TITLES else None
    return _ReadType(type_, nullable, next((doc for doc in (outer, inner, title_doc) if doc is not None), None))


def _with_doc(found: _ReadType) -> t.Type:
    """The type for an element or a value, which has no field for the doc. A record or an enum takes it."""
    if isinstance(found.type, t.Record | t.Enum) and found.doc is not None:
        return replace(found.type, doc=found.doc)
    return found.type or t.Json()


def _in_order(properties: Mapping[str, object]) -> list[tuple[str, object]]:
    """In the order of the document, unless Connect's converter numbered all properties."""
    numbered = [(_connect_index(schema), name, schema) for name, schema in properties.items()]
    if all(index is not None for index, _, _ in numbered):
        numbered.sort(key=lambda entry: entry[0] or 0)
    return [(name, schema) for _, name, schema in numbered]


def _connect_index(schema: object) -> int | None:
    index = schema.get("connect.index") if isinstance(schema, dict) else None
    return index if type(index) is int else None


_WHOLE = (t.Integer, t.Bigint)
_NUMBER = (t.Integer, t.Bigint, t.Real, t.Double)


def join(types: Sequence[t.Type]) -> t.Type:
    """The one type that fits the values of all alternatives, json if no other does. There is at least one alternative.

    Names and docs are kept if the alternatives agree. This is not `evolve.merge.widen`: alternatives of different kinds
    must stay apart, so text and integer give json here and text there.
    """
    first = types[0]
    if all(type_ == first for type_ in types):
        return first
    records = [type_ for type_ in types if isinstance(type_, t.Record)]
    if len(records) == len(types):
        return _join_records(records)
    enums = [type_ for type_ in types if isinstance(type_, t.Enum)]
    if len(enums) == len(types):
        return _join_enums(enums)
    if all(t.plain(type_) == t.plain(first) for type_ in types):
        return t.plain(first)
    return _join_scalars(types)


def _join_scalars(types: Sequence[t.Type]) -> t.Type:
    """One type for alternatives that are numbers or texts."""
    if all(isinstance(type_, _WHOLE) for type_ in types):
        return t.Bigint()
    if all(isinstance(type_, _NUMBER) for type_ in types):
        return t.Double()
    if all(isinstance(type_, t.Text | t.Enum) for type_ in types):
        return t.Text()
    return t.Json()


def _join_records(records: Sequence[t.Record]) -> t.Record:
    """One record with the fields of all. A field that is missing in some of them is nullable."""
    names = dict.fromkeys(field.name for record in records for field in record.fields)
    by_name = [{field.name: field for field in record.fields} for record in records]
    fields = (_join_fields([fields[name] for fields in by_name if name in fields], len(records)) for name in names)
    return t.Record(tuple(fields), _agreed([r.name for r in records]), _agreed([r.doc for r in records]))


def _join_fields(fields: Sequence[t.Field], alternatives: int) -> t.Field:
    nullable = len(fields) < alternatives or any(field.nullable for field in fields)
    doc = next((field.doc for field in fields if field.doc is not None), None)
    return t.Field(fields[0].name, join([field.type for field in fields]), nullable, doc)


def _join_enums(enums: Sequence[t.Enum]) -> t.Enum:
    symbols = dict.fromkeys(symbol for enum in enums for symbol in enum.symbols)
    return t.Enum(tuple(symbols), _agreed([e.name for e in enums]), None, _agreed([e.doc for e in enums]))


def _agreed(texts: Sequence[str | None]) -> str | None:
    return texts[0] if len(set(texts)) == 1 else None
