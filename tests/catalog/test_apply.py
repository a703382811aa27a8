"""What may change and what a change does, on snapshots alone."""

from __future__ import annotations

import pytest

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
from headgate.catalog.errors import AlreadyExists, DependencyCycle, InUse, NotEmpty, ReservedName
from headgate.catalog.graph import downstream, drop_order, type_dependencies, upstream
from headgate.catalog.objects import Column, Dependency, DependencyKind, DesiredTaskState, Object
from headgate.catalog.secrets import EncryptedSecret, FromEnvironment, FromFile
from headgate.errors import InternalError
from headgate.schema.types import Array, Named, Text
from headgate.sql.connections import CreateSecret, SecretText
from headgate.sql.statement import Kind, Query
from headgate.sql.views import CreateView
from tests.catalog.building import NOW, PUBLIC, START, Building, created, numbered, written

pytestmark = pytest.mark.unit


@pytest.fixture
def building() -> Building:
    return Building()


DEFINITION = CreateView(written("v"), Query("SELECT 1"))
HUNTER = CreateSecret(written("s"), SecretText("hunter2"))


def redefined(id_: int, *reads: int) -> DefinitionChanged:
    return DefinitionChanged(id_, "CREATE VIEW", DEFINITION, tuple(Dependency(i) for i in reads), ())


def test_a_snapshot_does_not_change_when_the_next_is_made(building: Building) -> None:
    before = building.catalog
    building.add(Kind.VIEW, "v")
    assert before == START
    assert (building.catalog.version, building.catalog.next_id) == (1, 4)


def test_ids_are_never_used_again(building: Building) -> None:
    first = building.add(Kind.VIEW, "v")
    building.do(ObjectDropped(first))
    assert building.add(Kind.VIEW, "v") == first + 1
    with pytest.raises(InternalError):
        building.do(ObjectCreated(Object(first, Kind.VIEW, PUBLIC, "w", NOW)))


def test_an_error_in_the_middle_leaves_no_trace(building: Building) -> None:
    before = building.catalog
    change = created(before, Kind.VIEW, "v")
    with pytest.raises(InternalError):
        apply(before, change, ObjectRenamed(99, "w"))
    assert before == START
    assert apply(before, change).version == 1


def test_what_is_used_cannot_be_dropped_and_all_users_are_listed(building: Building) -> None:
    source = building.add(Kind.SOURCE, "orders")
    view = building.add(Kind.VIEW, "v", reads=(source,))
    building.add(Kind.SINK, "s", reads=(view,))
    with pytest.raises(InUse) as caught:
        building.do(ObjectDropped(source))
    assert caught.value.message() == 'cannot drop source "orders": other objects use it'
    assert caught.value.detail() == 'Used by view "v", sink "s".'


def test_a_schema_and_a_database_must_be_empty_to_be_dropped(building: Building) -> None:
    building.add(Kind.VIEW, "v")
    with pytest.raises(NotEmpty) as caught:
        building.do(ObjectDropped(PUBLIC))
    assert caught.value.detail() == 'It holds view "v".'
    with pytest.raises(NotEmpty) as caught:
        building.do(ObjectDropped(1))
    assert caught.value.detail() == 'It holds schema "public".'


def test_cascade_drops_users_before_what_they_use_and_contents_before_their_schema(
    building: Building,
) -> None:
    staging = building.add(Kind.SCHEMA, "staging", parent=1)
    source = building.add(Kind.SOURCE, "orders", parent=staging)
    view = building.add(Kind.VIEW, "v", reads=(source,))
    both = building.add(Kind.VIEW, "w", reads=(source, view))
    other = building.add(Kind.VIEW, "other")
    order = [o.id for o in drop_order(building.catalog, (staging,))]
    assert order == [both, view, source, staging]
    building.do(*(ObjectDropped(i) for i in order))
    assert set(building.catalog.objects) == {1, PUBLIC, other}


