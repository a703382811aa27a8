"""Avro schema -> neutral type.

A record's fields become the record's fields; a field whose union has several types besides null becomes one nullable
column per type, `f1`, `f2`, …, of which one has the value. Names are taken as they are written: registries hold
schemas from before names were checked, and whoever decodes will say more than we could.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headgate.errors import similar_names
from headgate.schema.errors import (
    MalformedAvro,
    NullOnly,
    RecursiveSchema,
    SchemaTooDeep,
    UnionColumnClash,
    UnknownReference,
    UnsupportedUnion,
)
from headgate.schema.formats.avro.annotations import PRIMITIVES, annotated, annotated_fixed
from headgate.schema.formats.documents import Budget, check_depth, load_document
from headgate.schema.paths import ROOT, element_path, field_path, value_path
from headgate.schema.types import MAX_DEPTH, Array, Enum, Field, Map, Record, Type

FORMAT = "avro schema"


def from_avro(schema: object, references: Sequence[object] = ()) -> Type:
    """The type of an Avro schema, given as JSON text or parsed; whether the whole may be null is left out.

    ``references`` are the schemas whose names it uses, each after those that it uses itself. A union of records
    becomes a record with one nullable field per branch, named after it.
    """
    return read_place(schema, references)[0]


def columns_of(schema: object, references: Sequence[object] = (), column: str = "value") -> tuple[Field, ...]:
    """The columns of a Kafka key or value: a record's fields, or the one column of anything else."""
    type_, nullable = read_place(schema, references)
    if not isinstance(type_, Record):
        return (Field(column, type_, nullable),)
    if not nullable:
        return type_.fields
    return tuple(Field(field.name, field.type, True, field.doc) for field in type_.fields)


def read_place(schema: object, references: Sequence[object] = ()) -> tuple[Type, bool]:
    """The type of a schema, and whether the whole may be null."""
    reader = _Reader()
    for number, reference in enumerate(references):
        reader.define(_load(reference), _Spot(f"references[{number}]"))
    type_, nullable = reader.top(_load(schema), _Spot(ROOT))
    check_depth(type_, FORMAT)
    return type_, nullable


