"""The mapper for Elasticsearch and OpenSearch: `to_elasticsearch` makes a mapping, `from_elasticsearch` reads one.

A mapping is strict and gives every leaf a type. An index knows no nullability and no arrays: any field may be
missing, and may have several values. Docs are stored in `_meta.headgate.fields`, by the path of the field with dots
between its steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import cast

from headgate.errors import HeadgateError, raise_all
from headgate.schema import errors, types as t
from headgate.schema.names import ROOT, element_path, field_path, print_name, value_path
from headgate.schema.render import print_type

IndexMapping = dict[str, object]

# A term of Lucene has at most 32,766 bytes, and a character has at most four bytes in UTF-8.
LONGEST_KEYWORD = 8191
# scaled_float computes in doubles, which are exact up to 15 decimal digits.
MOST_SCALED_DIGITS = 15
DATE_FORMAT = "strict_date"
TIMESTAMP_FORMAT = "strict_date_optional_time_nanos"
# Of any supported product: a server ends the creation of an index, or refuses every document, if a field has one of these names.
METADATA_FIELDS = frozenset({
    "_data_stream_timestamp", "_doc_count", "_feature", "_field_names", "_id", "_ignored", "_ignored_source", "_index", "_meta",
    "_nested_path", "_primary_term", "_routing", "_seq_no", "_size", "_source", "_tier", "_tsid", "_type", "_version",
})  # fmt: skip


class JsonAs(StrEnum):
    """The field type that holds any object. Each product has its own."""

    FLAT_OBJECT = "flat_object"  # OpenSearch
    FLATTENED = "flattened"  # Elasticsearch


def to_elasticsearch(
    record: t.Record, json: JsonAs = JsonAs.FLAT_OBJECT, *, relation: str | None = None
) -> IndexMapping:
    """The `mappings` of an index for a record. Raises all bad names at once."""
    raise_all(_bad_names(record, ROOT))
    writer = _Writer(json)
    mapping: IndexMapping = {"dynamic": "strict", "properties": writer.properties(record, ROOT, ())}
    if writer.templates:
        mapping["dynamic_templates"] = writer.templates
    about: IndexMapping = {"relation": relation} if relation is not None else {}
    if record.doc is not None:
        about["doc"] = record.doc
    docs = dict(_docs(record, ()))
    mapping["_meta"] = {"headgate": about | ({"fields": docs} if docs else {})}
    return mapping


def to_elasticsearch_field(type_: t.Type, json: JsonAs = JsonAs.FLAT_OBJECT) -> IndexMapping:
    """The mapping of one field."""
    return _Writer(json).field(type_, ROOT, ("field",))


class _Writer:
    """Collects the templates that give the values of maps their type, because these belong to the root of the
    mapping."""

    def __init__(self, json: JsonAs) -> None:
        self.json = json
        self.templates: list[IndexMapping] = []

    def properties(self, record: t.Record, path: str, steps: tuple[str, ...]) -> IndexMapping:
        return {f.name: self.field(f.type, field_path(path, f.name), (*steps, f.name)) for f in record.fields}

    def field(self, type_: t.Type, path: str, steps: tuple[str, ...]) -> IndexMapping:
        """The mapping of one field. An array has the mapping of its elements."""
        match type_:
            case t.Decimal():
                return {"type": "keyword"}  # as text, with every digit
            case t.Json() | t.Record(fields=()):
                return {"type": self.json.value}
            case t.Array(element):
                return self.field(element, element_path(path), steps)
            case t.Map():
                return self._map(type_, path, steps)
            case t.Record():
                return {"properties": self.properties(type_, path, steps)}
            case t.Named(parts):
                raise errors.UnresolvedType(path, print_name(parts))
            case _:
                return dict(_SCALARS[type(type_)])

    def _map(self, type_: t.Map, path: str, steps: tuple[str, ...]) -> IndexMapping:
        """A map with scalar values is an object, and a template gives its values their type."""
        if _is_open(_element(type_.value)):
            return {"type": self.json.value}
        at = ".".join(steps)
        value = self.field(type_.value, value_path(path), (*steps, "*"))
        self.templates.append({f"values of {at}": {"path_match": f"{at}.*", "mapping": value}})
        return {"type": "object", "dynamic": "true"}


def _element(type_: t.Type) -> t.Type:
    while isinstance(type_, t.Array):
        type_ = type_.element
    return type_


def _is_open(type_: t.Type) -> bool:
    return isinstance(type_, t.Map | t.Record | t.Json)


_SCALARS: Mapping[type, IndexMapping] = {
    t.Boolean: {"type": "boolean"},
    t.Integer: {"type": "integer"},
    t.Bigint: {"type": "long"},
    t.Real: {"type": "float"},
    t.Double: {"type": "double"},
    t.Text: {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": LONGEST_KEYWORD}}},
    t.Bytes: {"type": "binary"},
    t.Date: {"type": "date", "format": DATE_FORMAT},
    t.Timestamp: {"type": "date", "format": TIMESTAMP_FORMAT},
    t.TimestampTz: {"type": "date", "format": TIMESTAMP_FORMAT},
    t.Time: {"type": "keyword"},
    t.Uuid: {"type": "keyword"},
    t.Enum: {"type": "keyword"},
}


def _bad_names(type_: t.Type, path: str) -> Iterator[HeadgateError]:
    """A dot in a name would make a path of it, and some names belong to the index."""
    match type_:
        case t.Array():
            yield from _bad_names(type_.element, element_path(path))
        case t.Record():
            for field in type_.fields:
                inner = field_path(path, field.name)
                if "." in field.name or not field.name.strip() or (path == ROOT and field.name in METADATA_FIELDS):
                    yield errors.InvalidColumnName(field.name, inner, "elasticsearch")
                yield from _bad_names(field.type, inner)
        case _:
            return


def _docs(type_: t.Type, steps: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The docs of all fields, by path. The doc of a field comes before that of its type."""
    match type_:
        case t.Array():
            yield from _docs(type_.element, steps)
        case t.Record():
            for field in type_.fields:
                inner = (*steps, field.name)
                doc = field.doc if field.doc is not None else _own_doc(field.type)
                if doc is not None:
                    yield ".".join(inner), doc
                yield from _docs(field.type, inner)
        case _:
            return


