"""A materialization INTO ELASTICSEARCH: the index, and whether it can have the fields. Pure."""

from __future__ import annotations

from headgate.plan import materialization_errors as errors
from headgate.plan.index_errors import MalformedIndexName
from headgate.plan.index_mapping import wanted_mapping
from headgate.plan.target_definitions import IndexDefinition
from headgate.schema import types as t
from headgate.schema.evolve.merge import can_hold
from headgate.schema.formats.elasticsearch_native import index_name_problem
from headgate.schema.render import print_type


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
    known = {field.name: field for field in old.fields}
    found = []
    for field in new.fields:
        was = known.get(field.name)
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
