"""The clients behind the catalog's connections."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import SecretChanged, apply
from headgate.catalog.names import DEFAULT_PATH, resolve
from headgate.catalog.objects import Object
from headgate.catalog.secrets import FromEnvironment, Secret
from headgate.connectors.connections import Connections
from headgate.registry.errors import RegistryUnreachable, WrongCredentials
from headgate.registry.server.requests import User, Users
from headgate.resolve.statements import resolve_names
from headgate.sql.connections import CreateConnection
from headgate.sql.script import parse_statement
from headgate.sql.statement import Kind
from tests.catalog.building import START, written
from tests.plan.planning import Planning
from tests.registry.running import registry

pytestmark = pytest.mark.unit


class Passwords:
    """Reveals every secret as the same word, and tells which were asked for."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.asked: list[str] = []

    def __call__(self, catalog: Catalog, secret: Object) -> Secret:
        self.asked.append(catalog.display_name(secret.id))
        return Secret(self.word)


def connection(world: Planning, name: str) -> int:
    return resolve(world.catalog, DEFAULT_PATH, written(name), Kind.CONNECTION).id


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[str]:
    """The address of a registry that lets only ada in."""
    with registry(tmp_path, Users({"ada": User("ada", "lovelace")})) as url:
        yield url


def test_a_client_is_opened_once_for_a_connection() -> None:
    world = Planning()
    connections = Connections(Passwords("x"))
    kafka, other = connection(world, "kafka"), connection(world, "registry")
    assert connections.kafka(world.catalog, kafka) is connections.kafka(world.catalog, kafka)
    assert connections.registry(world.catalog, other) is connections.registry(world.catalog, other)
    connections.close()


def test_a_client_is_opened_once_for_an_address() -> None:
    connections = Connections(Passwords("x"))
    cluster = connections.kafka(START, "host:9092")
    assert cluster is connections.kafka(START, "host:9092")
    assert cluster.spark() == {"kafka.bootstrap.servers": "host:9092"}
    registry_ = connections.registry(START, "http://host:8081")
    assert registry_ is connections.registry(START, "http://host:8081")
    assert connections.kafka(START, "other:9092") is not cluster
    connections.close()


def test_secrets_are_found_by_id_whatever_they_are_called_now() -> None:
    world = Planning()
    world.do(
        "CREATE SECRET a AS 'x'; CREATE SECRET b AS 'x';"
        "CREATE CONNECTION k TO KAFKA (BROKER 'b', SASL MECHANISMS 'PLAIN', SASL USERNAME SECRET b, SASL PASSWORD SECRET A);"
        "ALTER SECRET a RENAME TO z"
    )
    passwords = Passwords("word")
    cluster = Connections(passwords).kafka(world.catalog, connection(world, "k"))
    assert cluster.librdkafka()["sasl.password"] == "word"
    assert passwords.asked == ["b", "z"]


def test_one_secret_may_serve_twice_under_two_spellings() -> None:
    world = Planning()
    world.do(
        "CREATE SECRET a AS 'x';"
        "CREATE CONNECTION k TO KAFKA (BROKER 'b', SASL USERNAME SECRET public.A, SASL PASSWORD SECRET a)"
    )
    cluster = Connections(Passwords("word")).kafka(world.catalog, connection(world, "k"))
    assert cluster.librdkafka()["sasl.username"] == cluster.librdkafka()["sasl.password"] == "word"


def test_a_changed_secret_makes_a_new_client() -> None:
    world = Planning()
    world.do("CREATE SECRET a FROM ENV 'A'; CREATE CONNECTION k TO KAFKA (BROKER 'b', SASL PASSWORD SECRET a)")
    connections = Connections(Passwords("word"))
    before = connections.kafka(world.catalog, connection(world, "k"))
    secret = resolve(world.catalog, DEFAULT_PATH, written("a"), Kind.SECRET).id
    changed = apply(world.catalog, SecretChanged(secret, FromEnvironment("B")))
    assert connections.kafka(changed, connection(world, "k")) is not before


def test_an_embedded_address_is_asked_for_when_it_is_needed() -> None:
    world = Planning()
    world.do("CREATE CONNECTION mine TO KAFKA (BROKER 'embedded')")
    asked: list[str] = []

    def address(service: str) -> str:
        asked.append(service)
        return "127.0.0.1:9"

    connections = Connections(Passwords("x"), address)
    assert asked == []
    assert connections.kafka(world.catalog, connection(world, "mine")).brokers == "127.0.0.1:9"
    assert asked == ["kafka"]


def test_a_service_that_is_slow_to_start_does_not_block_other_clients() -> None:
    world = Planning()
    world.do("CREATE CONNECTION slow TO KAFKA (BROKER 'embedded')")
    starting, may_go_on = threading.Event(), threading.Event()

    def start(_: str) -> str:
        starting.set()
        assert may_go_on.wait(30)
        return "here:1"

    connections = Connections(Passwords("x"), start)
    with ThreadPoolExecutor() as pool:
        slow = [pool.submit(connections.kafka, world.catalog, connection(world, "slow")) for _ in range(2)]
        assert starting.wait(30)
        try:
            assert connections.kafka(world.catalog, "other:9092").brokers == "other:9092"
            connections.registry(world.catalog, connection(world, "registry"))
        finally:
            may_go_on.set()
        assert slow[0].result(30) is slow[1].result(30)
    connections.close()


def test_a_client_that_could_not_be_opened_is_tried_again() -> None:
    world = Planning()
    world.do("CREATE CONNECTION k TO KAFKA (BROKER 'embedded')")
    addresses = iter([None, "here:1"])

    def start(_: str) -> str:
        address = next(addresses)
        if address is None:
            raise RegistryUnreachable("x", "y")
        return address

    connections = Connections(Passwords("x"), start)
    with pytest.raises(RegistryUnreachable):
        connections.kafka(world.catalog, connection(world, "k"))
    assert connections.kafka(world.catalog, connection(world, "k")).brokers == "here:1"


def check(connections: Connections, world: Planning, text: str) -> None:
    statement = parse_statement(f"CREATE CONNECTION c TO {text}")
    assert isinstance(statement, CreateConnection)
    connections.check(world.catalog, resolve_names(statement, world.catalog, world.path))


def test_a_registry_is_checked_with_its_login(locked: str) -> None:
    world = Planning()
    world.do("CREATE SECRET s AS 'x'")
    to = f"CONFLUENT SCHEMA REGISTRY (URL '{locked}', USERNAME 'ada', PASSWORD SECRET s)"
    check(Connections(Passwords("lovelace")), world, to)
    with pytest.raises(WrongCredentials) as caught:
        check(Connections(Passwords("byron")), world, to)
    assert "byron" not in caught.value.diagnostic().render()


def test_validate_checks_a_connection_that_exists(locked: str) -> None:
    world = Planning()
    world.do(
        "CREATE SECRET s AS 'x';"
        f"CREATE CONNECTION r TO CONFLUENT SCHEMA REGISTRY (URL '{locked}', USERNAME 'ada', PASSWORD SECRET s);"
        "CREATE CONNECTION away TO CONFLUENT SCHEMA REGISTRY (URL 'http://127.0.0.1:1')"
    )
    connections = Connections(Passwords("lovelace"))
    connections.validate(world.catalog, connection(world, "r"))
    with pytest.raises(RegistryUnreachable):
        connections.validate(world.catalog, connection(world, "away"))
