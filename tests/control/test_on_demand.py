"""Calls of materializations ON DEMAND without Spark: what the query process is asked, and what becomes of its answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from headgate.catalog.catalog import Catalog
from headgate.catalog.errors import UnknownObject, WrongKind
from headgate.catalog.objects import Object
from headgate.catalog.positions import KafkaPosition, LogPosition
from headgate.connectors.connections import ServerOptions
from headgate.control.on_demand import OnDemand, RowsCall, RowsEnd
from headgate.control.sessions import Cancellation
from headgate.errors import HeadgateError
from headgate.plan.definitions import SelectDefinition
from headgate.plan.materialization_errors import NotOnDemand
from headgate.plan.on_demand import RowsRequest
from headgate.plan.target_definitions import OnDemandRows, RowForm
from headgate.runtime import query as answers
from headgate.sql.errors import UnknownColumn
from headgate.sql.statement import Kind
from tests.plan.planning import Planning
from tests.plan.test_materializations import keyed

pytestmark = pytest.mark.unit


class Engine:
    """The parts of an engine that calls need, with a planned catalog and answers that are given."""

    def __init__(self, planning: Planning, *rounds: Sequence[answers.Answer]) -> None:
        self.planning = planning
        self.rounds = list(rounds)
        self.requests: list[answers.QueryRequest] = []
        self.followed: list[int] = []
        self.grows: Any = None
        self.saved: dict[int, bytes] = {}
        self.closed = 0

    def calls(self) -> OnDemand:
        store: Any = self
        return OnDemand(store, self, self.request, lambda source, _: self.followed.append(source), self.arrived)

    # the store

    def load(self) -> Catalog:
        return self.planning.catalog

    def row_message(self, materialization: int) -> bytes | None:
        return self.saved.get(materialization)

    def save_row_message(self, materialization: int, file: bytes) -> None:
        self.saved[materialization] = file

    # queries

    def request(self, _: Catalog, select: SelectDefinition) -> answers.QueryRequest:
        return answers.QueryRequest(select, ServerOptions({}, {}), {})

    def arrived(self, _: Catalog, source: Object) -> bool:
        self.followed.append(source.id)
        if self.grows is not None:
            self.grows()
        return self.grows is not None

    def open(self, request: answers.QueryRequest) -> Any:
        self.requests.append(request)
        return self

    def answers(self) -> Iterator[answers.Answer]:
        yield from self.rounds.pop(0)

    def cancel(self) -> None:
        """Nothing runs."""

    def close(self) -> None:
        self.closed += 1


def served(rest: str = "") -> Planning:
    planning = keyed()
    planning.do(f"CREATE MATERIALIZATION m FROM orders INTO ON DEMAND {rest}")
    return planning


def call(planning: Planning, form: RowForm = "object", **request: Any) -> RowsCall:
    return RowsCall(planning.named("m", Kind.MATERIALIZATION).id, RowsRequest(**request), form)


def asked(engine: Engine) -> OnDemandRows:
    found = engine.requests[-1].on_demand
    assert found is not None
    return found


END = answers.Finished({})


def test_the_query_process_is_given_what_the_client_asks_for() -> None:
    planning = served()
    engine = Engine(planning, [answers.Columns(()), END])
    wanted = call(planning, fields=("price",), filter="vip", limit=3, key="7")
    assert list(engine.calls().rows(wanted, Cancellation())) == [RowsEnd({}, 0, {})]
    found = asked(engine)
    assert ([f.name for f in found.fields], found.limit, found.key) == (["price"], 3, ("7",))
    assert found.filter is not None
    assert found.filter.fields == {"vip"}
    assert engine.requests[-1].select.query.limit == 3
    assert engine.closed == 1


def test_rows_that_are_left_out_do_not_count_for_the_limit() -> None:
    planning = served("WITH (ON ERROR = SKIP)")
    engine = Engine(planning, [END])
    list(engine.calls().rows(call(planning, limit=3), Cancellation()))
    assert (asked(engine).limit, engine.requests[-1].select.query.limit) == (3, None)


@pytest.mark.parametrize("form", ["message", "json", "flat"])
def test_every_form_but_json_objects_has_a_message(form: RowForm) -> None:
    planning = served()
    engine = Engine(planning, [END])
    list(engine.calls().rows(call(planning, form), Cancellation()))
    assert asked(engine).descriptors


def test_the_end_says_what_the_rows_reflect_and_what_is_missing() -> None:
    planning = served()
    source = planning.named("orders", Kind.SOURCE).id
    kafka = KafkaPosition("orders", "id", (4, 5))
    finished = answers.Finished({source: 2}, {source: {source: LogPosition(source, 1, 9), 999: kafka}}, {}, 1)
    engine = Engine(planning, [answers.Messages((b"a", b"b")), finished], [answers.Finished({}, {}, {source: kafka})])
    calls = engine.calls()
    rows, end = calls.rows(call(planning), Cancellation())
    assert rows == (b"a", b"b")
    reached = {"orders": {"batch": 9}, "a dropped relation": {"topic": "orders", "offsets": [4, 5]}}
    assert end == RowsEnd({"orders": reached}, 1, {"orders": 2})
    assert list(calls.rows(call(planning), Cancellation())) == [
        RowsEnd({"orders": {"topic": "orders", "offsets": [4, 5]}}, 0, {})
    ]


def test_a_call_begins_anew_when_its_source_has_grown() -> None:
    planning = served()
    source = planning.named("orders", Kind.SOURCE).id
    engine = Engine(planning, [answers.Grown(((source, ()),))], [answers.Messages((b"a",)), END])
    assert list(engine.calls().rows(call(planning), Cancellation())) == [(b"a",), RowsEnd({}, 0, {})]
    assert engine.followed == [source]
    assert len(engine.requests) == 2


def test_an_unknown_field_of_a_filter_is_looked_for_in_new_schemas() -> None:
    planning = served("FIELDS (id i64)")
    source = planning.named("orders", Kind.SOURCE).id
    engine = Engine(planning, [END])
    wanted = call(planning, filter="vip")
    with pytest.raises(UnknownColumn):
        engine.calls().check(wanted)
    assert engine.followed == [source]
    engine.grows = lambda: planning.do("ALTER MATERIALIZATION m SET FIELDS (id i64, vip boolean)")
    engine.calls().check(wanted)


def test_what_fails_is_raised() -> None:
    planning = served()
    failed = NotOnDemand("x")
    with pytest.raises(HeadgateError) as raised:
        list(Engine(planning, [answers.Failed(failed)]).calls().rows(call(planning), Cancellation()))
    assert raised.value is failed


def test_a_materialization_is_found_by_the_name_that_a_statement_would_have() -> None:
    planning = served()
    calls = Engine(planning).calls()
    assert calls.find("M") == calls.find("public.m") == calls.find('"m"')
    planning.do("CREATE MATERIALIZATION t FROM orders INTO POSTGRES CONNECTION pg (TABLE 't')")
    for name, error in (("t", NotOnDemand), ("orders", WrongKind), ("nope", UnknownObject)):
        with pytest.raises(error):
            calls.find(name)
    for name in ("m m", "", "m; DROP"):
        with pytest.raises(HeadgateError):
            calls.find(name)


def test_services_are_those_of_the_catalog_and_their_messages_are_remembered() -> None:
    planning = served("FIELDS (id i64, price f64)")
    engine = Engine(planning)
    calls = engine.calls()
    [first] = calls.services()
    assert calls.services()[0] is first
    planning.do("ALTER MATERIALIZATION m SET FIELDS (price f64, id i64)")
    [second] = engine.calls().services()  # as another engine would
    numbers = [{f.name: f.number for f in one.file.message_type[0].field} for one in (first, second)]
    assert numbers == [{"id": 1, "price": 2}, {"id": 1, "price": 2}]
    planning.do("DROP MATERIALIZATION m")
    assert calls.services() == ()
