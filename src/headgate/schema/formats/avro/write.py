"""The full names that the records, enums and fixeds of one generated Avro schema get."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from headgate.schema.errors import InvalidAvroName, SchemaTooDeep
from headgate.schema.formats.avro.read import PRIMITIVES
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

NAMESPACE = "com.headgate.sink"

# A name of Avro's own would be read as that type wherever it stands without its namespace.
_AVROS_OWN = frozenset((*PRIMITIVES, "null", "record", "error", "enum", "array", "map", "fixed", "union"))


class TypeNames:
    """A name for each named type that is met, in the order in which they are met.

    A type of the catalog is called by the last part of its SQL name, an imported one keeps its full name, any other
    is numbered. A clash gets the smallest free number; an imported name is never taken by one of ours, also if the
    type that brings it comes later.
    """

    def __init__(self, outermost: str, frozen: Mapping[tuple[str, ...], str]) -> None:
        self.by_type: dict[tuple[str, ...], str] = {}
        self._frozen = frozen
        self._taken = {outermost}
        self._foreign = set(frozen.values())
        self._imported: dict[str, list[tuple[Record | Enum, str]]] = {}
        self._fixeds: dict[int, str] = {}
        self._next: dict[str, int] = {}

    def reserve(self, type_: Type, resolve: Resolve) -> None:
        """Keep free the names that the types inside this one bring with them."""
        waiting, seen = [type_], set[tuple[str, ...]]()
        while waiting:
            match waiting.pop():
                case Named(parts) as named if parts not in seen:
                    seen.add(parts)
                    waiting.append(resolve(named))
                case Record(fields, name):
                    self._foreign.update([_valid(name)] if name else [])
                    waiting.extend(field.type for field in fields)
                case Enum(name=str(name)):
                    self._foreign.add(_valid(name))
                case Array(inner, _) | Map(inner, _):
                    waiting.append(inner)
                case _:
                    pass

    def of(self, type_: Record | Enum | Named, is_record: bool, enclosing: str | None) -> tuple[str, bool]:
        """The full name of a type, and whether it is defined already; otherwise it must be now."""
        if isinstance(type_, Named):
            return self._of_catalog(type_)
        if type_.name is None:
            return self._numbered("record" if is_record else "enum"), False
        return self._of_import(type_, type_.name, enclosing)

    def fixed(self, length: int) -> tuple[str, bool]:
        if length in self._fixeds:
            return self._fixeds[length], True
        self._fixeds[length] = self._take(f"{NAMESPACE}.fixed{length}", self._foreign)
        return self._fixeds[length], False

    def _of_catalog(self, type_: Named) -> tuple[str, bool]:
        if type_.parts in self.by_type:
            return self.by_type[type_.parts], True
        if type_.parts in self._frozen:
            full = self._take(self._frozen[type_.parts])
        else:
            full = self._take(f"{NAMESPACE}.{avro_name(type_.parts[-1])}", self._foreign)
        self.by_type[type_.parts] = full
        return full, False

    def _of_import(self, type_: Record | Enum, name: str, enclosing: str | None) -> tuple[str, bool]:
        wanted = _valid(name)
        if "." not in wanted and enclosing is not None:
            # Inside a namespace, Avro cannot refer to a name that has none.
            wanted = f"{enclosing}.{wanted}"
        known = self._imported.setdefault(wanted, [])
        for same_name, full in known:
            if same_name == type_:
                return full, True
        full = self._take(wanted)
        known.append((type_, full))
        return full, False

    def _numbered(self, kind: str) -> str:
        number = self._next.get(kind, 0)
        while (full := f"{NAMESPACE}.{kind}{number}") in self._taken or full in self._foreign:
            number += 1
        self._next[kind] = number + 1
        return self._take(full)

    def _take(self, wanted: str, avoid: Collection[str] = ()) -> str:
        full, number = wanted, 0
        while full in self._taken or full in avoid or full.rpartition(".")[2] in _AVROS_OWN:
            number += 1
            full = f"{wanted}{number}"
        self._taken.add(full)
        return full


def _valid(full_name: str) -> str:
    return ".".join(avro_name(part) for part in full_name.split("."))


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
