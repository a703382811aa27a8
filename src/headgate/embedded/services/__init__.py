"""The services of an embedded world, one module each.

Each module has one class that fulfils ``service.Service``: it prepares the data folder, gives the command to run, checks
whether the service is ready, and knows the address for clients. ``service.ServiceRunner`` calls it. No service depends
on another.
"""

from __future__ import annotations

from headgate.embedded.service import Service
from headgate.embedded.services.kafka import Kafka
from headgate.embedded.services.opensearch import OpenSearch
from headgate.embedded.services.postgres import Postgres
from headgate.embedded.services.registry import Registry


def all_services() -> tuple[Service, ...]:
    return (Kafka(), Registry(), Postgres(), OpenSearch())
