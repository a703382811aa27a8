"""The services of an embedded world: Kafka, PostgreSQL and OpenSearch in a module each, and Headgate's own registry here.

Each class fulfils ``service.Service``: it prepares the data folder, gives the command to run, checks whether the service is
ready, and knows the address for clients. ``service.ServiceRunner`` calls it. No service depends on another.
"""

from __future__ import annotations

import sys

from headgate.embedded.host import LOOPBACK, http_get, private_folder
from headgate.embedded.process import Command
from headgate.embedded.service import Commands, Placement, Requirements, Service, ServiceName
from headgate.embedded.services.kafka import Kafka
from headgate.embedded.services.opensearch import OpenSearch
from headgate.embedded.services.postgres import Postgres


def all_services() -> tuple[Service, ...]:
    return (Kafka(), Registry(), Postgres(), OpenSearch())


class Registry:
    """The service ``registry``."""

    name: ServiceName = "registry"
    requirements = Requirements(("registry",), memory=100, disk=50, start_timeout=60, stop_timeout=5)

    def prepare(self, placement: Placement) -> Commands:
        private_folder(placement.data, placement.user)
        program = (sys.executable, "-m", "headgate.registry.server")
        options = ("--data", str(placement.data), "--port", str(placement.port))
        return Commands(Command((*program, *options), placement.data, placement.user))

    def is_ready(self, placement: Placement) -> bool:
        found = http_get(placement.port, "/subjects")
        return found is not None and found[0] == 200

    def after_start(self, placement: Placement) -> None:
        """Nothing to do."""

    def address(self, placement: Placement) -> str:
        return f"http://{LOOPBACK}:{placement.port}"

    public_address = address
