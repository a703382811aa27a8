"""The clients of the catalog's connections: each is opened once and kept until its connection changes."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Generic, NoReturn, Protocol, TypeAlias, TypeVar

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import DependencyKind, Object, definition_of
from headgate.catalog.secrets import Secret, SecretSource
from headgate.connectors.elasticsearch import SearchClient
from headgate.connectors.kafka import KafkaCluster
from headgate.connectors.options import ConnectionOptions, pem_text, reveal_options
from headgate.connectors.postgres import PostgresDatabase
from headgate.errors import InternalError
from headgate.registry.client import RegistryClient
from headgate.registry.transport import Credentials, Tls
from headgate.sql.connections import ConnectionSystem, CreateConnection
from headgate.sql.statement import Create, ObjectName

EMBEDDED = "embedded"  # stands for the address of a service of the embedded world
SERVICES: dict[ConnectionSystem, str] = {
    "KAFKA": "kafka",
    "CONFLUENT SCHEMA REGISTRY": "registry",
    "POSTGRES": "postgres",
    "ELASTICSEARCH": "elasticsearch",
}

Reveal = Callable[[Catalog, Object], Secret]
StartService = Callable[[str], str]
ConnectionRef: TypeAlias = int | str  # the id of a connection, or a plain address
ClientKey: TypeAlias = tuple[int, Create | None, tuple[SecretSource, ...]] | str | ConnectionOptions
Client = TypeVar("Client")


class Connections:
    """The clients of all connections. Safe to share between threads.

    ``reveal`` reads a secret of the catalog. ``embedded`` starts a service of the embedded world if it does not run,
    and returns its address; it is None in a project without such a world.
    """

    def __init__(self, reveal: Reveal, embedded: StartService | None = None) -> None:
        self._reveal = reveal
        self._embedded = embedded
        self._kafka: _Clients[KafkaCluster] = _Clients()
        self._registries: _Clients[RegistryClient] = _Clients()
        self._databases: _Clients[PostgresDatabase] = _Clients()
        self._searches: _Clients[SearchClient] = _Clients()

    def kafka(self, catalog: Catalog, server: ConnectionRef) -> KafkaCluster:
        """The client of a Kafka connection. It connects when it is first used."""
        key = _client_key(catalog, server)
        return self._kafka.get(key, lambda: KafkaCluster(self._options_of(catalog, server, "BROKER")))

    def registry(self, catalog: Catalog, server: ConnectionRef) -> RegistryClient:
        """The client of a registry connection."""
        key = _client_key(catalog, server)
        return self._registries.get(key, lambda: registry_client(self._options_of(catalog, server, "URL")))

    def postgres(self, catalog: Catalog, server: ConnectionRef) -> PostgresDatabase:
        """The database of a PostgreSQL connection."""
        key = _client_key(catalog, server)
        return self._databases.get(key, lambda: PostgresDatabase(self._options_of(catalog, server, "URL")))

    def elasticsearch(self, catalog: Catalog, server: ConnectionRef) -> SearchClient:
        """The client of an Elasticsearch connection. It connects when it is first used."""
        key = _client_key(catalog, server)
        return self._searches.get(key, lambda: search_client(self._options_of(catalog, server, "URL")))

    def of(self, catalog: Catalog) -> Clients:
        """The clients of this catalog's connections."""
        return _BoundClients(
            partial(self.kafka, catalog),
            partial(self.registry, catalog),
            partial(self.postgres, catalog),
            partial(self.elasticsearch, catalog),
        )

    def options(
        self, catalog: Catalog, kafka: Iterable[ConnectionRef], registries: Iterable[ConnectionRef]
    ) -> ServerOptions:
        """What another process needs to open the clients of these connections."""
        return ServerOptions(
            {server: self._options_of(catalog, server, "BROKER") for server in kafka},
            {server: self._options_of(catalog, server, "URL") for server in registries},
        )

    def check(self, catalog: Catalog, statement: CreateConnection) -> None:
        """Check that the system of a connection that is being created answers. Raises the system's refusal."""
        options = reveal_options(statement.name.parts[-1].name, statement.options, self._reveal_by_id(catalog))
        _check_service(statement.options.system, options)

    def validate(self, catalog: Catalog, id_: int) -> None:
        """Like ``check``, for a connection of the catalog."""
        connection = catalog.get(id_)
        system = definition_of(connection, CreateConnection).options.system
        _check_service(system, self._options(catalog, connection))

    def _options_of(self, catalog: Catalog, server: ConnectionRef, address: str) -> ConnectionOptions:
        if isinstance(server, str):
            return ConnectionOptions(server, ((address, (server,)),))
        return self._options(catalog, catalog.get(server))

    def _options(self, catalog: Catalog, connection: Object) -> ConnectionOptions:
        statement = definition_of(connection, CreateConnection)
        options = reveal_options(connection.name, statement.options, self._reveal_by_id(catalog))
        return self._with_address(options, SERVICES[statement.options.system])

    def _reveal_by_id(self, catalog: Catalog) -> Callable[[ObjectName], str]:
        """A function that reads a secret by its resolved name."""

        def reveal(name: ObjectName) -> str:
            if name.id is None:
                raise InternalError(f"secret {name} was not resolved")
            return self._reveal(catalog, catalog.get(name.id)).reveal()

        return reveal

    def _with_address(self, options: ConnectionOptions, service: str) -> ConnectionOptions:
        """Replace the address ``embedded`` by the one that the service has now, and start the service for it."""
        embedded = self._embedded
        # Without an embedded world, `embedded` is an ordinary host name.
        if embedded is None:
            return options
        values = tuple(
            (name, (embedded(service),) if texts == (EMBEDDED,) else texts) for name, texts in options.values
        )
        return ConnectionOptions(options.connection, values)

    def close(self) -> None:
        """Close the clients that hold connections open."""
        for registry in self._registries.opened():
            registry.close()
        for search in self._searches.opened():
            search.close()


