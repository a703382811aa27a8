"""ALTER SINK … FORMAT kind (ADD DOC ON, DROP DOC ON, REFRESH DOCS): other docs for a sink that exists.

The new schemas are registered before the statement returns. Records of the value go over to the new version. Those of the
key keep the id of the first one for ever, so that equal keys have equal bytes; the key's new version is only published.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import DefinitionChanged
from headgate.catalog.objects import Dependency, DependencyKind, Object, definition_of
from headgate.errors import similar_names
from headgate.plan import doc_errors as errors, sink_options
from headgate.plan.definitions import RecordEncoding, SinkDefinition
from headgate.plan.encodings import format_words
from headgate.plan.errors import PlanError
from headgate.plan.impact import defaults_of, definition, frozen_schema, with_schemas_to_register
from headgate.plan.plans import Effect, RegisterSchema
from headgate.plan.publish.schemas import redocumented
from headgate.plan.sink import plan_new_sink
from headgate.plan.sink_docs import (
    SinkSlots,
    check_docs,
    check_target,
    check_text,
    doc_key,
    doc_lists,
    full_target,
    sink_slots,
    types_named,
    with_docs,
    with_frozen_docs,
    without_frozen_docs,
)
from headgate.plan.sink_policies import Undocumented, check_policies, undocumented, with_pending
from headgate.schema.names import print_name
from headgate.sql.formats import format_of, frozen_schemas
from headgate.sql.registry_formats import SIDES, DocOn, DocTarget, Side, subject_name
from headgate.sql.sinks import AddDoc, AlterSinkDocs, CreateSink, DocChange, DropDoc, RefreshDocs
from headgate.sql.statement import Kind


@dataclass(frozen=True, slots=True)
class DocChangePlan:
    """``change`` is None if the docs stay as they are."""

    change: DefinitionChanged | None = None
    effects: tuple[Effect, ...] = ()
    notices: tuple[str, ...] = ()


def plan_doc_changes(catalog: Catalog, entry: Object, statement: AlterSinkDocs) -> DocChangePlan:
    """The sink with other docs. Raises if a doc does not fit the sink, or if a policy requires a doc that would go."""
    old = definition_of(entry, CreateSink)
    _check_format(entry, old, statement)
    _check_twice(catalog, entry, statement)
    whole, _ = plan_new_sink(catalog, replace(old, pending=()), comments=False)  # a pending field can have a doc too
    new = old
    for change in statement.changes:
        new = _changed(catalog, new, whole, change)
    check_docs(catalog, new, whole)
    if new.pending != old.pending:
        new = _with_pending_again(catalog, entry, old, new)
    before, after = (_undocumented(catalog, entry, one) for one in (old, new))
    check_policies(entry.name, after, before)
    return _plan(catalog, entry, old, new)


def _undocumented(catalog: Catalog, entry: Object, statement: CreateSink) -> tuple[Undocumented, ...]:
    planned, _ = plan_new_sink(catalog, statement, comments=False)
    return undocumented(catalog, entry.parent, statement, planned, comments=False)


def _check_format(entry: Object, sink: CreateSink, statement: AlterSinkDocs) -> None:
    kinds = [format_.kind for format_, _ in doc_lists(sink.formats)]
    if statement.format not in kinds:
        found = tuple(dict.fromkeys(format_words(each) for each in sink.formats.each()))
        raise errors.DocsOfOtherFormat(entry.name, statement.format, found)


def _check_twice(catalog: Catalog, entry: Object, statement: AlterSinkDocs) -> None:
    """Two docs for one target: the second one would take the place of the first without a word."""
    targets = [full_target(catalog, each.doc.target) for each in statement.changes if isinstance(each, AddDoc)]
    meant = [(target.side, doc_key(target)) for target in targets]
    for at, target in enumerate(targets):
        if meant[at] in meant[:at]:
            raise errors.DocTwice(target.sql(), entry.name).at(target.name.span)


def _plan(catalog: Catalog, entry: Object, old: CreateSink, new: CreateSink) -> DocChangePlan:
    planned, _ = plan_new_sink(catalog, new, comments=False)
    before, after = published_schemas(catalog, old), redocumented_schemas(catalog, new, planned)
    changed = [(side, effect) for side, effect in after if dict(before).get(side) != effect]
    values = [(side, effect) for side, effect in changed if side == "VALUE"]
    frozen = with_schemas_to_register(new, planned, values)
    if frozen == old:
        return DocChangePlan()
    change = replace(definition(entry, frozen, entry.columns), dependencies=_dependencies(catalog, entry, frozen))
    return DocChangePlan(change, tuple(effect for _, effect in changed), tuple(_notices(new)))


def _dependencies(catalog: Catalog, entry: Object, statement: CreateSink) -> tuple[Dependency, ...]:
    others = [d for d in entry.dependencies if d.use is not DependencyKind.TYPE]
    return (*others, *(Dependency(id_, DependencyKind.TYPE) for id_ in types_named(catalog, statement)))


def _notices(sink: CreateSink) -> Iterator[str]:
    if sink.pending:
        fields = ", ".join(print_name(path) for path in sink.pending)
        yield f"still without documentation, and therefore not written: {fields}"


def published_schemas(catalog: Catalog, statement: CreateSink) -> tuple[tuple[Side, RegisterSchema], ...]:
    """The next version of each schema that a sink has, with the docs of its statement, and where it is registered."""
    planned, _ = plan_new_sink(catalog, statement, comments=False)
    return redocumented_schemas(catalog, statement, planned)


def redocumented_schemas(
    catalog: Catalog, statement: CreateSink, planned: SinkDefinition
) -> tuple[tuple[Side, RegisterSchema], ...]:
    """The next version of each schema that is frozen into a statement, with the columns and docs of ``planned``."""
    found: list[tuple[Side, RegisterSchema]] = []
    sides: tuple[tuple[Side, RecordEncoding | None], ...] = (("KEY", planned.key), ("VALUE", planned.value))
    for side, encoded in sides:
        frozen = frozen_schemas(format_of(statement.formats, side), side)
        if encoded is not None and encoded.schema is not None and not encoded.given and frozen:
            old = frozen_schema(encoded, frozen[-1])
            schema = redocumented(old, encoded, defaults_of(catalog, planned, encoded))
            registry = planned.registry(sink_options.SIDES[side])
            found.append((side, RegisterSchema(registry, subject_name(planned.topic, side), schema)))
    return tuple(found)


def policy_notices(catalog: Catalog, policy: int) -> Iterator[str]:
    """A notice for each sink that exists and does not fulfil a policy. It goes on; the policy holds for what comes."""
    sinks = [(entry, definition_of(entry, CreateSink)) for entry in catalog.of_kind(Kind.SINK)]
    for entry, statement in sinks:
        try:
            found = _undocumented(catalog, entry, statement)
        except PlanError:  # the sink is halted
            continue
        paths = [each.shown() for each in found if each.policy == catalog.display_name(policy)]
        if paths:
            yield f'sink "{catalog.display_name(entry.id)}" goes on without documentation of {", ".join(paths)}'


# one change


def _changed(catalog: Catalog, sink: CreateSink, planned: SinkDefinition, change: DocChange) -> CreateSink:
    match change:
        case AddDoc(doc):
            target = full_target(catalog, doc.target)
            check_text(target.sql(), doc.doc)
            return _added(catalog, sink, planned, DocOn(target, doc.doc))
        case DropDoc(target):
            return _dropped(sink, planned.name, full_target(catalog, target))
        case RefreshDocs():
            bare = replace(without_frozen_docs(sink), pending=())
            return with_frozen_docs(catalog, bare, plan_new_sink(catalog, bare)[0])


def _added(catalog: Catalog, sink: CreateSink, planned: SinkDefinition, doc: DocOn) -> CreateSink:
    """The sink with the doc in every format that it is for, in the place of the one that it replaces."""
    slots, formats = sink_slots(catalog, planned), sink.formats
    lists = [each for each in doc_lists(formats) if _is_for(doc.target, each[1], slots)]
    if not lists:
        check_target(catalog, doc.target, SIDES, planned, slots)  # raises
    for format_, sides in lists:
        replaced = [each for each in format_.docs if _replaces(doc.target, each, sides)]
        own = [each for each in format_.docs if not each.frozen and each not in replaced]
        frozen = [each for each in format_.docs if each.frozen and each not in replaced]
        formats = with_docs(formats, format_, (*own, doc, *frozen))
    return replace(sink, formats=formats)


def _is_for(target: DocTarget, sides: Collection[Side], slots: SinkSlots) -> bool:
    meant = [side for side in sides if target.side in (None, side)]
    return any(doc_key(target) in slots.about[side] for side in meant)


def _replaces(target: DocTarget, doc: DocOn, sides: Collection[Side]) -> bool:
    """Whether a new doc takes the place of this one. In a format for one side, a frozen comment stands with that side."""
    same_side = doc.target.side == target.side or (doc.frozen and len(sides) == 1)
    return same_side and doc_key(doc.target) == doc_key(target)


def _dropped(sink: CreateSink, name: str, target: DocTarget) -> CreateSink:
    formats, found = sink.formats, False
    known: list[str] = []
    for format_, sides in doc_lists(formats):
        kept = [each for each in format_.docs if not _replaces(target, each, sides)]
        found = found or len(kept) < len(format_.docs)
        known += [each.target.sql() for each in format_.docs]
        formats = with_docs(formats, format_, kept)
    if not found:
        raise errors.DocUnknown(target.sql(), name, similar_names(target.sql(), known)).at(target.name.span)
    return replace(sink, formats=formats)


def _with_pending_again(catalog: Catalog, entry: Object, old: CreateSink, new: CreateSink) -> CreateSink:
    """REFRESH DOCS takes up the pending fields that have docs now. The others stay pending."""
    planned, _ = plan_new_sink(catalog, new, comments=False)
    pending = with_pending(catalog, entry, new, planned, old.pending)
    if pending is new:
        return new
    bare = without_frozen_docs(pending)
    return with_frozen_docs(catalog, bare, plan_new_sink(catalog, bare)[0])
