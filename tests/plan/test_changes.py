"""COMMENT, DROP, RENAME, PAUSE and RESUME, and what IF [NOT] EXISTS passes over."""

from __future__ import annotations

import pytest

from headgate.catalog.catalog import column_comment, object_comment
from headgate.catalog.changes import CommentSet, ObjectDropped, ObjectRenamed, TaskStateSet
from headgate.catalog.errors import AlreadyExists, InUse, NotEmpty, UnknownObject, WrongKind
from headgate.catalog.objects import DesiredTaskState
from headgate.plan.errors import NotSupportedYet
from headgate.resolve.errors import SecretWrittenOut
from tests.plan.planning import Planning

pytestmark = pytest.mark.unit


@pytest.fixture
def world() -> Planning:
    """lines -> loud -> sink out"""
    world = Planning()
    world.topic("lines")
    world.do(
        "CREATE SOURCE lines FROM KAFKA CONNECTION kafka (TOPIC 'lines') FORMAT TEXT;"
        "CREATE VIEW loud AS SELECT upper(text) AS text FROM lines;"
        "CREATE SINK out FROM loud INTO KAFKA CONNECTION kafka (TOPIC 'out') FORMAT TEXT"
    )
    return world


# comments


def test_comments_are_set_on_objects_and_columns_and_taken_away(world: Planning) -> None:
    world.do("COMMENT ON SOURCE lines IS 'what they say'; COMMENT ON COLUMN lines.text IS 'a line'")
    assert object_comment(world.named("lines")) == "what they say"
    assert column_comment(world.catalog, world.named("lines").columns[0]) == "a line"
    world.do("COMMENT ON SOURCE lines IS NULL")
    assert object_comment(world.named("lines")) is None


def test_a_comment_reaches_containers_connections_and_sinks(world: Planning) -> None:
    for kind, name in (
        ("DATABASE", "headgate"),
        ("SCHEMA", "public"),
        ("CONNECTION", "kafka"),
        ("SINK", "out"),
    ):
        (planned,) = world.do(f"COMMENT ON {kind} {name} IS 'note'")
        assert planned.changes == (CommentSet(world.named(name).id, None, "note"),)


def test_a_comment_names_the_right_kind(world: Planning) -> None:
    with pytest.raises(WrongKind):
        world.plan("COMMENT ON VIEW lines IS 'x'")
    with pytest.raises(UnknownObject):
        world.plan("COMMENT ON VIEW nosuch IS 'x'")


# DROP


def test_what_others_use_cannot_be_dropped_and_the_error_lists_them(world: Planning) -> None:
    with pytest.raises(InUse) as caught:
        world.plan("DROP SOURCE lines")
    assert 'view "loud"' in str(caught.value.detail())
    assert 'sink "out"' in str(caught.value.detail())


def test_cascade_drops_users_first_and_says_which(world: Planning) -> None:
    ids = [world.named(name).id for name in ("out", "loud", "lines")]
    (planned,) = world.do("DROP SOURCE lines CASCADE")
    assert planned.changes == tuple(ObjectDropped(id_) for id_ in ids)
    assert planned.notices == ('sink "out" is dropped too', 'view "loud" is dropped too')
    assert not [o for o in world.catalog.objects.values() if o.name in ("lines", "loud", "out")]


def test_what_nobody_uses_is_dropped_alone(world: Planning) -> None:
    (planned,) = world.do("DROP SINK out")
    assert (planned.tag, len(planned.changes), planned.notices) == ("DROP SINK", 1, ())


def test_a_schema_with_something_in_it_is_not_dropped(world: Planning) -> None:
    world.do("CREATE SCHEMA extra; CREATE TYPE extra.t AS (x integer)")
    with pytest.raises(NotEmpty):
        world.plan("DROP SCHEMA extra")
    world.do("DROP SCHEMA extra CASCADE")
    assert not [o for o in world.catalog.objects.values() if o.name in ("extra", "t")]


@pytest.mark.parametrize("what", ["VIEW lost", "SCHEMA lost", "DATABASE lost", "SINK lost", "VIEW lost.lost"])
def test_drop_if_exists_passes_over_what_is_missing(world: Planning, what: str) -> None:
    with pytest.raises(UnknownObject):
        world.plan(f"DROP {what}")
    planned = world.skip(f"DROP {what.replace(' ', ' IF EXISTS ')}")
    kind, name = what.split(" ")
    assert planned.notice == f'{kind.lower()} "{name}" does not exist, skipped'


def test_drop_if_exists_of_another_kind_is_an_error(world: Planning) -> None:
    with pytest.raises(WrongKind):
        world.plan("DROP VIEW IF EXISTS lines")


# RENAME


def test_rename_changes_the_name_and_nothing_else(world: Planning) -> None:
    world.do("DROP SINK out")
    before = world.named("loud")
    (planned,) = world.do("ALTER VIEW loud RENAME TO shout")
    assert planned.changes == (ObjectRenamed(before.id, "shout"),)
    assert world.named("shout").columns == before.columns


def test_a_name_that_is_taken_cannot_be_taken_again(world: Planning) -> None:
    world.do("DROP SINK out")
    with pytest.raises(AlreadyExists):
        world.do("ALTER VIEW loud RENAME TO lines")


