"""What the supervisor must know about a service, and what a service is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, get_args

from headgate.embedded.errors import UnknownService
from headgate.embedded.process import Launch
from headgate.embedded.users import User
from headgate.errors import similar_names

ServiceName: TypeAlias = Literal["kafka", "registry", "postgres", "opensearch"]
SERVICES: tuple[ServiceName, ...] = get_args(ServiceName)


def service_name(written: str) -> ServiceName:
    """The service a person means; OpenSearch is also called by the name of the API that it serves."""
    for name in SERVICES:
        if written == name or (written, name) == ("elasticsearch", "opensearch"):
            return name
    raise UnknownService(written, similar_names(written, SERVICES))


@dataclass(frozen=True, slots=True)
class Site:
    """Where one service of one world lives."""

    data: Path
    ports: tuple[int, ...]
    user: User | None
    secrets: Path
    log: Path

    @property
    def port(self) -> int:
        """The port for clients; a service may have others for itself."""
        return self.ports[0]


@dataclass(frozen=True, slots=True)
class Needs:
    """Names of its ports as they are remembered, the clients' first; megabytes that must be there before it starts;
    seconds from launch to answering on a slow machine, and from the stop signal to the kill."""

    ports: tuple[str, ...]
    memory: int
    disk: int
    patience: float
    grace: float
    refuses_root: bool = False


@dataclass(frozen=True, slots=True)
class Launches:
    """What to run: ``first`` to its end before anything else, only on new data; then the service itself."""

    main: Launch
    first: Launch | None = None


class Service(Protocol):
    """One kind of service. Its methods block and are called in a thread."""

    @property
    def name(self) -> ServiceName: ...

    @property
    def needs(self) -> Needs: ...

    def prepare(self, site: Site) -> Launches:
        """Fetch and write what the service needs before it can be launched; quick when it is there."""

    def answers(self, site: Site) -> bool:
        """Whether it really serves, by asking it."""

    def settle(self, site: Site) -> None:
        """What is left to do once it serves."""

    def address(self, site: Site) -> str:
        """What clients connect to; it may hold a password."""

    def public_address(self, site: Site) -> str:
        """The same without a password, for logs and tables."""
