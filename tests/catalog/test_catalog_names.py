"""Names find objects by search path and case as DESIGN's rules say."""

from __future__ import annotations

import pytest

from headgate.catalog.errors import (
    AlreadyExists,
    AmbiguousColumn,
    AmbiguousName,
    NameTooLong,
    NoColumns,
    ReservedName,
    UnknownColumn,
    UnknownObject,
    WrongKind,
)
from headgate.catalog.names import (
    DEFAULT_PATH,
    SearchPath,
    find,
    owned_column,
    parent_and_name,
    resolve,
    resolve_database,
    resolve_owner,
    resolve_schema,
    search_path,
)
from headgate.catalog.objects import Column, Namespace, namespace_of
from headgate.errors import HeadgateError, Span
from headgate.sql.statement import Kind, ObjectName
from headgate.text.cursor import Identifier
from tests.catalog.building import PUBLIC, Building, written

pytestmark = pytest.mark.unit


@pytest.fixture
def building() -> Building:
    return Building()


def look_up(building: Building, name: str, *kinds: Kind, path: SearchPath = DEFAULT_PATH) -> int:
    return resolve(building.catalog, path, written(name), *kinds).id


@pytest.mark.parametrize("name", ["Orders", "orders", "ORDERS", "public.orders", "HEADGATE.Public.oRDERS"])
def test_an_unquoted_name_finds_the_only_candidate_in_any_case(building: Building, name: str) -> None:
    orders = building.add(Kind.SOURCE, "Orders")
    assert look_up(building, name) == orders


def test_a_quoted_name_matches_exactly(building: Building) -> None:
    orders = building.add(Kind.SOURCE, "Orders")
    assert look_up(building, '"Orders"') == orders
    with pytest.raises(UnknownObject) as caught:
        look_up(building, '"orders"', Kind.SOURCE)
    assert caught.value.message() == 'source "orders" does not exist'
    assert caught.value.hint() == 'Did you mean "Orders"?'


def test_with_two_candidates_an_unquoted_name_must_match_exactly(building: Building) -> None:
    upper, lower = building.add(Kind.SOURCE, "Orders"), building.add(Kind.VIEW, "orders")
    assert look_up(building, "Orders") == upper
    assert look_up(building, "orders") == lower
    with pytest.raises(AmbiguousName) as caught:
        look_up(building, "ORDERS")
    assert caught.value.candidates == ('"Orders"', '"orders"')
    assert caught.value.hint() == 'Write the name exactly, for example "Orders".'


def test_the_first_schema_of_the_search_path_that_has_the_name_wins(building: Building) -> None:
    staging = building.add(Kind.SCHEMA, "staging", parent=1)
    building.add(Kind.VIEW, "orders")
    shadow = building.add(Kind.VIEW, "ORDERS", parent=staging)
    path = SearchPath((("headgate", "gone"), ("headgate", "staging"), ("headgate", "public")))
    assert look_up(building, "orders", path=path) == shadow


def test_a_name_in_a_schema_outside_the_path_is_suggested_with_its_schema(building: Building) -> None:
    staging = building.add(Kind.SCHEMA, "staging", parent=1)
    building.add(Kind.VIEW, "orders", parent=staging)
    with pytest.raises(UnknownObject) as caught:
        look_up(building, "orders", Kind.VIEW)
    assert caught.value.similar == ("staging.orders",)


def test_another_database_is_reached_by_three_parts_only(building: Building) -> None:
    database = building.add(Kind.DATABASE, "Archive", parent=0)
    schema = building.add(Kind.SCHEMA, "old", parent=database)
    view = building.add(Kind.VIEW, "v", parent=schema)
    assert look_up(building, "archive.old.v") == view
    with pytest.raises(UnknownObject) as caught:
        look_up(building, "old.v")
    assert caught.value.message() == 'schema "old" does not exist'


def test_sinks_materializations_and_captures_have_namespaces_of_their_own(building: Building) -> None:
    made = {
        kind: building.add(kind, "orders")
        for kind in (Kind.VIEW, Kind.SINK, Kind.MATERIALIZATION, Kind.CAPTURE, Kind.CONNECTION, Kind.SECRET)
    }
    for kind, id_ in made.items():
        assert look_up(building, "orders", kind) == id_
    assert look_up(building, "orders") == made[Kind.VIEW]


