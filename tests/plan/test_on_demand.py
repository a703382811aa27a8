"""Materializations ON DEMAND as they are planned, and what clients may ask of them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from headgate.errors import HeadgateError
from headgate.plan import materialization_errors as errors, on_demand as od
from headgate.plan.materialization_errors import MaterializationCannotQuarantine, NativeTypeRefused
from headgate.plan.materializations import existing_materialization
from headgate.plan.on_demand_messages import row_file, service_file, shared_files
from headgate.plan.target_definitions import OnDemandDefinition
from headgate.schema import types as t
from headgate.schema.errors import NameClash
from headgate.sql.errors import UnknownColumn
from headgate.sql.statement import Kind
from tests.plan.planning import Planning
from tests.plan.test_materializations import keyed, world

pytestmark = pytest.mark.unit


def made(planning: Planning, rest: str = "", name: str = "m", of: str = "orders") -> OnDemandDefinition:
    planning.do(f"CREATE MATERIALIZATION {name} FROM {of} INTO ON DEMAND {rest}")
    planned = existing_materialization(planning.catalog, planning.named(name, Kind.MATERIALIZATION))
    assert isinstance(planned, OnDemandDefinition)
    return planned


def test_it_is_no_task_and_needs_no_connection() -> None:
    planning = keyed()
    definition = made(planning)
    entry = planning.named("m", Kind.MATERIALIZATION)
    assert entry.id not in planning.catalog.desired
    assert [d.on for d in entry.dependencies] == [definition.relation]
    assert definition.key_columns == (("id", t.Bigint()),)


def test_a_relation_whose_rows_change_without_a_key_can_be_served() -> None:
    planning = world()
    planning.do("CREATE VIEW v AS SELECT count(*) AS n FROM orders")
    definition = made(planning, of="v")
    with pytest.raises(errors.NoKeyOnDemand):
        od.key_values(definition, "v", "1")


@pytest.mark.parametrize(
    ("rest", "error"),
    [
        ("WITH (ON ERROR = QUARANTINE)", MaterializationCannotQuarantine),
        ("WITH (NESTED = JSON)", errors.OptionNotOnDemand),
        ("WITH (ADOPT = true)", errors.OptionNotOnDemand),
        ("WITH (DELTA UPDATES = true)", errors.OptionNotOnDemand),
        ("WITH (ON INCOMPATIBLE SCHEMA CHANGE = ABORT)", errors.OptionNotOnDemand),
        ("FIELDS (id i64 AS 'int8')", NativeTypeRefused),
        ("""FIELDS ("a.b" i64 FROM '/id', a OBJECT (b i64 FROM '/id'))""", NameClash),
    ],
)
def test_what_is_about_a_target_is_refused(rest: str, error: type[HeadgateError]) -> None:
    with pytest.raises(error):
        made(keyed(), rest)


@pytest.mark.parametrize("action", ["BACKFILL", "DISABLE", "ENABLE"])
def test_what_is_about_a_task_is_refused(action: str) -> None:
    planning = keyed()
    made(planning)
    with pytest.raises(errors.NoTaskOnDemand):
        planning.change(f"ALTER MATERIALIZATION m {action}")


def test_two_services_never_have_one_name() -> None:
    planning = keyed()
    made(planning, name="order_rows")
    with pytest.raises(errors.ServiceNameTaken):
        made(planning, name='"orderRows"')
    made(planning, name="other")
    with pytest.raises(errors.ServiceNameTaken):
        planning.change('ALTER MATERIALIZATION other RENAME TO "OrderRows"')


@pytest.mark.parametrize(("name", "word"), [("order_rows", "OrderRows"), ("a b-ü", "AB"), ("1x", "T1x"), ("", "T")])
def test_the_name_of_a_service(name: str, word: str) -> None:
    assert od.service_word(name) == word


# Filters


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("price > 10 AND vip", {"price", "vip"}),
        ("m.address.city = 'x' -- the city", {"address"}),
        ("price IN (1, 2)", {"price"}),
        ("true", set()),
    ],
)
def test_a_condition_over_fields(text: str, fields: set[str]) -> None:
    planning = keyed()
    definition = made(planning)
    found = od.row_filter(planning.catalog, definition, text, definition.fields[:1])
    assert found is not None
    assert found.fields == fields


@pytest.mark.parametrize(
    "text",
    [
        "price",
        "price > 1) OR (true",
        "price > 1, vip",
        "(price > 1",
        "vip; DROP VIEW v",
        "EXISTS (SELECT 1 FROM orders)",
        "(SELECT 1) = 1",
        "id IN (SELECT id FROM m)",
        "count(*) > 1",
        "row_number() OVER () = 1",
    ],
)
def test_anything_but_one_condition_over_a_row_is_refused(text: str) -> None:
    planning = keyed()
    definition = made(planning)
    with pytest.raises(errors.FilterNotCondition):
        od.row_filter(planning.catalog, definition, text, definition.fields)


def test_an_error_in_a_filter_points_into_its_text() -> None:
    planning = keyed()
    definition = made(planning)
    with pytest.raises(UnknownColumn) as raised:
        od.row_filter(planning.catalog, definition, "vip AND prce > 1", definition.fields)
    span = raised.value.span
    assert span is not None
    assert "vip AND prce > 1"[span.start : span.end] == "prce"


def test_an_empty_filter_is_none() -> None:
    planning = keyed()
    assert od.row_filter(planning.catalog, made(planning), "  ", ()) is None


# Fields, limits and keys


def test_fields_come_in_the_order_of_the_definition() -> None:
    definition = made(keyed())
    assert [f.name for f in od.chosen_fields(definition, ["VIP", "id"])] == ["id", "vip"]
    with pytest.raises(errors.UnknownRowField) as raised:
        od.chosen_fields(definition, ["prize"])
    assert "price" in (raised.value.hint() or "")


@pytest.mark.parametrize("limit", [-1, 2**31])
def test_a_limit_is_a_number_of_rows(limit: int) -> None:
    with pytest.raises(errors.MalformedLimit):
        od.checked_limit(limit)
    assert od.checked_limit(0) == 0


@pytest.mark.parametrize(("text", "value"), [("7", "7"), ("[7]", "7"), ("7.0", "7")])
def test_a_key_is_its_text_or_an_array(text: str, value: str) -> None:
    assert od.key_values(made(keyed()), "orders", text) == (value,)


@pytest.mark.parametrize("text", ["x", "[1, 2]", "[", "1.5", "null", "", "[null]"])
def test_a_key_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(errors.MalformedKey) as raised:
        od.key_values(made(keyed()), "orders", text)
    assert "id bigint" in raised.value.hint()


@given(st.text())
def test_every_text_can_be_a_key(text: str) -> None:
    definition = OnDemandDefinition("m", 1, (), (("k", t.Text()),))
    if not text.startswith("[") and text.isprintable():
        assert od.key_values(definition, "r", text) == (text,)


# Messages


def numbers(file: object) -> dict[str, int]:
    return {field.name: field.number for field in file.message_type[0].field}  # type: ignore[attr-defined]


def test_the_fields_of_a_message_keep_their_numbers() -> None:
    planning = keyed()
    definition = made(planning)
    first = row_file(definition, "M", None)
    planning.do("ALTER MATERIALIZATION m SET FIELDS (vip boolean, extra string FROM '/note' NULL, id i64)")
    changed = existing_materialization(planning.catalog, planning.named("m", Kind.MATERIALIZATION))
    assert isinstance(changed, OnDemandDefinition)
    second = numbers(row_file(changed, "M", first.SerializeToString()))
    assert {name: second[name] for name in ("vip", "id")} == {name: numbers(first)[name] for name in ("vip", "id")}
    assert second["extra"] not in numbers(first).values()


def test_a_service_streams_rows_of_its_own_message() -> None:
    [service] = service_file("OrderRows").service
    [method] = service.method
    assert (service.name, method.name, method.server_streaming) == ("OrderRows", "Rows", True)
    assert method.output_type == ".headgate.ondemand.rows.OrderRows"
    assert [file.name for file in shared_files()][-1] == "headgate/v1/on_demand.proto"
