"""A statement that fails leaves nothing behind, whichever of its effects fails, and whether it was done or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest

from headgate.catalog.errors import CatalogFull
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import Clients
from headgate.connectors.errors import BrokerUnreachable, PostgresUnreachable
from headgate.connectors.kafka import NewTopicOptions
from headgate.control.effects import effects_done, last_effects
from headgate.plan.plans import ReleaseIndex, ReleaseTable
from headgate.plan.sink_errors import TopicDiffers
from headgate.plan.target_definitions import TableName
from headgate.registry.client import RegistryClient
from headgate.registry.errors import RegistryUnreachable
from headgate.schema.written import CompatibilityLevel
from headgate.sql.statement import Kind
from tests.control.scripts import Shell, TopicNames

pytestmark = pytest.mark.unit

LEVELS = "(KEY COMPATIBILITY LEVEL 'FULL', VALUE COMPATIBILITY LEVEL 'FORWARD')"


def script(topic: str) -> str:
    return (
        f"CREATE SINK s FROM lines INTO KAFKA CONNECTION kafka (TOPIC '{topic}') KEY (text) NOT ENFORCED"
        f" FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry {LEVELS}"
    )


@dataclass
class Failure:
    """Fails the call of that number among all that change something outside or commit, before or after it is done."""

    number: int
    after: bool
    calls: int = 0

    def wrap(self, call: Callable[..., Any], error: Exception) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            fails = self.calls == self.number
            if fails and not self.after:
                raise error
            result = call(*args, **kwargs)
            if fails:
                raise error
            return result

        return wrapped

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        gone = RegistryUnreachable("http://registry", "no answer")
        targets: tuple[tuple[type, str, Exception], ...] = (
            (TopicNames, "create_topic", BrokerUnreachable("broker", "no answer")),
            (RegistryClient, "set_level", gone),
            (RegistryClient, "register", gone),
        )
        for owner, name, error in targets:
            monkeypatch.setattr(owner, name, self.wrap(getattr(owner, name), error))
        commit = self.wrap(SqliteStore.commit, CatalogFull("catalog.db"))
        monkeypatch.setattr(SqliteStore, "commit", commit)


@pytest.fixture
def lines(sql: Shell) -> Shell:
    sql.topics["lines"] = NewTopicOptions()
    sql.run("CREATE SOURCE lines FROM KAFKA CONNECTION kafka (TOPIC 'lines') FORMAT TEXT")
    return sql


def outside(sql: Shell, topic: str) -> tuple[object, ...]:
    subjects = [f"{topic}-key", f"{topic}-value"]
    live = tuple(name for name in sql.registry.subjects() if name.startswith(f"{topic}-"))
    versions = [sql.registry.versions(subject) for subject in live]
    return set(sql.topics), live, versions, [sql.registry.own_level(subject) for subject in subjects]


@pytest.mark.parametrize(
    ("number", "after"),
    [(number, after) for number in range(1, 7) for after in (False, True) if (number, after) != (6, True)],
)
def test_a_failure_anywhere_leaves_nothing_behind(
    lines: Shell, monkeypatch: pytest.MonkeyPatch, number: int, after: bool
) -> None:
    topic = f"failing-{number}-{after}"
    before, version = outside(lines, topic), lines.version
    with monkeypatch.context() as patched:
        Failure(number, after).install(patched)
        lines.failure(script(topic))
    assert (outside(lines, topic), lines.version) == (before, version)
    assert lines.tags(script(topic)) == ["CREATE SINK"]
    assert lines.registry.own_level(f"{topic}-key") is CompatibilityLevel.FULL


# Schemas that the subjects have are not registered again.
@pytest.mark.parametrize("number", range(1, 5), ids=["topic", "level of the key", "level of the value", "commit"])
def test_what_was_there_before_stays(lines: Shell, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    topic = f"kept-{number}"
    lines.run(script(topic))
    lines.run("DROP SINK s")
    for side in ("key", "value"):
        lines.registry.set_level(CompatibilityLevel.NONE, f"{topic}-{side}")
    before, version = outside(lines, topic), lines.version
    with monkeypatch.context() as patched:
        Failure(number, after=False).install(patched)
        lines.failure(script(topic))
    assert (outside(lines, topic), lines.version) == (before, version)


def test_a_topic_that_somebody_has_written_to_meanwhile_is_not_deleted(
    lines: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        Failure(6, after=False).install(patched)
        patched.setattr(TopicNames, "offsets", lambda *_, **__: {0: 1})
        lines.failure(script("busy"))
    assert "busy" in lines.topics


def test_a_topic_with_other_settings_is_refused_and_nothing_is_done(lines: Shell) -> None:
    lines.topics["there"] = NewTopicOptions(3, 2, (("cleanup.policy", "compact"),))
    before, version = outside(lines, "there"), lines.version
    options = "TOPIC PARTITION COUNT 4, TOPIC REPLICATION FACTOR 2, TOPIC CONFIG MAP['cleanup.policy' => 'delete', 'a' => 'b']"
    error = lines.failure(script("there").replace("'there'", f"'there', {options}"))
    assert isinstance(error, TopicDiffers)
    assert error.differences == (
        ("TOPIC PARTITION COUNT", "4", "3"),
        ("cleanup.policy", "delete", "compact"),
        ("a", "b", "unknown"),
    )
    assert (outside(lines, "there"), lines.version) == (before, version)
    same = "TOPIC PARTITION COUNT 3, TOPIC REPLICATION FACTOR 2, TOPIC CONFIG MAP['cleanup.policy' => 'compact']"
    assert lines.tags(script("there").replace("'there'", f"'there', {same}")) == ["CREATE SINK"]


@pytest.mark.parametrize("number", [1, 2])
def test_set_from_registers_and_commits_or_leaves_the_sink_as_it_was(
    lines: Shell, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    topic = f"set-from-{number}"
    lines.run(script(topic))
    lines.run("CREATE VIEW wide AS SELECT text, nullif(length(text), 0) AS n FROM lines")
    lines.registry.set_level(CompatibilityLevel.BACKWARD, f"{topic}-value")
    before, version = outside(lines, topic), lines.version
    with monkeypatch.context() as patched:
        Failure(number, after=False).install(patched)
        lines.failure("ALTER SINK s SET FROM wide")
    assert (outside(lines, topic), lines.version) == (before, version)
    assert lines.tags("ALTER SINK s SET FROM wide") == ["ALTER SINK"]
    assert lines.registry.versions(f"{topic}-value") == (1, 3 if number == 2 else 2)


def test_the_statements_before_the_one_that_fails_stay(lines: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    before = "CREATE VIEW v AS SELECT text FROM lines"
    with monkeypatch.context() as patched:
        Failure(2, after=False).install(patched)  # the first call is the commit of the view
        error = lines.failure(f"{before}; {script('second')}")
    assert isinstance(error, BrokerUnreachable)
    assert [o.name for o in lines.store.load().of_kind(Kind.VIEW, Kind.SINK)] == ["v"]


def test_the_ids_of_registered_schemas_reach_every_statement_that_uses_them(lines: Shell) -> None:
    avro = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
    lines.run(
        f"CREATE SINK s FROM lines INTO KAFKA CONNECTION kafka (TOPIC 'ids') {avro};"
        f"CREATE SOURCE again FROM KAFKA CONNECTION kafka (TOPIC 'ids') {avro};"
        "ALTER SOURCE lines RENAME TO rows"
    )
    schema_id = lines.registry.latest("ids-value").schema_id
    for kind, name in (("SINK", "s"), ("SOURCE", "again")):
        ((_, created),) = lines.rows(f"SHOW CREATE {kind} {name}")
        assert f"SEED VALUE SCHEMA ID {schema_id} " in str(created)
    stored = [repr(o.definition) for o in lines.store.load().of_kind(Kind.SINK, Kind.SOURCE)]
    assert "PendingId" not in "".join(stored)


class GoneDatabase:
    """Connections to servers that do not answer. ``asked`` counts who tried."""

    def __init__(self) -> None:
        self.asked = 0

    def postgres(self, _: int) -> GoneDatabase:
        return self

    def connected(self) -> None:
        self.asked += 1
        raise PostgresUnreachable("h:5432/d", "no answer")

    def elasticsearch(self, _: int) -> None:
        self.asked += 1
        raise PostgresUnreachable("h:9200", "no answer")


@pytest.mark.parametrize("drop", [True, False])
def test_a_target_is_given_up_only_when_the_statement_has_committed(drop: bool) -> None:
    gone = GoneDatabase()
    clients = cast(Clients, gone)
    effects = (ReleaseTable(1, TableName("public", "t"), 2, drop), ReleaseIndex(1, "i", 3, drop))
    with pytest.raises(CatalogFull), effects_done(effects, clients):
        raise CatalogFull("catalog.db")
    assert gone.asked == 0
    said = [text.partition(":")[0] for text in last_effects(effects, clients, {2: "two", 3: "three"})]
    how = "dropped" if drop else "given up"
    assert said == [f'table "public.t" was not {how}', f'index "i" was not {how}']