def _load(schema: object) -> object:
    if not isinstance(schema, str) or schema in PRIMITIVES or schema == "null":
        return schema
    return load_document(schema, FORMAT, MalformedAvro)


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where in the schema we are, and the namespace that names without one have here."""

    path: str
    namespace: str | None = None
    depth: int = 0

    def into(self, path: str) -> _Spot:
        if self.depth >= MAX_DEPTH:
            raise SchemaTooDeep(FORMAT, self.path)
        return _Spot(path, self.namespace, self.depth + 1)

    def within(self, namespace: str | None) -> _Spot:
        return _Spot(self.path, namespace, self.depth)


class _Reader:
    def __init__(self) -> None:
        self._defined: dict[str, Type] = {}
        self._sizes: dict[str, int] = {}
        self._open: set[str] = set()
        self._budget = Budget(FORMAT)

    def top(self, schema: object, at: _Spot) -> tuple[Type, bool]:
        if isinstance(schema, list):
            branches, nullable = self._branches(schema, at)
            if len(branches) > 1:
                return self._union_of_records(branches, at), nullable
        return self.place(schema, at)

    def define(self, schema: object, at: _Spot) -> None:
        """Make the names of a schema known that another one refers to; a list is several definitions."""
        for part in schema if isinstance(schema, list) else [schema]:
            self.type(part, at)

    def place(self, schema: object, at: _Spot) -> tuple[Type, bool]:
        """The type of a place and whether it may be null."""
        if not isinstance(schema, list):
            return self.type(schema, at), False
        branches, nullable = self._branches(schema, at)
        if len(branches) > 1:
            raise UnsupportedUnion(at.path, tuple(_label(branch, at) for branch in branches))
        return self.type(branches[0], at), nullable

    def type(self, schema: object, at: _Spot) -> Type:
        self._budget.spend(1, at.path)
        if isinstance(schema, str):
            return self._by_name(schema, at)
        if not isinstance(schema, dict):
            raise MalformedAvro(at.path, "a schema is a name, an object or a list")
        match schema.get("type"):
            case "record" | "error" | "enum" | "fixed":
                return self._named(schema, at)
            case "array":
                return Array(*self.place(_required(schema, "items", at), at.into(element_path(at.path))))
            case "map":
                return Map(*self.place(_required(schema, "values", at), at.into(value_path(at.path))))
            case str(name) if name in PRIMITIVES:
                return annotated(name, schema, at.path)
            case str(name):
                return self._by_name(name, at)
            case dict(inner):  # {"type": {"type": …}}: not in the specification, but libraries write it
                return self.type(inner, at.into(at.path))
            case _:
                raise MalformedAvro(at.path, "the type of a schema is missing or not a name")

    def _by_name(self, name: str, at: _Spot) -> Type:
        if name in PRIMITIVES:
            return PRIMITIVES[name]
        if name == "null":
            raise NullOnly(FORMAT, at.path)
        for full in (_full_name(name, at.namespace), name):
            if full in self._open:
                raise RecursiveSchema(FORMAT, at.path, full)
            if full in self._defined:
                self._budget.spend(self._sizes[full], at.path)
                return self._defined[full]
        raise UnknownReference(FORMAT, at.path, name, similar_names(name, (*self._defined, *PRIMITIVES)))

    def _named(self, schema: Mapping[str, object], at: _Spot) -> Type:
        name, namespace = _name_of(schema, at)
        if name in self._defined or name in self._open:
            raise MalformedAvro(at.path, f'"{name}" is defined twice')
        before = self._budget.spent
        self._open.add(name)
        type_ = self._definition(schema, name, at.within(namespace))
        self._open.remove(name)
        self._defined[name], self._sizes[name] = type_, self._budget.spent - before
        return type_

    def _definition(self, schema: Mapping[str, object], name: str, at: _Spot) -> Type:
        if schema["type"] == "enum":
            return _enum(schema, name, at)
        if schema["type"] == "fixed":
            return _fixed(schema, at)
        return Record(self._fields(schema, at), name, _doc(schema))

    def _fields(self, schema: Mapping[str, object], at: _Spot) -> tuple[Field, ...]:
        declared = schema.get("fields")
        if not isinstance(declared, list):
            raise MalformedAvro(at.path, "a record has a list of fields")
        made: list[Field] = []
        taken = _field_names(declared, at)
        for field in declared:
            path = field_path(at.path, field["name"])
            columns = self._field(field, at.into(path))
            if len(columns) > 1:
                _claim(columns, taken, path)
            made.extend(columns)
        return tuple(made)

    def _field(self, field: Mapping[str, object], at: _Spot) -> list[Field]:
        """The columns of a field: one, unless its union has several types."""
        name, schema, doc = str(field["name"]), _required(field, "type", at), _doc(field)
        if isinstance(schema, list):
            branches, nullable = self._branches(schema, at)
            if len(branches) == 1:
                return [Field(name, self.type(branches[0], at), nullable, doc)]
            return [Field(f"{name}{n}", self.type(b, at), True, doc) for n, b in enumerate(branches, 1)]
        return [Field(name, self.type(schema, at), False, doc)]

    def _branches(self, union: list[object], at: _Spot) -> tuple[list[object], bool]:
        """The branches of a union that are not null, at least one, and whether null was among them."""
        labels = [_label(branch, at) for branch in union]
        if len(set(labels)) < len(labels):
            raise MalformedAvro(at.path, "the union has a type twice")
        branches = [branch for branch, label in zip(union, labels, strict=True) if label != "null"]
        if not union:
            raise MalformedAvro(at.path, "the union is empty")
        if not branches:
            raise NullOnly(FORMAT, at.path)
        return branches, "null" in labels

    def _union_of_records(self, branches: list[object], at: _Spot) -> Record:
        fields: list[Field] = []
        taken: set[str] = set()
        for branch in branches:
            type_ = self.type(branch, at)
            if not isinstance(type_, Record) or type_.name is None:
                raise UnsupportedUnion(at.path, tuple(_label(b, at) for b in branches))
            column = Field(type_.name.rpartition(".")[2], type_, True)
            _claim([column], taken, at.path)
            fields.append(column)
        return Record(tuple(fields))


def _enum(schema: Mapping[str, object], name: str, at: _Spot) -> Enum:
    symbols, default = schema.get("symbols"), schema.get("default")
    if not isinstance(symbols, list) or not symbols or not all(isinstance(s, str) for s in symbols):
        raise MalformedAvro(at.path, "an enum has a list of symbols")
    if len(set(symbols)) < len(symbols):
        raise MalformedAvro(at.path, "the enum has a symbol twice")
    if default is not None and (not isinstance(default, str) or default not in symbols):
        raise MalformedAvro(at.path, "the default of the enum is not one of its symbols")
    return Enum(tuple(symbols), name, default, _doc(schema))


def _fixed(schema: Mapping[str, object], at: _Spot) -> Type:
    size = schema.get("size")
    if type(size) is not int or size < 1:
        raise MalformedAvro(at.path, "the size of a fixed is a whole number from 1")
    return annotated_fixed(size, schema, at.path)


def _name_of(schema: Mapping[str, object], at: _Spot) -> tuple[str, str | None]:
    """The full name of a definition, and the namespace that holds inside it."""
    name, namespace = schema.get("name"), schema.get("namespace", at.namespace)
    if not isinstance(name, str) or not name:
        raise MalformedAvro(at.path, f"the {schema['type']} has no name")
    if namespace is not None and not isinstance(namespace, str):
        raise MalformedAvro(at.path, "the namespace is not a text")
    full = _full_name(name, namespace)
    if full in PRIMITIVES:
        raise MalformedAvro(at.path, f'a type cannot be called "{full}"')
    return full, full.rpartition(".")[0] or None


def _full_name(name: str, namespace: str | None) -> str:
    return f"{namespace}.{name}" if namespace and "." not in name else name


def _field_names(declared: list[object], at: _Spot) -> set[str]:
    names: set[str] = set()
    for number, field in enumerate(declared, 1):
        name = field.get("name") if isinstance(field, dict) else None
        if not isinstance(name, str) or not name:
            raise MalformedAvro(at.path, f"field {number} has no name")
        if name in names:
            raise MalformedAvro(at.path, f'field "{name}" occurs more than once')
        names.add(name)
    return names


def _claim(columns: Iterable[Field], taken: set[str], path: str) -> None:
    for column in columns:
        if column.name in taken:
            raise UnionColumnClash(path, column.name)
        taken.add(column.name)


def _label(branch: object, at: _Spot) -> str:
    """What may occur once in a union: the full name of a named type, the kind of any other."""
    if isinstance(branch, dict):
        kind = branch.get("type")
        if kind in ("record", "error", "enum", "fixed"):
            return _name_of(branch, at)[0]
        branch = kind
    if isinstance(branch, list):
        raise MalformedAvro(at.path, "a union stands directly in a union")
    if not isinstance(branch, str):
        raise MalformedAvro(at.path, "a branch of the union has no type")
    kinds = (*PRIMITIVES, "null", "array", "map")
    return branch if branch in kinds else _full_name(branch, at.namespace)


def _required(schema: Mapping[str, object], key: str, at: _Spot) -> object:
    if key not in schema:
        raise MalformedAvro(at.path, f'"{key}" is missing')
    return schema[key]


def _doc(schema: Mapping[str, object]) -> str | None:
    doc = schema.get("doc")
    return doc if isinstance(doc, str) else None
