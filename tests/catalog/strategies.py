"""Random histories of a catalog: changes that are each valid where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import (
    Change,
    ColumnsChanged,
    CommentSet,
    DefinitionChanged,
    ObjectCreated,
    ObjectDropped,
    ObjectRenamed,
    SecretChanged,
    TaskStateSet,
    apply,
)
from headgate.catalog.errors import CatalogError
from headgate.catalog.graph import drop_order
from headgate.catalog.objects import (
    Column,
    Comment,
    Dependency,
    DependencyKind,
    DesiredTaskState,
    Growth,
    Object,
)
from headgate.catalog.secrets import EncryptedSecret, FromEnvironment, FromFile, SecretSource
from headgate.schema.parse import parse_type
from headgate.schema.types import Named
from headgate.sql.query.tree import ColumnRef
from headgate.sql.statement import RELATIONS, Kind, ObjectName, Query
from headgate.sql.views import CreateView
from headgate.text.cursor import Identifier
from tests.catalog.building import NOW, START

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = st.sampled_from(["a", "A", "b", "B", "orders", "Ünï", 'q"uote', "c d", "x.y", "\N{GRINNING FACE}", "\0"])
types = st.sampled_from(
    ["integer", "bigint", "decimal(10,2)", "record(a integer, b text)", "array<text>", "enum('x')"]
).map(parse_type)
definitions = st.builds(CreateView, st.just(ObjectName((Identifier("v"),))), texts.map(lambda text: Query(text)))
secrets: st.SearchStrategy[SecretSource] = st.one_of(
    st.builds(EncryptedSecret, texts), st.builds(FromEnvironment, texts), st.builds(FromFile, texts)
)
kinds = st.sampled_from(sorted(Kind, reverse=True)) | st.sampled_from([Kind.VIEW, Kind.SINK, Kind.SECRET, Kind.TYPE])
comments = st.builds(Comment, st.none() | texts, st.none() | texts, st.booleans())


@st.composite
def commits(draw: st.DrawFn) -> list[list[Change]]:
    """Some commits of some changes each, over a new catalog."""
    catalog, made = START, []
    for _ in range(draw(st.integers(1, 4))):
        commit: list[Change] = []
        for _ in range(draw(st.integers(1, 5))):
            changes = draw(valid_changes(catalog))
            catalog = apply(catalog, *changes)
            commit.extend(changes)
        made.append(commit)
    return made


@st.composite
def valid_changes(draw: st.DrawFn, catalog: Catalog) -> Sequence[Change]:
    """A change, or the changes of a DROP … CASCADE, that this catalog takes; none if the one drawn is refused."""
    kind = draw(st.sampled_from("cccccaaaaad"))
    made = {"c": _creations, "a": _alterations, "d": _cascades}[kind] if len(catalog.objects) > 2 else _creations
    changes = draw(made(catalog))
    try:
        apply(catalog, *changes)
    except CatalogError:  # a name that is taken, a cycle: what users are told, not what a history holds
        return ()
    return changes


@st.composite
def _creations(draw: st.DrawFn, catalog: Catalog) -> Sequence[Change]:
    kind = draw(kinds)
    named = draw(_named_columns(catalog)) if kind in RELATIONS else ()
    columns = draw(_columns(catalog)) if kind in RELATIONS or kind is Kind.TYPE else ()
    new = Object(
        catalog.next_id,
        kind,
        _parent(draw, catalog, kind),
        draw(names),
        NOW.replace(microsecond=draw(st.integers(0, 999_999))),
        draw(texts),
        draw(st.none() | definitions),
        (*columns, *(Column(90, f"typed{t.id}", Named(catalog.path(t.id))) for t in named)),
        draw(st.sampled_from(Growth)) if kind in RELATIONS else None,
        dependencies=(*draw(_dependencies(catalog)), *(Dependency(t.id, DependencyKind.TYPE) for t in named)),
        comment=draw(comments),
    )
    return (ObjectCreated(new, draw(secrets) if kind is Kind.SECRET else None),)


def _parent(draw: st.DrawFn, catalog: Catalog, kind: Kind) -> int:
    if kind is Kind.DATABASE:
        return 0
    above = Kind.DATABASE if kind is Kind.SCHEMA else Kind.SCHEMA
    return draw(st.sampled_from([o.id for o in catalog.of_kind(above)]))


def _named_columns(catalog: Catalog) -> st.SearchStrategy[tuple[Object, ...]]:
    """At most one type of the catalog, for a column of that type."""
    known = list(catalog.of_kind(Kind.TYPE))
    return st.lists(st.sampled_from(known), max_size=1).map(tuple) if known else st.just(())


def _dependencies(catalog: Catalog) -> st.SearchStrategy[tuple[Dependency, ...]]:
    known = [o.id for o in catalog.objects.values() if o.kind not in (Kind.DATABASE, Kind.SCHEMA)]
    if not known:
        return st.just(())
    one = st.builds(Dependency, st.sampled_from(known), st.sampled_from(DependencyKind), st.booleans())
    return st.lists(one, max_size=3).map(tuple)


@st.composite
def _columns(draw: st.DrawFn, catalog: Catalog, first: int = 1) -> tuple[Column, ...]:
    chosen = draw(st.lists(names, max_size=4, unique=True))
    origins = st.none() | st.builds(ColumnRef, st.sampled_from(sorted(catalog.objects) or [1]), st.integers(1, 3))
    return tuple(
        Column(id_, name, draw(types), draw(st.booleans()), draw(st.booleans()), draw(origins), draw(comments))
        for id_, name in enumerate(chosen, first)
    )


@st.composite
def _cascades(draw: st.DrawFn, catalog: Catalog) -> Sequence[Change]:
    target = draw(st.sampled_from([i for i in catalog.objects if i > 2]))  # public stays, to create in
    return tuple(ObjectDropped(o.id) for o in drop_order(catalog, (target,)))


@st.composite
def _alterations(draw: st.DrawFn, catalog: Catalog) -> Sequence[Change]:
    target = catalog.get(draw(st.sampled_from(sorted(catalog.objects, reverse=True))))
    column = draw(st.sampled_from([None, *(c.id for c in target.columns)]))
    generic: list[st.SearchStrategy[Change]] = [
        st.builds(ObjectRenamed, st.just(target.id), names),
        st.builds(CommentSet, st.just(target.id), st.just(column), st.none() | texts),
        st.builds(CommentSet, st.just(target.id), st.just(column), st.none() | texts, st.tuples(texts)),
    ]
    return (draw(draw(st.sampled_from([*_special(catalog, target) * 2, *generic]))),)


def _special(catalog: Catalog, target: Object) -> list[st.SearchStrategy[Change]]:
    """The alterations that only this kind of object knows."""
    if target.id in catalog.desired:
        return [st.builds(TaskStateSet, st.just(target.id), st.sampled_from(DesiredTaskState))]
    if target.kind in RELATIONS:
        columns = st.builds(ColumnsChanged, st.just(target.id), _evolved(catalog, target))
        return [columns, _redefinitions(catalog, target)]
    if target.kind is Kind.SECRET:
        return [st.builds(SecretChanged, st.just(target.id), secrets)]
    return []


@st.composite
def _evolved(draw: st.DrawFn, catalog: Catalog, target: Object) -> tuple[Column, ...]:
    """Some of the old columns, some of other types, in some order, and new ones with new names."""
    kept = draw(st.permutations(target.columns)) if target.columns else []
    kept = [replace(c, type=draw(st.just(c.type) | types)) for c in kept if draw(st.booleans())]
    added = draw(_columns(catalog, first=target.next_column))
    return (*kept, *(c for c in added if c.name not in {k.name for k in kept}))


@st.composite
def _redefinitions(draw: st.DrawFn, catalog: Catalog, target: Object) -> Change:
    typed = tuple(d for d in target.dependencies if d.use is DependencyKind.TYPE)  # its columns may mention them
    dependencies = (*draw(_dependencies(catalog)), *typed)
    columns = draw(_evolved(catalog, target))
    return DefinitionChanged(
        target.id, draw(texts), draw(definitions), dependencies, columns, target.growth, fills=draw(st.booleans())
    )
