"""CREATE MATERIALIZED VIEW: which queries can be kept equal to their result, and how each is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import Column, Growth, Object, definition_of
from headgate.plan import errors
from headgate.plan.chain import query_stability, relation_growth, source_key_columns, valid_query
from headgate.plan.relations import named_types, relations_read, system_relations_read
from headgate.schema.types import Type
from headgate.sql.query import tree as n
from headgate.sql.query.casts import expanded
from headgate.sql.query.maintenance import Maintenance, inlined, maintain, maintain_by_key, undetermined
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.statement import Kind
from headgate.sql.views import CreateMaterializedView

_RESERVED = "hg_"


@dataclass(frozen=True, slots=True)
class KeptView:
    """How a view is kept, and the relations whose rows it is made from: sources and other materialized views."""

    maintenance: Maintenance
    inputs: tuple[Object, ...]


def check_statement(statement: CreateMaterializedView) -> None:
    """Refuse the options that are not supported yet."""
    if statement.with_options.on_error != "HALT":
        raise errors.NotSupportedYet(f"ON ERROR = {statement.with_options.on_error} of a materialized view")


def asserted_columns(statement: CreateMaterializedView, columns: Sequence[Column]) -> tuple[str, ...]:
    """The columns of ASSERT NOT NULL, by their names in the view. Raises for one that the view does not have."""
    names = {column.name.lower(): column.name for column in columns}
    for asserted in statement.assert_not_null:
        if asserted.name.lower() not in names:
            raise errors.AssertedColumnUnknown(statement.name.parts[-1].name, asserted.name)
    return tuple(names[asserted.name.lower()] for asserted in statement.assert_not_null)


def kept_view(catalog: Catalog, name: str, analysed: AnalysedQuery, columns: Sequence[Column]) -> KeptView:
    """How to keep a view with this query and these columns, all with types that Spark knows. Raises if it cannot be kept."""
    _check_columns(name, columns)
    _check_stability(catalog, name, analysed)
    inputs = tuple(_inputs(catalog, analysed))
    tree = inlined(analysed.tree, lambda read: _view_tree(catalog, read))
    for query in (tree, *(valid_query(catalog, view).tree for view in _views_below(catalog, analysed))):
        if (found := undetermined(query, in_subquery=query is not tree)) is not None:
            raise errors.ViewNotDetermined(name, found.why, found.instead)
    typed = [(column.name, _plain(catalog, column.type)) for column in columns]
    upserts = [entry for entry in inputs if entry.kind is Kind.SOURCE and entry.growth is not Growth.APPEND]
    if upserts:
        key = source_key_columns(catalog, upserts[0], columns)
        return _by_key(name, tree, typed, key, upserts[0])
    made = maintain(tree, typed, lambda read: relation_growth(catalog, catalog.get(_id(read))))
    for entry in inputs:
        versions = {version for id_, version in made.reads if id_ == entry.id}
        if entry.kind is Kind.SOURCE and versions - {"changes"}:
            raise errors.OldRowsNeeded(name, entry.name, _why(made))
    return KeptView(made, inputs)


def _by_key(
    name: str, tree: n.Node, typed: Sequence[tuple[str, Type]], key: Mapping[str, str] | None, source: Object
) -> KeptView:
    """A view that is computed row by row over a source with a key, and has columns for all of ``key``."""
    scans = [node for node in n.walk(tree) if isinstance(node, n.Scan)]
    linear = all(
        isinstance(node, n.Scan | n.Filter | n.Project | n.Generate | n.Subquery | n.Sort) for node in n.walk(tree)
    )
    if len(scans) != 1 or not linear or key is None:
        raise errors.OldRowsNeeded(name, source.name, "The old row of a changed key is needed.")
    return KeptView(maintain_by_key(tree, typed, key, scans[0]), (source,))


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


def _check_stability(catalog: Catalog, name: str, analysed: AnalysedQuery) -> None:
    unstable = query_stability(catalog, analysed).result
    functions = unstable.rows.union(*unstable.columns)
    if functions:
        raise errors.ViewNotStable(name, tuple(sorted(functions)))


def _inputs(catalog: Catalog, analysed: AnalysedQuery) -> Iterator[Object]:
    """The sources and materialized views below a query, through plain views, each once."""
    if system_relations_read(analysed):
        raise errors.NotSupportedYet("a materialized view over relations of the catalog")
    waiting, known = list(relations_read(analysed)), set[int]()
    while waiting:
        entry = catalog.get(waiting.pop(0))
        if entry.id in known:
            continue
        known.add(entry.id)
        match entry.kind:
            case Kind.VIEW:
                waiting += relations_read(valid_query(catalog, entry))
            case Kind.SOURCE | Kind.MATERIALIZED_VIEW:
                yield entry
            case _:
                raise errors.NotSupportedYet(f"a materialized view over a {entry.kind}")


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
    return valid_query(catalog, entry).tree if entry.kind is Kind.VIEW else None


def _id(read: n.RelationName) -> int:
    assert read.id is not None, "system relations were refused"
    return read.id


def _plain(catalog: Catalog, type_: Type) -> Type:
    """A column's type with the definitions of the catalog's types in place of their names."""
    return expanded(type_, named_types(catalog))


def materialized(catalog: Catalog, view: Object) -> KeptView:
    """How a materialized view of the catalog is kept. Raises ViewNoLongerValid if its query does not fit any more."""
    definition_of(view, CreateMaterializedView)
    return kept_view(catalog, view.name, valid_query(catalog, view), view.columns)


def creation_notice(name: str, kept: KeptView) -> str:
    """How the view is kept, for the user who creates it."""
    for note in kept.maintenance.notes:
        if note.how == "recomputed":
            more = f" {note.instead}" if note.instead else ""
            return (
                f'materialized view "{name}" is computed anew with every batch, because of {note.operator}: '
                f"{note.why}{more}"
            )
    return f'materialized view "{name}" is kept by the changes of what it reads'


def explanation(kept: KeptView) -> Iterator[str]:
    """One line for each operator of a view, for EXPLAIN."""
    for note in kept.maintenance.notes:
        instead = f" {note.instead}" if note.instead else ""
        yield f"{note.operator}: {note.how}, {note.why}{instead}"
