"""What a schema change of a source does to everything downstream.

In: the catalog and the new schemas. Out: changes of the catalog, the schemas that sinks must register before them, and one
or more consequences for each dependent. `*` in a view follows at any depth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import Change, ColumnsChanged, DefinitionChanged, apply
from headgate.catalog.errors import CatalogError
from headgate.catalog.graph import drop_order, upstream
from headgate.catalog.objects import Column, Growth, Object, definition_of
from headgate.errors import HeadgateError
from headgate.plan.chain import changed_origin, view_error, view_query
from headgate.plan.definitions import RecordEncoding, SinkDefinition, SourceColumn
from headgate.plan.encodings import encodings
from headgate.plan.errors import PlanError, ViewNoLongerValid
from headgate.plan.materialization_impact import materialization_consequence
from headgate.plan.plans import Consequence, Outcome, RegisterSchema
from headgate.plan.publish.given import is_given
from headgate.plan.publish.schemas import missing_fields, next_schema, published_record
from headgate.plan.reading import layout_of, layout_of_statement
from headgate.plan.sink import plan_new_sink
from headgate.plan.sink_docs import with_frozen_docs
from headgate.plan.sink_errors import SinkKeyChanges
from headgate.plan.sink_options import SIDES
from headgate.plan.sink_policies import with_pending
from headgate.plan.source import keep_column_ids, source_columns
from headgate.plan.view_changes import check_stored_rows, with_asserted
from headgate.plan.views import columns_change, derive_growth, listed_names, view_columns
from headgate.resolve.errors import ResolveError
from headgate.resolve.statements import SparkTypes, TakenSchema
from headgate.resolve.streams import READ_KINDS, read_statement, with_read_statement
from headgate.schema.encodings import SchemaEncoding, change_event
from headgate.schema.evolve.changes import FieldRemoved, diff
from headgate.schema.evolve.verdicts import Level, Target, arriving, verdict
from headgate.schema.render import print_type
from headgate.schema.types import Field, Record
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql.formats import format_of, frozen_schemas, with_frozen_schemas
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.registry_formats import FrozenSchema, PendingId, RegistryFormat, Side, subject_name
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Create, Kind
from headgate.text.cursor import Identifier
from headgate.text.errors import SqlError


def with_schemas_to_register(
    statement: CreateSink,
    planned: SinkDefinition,
    register: Sequence[tuple[Side, RegisterSchema]],
    ids: Sequence[int] = (),
) -> CreateSink:
    """The sink with its new schemas frozen into it, and the names that they have for the fields of ``planned``. Without ids,
    those of the schemas are pending."""
    formats = statement.formats
    known: Sequence[int | PendingId] = ids or [effect.id for _, effect in register]
    for (side, effect), id_ in zip(register, known, strict=True):
        encoded = planned.key if side == "KEY" else planned.value
        assert encoded is not None
        schema = FrozenSchema(side, id_, effect.schema.text, names=encoded.renames)
        formats = with_frozen_schemas(formats, side, (schema,))
    return replace(statement, formats=formats)


@dataclass(frozen=True, slots=True)
class SinkChange:
    """A sink whose schemas change. They are registered first, and then frozen into its statement with their ids."""

    sink: Object
    statement: CreateSink
    planned: SinkDefinition
    register: tuple[tuple[Side, RegisterSchema], ...]

    def change(self, ids: Sequence[int] = ()) -> DefinitionChanged:
        """The change of the catalog. Without ids, those of the schemas are pending."""
        statement = with_schemas_to_register(self.statement, self.planned, self.register, ids)
        return definition(self.sink, statement, self.sink.columns)


@dataclass(frozen=True, slots=True)
class FollowPlan:
    """``sinks`` register their schemas before ``changes`` are committed. ``consequences`` has all dependents."""

    changes: tuple[Change, ...]
    sinks: tuple[SinkChange, ...]
    consequences: tuple[Consequence, ...] = ()


def plan_follow(
    catalog: Catalog, source: Object, schemas: Sequence[TakenSchema], ask: SparkTypes, *, all_fit: bool = False
) -> FollowPlan:
    """The changes when a source reads these schemas too.

    A view that cannot follow stays as it is, and everything that reads it halts (`valid_query`). With ``all_fit``, a view or
    sink that cannot follow raises instead.
    """
    changes: list[Change] = [_source_change(source, schemas)]
    consequences = [*_source_consequences(source, schemas)]
    after = apply(catalog, *changes)
    for view in reversed(_dependents(catalog, source, Kind.VIEW, Kind.MATERIALIZED_VIEW)):
        try:
            change = _view_change(catalog, after, view, ask)
        except ViewNoLongerValid as error:
            if all_fit:
                raise
            consequences.append(Consequence(view.id, Outcome.HALTS, error.message(), because_of=source.id))
            continue
        if change is not None:
            changes.append(change)
            after = apply(after, change)
        consequences += _column_consequences(view, after.get(view.id), source.id)
    found = [_sink_step(catalog, after, sink, all_fit) for sink in reversed(_dependents(catalog, source, Kind.SINK))]
    others = _dependents(catalog, source, Kind.MATERIALIZATION)
    consequences += [materialization_consequence(catalog, after, one, all_fit=all_fit) for one in reversed(others)]
    facts = [step.fact for step in found if step.fact is not None]
    sinks = tuple(step.change for step in found if step.change is not None)
    return FollowPlan((*changes, *facts), sinks, (*consequences, *(step.consequence for step in found)))


def _dependents(catalog: Catalog, source: Object, *kinds: Kind) -> list[Object]:
    return [dependent for dependent in drop_order(catalog, [source.id]) if dependent.kind in kinds]


def _source_consequences(source: Object, schemas: Sequence[TakenSchema]) -> Iterator[Consequence]:
    """One consequence for each change of a schema that the source follows."""
    value, key = encodings(read_statement(source).formats)
    for side, schema in schemas:
        encoding, target = (key, Target.KEY) if side == "KEY" else (value, Target.READER)
        assert isinstance(encoding, SchemaEncoding)
        for change, found in arriving(encoding, schema, target).changes:
            if found.level is not Level.SAFE:
                yield Consequence(source.id, Outcome.FOLLOWS, change.describe(), change)


def _column_consequences(old: Object, new: Object, because_of: int) -> Iterator[Consequence]:
    """What becomes of the columns and the growth of a view."""
    known = {column.id: column for column in old.columns}
    unchanged = True
    for column in new.columns:
        was = known.get(column.id)
        if was is None:
            unchanged = False
            yield Consequence(old.id, Outcome.GAINS, column.name, because_of=because_of)
        elif was.type != column.type:
            unchanged = False
            types = f"{print_type(was.type)} to {print_type(column.type)}"
            yield Consequence(old.id, Outcome.WIDENS, f"{column.name} from {types}", because_of=because_of)
    if old.growth is not new.growth and new.growth is not None:
        unchanged = False
        yield Consequence(old.id, Outcome.OTHER_GROWTH, new.growth.value, because_of=because_of)
    if unchanged:
        outcome = Outcome.UNCHANGED if old.columns == new.columns else Outcome.FOLLOWS
        yield Consequence(old.id, outcome, because_of=because_of)


def _source_change(source: Object, schemas: Sequence[TakenSchema]) -> DefinitionChanged:
    statement = read_statement(source)
    for side, schema in schemas:
        known = frozen_schemas(format_of(statement.formats, side), side)
        new = FrozenSchema(side, schema.id or 0, schema.text, schema.references)
        statement = replace(statement, formats=with_frozen_schemas(statement.formats, side, (*known, new)))
    changed = with_read_statement(source, statement)
    columns = keep_column_ids(source, source_columns(layout_of_statement(changed)))
    return definition(source, changed, columns)


def _view_change(before: Catalog, catalog: Catalog, view: Object, ask: SparkTypes) -> ColumnsChanged | None:
    """The view as creating it now would make it: with other columns, another key or another growth."""
    try:
        growth, evolved = _view_columns(before, catalog, view, ask)
        check_stored_rows(before, catalog, view, evolved)
    except (SqlError, CatalogError, PlanError) as error:  # an error of asking Spark is retried instead
        raise view_error(catalog, view, error) from error
    origins = {column.id: column.origin for column in evolved}
    if wrong := changed_origin(view, [origins.get(column.id) for column in view.columns]):
        raise ViewNoLongerValid(catalog.display_name(view.id), wrong)
    return columns_change(view, growth, evolved)


def _view_columns(
    before: Catalog, catalog: Catalog, view: Object, ask: SparkTypes
) -> tuple[Growth, tuple[Column, ...]]:
    analysed = view_query(catalog, view)
    asked = ask(catalog, analysed) if any(c.type is None for c in analysed.columns) else ()
    columns = view_columns(analysed, _names(before, view, analysed), view.name, asked)
    growth, columns = derive_growth(catalog, analysed, columns)
    return growth, keep_column_ids(view, with_asserted(view, columns))


def _names(before: Catalog, view: Object, analysed: AnalysedQuery) -> tuple[Identifier, ...]:
    """The names of a view's columns. Its list of names counts the columns of its creation; new ones keep their own."""
    listed = listed_names(view)
    if not listed:
        return ()
    try:
        known = [column.name for column in view_query(before, view).columns]
    except HeadgateError:  # the view was not valid before
        return listed
    old = list(zip(known, [column.name for column in view.columns], strict=False))
    names = []
    for column in analysed.columns:
        same = bool(old) and old[0][0] == column.name
        names.append(Identifier(old.pop(0)[1] if same else column.name, quoted=True))
    return listed if old else tuple(names)


