"""A schema change that a source takes up, carried to everything downstream: `*` follows, at any depth of views.

Pure: from the catalog and the new schemas to changes of the catalog, and the schemas that sinks must register first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headgate.catalog.apply import apply
from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import Change, ColumnsChanged, DefinitionChanged
from headgate.catalog.definitions import facts_of, purified_text, statement_of
from headgate.catalog.errors import CatalogError
from headgate.catalog.graph import drop_order
from headgate.catalog.names import DEFAULT_PATH
from headgate.catalog.objects import Column, Comment, Object
from headgate.errors import HeadgateError
from headgate.plan.chain import moved, outgrown, view_query
from headgate.plan.columns import evolved_columns, source_columns, withheld_facts
from headgate.plan.definitions import RecordEncoding, SinkDefinition
from headgate.plan.errors import ColumnNameTaken, PlanError, ViewNoLongerValid
from headgate.plan.planned import RegisterSchema
from headgate.plan.relations import WITHHELD
from headgate.plan.sink import plan_sink
from headgate.plan.source import plan_source
from headgate.plan.views import derive_growth, view_columns
from headgate.schema.evolve.merge import can_hold
from headgate.schema.formats.avro.read import from_avro as avro_type
from headgate.schema.formats.avro.read import load_tree
from headgate.schema.formats.avro.tree import to_json
from headgate.schema.formats.avro.version import differs, next_version
from headgate.schema.types import Record, Type
from headgate.schema.written import WrittenSchema
from headgate.sql.formats import format_of, frozen_schemas, with_frozen_schemas, without_frozen_schemas
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.registry_formats import FrozenSchema, Side
from headgate.sql.sinks import CreateSink
from headgate.sql.sources import CreateSource
from headgate.sql.statement import Kind, Statement
from headgate.sql.views import CreateView
from headgate.text.cursor import Identifier
from headgate.text.errors import SqlError

AskTypes = Callable[[Catalog, AnalysedQuery], Sequence[Type]]


@dataclass(frozen=True, slots=True)
class SinkChange:
    """A sink whose schemas change: to be registered, and then frozen into its statement with their ids."""

    sink: Object
    statement: CreateSink
    register: tuple[tuple[Side, RegisterSchema], ...]

    def change(self, ids: Sequence[int]) -> DefinitionChanged:
        statement = self.statement
        for (side, effect), id_ in zip(self.register, ids, strict=True):
            formats = with_frozen_schemas(
                statement.formats, side, (FrozenSchema(side, id_, effect.schema.text),)
            )
            statement = replace(statement, formats=formats)
        return definition(self.sink, statement, self.sink.columns)


@dataclass(frozen=True, slots=True)
class FollowPlan:
    changes: tuple[Change, ...]
    sinks: tuple[SinkChange, ...]


def plan_follow(
    catalog: Catalog,
    source: Object,
    schemas: Sequence[WrittenSchema],
    ask: AskTypes,
    *,
    all_fit: bool = False,
) -> FollowPlan:
    """What changes when a source's values have these schemas too. Raises with ``all_fit`` if a view cannot have the new
    columns: otherwise such a view stays as it is, and whoever reads it stops (`sound_query`)."""
    changes: list[Change] = [_source_change(source, schemas)]
    after = apply(catalog, *changes)
    for relation in reversed(drop_order(catalog, [source.id])):
        if relation.kind is Kind.VIEW:
            try:
                change = _view_change(catalog, after, relation, ask)
            except ViewNoLongerValid:
                if all_fit:
                    raise
                continue
            if change is not None:
                changes.append(change)
                after = apply(after, change)
    sinks = [o for o in drop_order(catalog, [source.id]) if o.kind is Kind.SINK]
    found = [_sink_change(after, sink, all_fit) for sink in reversed(sinks)]
    return FollowPlan(tuple(changes), tuple(change for change in found if change is not None))


def _sink_change(catalog: Catalog, sink: Object, all_fit: bool) -> SinkChange | None:
    try:
        return sink_change(catalog, sink)
    except (ViewNoLongerValid, ColumnNameTaken):
        if all_fit:
            raise
        return None


def _source_change(source: Object, schemas: Sequence[WrittenSchema]) -> DefinitionChanged:
    statement = statement_of(source, CreateSource)
    known = frozen_schemas(statement.formats.value, "VALUE")
    new = tuple(FrozenSchema("VALUE", schema.id or 0, schema.text, schema.references) for schema in schemas)
    statement = replace(statement, formats=with_frozen_schemas(statement.formats, "VALUE", (*known, *new)))
    planned = plan_source(statement)
    columns = evolved_columns(source, source_columns(planned))
    return definition(source, statement, columns, {WITHHELD: withheld_facts(planned)})


def _view_change(before: Catalog, catalog: Catalog, view: Object, ask: AskTypes) -> ColumnsChanged | None:
    try:
        evolved = _view_columns(before, catalog, view, ask)
    except (SqlError, CatalogError, PlanError) as error:  # not those of asking Spark, which may pass
        raise outgrown(catalog, view, error) from error
    origins = {column.id: column.origin for column in evolved}
    if wrong := moved(view, [origins.get(column.id) for column in view.columns]):
        raise ViewNoLongerValid(catalog.shown(view.id), wrong)
    old = [replace(c, comment=Comment()) for c in view.columns]
    return (
        ColumnsChanged(view.id, evolved) if [replace(c, comment=Comment()) for c in evolved] != old else None
    )


def _view_columns(before: Catalog, catalog: Catalog, view: Object, ask: AskTypes) -> tuple[Column, ...]:
    analysed = view_query(catalog, view)
    asked = ask(catalog, analysed) if any(c.type is None for c in analysed.columns) else ()
    columns = view_columns(analysed, _names(before, view, analysed), view.name, asked)
    _, columns = derive_growth(catalog, analysed, columns)
    return evolved_columns(view, columns)


def _names(before: Catalog, view: Object, analysed: AnalysedQuery) -> tuple[Identifier, ...]:
    """A view's list of names speaks of the columns that there were: between them, new ones keep their own."""
    listed = statement_of(view, CreateView).columns
    if not listed:
        return ()
    try:
        known = [column.name for column in view_query(before, view).columns]
    except HeadgateError:  # it did not fit before
        return listed
    old = list(zip(known, [column.name for column in view.columns], strict=False))
    names = []
    for column in analysed.columns:
        same = bool(old) and old[0][0] == column.name
        names.append(Identifier(old.pop(0)[1] if same else column.name, quoted=True))
    return listed if old else tuple(names)


