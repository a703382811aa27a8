"""The same promise on a real broker and a real registry: a failure at any effect leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.catalog.errors import CatalogFull
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.connections import Connections
from headgate.connectors.kafka import KafkaCluster, NewTopicOptions
from headgate.control.engine import make_connections
from headgate.control.executor import Executor
from headgate.control.sessions import Done, Session
from headgate.embedded.world import World
from headgate.errors import HeadgateError
from headgate.registry.client import RegistryClient
from headgate.registry.errors import RegistryUnreachable
from tests.control.scripts import Answers
from tests.embedded.world_fixtures import eventually

pytestmark = pytest.mark.e2e


class Engine:
    """An executor over the services of the embedded world, without Spark."""

    def __init__(self, folder: Path, world: World) -> None:
        self.store = SqliteStore(folder / "catalog.db")
        make_connections(self.store)
        self.connections = Connections(self.store.keys.reveal, world.address)
        self.executor = Executor(self.store, self.connections, Answers(), lambda *_: ())
        by_name = {o.name: o.id for o in self.store.load().objects.values()}
        self.kafka: KafkaCluster = self.connections.kafka(self.store.load(), by_name["kafka"])
        self.registry: RegistryClient = self.connections.registry(self.store.load(), by_name["registry"])

    def run(self, script: str) -> list[str]:
        return [r.tag for r in self.executor.run(script, Session()) if isinstance(r, Done)]

    def left(self, topic: str) -> tuple[object, ...]:
        levels = [self.registry.own_level(f"{topic}-{side}") for side in ("key", "value")]
        subjects = tuple(name for name in self.registry.subjects() if name.startswith(f"{topic}-"))
        return tuple(self.kafka.topics([topic])), subjects, levels

    def close(self) -> None:
        self.connections.close()
        self.store.close()


@pytest.fixture
def engine(tmp_path: Path, world: World) -> Iterator[Engine]:
    opened = Engine(tmp_path, world)
    opened.kafka.create_topic("effect-lines", NewTopicOptions())
    opened.run("CREATE SOURCE lines FROM KAFKA CONNECTION kafka (TOPIC 'effect-lines') FORMAT TEXT")
    yield opened
    opened.close()


def sink(topic: str) -> str:
    return (
        f"CREATE SINK s FROM lines INTO KAFKA CONNECTION kafka (TOPIC '{topic}') KEY (text) NOT ENFORCED"
        " FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
        " (KEY COMPATIBILITY LEVEL 'FULL', VALUE COMPATIBILITY LEVEL 'FORWARD')"
    )


@pytest.mark.parametrize(
    ("owner", "method", "call"),
    [
        (RegistryClient, "set_level", 1),
        (RegistryClient, "register", 1),
        (RegistryClient, "set_level", 2),
        (RegistryClient, "register", 2),
        (SqliteStore, "commit", 1),
    ],
)
def test_a_failure_leaves_nothing_behind_and_the_statement_can_be_sent_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, owner: type, method: str, call: int
) -> None:
    topic = f"left-{method}-{call}".replace("_", "-")
    original, calls = getattr(owner, method), []

    def failing(*args: object, **kwargs: object) -> object:
        calls.append(method)
        if len(calls) == call:
            raise CatalogFull("catalog.db") if method == "commit" else RegistryUnreachable("r", "no answer")
        return original(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(owner, method, failing)
        with pytest.raises(HeadgateError):
            engine.run(sink(topic))
    assert eventually(lambda: engine.left(topic) == ((), (), [None, None]))
    assert engine.run(sink(topic)) == ["CREATE SINK"]
    assert engine.left(topic)[:2] == ((topic,), (f"{topic}-key", f"{topic}-value"))