def test_types_and_relations_share_one_namespace(building: Building) -> None:
    building.add(Kind.TYPE, "point", "x integer")
    with pytest.raises(AlreadyExists) as caught:
        building.add(Kind.STREAM, "point")
    assert caught.value.message() == 'type "point" already exists'


def test_an_object_of_another_kind_is_named_as_what_it_is(building: Building) -> None:
    building.add(Kind.VIEW, "orders")
    with pytest.raises(WrongKind) as caught:
        look_up(building, "orders", Kind.SOURCE, Kind.TABLE)
    assert caught.value.message() == '"orders" is a view, not a source or a table'


def test_an_object_of_another_namespace_is_named_too_but_does_not_count_for_if_exists(
    building: Building,
) -> None:
    building.add(Kind.VIEW, "orders")
    with pytest.raises(WrongKind) as caught:
        look_up(building, "orders", Kind.SINK)
    assert caught.value.message() == '"orders" is a view, not a sink'
    assert find(building.catalog, DEFAULT_PATH, written("orders"), Kind.SINK) is None


def test_of_several_kinds_the_one_that_fits_is_found(building: Building) -> None:
    building.add(Kind.SOURCE, "orders")
    sink = building.add(Kind.SINK, "orders")
    assert look_up(building, "orders", Kind.VIEW, Kind.SINK) == sink


@pytest.mark.parametrize("name", ["nothing", "nowhere.orders", "no.public.orders"])
def test_find_gives_none_where_resolve_raises(building: Building, name: str) -> None:
    building.add(Kind.VIEW, "orders")
    assert find(building.catalog, DEFAULT_PATH, written(name), Kind.VIEW) is None
    with pytest.raises(UnknownObject):
        look_up(building, name, Kind.VIEW)


def test_near_names_are_of_the_kinds_asked_for(building: Building) -> None:
    building.add(Kind.SOURCE, "orders")
    building.add(Kind.SINK, "order")
    with pytest.raises(UnknownObject) as caught:
        look_up(building, "ordes", Kind.SOURCE, Kind.VIEW)
    assert caught.value.message() == 'relation "ordes" does not exist'
    assert caught.value.similar == ("orders",)


def test_a_name_of_four_parts_is_refused(building: Building) -> None:
    with pytest.raises(NameTooLong) as caught:
        look_up(building, "a.b.c.d")
    assert caught.value.code == "CAT-0107"


def test_errors_point_at_the_name_in_the_statement(building: Building) -> None:
    name = ObjectName((Identifier("ordes"),), span=Span(14, 19))
    with pytest.raises(UnknownObject) as caught:
        resolve(building.catalog, DEFAULT_PATH, name)
    assert caught.value.diagnostic("SELECT * FROM ordes").excerpt == "1 | SELECT * FROM ordes\n                  ^^^^^"


def test_schemas_and_databases_follow_the_same_rules(building: Building) -> None:
    staging = building.add(Kind.SCHEMA, "Staging", parent=1)
    assert resolve_schema(building.catalog, DEFAULT_PATH, written("headgate.STAGING")).id == staging
    assert resolve_database(building.catalog, written("Headgate")).id == 1
    with pytest.raises(UnknownObject) as caught:
        resolve_schema(building.catalog, DEFAULT_PATH, written("stagin"))
    assert caught.value.hint() == 'Did you mean "Staging"?'
    with pytest.raises(NameTooLong):
        resolve_database(building.catalog, written("a.b"))


def test_set_search_path_takes_schemas_that_exist(building: Building) -> None:
    building.add(Kind.SCHEMA, "Staging", parent=1)
    names = [written("staging"), written("headgate.public"), written("information_schema")]
    path = search_path(building.catalog, DEFAULT_PATH, names)
    assert path.entries == (
        ("headgate", "Staging"),
        ("headgate", "public"),
        ("headgate", "information_schema"),
    )
    assert search_path(building.catalog, path, []) == DEFAULT_PATH
    with pytest.raises(UnknownObject):
        search_path(building.catalog, path, [written("nowhere")])


