"""CREATE VIEW and CREATE TYPE, and what CREATE OR REPLACE VIEW does to everything downstream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import Change, ColumnsChanged, DefinitionChanged, apply
from headgate.catalog.graph import drop_order, type_dependencies
from headgate.catalog.names import SearchPath
from headgate.catalog.objects import Column, Comment, Dependency, DependencyKind, Growth, Object, definition_of
from headgate.errors import HeadgateError
from headgate.plan import errors
from headgate.plan.chain import check_loops, query_growth, valid_query, view_query
from headgate.plan.definitions import SinkDefinition
from headgate.plan.materialization_errors import NoWayInPlace
from headgate.plan.materialization_impact import changed_target
from headgate.plan.materializations import existing_materialization
from headgate.plan.materialized_views import kept_view
from headgate.plan.plans import Consequence, Outcome
from headgate.plan.relations import analyse_query, relations_read, with_type_names
from headgate.plan.sink import plan_sink
from headgate.plan.source import keep_column_ids
from headgate.plan.stored_copies import copies_among
from headgate.plan.target_definitions import OnDemandDefinition
from headgate.plan.view_changes import with_asserted
from headgate.plan.widening import narrowed_columns
from headgate.resolve.statements import TopicIds, qualified_type
from headgate.schema.render import print_type
from headgate.schema.types import Array, Field, Map, Record, Type
from headgate.sql.objects import CreateType, ListBody, MapBody, OtherBody, RecordBody
from headgate.sql.query import growth
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind, Query
from headgate.sql.views import CreateMaterializedView, CreateView
from headgate.text.cursor import Identifier


def view_columns(
    analysed: AnalysedQuery, names: Sequence[Identifier], view: str, asked: Sequence[Type] = ()
) -> tuple[Column, ...]:
    """The columns of a view, with the names of its list of names. Raises if a name occurs twice or a type is unknown.

    ``asked`` are the types of all columns from Spark. They are used for columns whose types our analysis does not know.
    """
    if len(names) > len(analysed.columns):
        raise errors.TooManyNames(view, len(names), len(analysed.columns))
    columns: list[Column] = []
    for position, column in enumerate(analysed.columns):
        name = names[position].name if position < len(names) else column.name
        type_ = column.type or (asked[position] if asked else None)
        if type_ is None:
            raise errors.ColumnOfUnknownType(name)
        if any(c.name == name for c in columns):
            raise errors.ColumnTwice(name, view)
        named = with_type_names(type_)
        columns.append(Column(position + 1, name, named, column.nullable, origin=column.origin))
    return tuple(columns)


def _shape(column: Column) -> tuple[str, str, bool]:
    return column.name, print_type(column.type), column.nullable


def listed_names(view: Object) -> tuple[Identifier, ...]:
    """The list of names in the statement of a view, materialized or not."""
    if view.kind is Kind.MATERIALIZED_VIEW:
        return definition_of(view, CreateMaterializedView).columns
    return definition_of(view, CreateView).columns


def derive_growth(
    catalog: Catalog, analysed: AnalysedQuery, columns: Sequence[Column]
) -> tuple[Growth, tuple[Column, ...]]:
    """The growth of a query, and its columns with those of its key marked."""
    match query_growth(catalog, analysed):
        case growth.Append():
            return Growth.APPEND, tuple(columns)
        case growth.Changing():
            return Growth.CHANGING, tuple(columns)
        case growth.Keyed(key):
            return Growth.KEYED, tuple(replace(c, key=at in key) for at, c in enumerate(columns))


def columns_change(view: Object, growth: Growth, columns: Sequence[Column]) -> ColumnsChanged | None:
    """The change of a view that has these columns and this growth from now on; None if it has them already.

    Comments are not compared: a view shows those of the columns below it.
    """

    def bare(some: Sequence[Column]) -> list[Column]:
        return [replace(column, comment=Comment()) for column in some]

    same = growth is view.growth and bare(columns) == bare(view.columns)
    return None if same else ColumnsChanged(view.id, tuple(columns), growth)


def query_dependencies(
    catalog: Catalog, path: SearchPath, query: Query
) -> tuple[AnalysedQuery, tuple[Dependency, ...]]:
    """The analysis of a query, and its dependencies: the relations that it reads, and the types that it mentions."""
    analysed = analyse_query(catalog, path, query)
    reads = tuple(Dependency(id_, DependencyKind.READS) for id_ in relations_read(analysed))
    written = [qualified_type(catalog, path, place.type) for place in analysed.types]
    given = [with_type_names(column.type) for column in analysed.columns if column.type is not None]
    return analysed, (*reads, *type_dependencies(catalog, [*written, *given]))


def type_definition(
    catalog: Catalog, path: SearchPath, statement: CreateType
) -> tuple[tuple[Column, ...], Type | None, tuple[Dependency, ...]]:
    """The columns of a record type or the body of any other type, and the types that it depends on."""
    match statement.body:
        case RecordBody(fields):
            typed = [Field(f.name.name, f.type, f.nullable) for f in fields]
            return _record_type(catalog, path, typed)
        case OtherBody(Record() as record):
            return _record_type(catalog, path, record.fields)
        case ListBody(element):
            body: Type = Array(qualified_type(catalog, path, element))
        case MapBody(value):
            body = Map(qualified_type(catalog, path, value))
        case OtherBody(type_):
            body = qualified_type(catalog, path, type_)
    return (), body, type_dependencies(catalog, [body])


def _record_type(
    catalog: Catalog, path: SearchPath, fields: Sequence[Field]
) -> tuple[tuple[Column, ...], Type | None, tuple[Dependency, ...]]:
    """A record type: its fields are columns, so that each can have a comment."""
    types = [qualified_type(catalog, path, field.type) for field in fields]
    columns = tuple(
        Column(number, field.name, type_, field.nullable, comment=Comment(explicit=field.doc))
        for number, (field, type_) in enumerate(zip(fields, types, strict=True), start=1)
    )
    return columns, None, type_dependencies(catalog, types)


# CREATE OR REPLACE VIEW


@dataclass(frozen=True, slots=True)
class Replacement:
    """``changes`` are those of the view and of views over it whose columns, growth or key change with it."""

    changes: tuple[Change, ...]
    consequences: tuple[Consequence, ...]


def plan_replacement(
    catalog: Catalog, change: DefinitionChanged, topics: TopicIds, *, confirmed: bool = False
) -> Replacement:
    """Check every dependent as if it were created now. Raises ReplacementBreaks with all dependents that would break. ``confirmed``
    says that targets may be filled anew for types that narrow.

    The change may also be of a stream or table, whose rows are in its topic and stay as they are. A dependent that does not work before the replacement is not counted: the replacement may be a step to repair it.
    """
    view = catalog.get(change.id)
    dependents = [o for o in reversed(drop_order(catalog, [view.id])) if o.id != view.id]
    after = apply(catalog, change)
    check_loops(after, [o.id for o in dependents if o.kind is Kind.SINK], topics)
    found = _Checked(view, view.kind is not Kind.VIEW or _same_query(catalog, after, view), confirmed)
    for dependent in dependents:
        made = found.check(catalog, after, dependent)
        if made is not None:
            found.changes.append(made)
            after = apply(after, made)
    if found.broken:
        name = catalog.display_name(view.id)
        raise errors.ReplacementBreaks(name, tuple(found.broken), view.kind.value, found.narrows)
    return Replacement((change, *found.changes), tuple(found.consequences))


def _same_query(before: Catalog, after: Catalog, view: Object) -> bool:
    try:
        old = valid_query(before, view)
    except HeadgateError:
        return False
    return old.spark_sql == valid_query(after, after.get(view.id)).spark_sql


@dataclass(slots=True)
class _Checked:
    """The results of checking the dependents of a view that is replaced."""

    view: Object
    same_query: bool
    confirmed: bool
    changes: list[Change] = field(default_factory=list)
    consequences: list[Consequence] = field(default_factory=list)
    broken: list[tuple[str, str, str]] = field(default_factory=list)
    narrows: bool = False

    def check(self, before: Catalog, after: Catalog, dependent: Object) -> Change | None:
        """Check one dependent. Returns the change of a view whose columns, growth or key are others now."""
        try:
            if dependent.kind is Kind.VIEW:
                return _view_change(before, after, dependent)
            if dependent.kind is Kind.MATERIALIZED_VIEW:
                return self._materialized_view(before, after, dependent)
            if dependent.kind is Kind.SINK:
                outcome = self._outcome(after, _planned(after, dependent))
                self.consequences.append(Consequence(dependent.id, outcome, because_of=self.view.id))
                if _writes_other_columns(before, after, dependent):
                    self._breaks(before, dependent, "the columns that it writes would be others")
            if dependent.kind is Kind.MATERIALIZATION:
                self._materialization(before, after, dependent)
        except HeadgateError as error:
            if _works(before, dependent):
                self._breaks(before, dependent, ": ".join(filter(None, (error.message(), error.detail()))))
        return None

    def _materialized_view(self, before: Catalog, after: Catalog, dependent: Object) -> Change | None:
        """It follows a materialized view by what differs, and is filled anew for a plain one. Of a topic that is written anew
        nobody knows what differs."""
        if self.view.kind not in (Kind.VIEW, Kind.MATERIALIZED_VIEW):
            valid_query(after, dependent)
            if not self.same_query:
                self._breaks(before, dependent, "it would have to be filled anew, which is not supported yet")
            return None
        change = _view_change(before, after, dependent)
        _check_kept(after, dependent, dependent.columns if change is None else change.columns)
        return change

    def _materialization(self, before: Catalog, after: Catalog, dependent: Object) -> None:
        """A target is widened where it stands. It is never narrowed, unless its statement or the one that replaces the view says that
        it is to be filled anew then."""
        new, old = existing_materialization(after, dependent), existing_materialization(before, dependent)
        if isinstance(new, OnDemandDefinition):  # it keeps no rows that could be out of step
            self.consequences.append(replace(changed_target(dependent, old, new), because_of=self.view.id))
            return
        needs_confirm = new.on_incompatible is None and not self.confirmed
        if (needs_confirm or new.on_incompatible == "ABORT") and (narrowed := narrowed_columns(old, new)):
            self.narrows |= needs_confirm
            raise NoWayInPlace(dependent.name, narrowed)
        made = changed_target(dependent, old, new)
        if made.outcome is Outcome.UNCHANGED and not self.same_query:
            made = replace(made, outcome=Outcome.IN_STEP if new.merges else Outcome.GOES_ON)
        self.consequences.append(replace(made, because_of=self.view.id))

    def _breaks(self, catalog: Catalog, dependent: Object, reason: str) -> None:
        self.broken.append((dependent.kind.value, catalog.display_name(dependent.id), reason.rstrip(".")))

    def _outcome(self, after: Catalog, sink: SinkDefinition) -> Outcome:
        """The runtime brings a target in step if rows are deleted from it by key, which append relations never do."""
        if self.same_query:
            return Outcome.UNCHANGED
        deletes = sink.envelope == "UPSERT" and after.get(sink.relation).growth is Growth.KEYED
        return Outcome.IN_STEP if deletes else Outcome.GOES_ON


def _check_kept(after: Catalog, view: Object, columns: Sequence[Column]) -> None:
    """Raises if a materialized view cannot be kept any more, or only over stored copies that it does not read yet, or if its stored
    rows would have other types."""
    types = {column.id: print_type(column.type) for column in view.columns}
    for column in columns:
        if types.get(column.id, print_type(column.type)) != print_type(column.type):
            raise errors.ViewNoLongerValid(view.name, f'column "{column.name}" would have another type')
    copies = copies_among(after, (dependency.on for dependency in view.dependencies))
    kept_view(after, view.name, view_query(after, view), columns, copies)


def _view_change(before: Catalog, after: Catalog, view: Object) -> ColumnsChanged | None:
    analysed = view_query(after, view)
    types = _known_types(before, after, view, analysed)
    present = tuple(Identifier(column.name, quoted=True) for column in view.columns)
    names = present if types else listed_names(view)
    made = view_columns(analysed, names, view.name, types)
    growth, columns = derive_growth(after, analysed, made)
    evolved = keep_column_ids(view, with_asserted(view, columns))
    old = {column.id: column for column in view.columns}
    for column in evolved:
        if column.id in old and old[column.id].origin not in (None, column.origin):
            raise errors.ViewNoLongerValid(view.name, f'column "{column.name}" would be another one')
    return columns_change(view, growth, evolved)


def _known_types(before: Catalog, after: Catalog, view: Object, analysed: AnalysedQuery) -> Sequence[Type]:
    """The stored types of a view's columns. Empty if a relation that it reads has other columns now."""
    reads = relations_read(analysed)
    if any(_shapes(before, id_) != _shapes(after, id_) for id_ in reads):
        return ()
    return [c.type for c in view.columns] if len(view.columns) == len(analysed.columns) else ()


