"""A materialization INTO ELASTICSEARCH: the index and its mapping, and whether it can have the fields. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

from headgate.plan import materialization_errors as errors
from headgate.plan.materialization_errors import MalformedIndexName
from headgate.plan.target_definitions import Fields, IndexDefinition, TargetField
from headgate.schema import types as t
from headgate.schema.evolve.merge import can_hold
from headgate.schema.formats.elasticsearch import (
    JsonAs,
    index_name_problem,
    native_field,
    to_elasticsearch,
)
from headgate.schema.names import ROOT, field_path
from headgate.schema.render import print_type
from headgate.schema.types import Array, Decimal, Double, Type


def index_name(materialization: str, text: str | None) -> str:
    """The index that the option INDEX names."""
    if text is None:
        raise errors.TargetNameMissing(materialization, "INDEX")
    problem = index_name_problem(text)
    if problem is not None:
        raise MalformedIndexName(text, problem)
    return text


def narrowed_fields(old: IndexDefinition, new: IndexDefinition) -> tuple[str, ...]:
    """The fields of both whose values the new one may not hold, each with its types. An index knows no NOT NULL."""
    return narrowed_types(old.document, new.document)


def narrowed_types(old: t.Record, new: t.Record) -> tuple[str, ...]:
    """The fields of both documents whose values the new one may not hold, each with its types."""
    found = []
    for field in new.fields:
        was = old.field(field.name)
        if was is not None and not holds(field.type, was.type):
            found.append(f"{field.name} from {print_type(t.plain(was.type))} to {print_type(t.plain(field.type))}")
    return tuple(found)


def holds(type_: t.Type, old: t.Type) -> bool:
    """Whether every value of the old type has a place in a document where the field has the new type. An index holds json only
    if it is an object."""
    match type_, old:
        case t.Array(), t.Array():
            return holds(type_.element, old.element)
        case t.Map(), t.Map():
            return holds(type_.value, old.value)
        case t.Record(), t.Record():
            return all(
                holds(field.type, was.type) for field in type_.fields if (was := old.field(field.name)) is not None
            )
        case t.Text(), _:
            return not isinstance(old, t.Bytes | t.Array | t.Map | t.Record)
        case t.Json(), _:
            return isinstance(old, t.Json | t.Map | t.Record)
        case _:
            return t.plain(type_) == t.plain(old) or can_hold(t.plain(type_), t.plain(old))


def check_index(index: IndexDefinition) -> None:
    """Raise if there is no mapping for the fields: a name that an index cannot have, or a type after AS that does not fit."""
    wanted_mapping(index, opensearch=True)


Mapped: TypeAlias = dict[str, Any]  # JSON of a mapping


def wanted_mapping(index: IndexDefinition, *, opensearch: bool) -> Mapped:
    """The mapping for the fields of an index: strict, every leaf typed, docs in `_meta.headgate`.

    `_meta.headgate.type` has the type of a document, because a mapping alone does not tell a decimal from a text.
    Raises InvalidColumnName and UnsupportedType.
    """
    json = JsonAs.FLAT_OBJECT if opensearch else JsonAs.FLATTENED
    record = replace(index.document, doc=index.doc)
    mapping: Mapped = to_elasticsearch(record, json, relation=index.relation_name or None)
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
