"""The mapping of an index, as Elasticsearch or OpenSearch returns it, read as a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from headgate.schema.errors import TypeTooDeep
from headgate.schema.formats.elasticsearch.write import MOST_SCALED_DIGITS
from headgate.schema.formats.errors import InvalidMapping, UnsupportedType
from headgate.schema.paths import ROOT, field_path
from headgate.schema.types import (
    MAX_DEPTH,
    Array,
    Bigint,
    Boolean,
    Bytes,
    Date,
    Decimal,
    Double,
    Field,
    Integer,
    Json,
    Map,
    Real,
    Record,
    Text,
    TimestampTz,
    Type,
)

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
    """The record of an index's `mappings`. Every field is nullable; docs come from `_meta.headgate`."""
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
    """A factor that is a power of ten tells the scale; the index does not say how many digits come before it."""
    whole = int(factor) if isinstance(factor, int | float) else 0
    digits = str(whole)
    if whole != factor or digits.strip("0") != "1" or len(digits) > MOST_SCALED_DIGITS + 1:
        return Double()
    return Decimal(MOST_SCALED_DIGITS, len(digits) - 1)


def _object(value: object, path: str) -> _Object:
    if not isinstance(value, Mapping):
        raise InvalidMapping(path, "an object")
    return cast(_Object, value)