def test_a_chain_longer_than_the_stack_can_be_dropped(building: Building) -> None:
    last = first = building.add(Kind.VIEW, "v0")
    for number in range(1, 1500):
        last = building.add(Kind.VIEW, f"v{number}", reads=(last,))
    order = drop_order(building.catalog, (first,))
    assert (order[0].id, order[-1].id, len(order)) == (last, first, 1500)
    with pytest.raises(DependencyCycle):
        building.do(redefined(first, last))


def test_a_disabled_binding_lets_its_collection_go(building: Building) -> None:
    collection = building.add(Kind.COLLECTION, "docs")
    capture = building.add(Kind.CAPTURE, "c")
    writes = Dependency(collection, DependencyKind.READS)
    building.do(DefinitionChanged(capture, "CREATE CAPTURE", DEFINITION, (writes,), ()))
    with pytest.raises(InUse):
        building.do(ObjectDropped(collection))
    disabled = Dependency(collection, DependencyKind.READS, blocks_drop=False)
    building.do(DefinitionChanged(capture, "CREATE CAPTURE", DEFINITION, (disabled,), ()))
    assert drop_order(building.catalog, (collection,)) == (building.catalog.get(collection),)
    building.do(ObjectDropped(collection))
    assert building.catalog.get(capture).dependencies == ()


def test_dependencies_cannot_go_round(building: Building) -> None:
    a = building.add(Kind.VIEW, "a")
    b = building.add(Kind.VIEW, "b", reads=(a,))
    c = building.add(Kind.VIEW, "c", reads=(b,))
    with pytest.raises(DependencyCycle) as caught:
        building.do(redefined(a, c))
    assert caught.value.message() == 'view "a" cannot depend on itself'
    assert caught.value.detail() == "The dependencies go round: a -> c -> b -> a."
    with pytest.raises(DependencyCycle):
        building.do(redefined(a, a))


def test_a_type_cannot_hold_itself(building: Building) -> None:
    own = building.catalog.next_id
    with pytest.raises(DependencyCycle):
        building.add(Kind.TYPE, "tree", "children array<headgate.public.tree>", types=(own,))


def test_lineage_is_walked_both_ways_nearest_first(building: Building) -> None:
    source = building.add(Kind.SOURCE, "s")
    view = building.add(Kind.VIEW, "v", reads=(source,))
    sink = building.add(Kind.SINK, "k", reads=(view,))
    assert [o.id for o in downstream(building.catalog, source)] == [view, sink]
    assert [o.id for o in upstream(building.catalog, sink)] == [view, source]


def test_a_rename_keeps_users_and_frees_the_name(building: Building) -> None:
    a = building.add(Kind.VIEW, "a")
    b = building.add(Kind.VIEW, "b", reads=(a,))
    building.do(ObjectRenamed(a, "c"))
    assert building.catalog.get(b).dependencies == (Dependency(a),)
    assert building.add(Kind.VIEW, "a") > b
    with pytest.raises(AlreadyExists):
        building.do(ObjectRenamed(b, "c"))


def test_a_rename_may_change_the_case_alone(building: Building) -> None:
    a = building.add(Kind.VIEW, "a")
    building.do(ObjectRenamed(a, "A"))
    assert building.catalog.path(a) == ("headgate", "public", "A")


def test_a_renamed_type_is_named_anew_in_every_column_that_has_it(building: Building) -> None:
    point = building.add(Kind.TYPE, "point", "x integer")
    path = building.add(Kind.TYPE, "path", types=(point,), body="array<headgate.public.point>")
    view = building.add(Kind.VIEW, "v", "p headgate.public.point", "n text", types=(point,))
    building.do(ObjectRenamed(point, "dot"), ObjectRenamed(PUBLIC, "main"))
    named = Named(("headgate", "main", "dot"))
    assert building.catalog.get(path).as_type() == Array(named)
    assert [c.type for c in building.catalog.get(view).columns] == [named, Text()]


