"""ALTER … RENAME TO and RENAME COLUMN. Other objects refer to a renamed object by id, so they are not changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import Change, ObjectRenamed, apply
from headgate.catalog.errors import AlreadyExists
from headgate.catalog.graph import parts_of, type_by_path
from headgate.catalog.names import DEFAULT_PATH, resolve_column
from headgate.catalog.objects import Object, definition_of
from headgate.errors import HeadgateError
from headgate.plan.chain import view_query
from headgate.plan.errors import ColumnInUse, ColumnTwice, NameShadowed
from headgate.plan.impact import definition
from headgate.plan.on_demand import check_renamed_service
from headgate.plan.relations import analyse_query, with_type_names
from headgate.plan.source import listed_names
from headgate.resolve.definitions import current_query
from headgate.schema.names import Found, find
from headgate.schema.types import Named, Type, map_named
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.sources import CreateSource, UpsertEnvelope
from headgate.sql.statement import Kind, Query
from headgate.sql.views import CreateView
from headgate.text.cursor import Identifier


def rename(catalog: Catalog, target: Object, new: Identifier) -> tuple[Change, ...]:
    """The change of the name. Raises NameShadowed if a view could not be printed with the new name."""
    _check_free(catalog, target, new)
    check_renamed_service(catalog, target, new.name)
    renamed = ObjectRenamed(target.id, new.name)
    after = apply(catalog, renamed)
    for user in _views_to_check(catalog, target):
        if not _prints_the_same(catalog, after, user):
            user_name = catalog.display_name(user.id)
            raise NameShadowed(target.kind, catalog.display_name(target.id), new.name, user.kind, user_name)
    return (renamed, *_renamed_parts(catalog, target, new))


def _renamed_parts(catalog: Catalog, target: Object, new: Identifier) -> Iterator[Change]:
    """The hidden parts of a stream have its name: the sink alone, the views with a suffix."""
    for part in parts_of(catalog, target):
        if part.kind is Kind.SINK:
            _check_free(catalog, part, new)
        yield ObjectRenamed(part.id, new.name + part.name.removeprefix(target.name))


def rename_column(catalog: Catalog, source: Object, column: Identifier, new: Identifier) -> tuple[Change, ...]:
    """Give a column of a source another name. Raises ColumnInUse while a query or a sink uses the column.

    A query finds the column by its name, and a sink would write it under another name.
    """
    renamed = resolve_column(catalog, source, column)
    others = [c.name for c in source.columns if c.id != renamed.id]
    if isinstance(find(new.name, new.quoted, others), Found):
        raise ColumnTwice(new.name, source.name)
    statement = _with_column(definition_of(source, CreateSource), renamed.name, new.name)
    columns = tuple(replace(c, name=new.name) if c.id == renamed.id else c for c in source.columns)
    change = definition(source, statement, columns)
    after = apply(catalog, change)
    users = [catalog.get(id_) for id_ in sorted(catalog.users.get(source.id, ()))]
    using = tuple(f'{user.kind} "{catalog.display_name(user.id)}"' for user in users if _uses(catalog, after, user))
    if using:
        raise ColumnInUse(renamed.name, source.name, using)
    return (change,)


def _with_column(statement: CreateSource, old: str, new: str) -> CreateSource:
    names = listed_names(statement)
    place = names.index(old)
    names[place] = new
    listed = tuple(Identifier(name, quoted=True) for name in names[: max(place + 1, len(statement.columns))])
    envelope = statement.envelope
    if isinstance(envelope, UpsertEnvelope):
        key = tuple(Identifier(new, quoted=True) if k.name == old else k for k in envelope.key)
        envelope = replace(envelope, key=key)
    return replace(statement, columns=listed, envelope=envelope)


def _uses(before: Catalog, after: Catalog, user: Object) -> bool:
    """Whether a user's query changes with the name of a column. A sink always does: it writes all columns."""
    if user.kind is not Kind.VIEW:
        return True
    try:
        old, new = view_query(before, user), view_query(after, user)
    except HeadgateError:
        return True
    names = [[column.name for column in query.columns] for query in (old, new)]
    return old.spark_sql != new.spark_sql or names[0] != names[1]


def _check_free(catalog: Catalog, target: Object, new: Identifier) -> None:
    """Raises AlreadyExists if a name without quotes would find another object in any case, as for CREATE."""
    if new.quoted:
        return
    for other in catalog.find_any_case(target.parent, target.namespace, new.name):
        if other.id != target.id:
            raise AlreadyExists(other.kind, new.name, other.name)


def _views_to_check(catalog: Catalog, target: Object) -> Iterator[Object]:
    """The views that use the renamed object, or an object in the renamed schema or database."""
    renamed = {target.id, *_below(catalog, target)}
    users = {user for id_ in renamed for user in catalog.users.get(id_, ())}
    for entry in map(catalog.get, sorted(users)):
        if isinstance(entry.definition, CreateView):
            yield entry


def _below(catalog: Catalog, target: Object) -> Iterator[int]:
    if target.kind in (Kind.DATABASE, Kind.SCHEMA):
        for child in catalog.children(target.id):
            yield child.id
            yield from _below(catalog, child)


def _prints_the_same(before: Catalog, after: Catalog, view: Object) -> bool:
    """Whether the view's query, printed with the new names, still means the same. An alias may have the new name."""
    try:
        was = view_query(before, view)
    except HeadgateError:  # the view is not valid before the rename either
        return True
    definition = after.get(view.id).definition
    assert isinstance(definition, CreateView)
    try:
        is_ = analyse_query(after, DEFAULT_PATH, Query(current_query(after, definition.query)))
    except HeadgateError:
        return False
    return _meaning(was, before, after) == _meaning(is_, after, after)


def _meaning(query: AnalysedQuery, catalog: Catalog, after: Catalog) -> object:
    """Everything that the names in a query decide. Types have the names that they have in ``after``."""
    positions = {r.span: number for number, r in enumerate(query.references)}
    references = [
        (r.relation.schema, r.relation.id or r.relation.name, None if r.of is None else positions[r.of])
        for r in query.references
    ]

    def renamed(named: Named) -> Type:
        found = type_by_path(catalog, named.parts)
        return named if found is None else Named(after.path(found.id))

    columns = [
        replace(c, type=None if c.type is None else map_named(with_type_names(c.type), renamed)) for c in query.columns
    ]
    return columns, references, len(query.types)
