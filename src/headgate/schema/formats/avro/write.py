"""Neutral type -> Avro schema.

The order of attributes, the names and where a namespace is printed are part of the contract: equal types make equal
text, so that a registry does not see a new version where nothing changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from headgate.schema.errors import InvalidAvroName, SchemaTooDeep
from headgate.schema.formats.avro.names import TypeNames
from headgate.schema.formats.documents import Resolve, unresolved
from headgate.schema.names import avro_name, avro_names
from headgate.schema.types import (
    MAX_DEPTH,
    Array,
    Bigint,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Double,
    Enum,
    Field,
    Integer,
    Json,
    Map,
    Named,
    Real,
    Record,
    Text,
    Time,
    Timestamp,
    TimestampTz,
    Type,
    Uuid,
)

Path = tuple[str, ...]
"""SQL names of fields from the outermost record on; arrays and maps on the way add nothing."""


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A generated schema as JSON, and what had to be called otherwise in it.

    ``renames`` has the path of every field whose Avro name is not its SQL name. ``names`` has the full Avro name of
    every type of the catalog that became a record or an enum: given back as ``names`` next time, it keeps the schema
    as it is when a type is renamed.
    """

    json: object
    renames: Mapping[Path, str] = field(default_factory=dict)
    names: Mapping[Path, str] = field(default_factory=dict)


def to_avro(
    type_: Type,
    *,
    name: str,
    namespace: str | None = None,
    null_defaults: bool = False,
    added: Collection[Path] = (),
    names: Mapping[Path, str] | None = None,
    resolve: Resolve = unresolved,
) -> AvroSchema:
    """The schema of a type whose outermost record or enum is called ``name``, which may hold the namespace too.

    ``null_defaults`` gives every nullable field the default null; the fields in ``added`` always have it, because
    they came later and old records lack them. A type that is used twice is written where it is used first, so that
    only paths through there count.
    """
    full = f"{namespace}.{name}" if namespace else name
    if any(avro_name(part) != part for part in full.split(".")):
        raise InvalidAvroName(full)
    given = TypeNames(full, dict(names or {}))
    given.reserve(type_, resolve)
    writer = _Writer(given, null_defaults, frozenset(added), resolve)
    schema = writer.top(type_, full)
    return AvroSchema(schema, dict(writer.renames), dict(given.by_type))


