"""Sink policies: what the schemas of sinks must document, and what happens to a field that arrives without a doc."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import Column, Object, definition_of
from headgate.plan.definitions import SinkDefinition
from headgate.plan.doc_errors import PolicyViolated
from headgate.plan.publish.given import is_given
from headgate.plan.sink_docs import (
    DocSlot,
    FieldPath,
    ignores_comments,
    sink_slots,
    statement_docs,
)
from headgate.resolve.statements import object_id
from headgate.schema.types import DocumentedPart, Record, Type, map_inner
from headgate.sql.formats import format_of
from headgate.sql.registry_formats import SIDES, RegistryFormat, RegistryKind, Side
from headgate.sql.sinks import CreateSink, CreateSinkPolicy, Documented
from headgate.sql.statement import Kind

_PARTS: dict[DocumentedPart, Documented] = {DocumentedPart.FIELD: "FIELDS", DocumentedPart.TYPE: "TYPES"}


@dataclass(frozen=True, slots=True)
class Undocumented:
    """A part of a sink's schemas without a doc, and the policy that requires one."""

    side: Side
    slot: DocSlot
    policy: str

    def shown(self) -> str:
        part = f"{self.side.lower()} {self.slot.shown}"
        return part if self.slot.part is DocumentedPart.FIELD else f"the type of {part}"


def policies_for(catalog: Catalog, schema: int, kind: RegistryKind) -> Iterator[Object]:
    """The policies for sinks of a schema that have this format, in the order in which they were made."""
    for policy in catalog.of_kind(Kind.SINK_POLICY):
        statement = definition_of(policy, CreateSinkPolicy)
        if statement.format == kind and _covers(catalog, policy, statement, schema):
            yield policy


def _covers(catalog: Catalog, policy: Object, statement: CreateSinkPolicy, schema: int) -> bool:
    """Whether the policy is for sinks of the schema. Without a scope it is for the database that the policy is in."""
    scope, database = statement.scope, catalog.get(schema).parent
    if scope is None:
        return catalog.get(policy.parent).parent == database
    return object_id(scope.name) == (schema if scope.kind is Kind.SCHEMA else database)


def undocumented(
    catalog: Catalog, schema: int, statement: CreateSink, sink: SinkDefinition, *, comments: bool
) -> tuple[Undocumented, ...]:
    """The parts of a sink's schemas that policies require a doc for and that have none, key before value. ``comments``
    counts those of the catalog too. What no statement can document is never in it."""
    slots = sink_slots(catalog, sink)
    found: list[Undocumented] = []
    for side in SIDES:
        format_ = format_of(statement.formats, side)
        if isinstance(format_, RegistryFormat) and not is_given(format_, side):
            required = _required(catalog, schema, format_.kind)
            docs = statement_docs(statement.formats, side)
            counted = comments and not ignores_comments(format_)
            for slot in slots.of(side):
                policy = required.get(_PARTS[slot.part])
                documented = slot.key in docs or (counted and slot.comment)
                if policy is not None and slot.key is not None and not documented:
                    found.append(Undocumented(side, slot, policy))
    return tuple(found)


def _required(catalog: Catalog, schema: int, kind: RegistryKind) -> dict[Documented, str]:
    """What must be documented, and the first policy that says so."""
    required: dict[Documented, str] = {}
    for policy in policies_for(catalog, schema, kind):
        for what in definition_of(policy, CreateSinkPolicy).requires:
            required.setdefault(what, catalog.display_name(policy.id))
    return required


def check_policies(sink: str, found: Sequence[Undocumented], allowed: Sequence[Undocumented] = ()) -> None:
    """Raises PolicyViolated if something is undocumented. ``allowed`` was so before the statement, which may leave it."""
    known = {each.shown() for each in allowed}
    new = [each for each in found if each.shown() not in known]
    if new:
        policies = tuple(dict.fromkeys(each.policy for each in new))
        raise PolicyViolated(sink, policies, tuple(each.shown() for each in new))


# fields that arrive in flight


def with_pending(
    catalog: Catalog, entry: Object, statement: CreateSink, sink: SinkDefinition, new: Sequence[FieldPath]
) -> CreateSink:
    """The sink with those new fields of its value marked as pending that lack a doc which a policy requires."""
    found = undocumented(catalog, entry.parent, statement, sink, comments=True)
    paths = [each.slot.path for each in found if each.side == "VALUE"]
    blocked = [field for field in new if any(path[: len(field)] == field for path in paths)]
    return replace(statement, pending=(*statement.pending, *blocked)) if blocked else statement


def without_pending(columns: Sequence[Column], pending: Sequence[FieldPath]) -> list[Column]:
    """The columns without those, and without those fields in them, that a policy keeps out."""
    kept = [column for column in columns if (column.name,) not in pending]
    return [replace(c, type=_pruned(c.type, [p[1:] for p in pending if p[0] == c.name])) for c in kept]


def _pruned(type_: Type, left_out: Sequence[FieldPath]) -> Type:
    if not left_out:
        return type_
    if not isinstance(type_, Record):
        return map_inner(type_, lambda inner: _pruned(inner, left_out))
    kept = [field for field in type_.fields if (field.name,) not in left_out]
    fields = [replace(f, type=_pruned(f.type, [p[1:] for p in left_out if p[0] == f.name and p[1:]])) for f in kept]
    return replace(type_, fields=tuple(fields))
