"""Plans of materializations into an index."""

from __future__ import annotations

import pytest

from headgate.control.definitions import task_definition
from headgate.control.describe import described
from headgate.plan.materialization_errors import (
    DeltaUpdatesNotForIndex,
    KeyNotMaterialized,
    NestedNotForIndex,
    NoWayInPlace,
    TargetTaken,
)
from headgate.plan.plans import ChangeCatalog, ProvisionIndex, ReleaseIndex
from headgate.plan.target_definitions import IndexDefinition
from headgate.schema.render import print_type
from headgate.sql.statement import Kind
from tests.plan.planning import AVRO, Planning, record

pytestmark = pytest.mark.unit

INTO = "INTO ELASTICSEARCH CONNECTION es (INDEX 'orders')"


@pytest.fixture
def world() -> Planning:
    """`orders` is keyed by id and region, `sold` only grows."""
    world = Planning()
    key = record("k", ("id", "long"), ("region", "string"))
    world.topic("orders", key=key, value=record("order", ("item", "string"), ("n", "int")))
    world.do(
        "CREATE CONNECTION es TO ELASTICSEARCH (URL 'http://es:9200');"
        f"CREATE SOURCE orders FROM KAFKA CONNECTION kafka (TOPIC 'orders') {AVRO} ENVELOPE UPSERT;"
        f"CREATE SOURCE sold FROM KAFKA CONNECTION kafka (TOPIC 'orders') {AVRO};"
    )
    return world


def provisioned(change: ChangeCatalog) -> IndexDefinition:
    [effect] = change.effects
    assert isinstance(effect, ProvisionIndex)
    return effect.index


def test_the_fields_are_those_of_the_relation_and_the_key_is_its_key(world: Planning) -> None:
    index = provisioned(world.change(f"CREATE MATERIALIZATION m FROM orders {INTO}"))
    assert (index.index, index.key, index.on_error, index.adopt) == ("orders", ("id", "region"), "HALT", False)
    assert (
        print_type(index.document)
        == "record(id bigint not null, region text not null, item text not null, n integer not null)"
    )
    assert index.relation_name == "orders"


def test_the_key_may_have_other_names_in_the_index(world: Planning) -> None:
    fields = "FIELDS (place string FROM '/region', number string FROM '/id')"
    index = provisioned(world.change(f"CREATE MATERIALIZATION m FROM orders {INTO} {fields}"))
    assert index.key == ("number", "place")


def test_every_leaf_is_described_with_its_place_and_its_type_in_the_index(world: Planning) -> None:
    fields = "FIELDS (id i64, region string AS 'keyword', at OBJECT (count string FROM '/n'), item string NULL)"
    index = provisioned(world.change(f"CREATE MATERIALIZATION m FROM orders {INTO} {fields}"))
    assert list(described(index)) == [
        ("writes index", "orders"),
        ("on error", "HALT"),
        ("field id", "/id bigint -> long not null"),
        ("field region", "/region text -> keyword not null"),
        ("field at.count", "/n integer -> text not null"),
        ("field item", "/item text -> text"),
    ]


def test_the_whole_key_must_be_there(world: Planning) -> None:
    with pytest.raises(KeyNotMaterialized):
        world.plan(f"CREATE MATERIALIZATION m FROM orders {INTO} FIELDS (id i64)")


def test_an_index_keeps_objects(world: Planning) -> None:
    with pytest.raises(NestedNotForIndex):
        world.plan(f"CREATE MATERIALIZATION m FROM orders {INTO} WITH (NESTED = FLATTEN)")


def test_an_index_has_no_row_for_every_change(world: Planning) -> None:
    with pytest.raises(DeltaUpdatesNotForIndex):
        world.plan(f"CREATE MATERIALIZATION m FROM orders {INTO} WITH (DELTA UPDATES = true)")


def test_rows_without_a_key_have_the_position_of_their_record(world: Planning) -> None:
    world.do(
        "CREATE VIEW words AS SELECT explode(split(item, ' ')) AS word FROM sold;"
        f"CREATE MATERIALIZATION m FROM words {INTO}"
    )
    task = task_definition(world.catalog, world.named("m", Kind.MATERIALIZATION))
    assert isinstance(task.sink, IndexDefinition)
    assert task.sink.key == ()
    assert task.positioned_sql is not None


def test_two_materializations_do_not_write_one_index(world: Planning) -> None:
    world.do(f"CREATE MATERIALIZATION m FROM orders {INTO}")
    with pytest.raises(TargetTaken):
        world.plan(f"CREATE MATERIALIZATION other FROM sold {INTO}")


@pytest.mark.parametrize(("words", "drop"), [("", False), (" WITH (DROP TARGET = true)", True)])
def test_an_index_is_given_up_with_its_materialization(world: Planning, words: str, drop: bool) -> None:
    world.do(f"CREATE MATERIALIZATION m FROM orders {INTO}")
    made = world.named("m", Kind.MATERIALIZATION).id
    [effect] = world.change(f"DROP MATERIALIZATION m{words}").effects
    assert isinstance(effect, ReleaseIndex)
    assert (effect.index, effect.task, effect.drop) == ("orders", made, drop)


def test_fields_that_narrow_need_a_confirmation(world: Planning) -> None:
    world.do(f"CREATE MATERIALIZATION m FROM orders {INTO} FIELDS (id i64, region string, n string)")
    narrower = "ALTER MATERIALIZATION m SET FIELDS (id i64, region string, n i64)"
    with pytest.raises(NoWayInPlace):
        world.plan(narrower)
    assert provisioned(world.change(f"{narrower} WITH (CONFIRM = true)"))
    assert provisioned(world.change("ALTER MATERIALIZATION m SET FIELDS (id string, region string, n string)"))