@dataclass(slots=True)
class _Writer:
    names: TypeNames
    null_defaults: bool
    added: frozenset[Path]
    resolve: Resolve
    renames: dict[Path, str] = field(default_factory=dict)

    def top(self, type_: Type, full: str) -> object:
        resolved = self._resolved(type_)
        match resolved:
            case Record():
                return self._record(resolved, full, None, (), 1)
            case Enum() if _expressible(resolved):
                return _enum(resolved, full, None)
            case _:
                return self.type(resolved, None, (), 0)

    def type(self, type_: Type, enclosing: str | None, path: Path, depth: int) -> object:
        """The schema of a type at a place that is inside the namespace ``enclosing``."""
        if depth > MAX_DEPTH:
            raise SchemaTooDeep("avro schema", ".".join(("$", *path[:8])))
        match type_:
            case Array(element, nullable):
                return {"type": "array", "items": self._place(element, nullable, enclosing, path, depth + 1)}
            case Map(value, nullable):
                return {"type": "map", "values": self._place(value, nullable, enclosing, path, depth + 1)}
            case Record() | Named():
                return self._named(type_, enclosing, path, depth)
            case Enum():
                return self._named(type_, enclosing, path, depth) if _expressible(type_) else "string"
            case Bytes(int(length)):
                full, known = self.names.fixed(length)
                return _reference(full, enclosing) if known else _fixed(length, full, enclosing)
            case _:
                return _scalar(type_)

    def _place(self, type_: Type, nullable: bool, enclosing: str | None, path: Path, depth: int) -> object:
        schema = self.type(type_, enclosing, path, depth)
        return ["null", schema] if nullable else schema

    def _named(self, type_: Record | Enum | Named, enclosing: str | None, path: Path, depth: int) -> object:
        definition = self._resolved(type_)
        if not isinstance(definition, Record) and not (
            isinstance(definition, Enum) and _expressible(definition)
        ):
            return self.type(definition, enclosing, path, depth)
        full, known = self.names.of(type_, isinstance(definition, Record), enclosing)
        if known:
            self._note_renames(definition, path)
            return _reference(full, enclosing)
        if isinstance(definition, Enum):
            return _enum(definition, full, enclosing)
        return self._record(definition, full, enclosing, path, depth + 1)

    def _record(self, record: Record, full: str, enclosing: str | None, path: Path, depth: int) -> object:
        names = avro_names([field.name for field in record.fields])
        inside = full.rpartition(".")[0] or None
        fields = [
            self._field(f, name, inside, (*path, f.name), depth)
            for f, name in zip(record.fields, names, strict=True)
        ]
        return {"type": "record", **_name(full, enclosing), **_doc(record.doc), "fields": fields}

    def _field(self, field: Field, name: str, enclosing: str | None, path: Path, depth: int) -> object:
        if name != field.name:
            self.renames[path] = name
        schema = self._place(field.type, field.nullable, enclosing, path, depth)
        defaults_to_null = field.nullable and (self.null_defaults or path in self.added)
        default = {"default": None} if defaults_to_null else {}
        return {"name": name, "type": schema, **default, **_doc(field.doc)}

    def _note_renames(self, type_: Type, path: Path) -> None:
        """The renames inside a definition that is only referred to here hold below this path too."""
        match self._resolved(type_):
            case Record(fields):
                for field, name in zip(fields, avro_names([f.name for f in fields]), strict=True):
                    if name != field.name:
                        self.renames[(*path, field.name)] = name
                    self._note_renames(field.type, (*path, field.name))
            case Array(inner, _) | Map(inner, _):
                self._note_renames(inner, path)
            case _:
                pass

    def _resolved(self, type_: Type) -> Type:
        for _ in range(MAX_DEPTH):
            if not isinstance(type_, Named):
                return type_
            type_ = self.resolve(type_)
        raise SchemaTooDeep("avro schema", "$")


def _scalar(type_: Type) -> object:
    match type_:
        case Boolean():
            return "boolean"
        case Integer():
            return "int"
        case Bigint():
            return "long"
        case Real():
            return "float"
        case Double():
            return "double"
        case Decimal(precision, scale):
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        case Text():
            return "string"
        case Bytes():
            return "bytes"
        case Date():
            return {"type": "int", "logicalType": "date"}
        case Time():
            return {"type": "long", "logicalType": "time-micros"}
        case Timestamp():
            return {"type": "long", "logicalType": "local-timestamp-micros"}
        case TimestampTz():
            return {"type": "long", "logicalType": "timestamp-micros"}
        case Uuid():
            return {"type": "string", "logicalType": "uuid"}
        case Json():
            return {"type": "string", "connect.name": "io.debezium.data.Json"}
        case Enum() | Array() | Map() | Record() | Named():
            raise AssertionError(type_)
        case _:
            assert_never(type_)


def _enum(enum: Enum, full: str, enclosing: str | None) -> object:
    default = {"default": enum.default} if enum.default in enum.symbols else {}
    return {
        "type": "enum",
        **_name(full, enclosing),
        **_doc(enum.doc),
        "symbols": list(enum.symbols),
        **default,
    }


def _fixed(length: int, full: str, enclosing: str | None) -> object:
    return {"type": "fixed", **_name(full, enclosing), "size": length}


def _expressible(enum: Enum) -> bool:
    """Avro's symbols are names."""
    return bool(enum.symbols) and all(avro_name(symbol) == symbol for symbol in enum.symbols)


def _name(full: str, enclosing: str | None) -> dict[str, str]:
    namespace, _, name = full.rpartition(".")
    return {"name": name} if namespace == (enclosing or "") else {"name": name, "namespace": namespace}


def _reference(full: str, enclosing: str | None) -> str:
    namespace, _, name = full.rpartition(".")
    return name if namespace == (enclosing or "") else full


def _doc(doc: str | None) -> dict[str, str]:
    return {} if doc is None else {"doc": doc}