def _own_doc(type_: t.Type) -> str | None:
    element = _element(type_)
    return element.doc if isinstance(element, t.Record | t.Enum) else None


_Object = Mapping[str, object]

_FROM: dict[str, t.Type] = {
    "boolean": t.Boolean(),
    "byte": t.Integer(), "short": t.Integer(), "integer": t.Integer(), "long": t.Bigint(), "unsigned_long": t.Decimal(20, 0),
    "half_float": t.Real(), "float": t.Real(), "double": t.Double(),
    "text": t.Text(), "match_only_text": t.Text(), "keyword": t.Text(), "constant_keyword": t.Text(), "wildcard": t.Text(),
    "ip": t.Text(), "version": t.Text(),
    "binary": t.Bytes(), "date_nanos": t.TimestampTz(),
    "flat_object": t.Json(), "flattened": t.Json(),
}  # fmt: skip
# Formats of dates without a time. A field that accepts others too is a timestamp.
_DATE_ONLY = frozenset({"strict_date", "date", "yyyy-MM-dd", "strict_year_month_day", "year_month_day"})


def from_elasticsearch(mapping: _Object) -> t.Record:
    """The record of an index's `mappings`. Every field is nullable. Docs come from `_meta.headgate`."""
    about = _object(_object(mapping.get("_meta", {}), "_meta").get("headgate", {}), "_meta.headgate")
    reader = _Reader(_object(about.get("fields", {}), "_meta.headgate.fields"), dict(_templates(mapping)))
    doc = about.get("doc")
    fields = reader.fields(mapping, ROOT, ())
    return t.Record(fields, doc=doc if isinstance(doc, str) else None)


def _templates(mapping: _Object) -> Iterator[tuple[str, _Object]]:
    """The mappings of the values of maps, by the pattern of their paths."""
    listed = mapping.get("dynamic_templates", [])
    if not isinstance(listed, list):
        raise errors.InvalidMapping("dynamic_templates", "a list")
    for item in listed:
        for template in _object(item, "dynamic_templates").values():
            known = _object(template, "dynamic_templates")
            if isinstance(known.get("path_match"), str):
                yield cast(str, known["path_match"]), _object(known.get("mapping", {}), "dynamic_templates")


class _Reader:
    """Reads the fields of a mapping. ``templates`` has the mappings of the values of maps."""

    def __init__(self, docs: _Object, templates: Mapping[str, _Object]) -> None:
        self.docs = docs
        self.templates = templates

    def fields(self, mapping: _Object, path: str, steps: tuple[str, ...]) -> tuple[t.Field, ...]:
        if len(steps) > t.MAX_DEPTH:
            raise errors.TypeTooDeep(path)
        properties = _object(mapping.get("properties", {}), path)
        return tuple([self._field(name, m, field_path(path, name), (*steps, name)) for name, m in properties.items()])

    def _field(self, name: str, mapping: object, path: str, steps: tuple[str, ...]) -> t.Field:
        doc = self.docs.get(".".join(steps))
        type_ = self._type(_object(mapping, path), path, steps)
        return t.Field(name, type_, doc=doc if isinstance(doc, str) else None)

    def _type(self, mapping: _Object, path: str, steps: tuple[str, ...]) -> t.Type:
        kind = mapping.get("type", "object")
        match kind:
            case "object" | "nested":
                return self._inside(mapping, kind == "nested", path, steps)
            case "date":
                formats = str(mapping.get("format", "")).split("||")
                return t.Date() if all(format_ in _DATE_ONLY for format_ in formats) else t.TimestampTz()
            case "scaled_float":
                return _scaled(mapping.get("scaling_factor"))
            case str() if kind in _FROM:
                return _FROM[kind]
            case _:
                why = "there is no such type"
                raise errors.UnsupportedType(path, "headgate", str(kind), why, "the fields that are wanted, without it")

    def _inside(self, mapping: _Object, nested: bool, path: str, steps: tuple[str, ...]) -> t.Type:
        """An object: a map if a template gives its values a type, otherwise a record."""
        values = self.templates.get(".".join(steps) + ".*")
        if values is not None:
            return t.Map(self._type(values, path, (*steps, "*")))
        if not mapping.get("properties"):
            return t.Json()
        record = t.Record(self.fields(mapping, path, steps))
        return t.Array(record) if nested else record