def test_tasks_and_secrets_can_always_be_renamed(world: Planning) -> None:
    world.do(
        "CREATE SECRET s AS 'x'; CREATE CONNECTION c TO KAFKA (BROKER 'b', SASL PASSWORD SECRET s);"
        "ALTER SECRET s RENAME TO word; ALTER SINK out RENAME TO done"
    )
    assert world.named("c").dependencies[0].on == world.named("word").id


def test_rename_if_exists_passes_over_what_is_missing(world: Planning) -> None:
    planned = world.skip("ALTER VIEW IF EXISTS lost RENAME TO found")
    assert planned.notice == 'view "lost" does not exist, skipped'


# PAUSE and RESUME


@pytest.mark.parametrize(
    ("word", "desired"),
    [
        ("PAUSE", DesiredTaskState.PAUSED),
        ("DISABLE", DesiredTaskState.PAUSED),
        ("RESUME", DesiredTaskState.RUNNING),
        ("ENABLE", DesiredTaskState.RUNNING),
    ],
)
def test_a_task_is_told_what_to_do(world: Planning, word: str, desired: DesiredTaskState) -> None:
    (planned,) = world.do(f"ALTER SINK out {word}")
    assert planned.changes == (TaskStateSet(world.named("out").id, desired),)
    assert world.catalog.desired[world.named("out").id] is desired


def test_a_missing_task_can_be_passed_over(world: Planning) -> None:
    with pytest.raises(UnknownObject):
        world.plan("ALTER SINK lost PAUSE")
    assert world.skip("ALTER SINK IF EXISTS lost PAUSE").tag == "ALTER SINK"


def test_bindings_come_with_captures(world: Planning) -> None:
    with pytest.raises(NotSupportedYet):
        world.plan("ALTER CAPTURE c DISABLE BINDING 'x'")


# IF NOT EXISTS


@pytest.mark.parametrize(
    ("statement", "notice"),
    [
        ("CREATE DATABASE IF NOT EXISTS headgate", 'database "headgate"'),
        ("CREATE SCHEMA IF NOT EXISTS public", 'schema "public"'),
        ("CREATE SCHEMA IF NOT EXISTS headgate.PUBLIC", 'schema "public"'),
        ("CREATE CONNECTION IF NOT EXISTS kafka TO KAFKA (BROKER 'elsewhere:1')", 'connection "kafka"'),
        ("CREATE VIEW IF NOT EXISTS loud AS SELECT nonsense FROM nowhere", 'view "loud"'),
        (
            "CREATE SOURCE IF NOT EXISTS lines FROM KAFKA CONNECTION gone (TOPIC 'gone') FORMAT TEXT",
            'source "lines"',
        ),
        (
            "CREATE SINK IF NOT EXISTS out FROM loud INTO KAFKA CONNECTION kafka (TOPIC 'o') FORMAT TEXT",
            'sink "out"',
        ),
    ],
)
def test_what_exists_is_left_alone_and_nobody_outside_is_asked(world: Planning, statement: str, notice: str) -> None:
    assert world.skip(statement).notice == f"{notice} exists already, skipped"
    assert world.outside.checked == []


def test_if_not_exists_of_another_kind_of_the_same_name_is_an_error(world: Planning) -> None:
    with pytest.raises(WrongKind):
        world.plan("CREATE VIEW IF NOT EXISTS lines AS SELECT 1 AS one")


def test_without_if_not_exists_a_taken_name_is_refused(world: Planning) -> None:
    for statement in (
        "CREATE SCHEMA public",
        "CREATE VIEW Loud AS SELECT 1 AS one",
        "CREATE TYPE lines AS (x integer)",
    ):
        with pytest.raises(AlreadyExists):
            world.do(statement)


# secrets


@pytest.mark.parametrize(
    "options",
    [
        "TO KAFKA (BROKER 'b', SASL PASSWORD 'hunter2')",
        "TO KAFKA (BROKER 'b', SSL KEY '-----BEGIN PRIVATE KEY-----hunter2')",
        "TO CONFLUENT SCHEMA REGISTRY (URL 'http://r', USERNAME 'u', PASSWORD 'hunter2')",
        "TO CONFLUENT SCHEMA REGISTRY (URL 'http://u:hunter2@r')",
        "TO POSTGRES (URL 'postgres://u:hunter2@h/d')",
    ],
)
def test_what_is_secret_must_be_a_secret(world: Planning, options: str) -> None:
    with pytest.raises(SecretWrittenOut) as caught:
        world.plan(f"CREATE CONNECTION c {options} WITH (VALIDATE = false)")
    assert "hunter2" not in caught.value.diagnostic().render()


def test_names_paths_and_addresses_without_password_may_be_written(world: Planning) -> None:
    world.do(
        "CREATE SECRET s AS 'x';"
        "CREATE CONNECTION a TO KAFKA (BROKER 'b', SASL USERNAME 'u', SASL PASSWORD SECRET s, SSL KEY '/k.pem');"
        "CREATE CONNECTION p TO POSTGRES (URL 'postgres://u@h/d', PASSWORD SECRET s)"
    )
    assert world.named("a").dependencies[0].on == world.named("s").id