def test_columns_follow_the_same_rules(building: Building) -> None:
    building.add(Kind.VIEW, "v", "Id bigint", "price integer", "PRICE text")
    found = [column_of(building, f"v.{c}").id for c in ("ID", "PRICE")]
    assert found == [1, 3]
    with pytest.raises(AmbiguousColumn) as ambiguous:
        column_of(building, "v.Price")
    assert ambiguous.value.candidates == ('"PRICE"', '"price"')
    with pytest.raises(UnknownColumn) as unknown:
        column_of(building, "v.prize")
    assert unknown.value.message() == 'column "prize" of view "v" does not exist'
    assert unknown.value.similar == ("price",)


def test_an_object_without_columns_has_none_to_find(building: Building) -> None:
    building.add(Kind.TYPE, "list", body="array<text>")
    with pytest.raises(NoColumns) as caught:
        column_of(building, "list.price")
    assert caught.value.message() == 'type "list" has no columns'


def column_of(building: Building, name: str) -> Column:
    owner = resolve_owner(building.catalog, DEFAULT_PATH, written(name))
    return owned_column(building.catalog, owner, written(name))


def place_of(building: Building, name: str, kind: Kind) -> tuple[int, str]:
    return parent_and_name(building.catalog, DEFAULT_PATH, written(name), kind)


def test_a_new_object_keeps_the_case_it_is_written_in(building: Building) -> None:
    assert place_of(building, "Orders", Kind.VIEW) == (PUBLIC, "Orders")
    assert place_of(building, "Headgate.PUBLIC.Orders", Kind.VIEW) == (PUBLIC, "Orders")
    assert place_of(building, "Staging", Kind.SCHEMA) == (1, "Staging")
    assert place_of(building, "headgate.Staging", Kind.SCHEMA) == (1, "Staging")
    assert place_of(building, "Archive", Kind.DATABASE) == (0, "Archive")


def test_an_unquoted_new_name_is_taken_by_the_object_that_it_finds(building: Building) -> None:
    building.add(Kind.SOURCE, "Orders")
    with pytest.raises(AlreadyExists) as caught:
        place_of(building, "orders", Kind.VIEW)
    assert caught.value.message() == 'source "Orders" already exists'
    assert caught.value.hint() == 'Write "orders" to have a second object whose name differs only by case.'
    assert place_of(building, '"orders"', Kind.VIEW) == (PUBLIC, "orders")
    assert place_of(building, "orders", Kind.SINK) == (PUBLIC, "orders")


@pytest.mark.parametrize(
    ("name", "kind", "error"),
    [
        ("Information_Schema", Kind.SCHEMA, ReservedName),
        ("headgate_catalog.mine", Kind.VIEW, ReservedName),
        ("nowhere.v", Kind.VIEW, UnknownObject),
        ("a.b.c.d", Kind.VIEW, NameTooLong),
        ("a.b.c", Kind.SCHEMA, NameTooLong),
    ],
)
def test_places_that_cannot_be(building: Building, name: str, kind: Kind, error: type[HeadgateError]) -> None:
    with pytest.raises(error):
        place_of(building, name, kind)


def test_every_kind_has_a_namespace() -> None:
    assert {namespace_of(kind) for kind in Kind} == set(Namespace)


def test_names_are_shown_as_short_as_the_default_path_finds_them(building: Building) -> None:
    staging = building.add(Kind.SCHEMA, "staging", parent=1)
    archive = building.add(Kind.DATABASE, "archive", parent=0)
    old = building.add(Kind.SCHEMA, "old", parent=archive)
    ids = [building.add(Kind.VIEW, "my view", parent=parent) for parent in (PUBLIC, staging, old)]
    shown = [building.catalog.display_name(i) for i in (*ids, staging, old, archive)]
    assert shown == [
        '"my view"',
        'staging."my view"',
        'archive.old."my view"',
        "staging",
        "archive.old",
        "archive",
    ]
    for id_, name in zip(ids, shown, strict=False):
        assert look_up(building, name) == id_