def _scaled(factor: object) -> t.Type:
    """The scale, if the factor is a power of ten. The index does not store the number of digits, so it is the
    largest."""
    whole = int(factor) if isinstance(factor, int | float) else 0
    digits = str(whole)
    if whole != factor or digits.strip("0") != "1" or len(digits) > MOST_SCALED_DIGITS + 1:
        return t.Double()
    return t.Decimal(MOST_SCALED_DIGITS, len(digits) - 1)


def _object(value: object, path: str) -> _Object:
    if not isinstance(value, Mapping):
        raise errors.InvalidMapping(path, "an object")
    return cast(_Object, value)


# An index gets a suffix: `-v` and a number for the index itself, `--w` and an epoch of up to 19 digits for its writer.
LONGEST_NAME = 255 - len("--w") - 19
_FORBIDDEN = re.compile(r'[\\/*?"<>| ,#:\x00-\x1f]')

# The types of an index that hold every value of a type of ours without changing it.
_NATIVE: Mapping[type, frozenset[str]] = {
    t.Boolean: frozenset({"boolean", "keyword"}),
    t.Integer: frozenset({"byte", "short", "integer", "long", "double"}),
    t.Bigint: frozenset({"byte", "short", "integer", "long"}),
    t.Real: frozenset({"float", "double"}),
    t.Double: frozenset({"double"}),
    t.Decimal: frozenset({"keyword", "scaled_float"}),
    t.Text: frozenset({"text", "keyword", "wildcard", "match_only_text", "search_as_you_type", "ip", "version"}),
    t.Enum: frozenset({"keyword", "text", "wildcard"}),
    t.Uuid: frozenset({"keyword", "text"}),
    t.Time: frozenset({"keyword"}),
    t.Date: frozenset({"date"}),
    t.Timestamp: frozenset({"date", "date_nanos"}),
    t.TimestampTz: frozenset({"date", "date_nanos"}),
    t.Record: frozenset({"object", "nested"}),
    t.Json: frozenset({"flat_object", "flattened"}),
}


def native_field(plain: IndexMapping, type_: t.Type, native: str, path: str) -> IndexMapping:
    """The mapping of a field of a type in the index's own words. ``plain`` is its mapping without them.

    A type that holds fewer values, such as `short` for integers, is allowed: the index refuses the others one by one. Raises
    UnsupportedType for a type that would change values.
    """
    element = type_
    while isinstance(element, t.Array):
        element = element.element
    known = _NATIVE.get(type(element), frozenset())
    if native not in known:
        why = f"AS '{native}' does not hold its values"
        instead = " or ".join(f"AS '{name}'" for name in sorted(known)) or "the field without AS"
        raise errors.UnsupportedType(path, "elasticsearch", print_type(type_), why, instead)
    match element:
        case t.Decimal() if native == "scaled_float":
            return _scaled_mapping(element, path)
        case t.Record():
            return plain if native == "object" else {**plain, "type": "nested"}
        case t.Date() | t.Timestamp() | t.TimestampTz():
            return {**plain, "type": native}
        case _:
            return plain if plain.get("type") == native else {"type": native}


def _scaled_mapping(type_: t.Decimal, path: str) -> IndexMapping:
    if type_.precision > MOST_SCALED_DIGITS:
        why = f"scaled numbers are exact up to {MOST_SCALED_DIGITS} digits"
        raise errors.UnsupportedType(path, "elasticsearch", print_type(type_), why, "AS 'keyword'")
    return {"type": "scaled_float", "scaling_factor": 10**type_.scale}


def index_name_problem(name: str) -> str | None:
    """Why an index cannot have a name, as a clause; None if it can."""
    if not name:
        return "it is empty"
    if name != name.lower():
        return "it has capital letters"
    if _FORBIDDEN.search(name):
        return 'it has a space or one of \\ / * ? " < > | , # :'
    if name[0] in "-_+" or name in (".", ".."):
        return "it begins with -, _ or +, or is only dots"
    if len(name.encode()) > LONGEST_NAME:
        return f"it is longer than {LONGEST_NAME} bytes"
    return None