# sinks


@dataclass(frozen=True, slots=True)
class _SinkStep:
    """What becomes of a sink. ``fact`` keeps the type of its written keys in the catalog."""

    consequence: Consequence
    change: SinkChange | None = None
    fact: DefinitionChanged | None = None


def _sink_step(before: Catalog, after: Catalog, sink: Object, all_fit: bool) -> _SinkStep:
    written = _written_key(sink) or _text_key(before, sink)
    try:
        needed = needed_sink(after, sink)
        _check_key(sink, written, needed)
        change = sink_change(after, sink, needed)
    except (PlanError, ResolveError) as error:  # a view below is no longer valid, or no sink takes its rows any more
        if all_fit:
            raise
        fact = _with_key_type(sink, written) if isinstance(error, SinkKeyChanges) else None
        return _SinkStep(Consequence(sink.id, Outcome.HALTS, error.message()), fact=fact)
    if change is None:
        return _SinkStep(Consequence(sink.id, Outcome.UNCHANGED))
    if not change.register:
        fields = ", ".join(".".join(path) for path in change.statement.pending)
        return _SinkStep(Consequence(sink.id, Outcome.LEAVES_OUT, fields), change)
    subjects = ", ".join(effect.subject for _, effect in change.register)
    return _SinkStep(Consequence(sink.id, Outcome.REGISTERS, subjects), change)


