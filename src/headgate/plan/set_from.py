"""ALTER SINK … SET FROM: the sink reads another relation, or the same one with a key that widened, and keeps its topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import DefinitionChanged, apply
from headgate.catalog.objects import Dependency, DependencyKind, Growth, Object, definition_of
from headgate.errors import HeadgateError
from headgate.plan.chain import chain_of, check_loops
from headgate.plan.definitions import SinkDefinition
from headgate.plan.impact import with_schemas_to_register
from headgate.plan.plans import ChangeCatalog, RegisterSchema, Skip
from headgate.plan.publish.schemas import differs, is_same
from headgate.plan.sink import plan_new_sink
from headgate.plan.sink_doc_changes import published_schemas, redocumented_schemas
from headgate.plan.sink_docs import (
    doc_lists,
    types_named,
    with_frozen_docs,
    without_foreign_docs,
    without_frozen_docs,
)
from headgate.plan.sink_policies import check_policies, undocumented
from headgate.plan.stored_copies import reads_of_sink
from headgate.resolve.statements import Context, Ends, object_id
from headgate.sql.formats import format_of, frozen_schemas
from headgate.sql.registry_formats import DocOn, Side
from headgate.sql.sinks import AlterSinkFrom, CreateSink
from headgate.sql.statement import Kind, ObjectName

Register = tuple[Side, RegisterSchema]


def plan_set_from(statement: AlterSinkFrom, context: Context) -> ChangeCatalog | Skip:
    """The sink as if it were created over the relation now. Its topic, its key columns and all options stay."""
    catalog = context.catalog
    sink = catalog.get(object_id(statement.name))
    old = definition_of(sink, CreateSink)
    new = _over(old, statement.relation, context.answers.ends)
    needed, notices = plan_new_sink(catalog, new, context.answers.types)
    kept = without_foreign_docs(catalog, new, needed)
    lost = tuple(f"{doc.target.sql()} is no part of the sink any more, and is left out" for doc in _docs(new, kept))
    new = _with_docs_of_relation(catalog, sink, kept, needed)
    needed, notices = plan_new_sink(catalog, new, context.answers.types)
    register, used = _schemas(catalog, old, needed)
    if old.relation.id == new.relation.id and not register and sink.body is None:
        return Skip(statement.words, f'sink "{sink.name}" reads this relation already, and nothing has changed')
    change = _change(catalog, sink, with_schemas_to_register(new, needed, used), needed)
    after = apply(catalog, change)
    check_loops(after, [sink.id], context.answers.topics)
    effects = tuple(effect for _, effect in register)
    return ChangeCatalog(
        statement.words, (change,), effects, notices=(*notices, *lost, topic_notice(catalog, sink, old, needed, used))
    )


def _over(statement: CreateSink, relation: ObjectName, ends: Ends | None) -> CreateSink:
    """The statement with another relation. ``ends`` are those of the new source if the sink begins there. Docs that are
    frozen into the statement, and fields that wait for docs, belong to the old relation."""
    options = statement.with_options
    if ends is not None:
        options = replace(options, seed_offset=ends.offsets, seed_batch=ends.batch)
    return replace(without_frozen_docs(statement), relation=relation, with_options=options, pending=())


def _docs(statement: CreateSink, kept: CreateSink) -> Iterator[DocOn]:
    """The docs of a statement that another form of it lacks."""
    found = {doc for format_, _ in doc_lists(kept.formats) for doc in format_.docs}
    for format_, _ in doc_lists(statement.formats):
        yield from (doc for doc in format_.docs if doc not in found)


def _with_docs_of_relation(catalog: Catalog, sink: Object, new: CreateSink, needed: SinkDefinition) -> CreateSink:
    """The sink with the comments of its new relation frozen into it. Raises PolicyViolated if a doc is missing that a policy
    requires."""
    check_policies(sink.name, undocumented(catalog, sink.parent, new, needed, comments=True))
    return with_frozen_docs(catalog, new, needed)


def _change(catalog: Catalog, sink: Object, statement: CreateSink, needed: SinkDefinition) -> DefinitionChanged:
    """The text that the user wrote stays, as for all changes of a sink. Keys are written as ``needed`` says from now on."""
    others = [d for d in sink.dependencies if d.use not in (DependencyKind.READS, DependencyKind.TYPE)]
    types = [Dependency(id_, DependencyKind.TYPE) for id_ in types_named(catalog, statement)]
    dependencies = (*reads_of_sink(catalog, statement, needed), *others, *types)
    return DefinitionChanged(sink.id, sink.statement, statement, dependencies, sink.columns, sink.growth, None)


# schemas


def _schemas(
    catalog: Catalog, statement: CreateSink, needed: SinkDefinition
) -> tuple[tuple[Register, ...], tuple[Register, ...]]:
    """The schemas that the sink must register: next versions of those that it has, with the docs of the new relation. And
    those of them that records are written with from now on.

    A key whose schema differs in nothing but docs keeps its schema, so that its bytes stay the same. The new version is
    published and no record uses it.
    """
    published = _published(catalog, statement)
    register: list[Register] = []
    used: list[Register] = []
    for side, effect in redocumented_schemas(catalog, statement, needed):
        (frozen,) = frozen_schemas(format_of(statement.formats, side), side)
        old = replace(effect.schema, text=frozen.schema)
        if differs(old, effect.schema) or (side == "VALUE" and not is_same(old, effect.schema)):
            used.append((side, effect))
        elif published.get(side) == effect or is_same(old, effect.schema):
            continue
        register.append((side, effect))
    return tuple(register), tuple(used)


def _published(catalog: Catalog, statement: CreateSink) -> Mapping[Side, RegisterSchema]:
    """What the sink has published so far; nothing if its relation does not work any more."""
    try:
        return dict(published_schemas(catalog, statement))
    except HeadgateError:
        return {}


# what happens to the topic


def topic_notice(
    catalog: Catalog,
    sink: Object,
    old: CreateSink,
    needed: SinkDefinition,
    used: Sequence[Register],
    owner: Kind = Kind.SINK,
) -> str:
    """What happens to the records of the topic. ``catalog`` has the old relation and the new one. ``owner`` is the kind of
    object that the notice is about."""
    name = f'{owner} "{sink.name}"'
    before, after = (_source(catalog, id_) for id_ in (object_id(old.relation), needed.relation))
    in_step = needed.envelope == "UPSERT" and catalog.get(needed.relation).growth is Growth.KEYED
    other_source = before is None or after is None or before.id != after.id
    if in_step and (other_source or any(side == "KEY" for side, _ in used) or sink.body is not None):
        return f"{name} is written anew: every key that the relation has, and tombstones for all others in its topic"
    if in_step:
        return (
            f"{name} is brought in step: rows that the relation gives otherwise are written again, and keys that it does not "
            "give are deleted"
        )
    if other_source:
        start = "from its start" if old.with_options.snapshot else "from its present end"
        return f"{name} reads the source of the relation {start}; what it wrote before stays as it is"
    return f"{name} goes on with the relation from where it is; what it wrote before stays as it is"


def _source(catalog: Catalog, relation: int) -> Object | None:
    """The source below a relation; None if the relation does not work any more."""
    try:
        return chain_of(catalog, relation).source
    except HeadgateError:
        return None
