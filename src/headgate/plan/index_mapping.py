"""The mapping of a materialized index for its fields. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

from headgate.plan.target_definitions import Fields, IndexDefinition, TargetField
from headgate.schema.formats.elasticsearch import JsonAs, MappingOptions, to_elasticsearch
from headgate.schema.formats.elasticsearch_native import native_field
from headgate.schema.names import ROOT, field_path
from headgate.schema.render import print_type
from headgate.schema.types import Array, Decimal, Double, Type

Mapped: TypeAlias = dict[str, Any]  # JSON of a mapping


def wanted_mapping(index: IndexDefinition, *, opensearch: bool) -> Mapped:
    """The mapping for the fields of an index: strict, every leaf typed, docs in `_meta.headgate`.

    `_meta.headgate.type` has the type of a document, because a mapping alone does not tell a decimal from a text.
    Raises InvalidColumnName and UnsupportedType.
    """
    json = JsonAs.FLAT_OBJECT if opensearch else JsonAs.FLATTENED
    record = replace(index.document, doc=index.doc)
    mapping: Mapped = to_elasticsearch(record, MappingOptions(json=json), relation=index.relation_name or None)
    _set_natives(mapping, index.fields, ROOT)
    mapping["_meta"]["headgate"] |= {"materialization": index.name, "type": print_type(index.document)}
    return mapping


def _set_natives(mapping: Mapped, fields: Fields, path: str) -> None:
    for field in fields:
        at = field_path(path, field.name)
        plain = mapping["properties"][field.name]
        if field.native is not None:
            mapping["properties"][field.name] = native_field(plain, field.type, field.native, at)
        if field.fields and "properties" in plain:
            _set_natives(mapping["properties"][field.name], field.fields, at)


def mapped_leaves(index: IndexDefinition) -> Iterator[tuple[str, TargetField, str]]:
    """The path of every leaf with dots, the leaf, and its type in the index."""
    properties = wanted_mapping(index, opensearch=True)["properties"]
    for field in index.fields:
        for above, leaf in field.leaves():
            names = [one.name for one in (*above, leaf)]
            found = {"properties": properties}
            for name in names:
                found = found["properties"][name]
            yield ".".join(names), leaf, str(found.get("type", "object"))


def written_as_number(type_: Type) -> Type:
    """The type by which decimals are written that are indexed as numbers: they are JSON numbers then, and no strings."""
    match type_:
        case Array():
            return replace(type_, element=written_as_number(type_.element))
        case Decimal():
            return Double()  # Spark writes the decimal itself, with all its digits
        case _:
            return type_