def sink_change(catalog: Catalog, sink: Object, planned: SinkDefinition) -> SinkChange | None:
    """The schemas that a sink must register for its relation as it is now; None if it needs none.

    ``planned`` is the sink with the schemas that its relation needs. The docs of new fields are frozen now. A new field that
    lacks a doc which a policy requires is left out.
    """
    old_statement = definition_of(sink, CreateSink)
    statement = _with_new_fields(catalog, sink, old_statement, planned)
    if statement.pending != old_statement.pending:
        planned, _ = plan_new_sink(catalog, statement)
    register: list[tuple[Side, RegisterSchema]] = []
    sides: tuple[tuple[Side, RecordEncoding | None], ...] = (("KEY", planned.key), ("VALUE", planned.value))
    for side, encoded in sides:
        frozen = frozen_schemas(format_of(statement.formats, side), side)
        if encoded is None or encoded.schema is None or encoded.given or not frozen:
            continue
        old = frozen_schema(encoded, frozen[-1])
        schema = next_schema(old, encoded, defaults_of(catalog, planned, encoded))
        if schema is not None:
            registry = planned.registry(SIDES[side])
            register.append((side, RegisterSchema(registry, subject_name(planned.topic, side), schema)))
    if not register and statement == old_statement:
        return None
    return SinkChange(sink, statement, planned, tuple(register))


def _with_new_fields(catalog: Catalog, sink: Object, statement: CreateSink, planned: SinkDefinition) -> CreateSink:
    """The sink with the docs of fields that its schema lacks, and with those marked as pending that a policy keeps out."""
    own = frozen_schemas(format_of(statement.formats, "VALUE"), "VALUE")
    if not own or planned.value.schema is None or planned.value.given:
        return statement
    new = missing_fields(planned.value, frozen_schema(planned.value, own[-1]), own[-1].names)
    if not new:
        return statement
    settled = with_pending(catalog, sink, statement, planned, new)
    taken = [path for path in new if path not in settled.pending]
    return with_frozen_docs(catalog, settled, planned, taken)


def frozen_schema(encoded: RecordEncoding, frozen: FrozenSchema) -> WrittenSchema:
    """The schema that is frozen into a sink, in the format of the side that it belongs to."""
    return WrittenSchema(frozen.schema, format=SchemaFormat.from_words(encoded.encoding))


def defaults_of(catalog: Catalog, sink: SinkDefinition, encoded: RecordEncoding) -> Record:
    """The columns of one side with the defaults that the fields of the source have."""
    relation = catalog.get(sink.relation)
    columns = {column.name: column for column in relation.columns}
    names = zip(encoded.columns, encoded.names, strict=True)
    read = {source.id: {c.name: c for c in layout_of(source).columns} for source in _sources(catalog, relation)}
    fields = ((_source_field(catalog, relation, columns[column], read), name) for column, name in names)
    row = Record(tuple(replace(field, name=name) for field, name in fields))
    return change_event(row) if encoded.as_event else row


