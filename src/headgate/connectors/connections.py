"""The clients behind the catalog's connections, opened once and kept while the connection stays as it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from headgate.catalog.definitions import statement_of
from headgate.catalog.names import DEFAULT_PATH, resolve
from headgate.catalog.objects import Kind, Object, Use
from headgate.catalog.secrets import Secret, SecretSource
from headgate.catalog.snapshot import Catalog
from headgate.connectors.kafka import KafkaCluster
from headgate.connectors.options import Options, reveal_options
from headgate.connectors.registry import registry_client
from headgate.registry.client import RegistryClient
from headgate.sql.ast.connections import ConnectionKind, CreateConnection
from headgate.sql.ast.names import ObjectName
from headgate.sql.ast.values import SecretReference

EMBEDDED = "embedded"  # the address of a service of the embedded world, which is asked for when it is needed
SERVICES: dict[ConnectionKind, str] = {
    "KAFKA": "kafka",
    "CONFLUENT SCHEMA REGISTRY": "registry",
    "POSTGRES": "postgres",
    "ELASTICSEARCH": "elasticsearch",
}

Reveal = Callable[[Catalog, Object], Secret]
Address = Callable[[str], str]
Server: TypeAlias = int | str  # a connection by its id, or a plain address
Key: TypeAlias = tuple[int, str, tuple[SecretSource, ...]] | str


class Connections:
    """``reveal`` reads a secret of the catalog; ``embedded`` starts a service of the world and tells its address."""

    def __init__(self, reveal: Reveal, embedded: Address | None = None) -> None:
        self._reveal = reveal
        self._embedded = embedded
        self._guard = threading.Lock()
        self._kafka: dict[Key, KafkaCluster] = {}
        self._registries: dict[Key, RegistryClient] = {}

    def kafka(self, catalog: Catalog, server: Server) -> KafkaCluster:
        with self._guard:
            key = _key(catalog, server)
            if key not in self._kafka:
                self._kafka[key] = KafkaCluster(self._options_of(catalog, server, "BROKER"))
            return self._kafka[key]

    def registry(self, catalog: Catalog, server: Server) -> RegistryClient:
        with self._guard:
            key = _key(catalog, server)
            if key not in self._registries:
                self._registries[key] = registry_client(self._options_of(catalog, server, "URL"))
            return self._registries[key]

    def of(self, catalog: Catalog) -> Clients:
        """The clients of this catalog's connections."""
        return Clients(self, catalog)

    def check(self, catalog: Catalog, statement: CreateConnection) -> None:
        """That the system of a connection answers. Raises what it refuses with."""
        self._ask(statement.kind, self._of_statement(catalog, statement))

    def validate(self, catalog: Catalog, id_: int) -> None:
        """As ``check``, of a connection that exists."""
        connection = catalog.get(id_)
        self._ask(statement_of(connection, CreateConnection).kind, self._options(catalog, connection))

    def _ask(self, kind: ConnectionKind, options: Options) -> None:
        match kind:
            case "KAFKA":
                KafkaCluster(options).check()
            case "CONFLUENT SCHEMA REGISTRY":
                with registry_client(options) as registry:
                    registry.types()
            case _:
                return

    def _options_of(self, catalog: Catalog, server: Server, address: str) -> Options:
        if isinstance(server, str):
            return Options(server, ((address, (server,)),))
        return self._options(catalog, catalog.get(server))

    def _options(self, catalog: Catalog, connection: Object) -> Options:
        statement = statement_of(connection, CreateConnection)
        # Secrets go by id: they may be called otherwise by now.
        names = dict.fromkeys(o.value.name for o in statement.options if isinstance(o.value, SecretReference))
        ids = [d.on for d in connection.dependencies if d.use is Use.SECRET]
        secrets = dict(zip(names, ids, strict=True))

        def reveal(name: ObjectName) -> str:
            return self._reveal(catalog, catalog.get(secrets[name])).reveal()

        options = reveal_options(connection.name, statement.options, reveal)
        return self._addressed(options, SERVICES[statement.kind])

    def _of_statement(self, catalog: Catalog, statement: CreateConnection) -> Options:
        def reveal(name: ObjectName) -> str:
            return self._reveal(catalog, resolve(catalog, DEFAULT_PATH, name, Kind.SECRET)).reveal()

        return reveal_options(statement.name.parts[-1].name, statement.options, reveal)

    def _addressed(self, options: Options, service: str) -> Options:
        """Options of a connection to the embedded world, with the address that the service has now."""
        embedded = self._embedded
        if embedded is None:
            return options
        values = tuple(
            (name, (embedded(service),) if texts == (EMBEDDED,) else texts) for name, texts in options.values
        )
        return Options(options.connection, values)

    def close(self) -> None:
        for registry in self._registries.values():
            registry.close()


def _key(catalog: Catalog, server: Server) -> Key:
    """What a client is made of: also the secrets, which ALTER SECRET changes under it."""
    if isinstance(server, str):
        return server
    connection = catalog.get(server)
    secrets = tuple(catalog.secrets[d.on] for d in connection.dependencies if d.use is Use.SECRET)
    return connection.id, connection.purified, secrets


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients of one catalog's connections, for code that does not know the catalog."""

    connections: Connections
    catalog: Catalog

    def kafka(self, server: Server) -> KafkaCluster:
        return self.connections.kafka(self.catalog, server)

    def registry(self, server: Server) -> RegistryClient:
        return self.connections.registry(self.catalog, server)