def test_a_type_that_is_mentioned_must_be_among_the_dependencies(building: Building) -> None:
    point = building.add(Kind.TYPE, "point", "x integer")
    with pytest.raises(InternalError):
        building.add(Kind.VIEW, "v", "p headgate.public.point")
    mentioned = type_dependencies(building.catalog, [Array(Named(("headgate", "public", "point")))])
    assert mentioned == (Dependency(point, DependencyKind.TYPE),)


def test_column_ids_are_never_used_again(building: Building) -> None:
    view = building.add(Kind.VIEW, "v", "a integer", "b text")
    building.do(ColumnsChanged(view, numbered("a integer")))
    assert building.catalog.get(view).next_column == 3
    with pytest.raises(InternalError):
        building.do(ColumnsChanged(view, numbered("a integer", "c text")))
    building.do(ColumnsChanged(view, (*numbered("renamed bigint"), Column(3, "c", Text()))))
    assert [(c.id, c.name) for c in building.catalog.get(view).columns] == [(1, "renamed"), (3, "c")]


def test_a_comment_follows_its_column_through_rename_and_widening(building: Building) -> None:
    view = building.add(Kind.VIEW, "v", "a integer")
    building.do(CommentSet(view, 1, "an amount"), ColumnsChanged(view, numbered("amount bigint")))
    column = building.catalog.get(view).columns[0]
    assert (column.name, column.comment.explicit) == ("amount", "an amount")


def test_a_secret_is_stored_without_the_statement_that_carried_it(building: Building) -> None:
    made = Object(3, Kind.SECRET, PUBLIC, "s", NOW, "CREATE SECRET s AS 'hunter2'", HUNTER)
    building.do(ObjectCreated(made, EncryptedSecret("token")))
    assert building.catalog.get(3).statement == "CREATE SECRET s AS '***'"
    assert "hunter2" not in repr(building.catalog)
    building.do(SecretChanged(3, FromFile("/run/it's")))
    assert building.catalog.get(3).statement == "CREATE SECRET s FROM FILE '/run/it''s'"
    building.do(ObjectDropped(3))
    assert building.catalog.secrets == {}


def test_a_new_task_is_wanted_running_until_it_is_told_to_pause(building: Building) -> None:
    sink = building.add(Kind.SINK, "s")
    building.add(Kind.VIEW, "v")
    assert building.catalog.desired == {sink: DesiredTaskState.RUNNING}
    building.do(TaskStateSet(sink, DesiredTaskState.PAUSED))
    assert building.catalog.desired == {sink: DesiredTaskState.PAUSED}


def test_system_schemas_cannot_be_made(building: Building) -> None:
    with pytest.raises(ReservedName):
        building.add(Kind.SCHEMA, "Information_Schema", parent=1)


@pytest.mark.parametrize(
    "change",
    [
        ObjectDropped(99),
        ObjectRenamed(99, "x"),
        CommentSet(PUBLIC, 1, "x"),
        SecretChanged(PUBLIC, FromEnvironment("X")),
        TaskStateSet(PUBLIC, DesiredTaskState.PAUSED),
        ObjectCreated(Object(3, Kind.VIEW, 1, "in a database", NOW)),
        ObjectCreated(Object(3, Kind.SCHEMA, PUBLIC, "in a schema", NOW)),
        ObjectCreated(Object(3, Kind.DATABASE, 1, "in a database", NOW)),
        ObjectCreated(Object(3, Kind.SECRET, PUBLIC, "without value", NOW)),
        ObjectCreated(Object(3, Kind.VIEW, PUBLIC, "uses nothing", NOW, dependencies=(Dependency(98),))),
        ObjectCreated(Object(3, Kind.VIEW, PUBLIC, "twice", NOW, columns=numbered("a text", "a text"))),
    ],
)
def test_what_only_a_planner_can_get_wrong_is_an_internal_error(change: Change) -> None:
    with pytest.raises(InternalError):
        apply(START, change)