def _sources(catalog: Catalog, relation: Object) -> list[Object]:
    """The objects at or below the relation that are read from a topic."""
    return [one for one in (relation, *upstream(catalog, relation.id)) if one.kind in READ_KINDS]


def _source_field(
    catalog: Catalog, relation: Object, column: Column, read: Mapping[int, Mapping[str, SourceColumn]]
) -> Field:
    """The field of a source that a column is a plain projection of, with its default. A computed column has none. ``read`` has
    the columns of each source by their names."""
    while column.origin is not None:
        relation = catalog.get(column.origin.object)
        above = relation.column(column.origin.column)
        assert above is not None
        column = above
    found = read.get(relation.id, {}).get(column.name)
    if found is None:
        return Field(column.name, column.type, column.nullable)
    return Field(found.name, found.type, found.nullable, default=found.default)


def check_sink_schemas(sink: Object, needed: SinkDefinition, own: SinkDefinition) -> tuple[str, ...]:
    """The columns of a sink's relation whose values its schemas cannot hold, because a registry refused others.

    ``needed`` is the sink with the schemas that its relation needs, ``own`` with those that it has. Raises SinkKeyChanges
    if its keys would have other bytes.
    """
    _check_key(sink, _written_key(sink), needed)
    sides = ((own.key, needed.key), (own.value, needed.value))
    return tuple(column for old, new in sides if old and new for column in _without_room(old, new))


def _without_room(old: RecordEncoding, new: RecordEncoding) -> Iterator[str]:
    """The columns whose values do not fit the old schema."""
    if old.written is None or new.written is None or new.given:
        return
    changes = diff(published_record(old.written), published_record(new.written))
    depth = 1 if new.as_event else 0  # the columns are fields of `before` and `after`
    changed = {
        change.path[depth]
        for change in changes
        if len(change.path) > depth
        and not isinstance(change, FieldRemoved)
        and verdict(change, Target.READER).level is not Level.SAFE
    }
    yield from (c for c, name in zip(new.columns, new.names, strict=True) if name in changed)


def _check_key(sink: Object, written: Record | None, needed: SinkDefinition) -> None:
    """Raises SinkKeyChanges if keys would be written with other bytes than those in the topic."""
    if written is None or needed.key is None or needed.key.given:
        return
    schema = needed.key.written
    if schema is not None:
        now, target = published_record(schema), Target.AVRO_KEY
    else:
        now, target = needed.key.record, Target.TEXT_KEY
    broken = [c for c in diff(written, now) if verdict(c, target).level is Level.BREAKING]
    if broken:
        reasons = tuple(f"{change.describe()}: {verdict(change, target).reason}" for change in broken)
        raise SinkKeyChanges(sink.name, reasons)


def _written_key(sink: Object) -> Record | None:
    """The type of the keys in a sink's topic, from its frozen schema or its definition; None if neither has it."""
    formats = definition_of(sink, CreateSink).formats
    format_ = format_of(formats, "KEY")
    frozen = frozen_schemas(format_, "KEY")
    if is_given(format_, "KEY"):  # its records keep the schema
        return None
    if frozen and isinstance(format_, RegistryFormat):
        return published_record(WrittenSchema(frozen[-1].schema, format=SchemaFormat.from_words(format_.kind)))
    return sink.body if isinstance(sink.body, Record) else None


def _text_key(catalog: Catalog, sink: Object) -> Record | None:
    """The type of a key that has no schema, from the columns that the sink's relation has."""
    if definition_of(sink, CreateSink).key is None:
        return None
    try:
        key = needed_sink(catalog, sink).key
    except PlanError:  # the sink is halted already
        return None
    return key.record if key is not None and key.schema is None else None


def _with_key_type(sink: Object, written: Record | None) -> DefinitionChanged | None:
    """The sink with the type of its written keys. After the change, the relation no longer tells it."""
    statement = definition_of(sink, CreateSink)
    if written is None or frozen_schemas(format_of(statement.formats, "KEY"), "KEY"):
        return None
    return replace(definition(sink, statement, sink.columns), body=written)


def needed_sink(catalog: Catalog, sink: Object) -> SinkDefinition:
    """A sink of the catalog with the schemas that its relation needs now."""
    return plan_new_sink(catalog, definition_of(sink, CreateSink))[0]


# statements


def definition(object_: Object, statement: Create, columns: tuple[Column, ...]) -> DefinitionChanged:
    """The change to another definition. The text that the user wrote stays."""
    return DefinitionChanged(
        object_.id, object_.statement, statement, object_.dependencies, columns, object_.growth, object_.body
    )