def _check_service(system: ConnectionSystem, options: ConnectionOptions) -> None:
    """Check that a system answers and accepts the login, if we have a client for it."""
    if system == "KAFKA":
        KafkaCluster(options).check()
    elif system == "CONFLUENT SCHEMA REGISTRY":
        with registry_client(options) as registry:
            registry.types()
    elif system == "POSTGRES":
        PostgresDatabase(options).check()
    elif system == "ELASTICSEARCH":
        with search_client(options) as search:
            search.check()


class _Clients(Generic[Client]):
    """Clients by key, each opened once and then shared.

    Every client has a lock of its own. To open one may start an embedded service, which takes up to a minute, and
    threads that need other clients must not wait for that.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()  # held for a look into the dictionary only
        self._slots: dict[ClientKey, _Slot[Client]] = {}

    def get(self, key: ClientKey, open_: Callable[[], Client]) -> Client:
        """The client of the key. If ``open_`` raises, the next caller tries again."""
        with self._guard:
            slot = self._slots.setdefault(key, _Slot())
        with slot.lock:
            if slot.client is None:
                slot.client = open_()
            return slot.client

    def opened(self) -> list[Client]:
        with self._guard:
            return [slot.client for slot in self._slots.values() if slot.client is not None]


@dataclass(slots=True)
class _Slot(Generic[Client]):
    """A client, or the place where one thread opens it while others wait."""

    client: Client | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


def _client_key(catalog: Catalog, server: ConnectionRef) -> ClientKey:
    """What the client depends on. ALTER SECRET changes a connection without changing its statement, so the sources
    of its secrets belong to the key."""
    if isinstance(server, str):
        return server
    connection = catalog.get(server)
    secrets = tuple(catalog.secrets[d.on] for d in connection.dependencies if d.use is DependencyKind.SECRET)
    return connection.id, connection.definition, secrets


class Clients(Protocol):
    """The clients of connections, for code that does not know the catalog."""

    def kafka(self, server: ConnectionRef) -> KafkaCluster: ...

    def registry(self, server: ConnectionRef) -> RegistryClient: ...

    def postgres(self, server: ConnectionRef) -> PostgresDatabase: ...

    def elasticsearch(self, server: ConnectionRef) -> SearchClient: ...


def _not_here(server: ConnectionRef) -> NoReturn:
    raise InternalError(f"connection {server} is not opened in this process")


@dataclass(frozen=True, slots=True)
class _BoundClients:
    """``Clients`` made of functions. A process that only reads has no databases and no indexes."""

    kafka: Callable[[ConnectionRef], KafkaCluster]
    registry: Callable[[ConnectionRef], RegistryClient]
    postgres: Callable[[ConnectionRef], PostgresDatabase] = _not_here
    elasticsearch: Callable[[ConnectionRef], SearchClient] = _not_here


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What another process needs to open the clients of some connections. Holds secrets in clear text."""

    kafka: Mapping[ConnectionRef, ConnectionOptions]
    registries: Mapping[ConnectionRef, ConnectionOptions]


class SharedClients:
    """Clients by the options of their connections, for a process that has no catalog. Each is opened once."""

    def __init__(self) -> None:
        self._kafka: _Clients[KafkaCluster] = _Clients()
        self._registries: _Clients[RegistryClient] = _Clients()

    def of(self, servers: ServerOptions) -> Clients:
        """The clients of these servers. Equal options give the same client."""

        def kafka(server: ConnectionRef) -> KafkaCluster:
            options = servers.kafka[server]
            return self._kafka.get(options, lambda: KafkaCluster(options))

        def registry(server: ConnectionRef) -> RegistryClient:
            options = servers.registries[server]
            return self._registries.get(options, lambda: registry_client(options))

        return _BoundClients(kafka, registry)


def registry_client(options: ConnectionOptions) -> RegistryClient:
    """A client of the schema registry from the options of a connection."""
    # The HTTP library takes keys and certificates as files only. It reads them once, when the client is made.
    with tempfile.TemporaryDirectory(prefix="headgate-") as folder:  # with mode 0700
        tls = _tls(options, Path(folder))
        return RegistryClient([options.need("URL")], credentials=_credentials(options), tls=tls)


def search_client(options: ConnectionOptions) -> SearchClient:
    """A client of Elasticsearch or OpenSearch from the options of a connection. Raises InvalidOption."""
    url = options.need("URL")
    with tempfile.TemporaryDirectory(prefix="headgate-") as folder:
        tls = _tls(options, Path(folder))
        return SearchClient(url, _credentials(options), tls, connection=options.connection)


def _credentials(options: ConnectionOptions) -> Credentials | None:
    username = options.get("USERNAME")
    return Credentials(username, options.get("PASSWORD") or "") if username is not None else None


def _tls(options: ConnectionOptions, folder: Path) -> Tls | None:
    names = ("SSL CERTIFICATE AUTHORITY", "SSL CERTIFICATE", "SSL KEY")
    authority, certificate, key = (_pem_file(options, name, folder) for name in names)
    return Tls(authority, certificate, key) if authority or certificate else None


def _pem_file(options: ConnectionOptions, name: str, folder: Path) -> Path | None:
    text = pem_text(options, name)
    if text is None:
        return None
    file = folder / f"{name}.pem"
    file.write_text(text)
    return file
