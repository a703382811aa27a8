"""ALTER CONNECTION: what becomes of the options, and what is refused."""

from __future__ import annotations

import pytest

from headgate.catalog.objects import DependencyKind, definition_of
from headgate.resolve.errors import SecretWrittenOut
from headgate.sql.connections import CreateConnection
from headgate.sql.errors import UnknownOption
from headgate.sql.statement import Kind
from tests.plan.planning import Planning

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> Planning:
    world = Planning()
    world.do(
        "CREATE SECRET a AS 'x'; CREATE SECRET b AS 'x';"
        "CREATE CONNECTION es TO ELASTICSEARCH (URL 'http://es:9200', USERNAME 'ann', PASSWORD SECRET a);"
        "CREATE CONNECTION pg TO POSTGRES (HOST 'h', USER 'ann')"
    )
    world.outside.checked.clear()
    return world


def printed(world: Planning, name: str) -> str:
    return definition_of(world.named(name, Kind.CONNECTION), CreateConnection).sql()


def test_options_are_set_and_reset_and_the_others_stay(world: Planning) -> None:
    world.do("ALTER CONNECTION es SET (URL 'http://other:9200', PASSWORD SECRET b) RESET (USERNAME)")
    text = printed(world, "es")
    assert "http://other:9200" in text
    assert "USERNAME" not in text
    assert "SECRET b" in text
    [secret] = [d.on for d in world.named("es", Kind.CONNECTION).dependencies if d.use is DependencyKind.SECRET]
    assert secret == world.named("b", Kind.SECRET).id


def test_the_changed_connection_is_tried_unless_the_statement_says_otherwise(world: Planning) -> None:
    world.do("ALTER CONNECTION es SET (URL 'http://other:9200')")
    assert world.outside.checked == ["es"]
    world.do("ALTER CONNECTION es SET (URL 'http://third:9200') WITH (VALIDATE = false)")
    assert world.outside.checked == ["es"]


def test_an_option_may_have_the_name_of_another_system(world: Planning) -> None:
    world.do("ALTER CONNECTION pg SET (USERNAME 'bob') WITH (VALIDATE = false)")
    assert "bob" in printed(world, "pg")


def test_an_option_of_another_system_is_refused(world: Planning) -> None:
    with pytest.raises(UnknownOption) as raised:
        world.plan("ALTER CONNECTION es SET (BROKER 'b:9092')")
    assert raised.value.owner == "the elasticsearch connection"
    with pytest.raises(UnknownOption):
        world.plan("ALTER CONNECTION es RESET (HOST)")


def test_a_secret_is_not_written_out(world: Planning) -> None:
    with pytest.raises(SecretWrittenOut):
        world.plan("ALTER CONNECTION es SET (URL 'http://ann:sesame@es:9200')")


def test_a_connection_that_is_missing_may_be_altered_if_it_exists(world: Planning) -> None:
    assert world.skip("ALTER CONNECTION IF EXISTS none SET (URL 'http://x')")
