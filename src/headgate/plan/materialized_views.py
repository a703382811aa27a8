"""CREATE MATERIALIZED VIEW: which queries can be kept equal to their result, and how each is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from headgate.catalog.catalog import Catalog
from headgate.catalog.graph import upstream
from headgate.catalog.objects import Column, Growth, Object, definition_of
from headgate.plan import definitions as d, errors
from headgate.plan.chain import query_stability, relation_growth, relation_stability, source_key_columns, valid_query
from headgate.plan.errors import NotSupportedYet
from headgate.plan.relations import named_types, relations_read, system_relations_read
from headgate.plan.stored_copies import copies_among, over_copies
from headgate.plan.stored_defaults import Default, StoredDefaults
from headgate.plan.view_definitions import Clock
from headgate.resolve.streams import READ_KINDS
from headgate.schema.types import Type
from headgate.sql.query import growth, tree as n
from headgate.sql.query.casts import expanded
from headgate.sql.query.clock import DAYS, PINNED
from headgate.sql.query.maintenance import (
    Maintenance,
    inlined,
    maintain,
    maintain_by_key,
    undetermined,
    unstable_outside_conditions,
)
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.statement import Kind
from headgate.sql.views import CreateMaterializedView

_RESERVED = "hg_"


@dataclass(frozen=True, slots=True)
class KeptView:
    """How a view is kept, and the relations whose rows it is made from: sources and other materialized views. ``copies`` are
    stored copies that it reads in the place of sources, by the ids of these; they are among the inputs. ``clock`` says how often
    the time changes its rows; None if it does not read the time. ``was_append`` says that it would be stored in another way if
    nothing below it had been replaced."""

    maintenance: Maintenance
    inputs: tuple[Object, ...]
    copies: Mapping[int, Object] = field(default_factory=dict)
    clock: Clock | None = None
    was_append: bool = False


def check_statement(statement: CreateMaterializedView) -> None:
    """Refuse the options that a view cannot have."""
    if (policy := statement.with_options.on_error) != "HALT":
        raise errors.ViewCannotSkip(statement.name.parts[-1].name, policy)


def asserted_columns(statement: CreateMaterializedView, columns: Sequence[Column]) -> tuple[str, ...]:
    """The columns of ASSERT NOT NULL, by their names in the view. Raises for one that the view does not have."""
    names = {column.name.lower(): column.name for column in columns}
    for asserted in statement.assert_not_null:
        if asserted.name.lower() not in names:
            raise errors.AssertedColumnUnknown(statement.name.parts[-1].name, asserted.name)
    return tuple(names[asserted.name.lower()] for asserted in statement.assert_not_null)


def kept_view(
    catalog: Catalog,
    name: str,
    analysed: AnalysedQuery,
    columns: Sequence[Column],
    copies: Mapping[int, Object] | None = None,
) -> KeptView:
    """How to keep a view with this query and these columns, all with types that Spark knows. Raises if it cannot be kept.

    ``copies`` are the stored copies of sources that it may read in their place, by default all in the catalog. Raises
    OldRowsNeeded if it needs one that there is not.
    """
    _check_columns(name, columns)
    inputs = tuple(_inputs(catalog, analysed))
    tree = query_tree(catalog, analysed)
    clock = _clock(catalog, name, analysed, tree)
    for query in (tree, *(valid_query(catalog, view).tree for view in _views_below(catalog, analysed))):
        if (found := undetermined(query, in_subquery=query is not tree)) is not None:
            raise errors.ViewNotDetermined(name, found.why, found.instead)
    typed = [(column.name, _plain(catalog, column.type)) for column in columns]
    if clock is None and (by_key := _by_key(catalog, tree, typed, columns, inputs)) is not None:
        return by_key
    made = _maintained(catalog, tree, typed)
    known = copies_among(catalog, catalog.objects) if copies is None else copies
    used: dict[int, Object] = {}
    for source, why in _needed_again(made, inputs):
        if source.id not in known:
            raise errors.OldRowsNeeded(name, source.name, source.id, why)
        used[source.id] = known[source.id]
    if used:
        tree = over_copies(tree, used)
        made = _maintained(catalog, tree, typed)
    read = (used.get(entry.id, entry) for entry in inputs)
    inputs = tuple({entry.id: entry for entry in read}.values())
    return KeptView(made, inputs, used, clock, was_append=_is_stored_otherwise(catalog, tree, typed, inputs, made))


def query_tree(catalog: Catalog, analysed: AnalysedQuery) -> n.Node:
    """The tree of a query, with those of plain views in the place of their names, and the time of a batch as a relation."""
    return inlined(analysed.pinned.tree, lambda read: _view_tree(catalog, read))


def _maintained(catalog: Catalog, tree: n.Node, typed: Sequence[tuple[str, Type]]) -> Maintenance:
    return maintain(tree, typed, lambda read: _lasting_growth(catalog, catalog.get(_id(read))))


def _lasting_growth(catalog: Catalog, relation: Object) -> growth.Growth:
    """How the rows of a relation come to those who keep what they make of them. Those of a materialized view also go when it, or a
    view below it, is replaced: its readers get what differs."""
    if _was_replaced(catalog, relation):
        return growth.Changing("Rows went when its query, or one below it, was replaced.")
    return relation_growth(catalog, relation)


def _was_replaced(catalog: Catalog, relation: Object) -> bool:
    below = (relation, *upstream(catalog, relation.id)) if relation.kind is Kind.MATERIALIZED_VIEW else ()
    return any(each.fillings for each in below)


def _is_stored_otherwise(
    catalog: Catalog, tree: n.Node, typed: Sequence[tuple[str, Type]], inputs: Sequence[Object], made: Maintenance
) -> bool:
    """Whether a view had other hidden columns before something below it was replaced."""
    if not any(_was_replaced(catalog, entry) for entry in inputs):
        return False
    before = maintain(tree, typed, lambda read: relation_growth(catalog, catalog.get(_id(read))))
    return [column for column in before.stored if column.hidden] != [c for c in made.stored if c.hidden]


def _needed_again(made: Maintenance, inputs: Sequence[Object]) -> Iterator[tuple[Object, str]]:
    """The sources whose rows are needed again after they were read, and why."""
    for entry in inputs:
        versions = {version for id_, version in made.reads if id_ == entry.id}
        if entry.kind not in READ_KINDS:
            continue
        if entry.growth is not Growth.APPEND:
            yield entry, "The old row of a changed key is needed."
        elif not made.incremental or versions - {"changes"}:
            yield entry, _why(made)


def _by_key(
    catalog: Catalog,
    tree: n.Node,
    typed: Sequence[tuple[str, Type]],
    columns: Sequence[Column],
    inputs: Sequence[Object],
) -> KeptView | None:
    """A view that is computed row by row over a source with a key, and has columns for all of the key; None for others."""
    if len(inputs) != 1 or inputs[0].kind not in READ_KINDS or inputs[0].growth is Growth.APPEND:
        return None
    nodes, key = list(n.walk(tree)), source_key_columns(catalog, inputs[0], columns)
    scans = [node for node in nodes if isinstance(node, n.Scan)]
    linear = all(isinstance(node, n.Scan | n.Filter | n.Project | n.Generate | n.Subquery | n.Sort) for node in nodes)
    if len(scans) != 1 or not linear or key is None:
        return None
    return KeptView(maintain_by_key(tree, typed, key, scans[0]), tuple(inputs))


def _why(made: Maintenance) -> str:
    """The reason why rows that were read before are needed again."""
    for note in made.notes:
        if note.how == "recomputed":
            return f"{note.operator}: {note.why}"
    return "Rows that changed are joined with, or grouped with, rows that were read before."


def _check_columns(name: str, columns: Sequence[Column]) -> None:
    for column in columns:
        if column.name.lower().startswith(_RESERVED):
            raise errors.ColumnNameReserved(name, column.name, _RESERVED)


def _clock(catalog: Catalog, name: str, analysed: AnalysedQuery, tree: n.Node) -> Clock | None:
    """How often the time changes the rows of a view. Raises for functions whose result differs each time, and for a time
    anywhere except in conditions."""
    unstable = query_stability(catalog, analysed).result
    functions = unstable.rows.union(*unstable.columns)
    if others := functions - PINNED:
        raise errors.ViewNotStable(name, tuple(sorted(others)))
    if unstable_outside_conditions(tree, lambda read: relation_stability(catalog, catalog.get(_id(read)))):
        raise errors.ClockOutsideCondition(name, tuple(sorted(functions)))
    if not functions:
        return None
    return "day" if functions <= DAYS else "second"


def _inputs(catalog: Catalog, analysed: AnalysedQuery) -> Iterator[Object]:
    """The sources and materialized views below a query, through plain views, each once."""
    if system_relations_read(analysed):
        raise NotSupportedYet("a materialized view over relations of the catalog")
    waiting, known = list(relations_read(analysed)), set[int]()
    while waiting:
        entry = catalog.get(waiting.pop(0))
        if entry.id in known:
            continue
        known.add(entry.id)
        match entry.kind:
            case Kind.VIEW:
                waiting += relations_read(valid_query(catalog, entry))
            case Kind.SOURCE | Kind.STREAM | Kind.TABLE | Kind.MATERIALIZED_VIEW:
                yield entry
            case _:
                raise NotSupportedYet(f"a materialized view over a {entry.kind}")


def _views_below(catalog: Catalog, analysed: AnalysedQuery) -> Iterator[Object]:
    """The plain views that subqueries in expressions read. Their queries are text there, and are not written anew."""
    for node in n.walk(analysed.tree):
        for subquery in (s for expression in n.expressions_of(node) for s in expression.subqueries):
            for scan in (each for each in n.walk(subquery) if isinstance(each, n.Scan)):
                if scan.relation.id is not None and catalog.get(scan.relation.id).kind is Kind.VIEW:
                    view = catalog.get(scan.relation.id)
                    yield view
                    yield from _views_below(catalog, valid_query(catalog, view))


def _view_tree(catalog: Catalog, read: n.RelationName) -> n.Node | None:
    entry = catalog.get(_id(read))
    return valid_query(catalog, entry).pinned.tree if entry.kind is Kind.VIEW else None


def _id(read: n.RelationName) -> int:
    assert read.id is not None, "system relations were refused"
    return read.id


def _plain(catalog: Catalog, type_: Type) -> Type:
    """A column's type with the definitions of the catalog's types in place of their names."""
    return expanded(type_, named_types(catalog))


def materialized(catalog: Catalog, view: Object) -> KeptView:
    """How a materialized view of the catalog is kept. Raises ViewNoLongerValid if its query does not fit any more."""
    definition_of(view, CreateMaterializedView)
    copies = copies_among(catalog, (dependency.on for dependency in view.dependencies))
    return kept_view(catalog, view.name, valid_query(catalog, view), view.columns, copies)


def materialized_definition(catalog: Catalog, view: Object, kept: KeptView) -> d.MaterializedDefinition:
    """A materialized view as others read it."""
    defaults = {name: next(iter(found), Default()) for name, found in StoredDefaults(catalog).of_relation(view).items()}
    key = tuple(column.name for column in view.columns if column.key)
    made, keyed, appends = kept.maintenance, view.growth is Growth.KEYED, view.growth is Growth.APPEND
    stored = tuple(
        d.StoredColumn(c.name, c.type, hidden=True)
        if c.hidden
        else d.StoredColumn(c.name, c.type, False, defaults[c.name].value, defaults[c.name].inner)
        for c in made.stored
    )
    return d.MaterializedDefinition(view.id, view.name, stored, key if keyed else None, appends, made.grows)


def creation_notice(name: str, kept: KeptView) -> str:
    """How the view is kept, for the user who creates it: by every operator that does not allow to keep it by changes."""
    found = [note for note in kept.maintenance.notes if note.how == "recomputed"]
    if not found:
        return f'materialized view "{name}" is kept by the changes of what it reads'
    reasons = dict.fromkeys(f"{note.operator}: {note.why} {note.instead}".rstrip() for note in found)
    return f'materialized view "{name}" is computed anew with every batch, because of {"; ".join(reasons)}'


def explanation(kept: KeptView, names: Callable[[int], str]) -> Iterator[str]:
    """One line for each operator of a view, for EXPLAIN. ``names`` gives the name of an object."""
    for source, copy in kept.copies.items():
        yield f"reads rows of source {names(source)} again, from materialized view {names(copy.id)}"
    for note in kept.maintenance.notes:
        instead = f" {note.instead}" if note.instead else ""
        yield f"{note.operator}: {note.how}, {note.why}{instead}"