def sink_change(catalog: Catalog, sink: Object) -> SinkChange | None:
    """What a sink needs for its relation as it is now; None if it has it."""
    statement = statement_of(sink, CreateSink)
    planned = plan_sink(catalog, DEFAULT_PATH, _without_frozen_schemas(statement))
    register: list[tuple[Side, RegisterSchema]] = []
    sides: tuple[tuple[Side, RecordEncoding | None], ...] = (("KEY", planned.key), ("VALUE", planned.value))
    for side, encoded in sides:
        frozen = frozen_schemas(format_of(statement.formats, side), side)
        if encoded is None or encoded.schema is None or not frozen:
            continue
        old = load_tree(frozen[-1].schema)
        new = next_version(old, load_tree(encoded.schema))
        if not differs(old, new):
            continue
        schema = WrittenSchema(json.dumps(to_json(new), ensure_ascii=False))
        register.append((side, RegisterSchema(_registry(planned), f"{planned.topic}-{side.lower()}", schema)))
    return SinkChange(sink, statement, tuple(register)) if register else None


def unwritable(catalog: Catalog, sink: Object) -> tuple[str, ...]:
    """The columns of a sink's relation whose values its schemas cannot hold, because a registry refused others."""
    statement = statement_of(sink, CreateSink)
    frozen = plan_sink(catalog, DEFAULT_PATH, statement)
    needed = plan_sink(catalog, DEFAULT_PATH, _without_frozen_schemas(statement))
    sides = ((frozen.key, needed.key), (frozen.value, needed.value))
    return tuple(column for old, new in sides if old and new for column in _unwritable(old, new))


def _unwritable(old: RecordEncoding, new: RecordEncoding) -> Iterator[str]:
    if old.schema is None or new.schema is None:
        return
    have, want = avro_type(old.schema), avro_type(new.schema)
    assert isinstance(have, Record)
    assert isinstance(want, Record)
    for column, name in zip(new.columns, new.names or new.columns, strict=True):
        known, field = have.field(name), want.field(name)
        if field is not None and (
            known is None or not can_hold(known.type, field.type) or (field.nullable and not known.nullable)
        ):
            yield column


def _registry(plan: SinkDefinition) -> int:
    assert plan.registry is not None
    return plan.registry


# statements


def definition(
    object_: Object,
    statement: Statement,
    columns: tuple[Column, ...],
    facts: Mapping[str, object] | None = None,
) -> DefinitionChanged:
    """The object with another purified statement, and other facts beside it; what the user wrote stays."""
    return DefinitionChanged(
        object_.id,
        object_.statement,
        purified_text(statement, {**facts_of(object_), **(facts or {})}),
        object_.dependencies,
        columns,
        object_.growth,
        object_.body,
    )


def _without_frozen_schemas(sink: CreateSink) -> CreateSink:
    return replace(sink, formats=without_frozen_schemas(sink.formats))
