"""The mapper for Elasticsearch and OpenSearch: `to_elasticsearch` makes a mapping, `from_elasticsearch` reads one.

A mapping is strict and gives every leaf a type. An index knows no nullability and no arrays: any field may be
missing, and may have several values. Docs are stored in `_meta.headgate.fields`, by the path of the field with dots
between its steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never, cast

from headgate.errors import HeadgateError, raise_all
from headgate.schema.errors import (
    InvalidColumnName,
    InvalidMapping,
    TypeTooDeep,
    UnresolvedType,
    UnsupportedType,
)
from headgate.schema.names import print_name
from headgate.schema.paths import ROOT, element_path, field_path, value_path
from headgate.schema.render import print_type
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

IndexMapping = dict[str, object]

# A term of Lucene has at most 32,766 bytes, and a character has at most four bytes in UTF-8.
LONGEST_KEYWORD = 8191
# scaled_float computes in doubles, which are exact up to 15 decimal digits.
MOST_SCALED_DIGITS = 15
DATE_FORMAT = "strict_date"
TIMESTAMP_FORMAT = "strict_date_optional_time_nanos"
METADATA_FIELDS = frozenset({"_field_names", "_id", "_ignored", "_index", "_meta", "_nested_path", "_routing", "_source", "_type"})  # fmt: skip


class DecimalAs(StrEnum):
    KEYWORD = "keyword"
    SCALED = "scaled"


class JsonAs(StrEnum):
    """The field type that holds any object. Each product has its own."""

    FLAT_OBJECT = "flat_object"  # OpenSearch
    FLATTENED = "flattened"  # Elasticsearch


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """How types are mapped for which the products differ or which can be mapped in two ways."""

    decimal: DecimalAs = DecimalAs.KEYWORD
    json: JsonAs = JsonAs.FLAT_OBJECT


DEFAULT = MappingOptions()


def to_elasticsearch(
    record: Record, options: MappingOptions = DEFAULT, *, relation: str | None = None
) -> IndexMapping:
    """The `mappings` of an index for a record. Raises all bad names at once."""
    raise_all(_bad_names(record, ROOT))
    writer = _Writer(options)
    mapping: IndexMapping = {"dynamic": "strict", "properties": writer.properties(record, ROOT, ())}
    if writer.templates:
        mapping["dynamic_templates"] = writer.templates
    about: IndexMapping = {"relation": relation} if relation is not None else {}
    if record.doc is not None:
        about["doc"] = record.doc
    docs = dict(_docs(record, ()))
    mapping["_meta"] = {"headgate": about | ({"fields": docs} if docs else {})}
    return mapping


def to_elasticsearch_field(type_: Type, options: MappingOptions = DEFAULT) -> IndexMapping:
    """The mapping of one field."""
    return _Writer(options).field(type_, ROOT, ("field",))


class _Writer:
    """Collects the templates that give the values of maps their type, because these belong to the root of the
    mapping."""

    def __init__(self, options: MappingOptions) -> None:
        self.options = options
        self.templates: list[IndexMapping] = []

    def properties(self, record: Record, path: str, steps: tuple[str, ...]) -> IndexMapping:
        return {f.name: self.field(f.type, field_path(path, f.name), (*steps, f.name)) for f in record.fields}

    def field(self, type_: Type, path: str, steps: tuple[str, ...]) -> IndexMapping:
        match type_:
            case Decimal():
                return self._decimal(type_, path)
            case Json() | Record(fields=()):
                return {"type": self.options.json.value}
            case Array(element):
                return self.field(element, element_path(path), steps)
            case Map():
                return self._map(type_, path, steps)
            case Record():
                return {"properties": self.properties(type_, path, steps)}
            case Named(parts):
                raise UnresolvedType(path, print_name(parts))
            case _:
                return _scalar(type_)

    def _decimal(self, type_: Decimal, path: str) -> IndexMapping:
        if self.options.decimal is DecimalAs.KEYWORD:
            return {"type": "keyword"}
        if type_.precision > MOST_SCALED_DIGITS:
            why = f"scaled numbers are exact up to {MOST_SCALED_DIGITS} digits"
            raise UnsupportedType(
                path, "elasticsearch", print_type(type_), why, "the option keyword for decimals"
            )
        return {"type": "scaled_float", "scaling_factor": 10**type_.scale}

    def _map(self, type_: Map, path: str, steps: tuple[str, ...]) -> IndexMapping:
        if _is_open(_element(type_.value)):
            return {"type": self.options.json.value}
        at = ".".join(steps)
        value = self.field(type_.value, value_path(path), (*steps, "*"))
        self.templates.append({f"values of {at}": {"path_match": f"{at}.*", "mapping": value}})
        return {"type": "object", "dynamic": "true"}


def _element(type_: Type) -> Type:
    while isinstance(type_, Array):
        type_ = type_.element
    return type_


def _is_open(type_: Type) -> bool:
    return isinstance(type_, Map | Record | Json)


def _scalar(
    type_: Boolean
    | Integer
    | Bigint
    | Real
    | Double
    | Text
    | Bytes
    | Date
    | Time
    | Timestamp
    | TimestampTz
    | Uuid
    | Enum,
) -> IndexMapping:
    match type_:
        case Boolean():
            return {"type": "boolean"}
        case Integer():
            return {"type": "integer"}
        case Bigint():
            return {"type": "long"}
        case Real():
            return {"type": "float"}
        case Double():
            return {"type": "double"}
        case Text():
            keyword = {"type": "keyword", "ignore_above": LONGEST_KEYWORD}
            return {"type": "text", "fields": {"keyword": keyword}}
        case Bytes():
            return {"type": "binary"}
        case Date():
            return {"type": "date", "format": DATE_FORMAT}
        case Timestamp() | TimestampTz():
            return {"type": "date", "format": TIMESTAMP_FORMAT}
        case Time() | Uuid() | Enum():
            return {"type": "keyword"}
        case _:
            assert_never(type_)


def _bad_names(type_: Type, path: str) -> Iterator[HeadgateError]:
    """A dot in a name would make a path of it, and some names belong to the index."""
    match type_:
        case Array():
            yield from _bad_names(type_.element, element_path(path))
        case Record():
            for field in type_.fields:
                inner = field_path(path, field.name)
                if (
                    "." in field.name
                    or not field.name.strip()
                    or (path == ROOT and field.name in METADATA_FIELDS)
                ):
                    yield InvalidColumnName(field.name, inner, "elasticsearch")
                yield from _bad_names(field.type, inner)
        case _:
            return


def _docs(type_: Type, steps: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    match type_:
        case Array():
            yield from _docs(type_.element, steps)
        case Record():
            for field in type_.fields:
                inner = (*steps, field.name)
                doc = field.doc if field.doc is not None else _own_doc(field.type)
                if doc is not None:
                    yield ".".join(inner), doc
                yield from _docs(field.type, inner)
        case _:
            return


def _own_doc(type_: Type) -> str | None:
    element = _element(type_)
    return element.doc if isinstance(element, Record | Enum) else None


_Object = Mapping[str, object]

_FROM: dict[str, Type] = {
    "boolean": Boolean(),
    "byte": Integer(), "short": Integer(), "integer": Integer(), "long": Bigint(), "unsigned_long": Decimal(20, 0),
    "half_float": Real(), "float": Real(), "double": Double(),
    "text": Text(), "match_only_text": Text(), "keyword": Text(), "constant_keyword": Text(), "wildcard": Text(),
    "ip": Text(), "version": Text(),
    "binary": Bytes(), "date_nanos": TimestampTz(),
    "flat_object": Json(), "flattened": Json(),
}  # fmt: skip
_DATE_ONLY = frozenset({"strict_date", "date", "yyyy-MM-dd", "strict_year_month_day", "year_month_day"})


def from_elasticsearch(mapping: _Object) -> Record:
    """The record of an index's `mappings`. Every field is nullable. Docs come from `_meta.headgate`."""
    about = _object(_object(mapping.get("_meta", {}), "_meta").get("headgate", {}), "_meta.headgate")
    reader = _Reader(_object(about.get("fields", {}), "_meta.headgate.fields"), dict(_templates(mapping)))
    doc = about.get("doc")
    fields = reader.fields(mapping, ROOT, ())
    return Record(fields, doc=doc if isinstance(doc, str) else None)


