"""Avro schema -> neutral type.

The fields of a record become the fields of a record. A field whose union has several types besides null becomes one
nullable column per type, `f1`, `f2`, …, of which one has the value. Annotations are logical types and the names that
Kafka Connect and Debezium write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from headgate.schema import errors, types as t
from headgate.schema.formats.avro import tree
from headgate.schema.formats.avro.defaults import neutral_default
from headgate.schema.formats.avro.parse import MAX_LEVELS, parse_leniently
from headgate.schema.names import ROOT, element_path, field_path, value_path
from headgate.schema.written import SizeLimit, check_depth, load_document

FORMAT = "avro schema"


def from_avro(schema: object, references: Sequence[object] = ()) -> t.Type:
    """The type of an Avro schema, given as JSON text or parsed; whether the whole may be null is left out.

    ``references`` are the schemas whose names it uses, each after those that it uses itself. A union of records
    becomes a record with one nullable field per branch, named after it.
    """
    return read_schema(schema, references)[0]


def read_schema(schema: object, references: Sequence[object] = ()) -> tuple[t.Type, bool]:
    """The type of a schema, and whether the whole may be null."""
    names: dict[str, tree.Named] = {}
    reader = _Reader()
    for path, node in _referred(references, names, t.MAX_DEPTH):
        reader.type(node, path)
    return reader.top(_tree(_load(schema), names, ROOT, t.MAX_DEPTH), ROOT)


def read_tree(node: tree.AvroType) -> t.Type:
    """The type of a schema that is a tree already."""
    return _Reader().top(node, ROOT)[0]


def load_tree(schema: object, references: Sequence[object] = ()) -> tree.AvroType:
    """The tree of a schema, given as JSON text or parsed, that may have no type here: a record may contain itself."""
    names: dict[str, tree.Named] = {}
    for _ in _referred(references, names, MAX_LEVELS):
        pass
    return _tree(_load(schema), names, ROOT, MAX_LEVELS)


def _referred(
    references: Sequence[object], names: dict[str, tree.Named], max_levels: int
) -> Iterator[tuple[str, tree.AvroType]]:
    """The trees of the schemas that another one refers to; ``names`` gets what they define. A list is several
    schemas."""
    for number, reference in enumerate(references):
        path, document = f"references[{number}]", _load(reference)
        for part in document if isinstance(document, list) else [document]:
            yield path, _tree(part, names, path, max_levels)


def _tree(document: object, names: dict[str, tree.Named], path: str, max_levels: int) -> tree.AvroType:
    """Parse a schema leniently. The first fault is raised."""
    parsed = parse_leniently(document, names, path=path, max_levels=max_levels)
    for fault in parsed.faults:
        if fault.unknown is not None:
            raise errors.UnknownReference(FORMAT, fault.path, fault.unknown, fault.similar)
        raise errors.MalformedAvro(fault.path, fault.reason)
    names.update(parsed.names)
    return parsed.type


def _load(schema: object) -> object:
    """The JSON value of a schema. The name of a primitive is a schema without quotes."""
    if not isinstance(schema, str) or schema in tree.PRIMITIVES:
        return schema
    return load_document(schema, FORMAT, errors.MalformedAvro)


class _Reader:
    """Turns a tree into a type. A named type is read once and counted wherever it is used."""

    def __init__(self) -> None:
        self._read: dict[int, tuple[t.Type, int]] = {}  # type and number of fields, by the id of a node
        self._open: set[int] = set()
        self._size_limit = SizeLimit(FORMAT)

    def top(self, node: tree.AvroType, path: str) -> tuple[t.Type, bool]:
        """The type of a whole schema, and whether it may be null."""
        branches, nullable = _branches(node, path)
        if len(branches) > 1:
            type_: t.Type = self._union_of_records(branches, path)
        else:
            type_ = self.type(branches[0], path)
        check_depth(type_, FORMAT)
        return type_, nullable

    def type(self, node: tree.AvroType, path: str) -> t.Type:
        """The type of a value that is not null."""
        self._size_limit.count(1, path)
        match node:
            case tree.Primitive():
                if node.kind == "null":
                    raise errors.NullTypeOnly(FORMAT, path)
                return annotated(node, path)
            case tree.Array():
                return t.Array(*self._nullable_type(node.items, element_path(path)))
            case tree.Map():
                return t.Map(*self._nullable_type(node.values, value_path(path)))
            case tree.Record() | tree.Enum() | tree.Fixed():
                return self._named(node, path)
            case tree.Union():
                raise errors.UnsupportedUnion(path, tuple(map(_label, node.branches)))
            case _:
                assert_never(node)

    def _nullable_type(self, node: tree.AvroType, path: str) -> tuple[t.Type, bool]:
        """The type of the elements of an array or the values of a map, and whether they may be null."""
        branches, nullable = _branches(node, path)
        if len(branches) > 1:
            raise errors.UnsupportedUnion(path, tuple(map(_label, branches)))
        return self.type(branches[0], path), nullable

    def _named(self, node: tree.Named, path: str) -> t.Type:
        """A named type. Its type is remembered, but its fields count again for the size limit."""
        if id(node) in self._open:
            raise errors.RecursiveSchema(FORMAT, path, node.name.full)
        if id(node) in self._read:
            type_, size = self._read[id(node)]
            self._size_limit.count(size, path)
            return type_
        before = self._size_limit.counted
        self._open.add(id(node))
        type_ = self._definition(node, path)
        self._open.remove(id(node))
        self._read[id(node)] = type_, self._size_limit.counted - before
        return type_

    def _definition(self, node: tree.Named, path: str) -> t.Type:
        match node:
            case tree.Record():
                return t.Record(self._fields(node, path), node.name.full, node.doc)
            case tree.Enum():
                if not node.symbols:
                    raise errors.MalformedAvro(path, "an enum has a list of symbols")
                return t.Enum(node.symbols, node.name.full, node.default, node.doc)
            case tree.Fixed():
                if node.size < 1:
                    raise errors.MalformedAvro(path, "the size of a fixed is a whole number from 1")
                return annotated_fixed(node, path)
            case _:
                assert_never(node)

    def _fields(self, record: tree.Record, path: str) -> tuple[t.Field, ...]:
        """The columns of a record. A union may add several, whose names must be free."""
        made: list[t.Field] = []
        taken = {member.name for member in record.fields}
        for member in record.fields:
            at = field_path(path, member.name)
            columns = self._field(member, at)
            if len(columns) > 1:
                _claim(columns, taken, at)
            made.extend(columns)
        return tuple(made)

    def _field(self, member: tree.Field, path: str) -> list[t.Field]:
        """The columns of a field: one, unless its union has several types."""
        branches, nullable = _branches(member.type, path)
        if len(branches) == 1:
            type_ = self.type(branches[0], path)
            return [t.Field(member.name, type_, nullable, member.doc, neutral_default(member, type_))]
        types = [self.type(branch, path) for branch in branches]
        return [t.Field(f"{member.name}{n}", type_, True, member.doc) for n, type_ in enumerate(types, 1)]

    def _union_of_records(self, branches: Sequence[tree.AvroType], path: str) -> t.Record:
        """A record with one field per branch, of which one is not null."""
        fields: list[t.Field] = []
        taken: set[str] = set()
        for branch in branches:
            if not isinstance(branch, tree.Record):
                raise errors.UnsupportedUnion(path, tuple(map(_label, branches)))
            column = t.Field(branch.name.simple, self.type(branch, path), True)
            _claim([column], taken, path)
            fields.append(column)
        return t.Record(tuple(fields))


def _branches(node: tree.AvroType, path: str) -> tuple[Sequence[tree.AvroType], bool]:
    """The types that a value may have here besides null, at least one, and whether it may be null."""
    branches = tree.values_of(node)
    if not branches:
        raise errors.NullTypeOnly(FORMAT, path)
    return branches, len(branches) < len(tree.branches_of(node))


def _claim(columns: Iterable[t.Field], taken: set[str], path: str) -> None:
    """Take the names of columns. Raises UnionColumnClash for one that is taken."""
    for column in columns:
        if column.name in taken:
            raise errors.UnionColumnClash(path, column.name)
        taken.add(column.name)


def _label(node: tree.AvroType) -> str:
    """The name of a branch in an error: the full name of a named type, otherwise the kind of the type."""
    return node.name.full if isinstance(node, tree.Record | tree.Enum | tree.Fixed) else tree.kind_of(node)


# annotations


# Without an annotation.
PRIMITIVES: Mapping[str, t.Type] = {
    "boolean": t.Boolean(),
    "int": t.Integer(),
    "long": t.Bigint(),
    "float": t.Real(),
    "double": t.Double(),
    "bytes": t.Bytes(),
    "string": t.Text(),
}

_LOGICAL: Mapping[tuple[str, str], t.Type] = {
    ("int", "date"): t.Date(),
    ("int", "time-millis"): t.Time(),
    ("long", "time-micros"): t.Time(),
    ("long", "timestamp-millis"): t.TimestampTz(),
    ("long", "timestamp-micros"): t.TimestampTz(),
    ("long", "local-timestamp-millis"): t.Timestamp(),
    ("long", "local-timestamp-micros"): t.Timestamp(),
    ("string", "uuid"): t.Uuid(),
}

# Debezium counts timestamps of columns without a zone from the epoch as if they were in UTC: they have no zone. Connect's
# own Timestamp is an instant.
CONNECT_TYPES: Mapping[tuple[str, str], t.Type] = {
    ("string", "io.debezium.data.Json"): t.Json(),
    ("string", "io.debezium.data.Uuid"): t.Uuid(),
    ("int", "io.debezium.time.Date"): t.Date(),
    ("int", "io.debezium.time.Time"): t.Time(),
    ("long", "io.debezium.time.MicroTime"): t.Time(),
    ("long", "io.debezium.time.Timestamp"): t.Timestamp(),
    ("long", "io.debezium.time.MicroTimestamp"): t.Timestamp(),
    ("string", "io.debezium.time.ZonedTimestamp"): t.TimestampTz(),
    ("int", "org.apache.kafka.connect.data.Date"): t.Date(),
    ("int", "org.apache.kafka.connect.data.Time"): t.Time(),
    ("long", "org.apache.kafka.connect.data.Timestamp"): t.TimestampTz(),
}
CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def annotated(node: tree.Primitive, path: str) -> t.Type:
    """The type of a primitive with these attributes.

    An annotation that is unknown, stands on the wrong type or is not valid in itself is ignored, as the specification
    asks.
    """
    if not node.attributes:
        return PRIMITIVES[node.kind]
    if node.kind == "bytes":
        return decimal_of(node.attributes, path) or t.Bytes()
    logical, connect = _text(node.attributes, "logicalType"), _text(node.attributes, "connect.name")
    return CONNECT_TYPES.get((node.kind, connect)) or _LOGICAL.get((node.kind, logical)) or PRIMITIVES[node.kind]


def annotated_fixed(node: tree.Fixed, path: str) -> t.Type:
    """The type of a fixed: a uuid, a decimal whose precision fits into its bytes, or the bytes themselves."""
    if node.attributes.get("logicalType") == "uuid" and node.size == 16:
        return t.Uuid()
    decimal = decimal_of(node.attributes, path)
    has_room = decimal is not None and 10**decimal.precision <= 2 ** (8 * node.size - 1)
    return decimal if decimal is not None and has_room else t.Bytes(node.size)


def decimal_of(attributes: Mapping[str, object], path: str) -> t.Decimal | None:
    """The decimal that the attributes declare, or None if they declare no valid one."""
    if attributes.get("logicalType") == "decimal":
        precision, scale = attributes.get("precision"), attributes.get("scale", 0)
    elif attributes.get("connect.name") == CONNECT_DECIMAL:
        precision, scale = connect_decimal(attributes)
    else:
        return None
    # bool is an int in Python, but not a number in JSON
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision == 0:
        return None
    if precision > t.MAX_PRECISION:
        raise errors.DecimalTooWide(path, precision)
    return t.Decimal(precision, scale)


def connect_decimal(attributes: Mapping[str, object]) -> tuple[int | None, int | None]:
    """Precision and scale as Kafka Connect writes them: as texts."""
    parameters = attributes.get("connect.parameters")
    if not isinstance(parameters, dict):
        return None, None
    return _number(parameters.get("connect.decimal.precision")), _number(parameters.get("scale"))


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 else None


def _text(attributes: Mapping[str, object], key: str) -> str:
    value = attributes.get(key)
    return value if isinstance(value, str) else ""