def _shapes(catalog: Catalog, relation: int) -> list[tuple[str, str, bool]]:
    return [_shape(column) for column in catalog.get(relation).columns]


def _writes_other_columns(before: Catalog, after: Catalog, sink: Object) -> bool:
    """Whether the columns of a sink's relation change. Its schemas are registered for the columns that it has."""
    relation = next(d.on for d in sink.dependencies if d.use is DependencyKind.READS)
    return _shapes(before, relation) != _shapes(after, relation)


def _planned(catalog: Catalog, sink: Object) -> SinkDefinition:
    return plan_sink(catalog, definition_of(sink, CreateSink))


def _works(catalog: Catalog, dependent: Object) -> bool:
    try:
        if dependent.kind in (Kind.VIEW, Kind.MATERIALIZED_VIEW):
            valid_query(catalog, dependent)
        elif dependent.kind is Kind.SINK:
            _planned(catalog, dependent)
        elif dependent.kind is Kind.MATERIALIZATION:
            existing_materialization(catalog, dependent)
    except HeadgateError:
        return False
    return True


def replacement_notices(catalog: Catalog, consequences: tuple[Consequence, ...]) -> Iterator[str]:
    """What the replacement means for each sink."""
    for consequence in consequences:
        kind, name = catalog.get(consequence.object).kind, catalog.display_name(consequence.object)
        match consequence.outcome:
            case Outcome.IN_STEP:
                yield (
                    f'{kind} "{name}" is brought in step: rows that the new query gives otherwise are written again, and keys '
                    "that it does not give are deleted"
                )
            case Outcome.GOES_ON:
                yield (
                    f'{kind} "{name}" goes on with the new query from where it is; what it wrote before stays as it is'
                )
            case Outcome.FILLED_ANEW:
                yield f'{kind} "{name}" is filled anew, because its types narrow: {consequence.detail}'
            case _:
                pass
