"""Sink policies: which sinks they hold for, what they list, and fields that arrive without a doc."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import apply
from headgate.catalog.errors import InUse, UnknownObject
from headgate.catalog.objects import definition_of
from headgate.plan.definitions import SinkDefinition
from headgate.plan.doc_errors import PolicyViolated
from headgate.plan.impact import needed_sink, plan_follow
from headgate.plan.plans import Outcome
from headgate.schema.types import Type
from headgate.schema.written import WrittenSchema
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind
from tests.plan.planning import AVRO, Planning

pytestmark = pytest.mark.unit

POLICY = "CREATE SINK POLICY p FORMAT AVRO (REQUIRE DOCUMENTATION FOR ALL {})"
SINK = f"CREATE SINK out FROM people INTO KAFKA CONNECTION kafka (TOPIC 'out') {AVRO}"


def address(*more: object) -> dict[str, object]:
    fields = [{"name": "street", "type": "string", "doc": "with number"}, *more]
    return {"name": "addr", "type": {"type": "record", "name": "address", "fields": fields}, "doc": "where to"}


def person(*fields: object) -> dict[str, object]:
    return {"type": "record", "name": "person", "fields": list(fields)}


ID = {"name": "id", "type": "long", "doc": "from the till"}


def text(name: str, **more: str) -> dict[str, object]:
    return {"name": name, "type": ["null", "string"], "default": None, **more}


@pytest.fixture
def world() -> Planning:
    world = Planning()
    world.topic("people", value=person(ID, address()))
    world.do(f"CREATE SOURCE people FROM KAFKA CONNECTION kafka (TOPIC 'people') {AVRO}")
    return world


def nobody(_: Catalog, analysed: AnalysedQuery) -> Sequence[Type]:
    raise AssertionError(analysed)


def follow(world: Planning, *fields: object) -> list[Outcome]:
    """What becomes of the sinks when the source reads this schema too."""
    new = WrittenSchema(json.dumps(person(*fields)), (), 77)
    plan = plan_follow(world.catalog, world.named("people", Kind.SOURCE), [("VALUE", new)], nobody)
    world.catalog = apply(world.catalog, *plan.changes, *(sink.change() for sink in plan.sinks))
    sinks = {o.id for o in world.catalog.of_kind(Kind.SINK)}
    return [one.outcome for one in plan.consequences if one.object in sinks]


def pending(world: Planning) -> list[str]:
    return [".".join(path) for path in definition_of(world.named("out", Kind.SINK), CreateSink).pending]


def sink(world: Planning) -> SinkDefinition:
    return needed_sink(world.catalog, world.named("out", Kind.SINK))


def violation(world: Planning, statement: str) -> tuple[str, ...]:
    with pytest.raises(PolicyViolated) as raised:
        world.plan(statement)
    return raised.value.undocumented


def test_a_violation_lists_every_undocumented_part(world: Planning) -> None:
    world.do("CREATE VIEW v AS SELECT id AS a, id + 1 AS b, addr FROM people")
    sink = SINK.replace("FROM people", "FROM v").replace("FORMAT", "KEY (b) NOT ENFORCED FORMAT", 1)
    world.do(POLICY.format("FIELDS"))
    assert violation(world, sink) == ("key $.b", "value $.b")
    world.do("ALTER SINK POLICY p FORMAT AVRO (REQUIRE DOCUMENTATION FOR ALL TYPES)")
    assert violation(world, sink) == ("the type of key $", "the type of value $")


def test_what_no_statement_can_document_is_not_required(world: Planning) -> None:
    world.do(POLICY.format("TYPES"))
    world.do(f"{SINK} (DOC ON TYPE people = 'all of them')")  # the record in addr has no name


@pytest.mark.parametrize(
    ("scope", "holds"),
    [
        ("", True),
        ("ON DATABASE headgate", True),
        ("ON SCHEMA public", True),
        ("ON SCHEMA other", False),
        ("ON DATABASE spare", False),
    ],
)
def test_a_policy_holds_for_the_sinks_of_its_scope(world: Planning, scope: str, holds: bool) -> None:
    world.do("CREATE SCHEMA other; CREATE DATABASE spare; CREATE VIEW v AS SELECT id + 1 AS n FROM people")
    world.do(f"{POLICY.format('FIELDS')} {scope}")
    sink = SINK.replace("FROM people", "FROM v")
    if holds:
        assert violation(world, sink) == ("value $.n",)
    else:
        world.plan(sink)


def test_a_policy_is_for_one_format(world: Planning) -> None:
    world.do(POLICY.format("FIELDS").replace("AVRO", "PROTOBUF"))
    world.do("CREATE VIEW v AS SELECT id + 1 AS n FROM people")
    world.plan(SINK.replace("FROM people", "FROM v"))


def test_a_policy_names_the_sinks_that_do_not_fulfil_it_and_lets_them_be_completed(world: Planning) -> None:
    world.do("CREATE VIEW v AS SELECT id + 1 AS n, id + 2 AS m FROM people")
    world.do(SINK.replace("FROM people", "FROM v"))
    (made,) = world.do(POLICY.format("FIELDS"))
    assert made.notices == ('sink "out" goes on without documentation of value $.n, value $.m',)
    world.do("ALTER SINK out FORMAT AVRO (ADD DOC ON COLUMN v.n = 'x')")
    assert violation(world, "ALTER SINK out FORMAT AVRO (DROP DOC ON COLUMN v.n)") == ("value $.n",)


def test_a_scope_must_exist_and_cannot_be_dropped(world: Planning) -> None:
    with pytest.raises(UnknownObject):
        world.plan(f"{POLICY.format('FIELDS')} ON SCHEMA missing")
    world.do("CREATE SCHEMA strict")
    world.do(f"{POLICY.format('FIELDS')} ON SCHEMA strict")
    with pytest.raises(InUse):
        world.plan("DROP SCHEMA strict")


# in flight


def test_a_new_field_without_a_doc_is_pending_and_the_others_are_taken_up(world: Planning) -> None:
    world.do(f"{POLICY.format('FIELDS')}; {SINK}")
    outcomes = follow(world, ID, address(text("zip")), text("nick"), text("born", doc="the year"))
    assert outcomes == [Outcome.REGISTERS]
    assert pending(world) == ["addr.zip", "nick"]
    assert sink(world).value.columns == ("id", "addr", "born")
    assert sink(world).value.left_out == (("addr", "zip"),)


def test_a_sink_with_nothing_but_pending_fields_registers_nothing(world: Planning) -> None:
    world.do(f"{POLICY.format('FIELDS')}; {SINK}")
    assert follow(world, ID, address(), text("nick")) == [Outcome.LEAVES_OUT]
    assert follow(world, ID, address(), text("nick"), text("born", doc="the year")) == [Outcome.REGISTERS]
    assert pending(world) == ["nick"]


def test_refresh_takes_up_what_is_documented_now(world: Planning) -> None:
    world.do(f"{POLICY.format('FIELDS')}; {SINK}")
    follow(world, ID, address(text("zip")), text("nick"))
    world.do("COMMENT ON COLUMN people.nick IS 'among friends'")
    assert pending(world) == ["addr.zip", "nick"]
    (first,) = world.do("ALTER SINK out FORMAT AVRO (REFRESH DOCS)")
    assert first.notices == ("still without documentation, and therefore not written: addr.zip",)
    world.do("COMMENT ON COLUMN (people.addr).zip IS 'of the town'; ALTER SINK out FORMAT AVRO (REFRESH DOCS)")
    assert pending(world) == []
    assert sink(world).value.columns == ("id", "addr", "nick")


def test_a_pending_field_can_get_a_doc_of_the_sink_alone(world: Planning) -> None:
    world.do(f"{POLICY.format('FIELDS')}; {SINK}")
    follow(world, ID, address(), text("nick"))
    world.do("ALTER SINK out FORMAT AVRO (ADD DOC ON COLUMN people.nick = 'among friends')")
    assert pending(world) == ["nick"]
    world.do("ALTER SINK out FORMAT AVRO (REFRESH DOCS)")
    assert pending(world) == []
    assert sink(world).value.record.fields[2].doc == "among friends"


def test_without_a_policy_a_field_without_a_doc_is_taken_up(world: Planning) -> None:
    world.do(SINK)
    assert follow(world, ID, address(), text("nick")) == [Outcome.REGISTERS]
    assert pending(world) == []