def _templates(mapping: _Object) -> Iterator[tuple[str, _Object]]:
    listed = mapping.get("dynamic_templates", [])
    if not isinstance(listed, list):
        raise InvalidMapping("dynamic_templates", "a list")
    for item in listed:
        for template in _object(item, "dynamic_templates").values():
            known = _object(template, "dynamic_templates")
            if isinstance(known.get("path_match"), str):
                yield cast(str, known["path_match"]), _object(known.get("mapping", {}), "dynamic_templates")


class _Reader:
    def __init__(self, docs: _Object, templates: Mapping[str, _Object]) -> None:
        self.docs = docs
        self.templates = templates

    def fields(self, mapping: _Object, path: str, steps: tuple[str, ...]) -> tuple[Field, ...]:
        if len(steps) > MAX_DEPTH:
            raise TypeTooDeep(path)
        properties = _object(mapping.get("properties", {}), path)
        return tuple(
            [self._field(name, m, field_path(path, name), (*steps, name)) for name, m in properties.items()]
        )

    def _field(self, name: str, mapping: object, path: str, steps: tuple[str, ...]) -> Field:
        doc = self.docs.get(".".join(steps))
        type_ = self._type(_object(mapping, path), path, steps)
        return Field(name, type_, doc=doc if isinstance(doc, str) else None)

    def _type(self, mapping: _Object, path: str, steps: tuple[str, ...]) -> Type:
        kind = mapping.get("type", "object")
        match kind:
            case "object" | "nested":
                return self._inside(mapping, kind == "nested", path, steps)
            case "date":
                formats = str(mapping.get("format", "")).split("||")
                return Date() if all(format_ in _DATE_ONLY for format_ in formats) else TimestampTz()
            case "scaled_float":
                return _scaled(mapping.get("scaling_factor"))
            case str() if kind in _FROM:
                return _FROM[kind]
            case _:
                why = "there is no such type"
                raise UnsupportedType(
                    path, "headgate", str(kind), why, "the fields that are wanted, without it"
                )

    def _inside(self, mapping: _Object, nested: bool, path: str, steps: tuple[str, ...]) -> Type:
        values = self.templates.get(".".join(steps) + ".*")
        if values is not None:
            return Map(self._type(values, path, (*steps, "*")))
        if not mapping.get("properties"):
            return Json()
        record = Record(self.fields(mapping, path, steps))
        return Array(record) if nested else record


def _scaled(factor: object) -> Type:
    """The scale, if the factor is a power of ten. The index does not store the number of digits, so it is the
    largest."""
    whole = int(factor) if isinstance(factor, int | float) else 0
    digits = str(whole)
    if whole != factor or digits.strip("0") != "1" or len(digits) > MOST_SCALED_DIGITS + 1:
        return Double()
    return Decimal(MOST_SCALED_DIGITS, len(digits) - 1)


def _object(value: object, path: str) -> _Object:
    if not isinstance(value, Mapping):
        raise InvalidMapping(path, "an object")
    return cast(_Object, value)
