"""What a file leaves in the services of the world: found by what was there before it, removed after it."""

from __future__ import annotations

from contextlib import suppress

import httpx
import psycopg
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from psycopg import sql

from headgate.embedded.world import World
from headgate.registry.client import RegistryClient
from headgate.registry.errors import RegistryError

TIMEOUT = 30.0


class Leftovers:
    """Made before a file runs; ``remove`` after it. Services that never ran are not started for it."""

    def __init__(self, world: World, database: str | None) -> None:
        self._world = world
        self._database = database
        running = _running(world)
        self._topics = _topics(world) if "kafka" in running else frozenset()
        self._subjects = _subjects(world) if "registry" in running else frozenset()
        self._indexes = _indexes(world) if "opensearch" in running else frozenset()

    def remove(self) -> None:
        running = _running(self._world)
        if "kafka" in running:
            _delete_topics(self._world, _topics(self._world) - self._topics)
        if "registry" in running:
            _delete_subjects(self._world, _subjects(self._world) - self._subjects)
        if "opensearch" in running:
            _delete_indexes(self._world, _indexes(self._world) - self._indexes)
        if self._database is not None:
            drop_database(self._world, self._database)


def bring_up(world: World) -> None:
    """Start what a file left down."""
    down = [one.service for one in world.status().services if one.state == "down"]
    if down:
        world.start(*down)


def create_database(world: World, name: str) -> None:
    with psycopg.connect(world.postgres(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def drop_database(world: World, name: str) -> None:
    """Whoever is connected to it; replication slots that hold it are dropped first."""
    slots = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s AND NOT active"
    with psycopg.connect(world.postgres(), autocommit=True) as connection:
        connection.execute(slots, [name])
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def _running(world: World) -> frozenset[str]:
    return frozenset(one.service for one in world.status().services if one.state == "running")


def _topics(world: World) -> frozenset[str]:
    admin = AdminClient({"bootstrap.servers": world.kafka(), "log_level": 0})
    return frozenset(name for name in admin.list_topics(timeout=TIMEOUT).topics if not name.startswith("__"))


def _delete_topics(world: World, names: frozenset[str]) -> None:
    if not names:
        return
    admin = AdminClient({"bootstrap.servers": world.kafka(), "log_level": 0})
    for deleted in admin.delete_topics(sorted(names), operation_timeout=TIMEOUT).values():
        with suppress(KafkaException):  # gone meanwhile
            deleted.result()


def _subjects(world: World) -> frozenset[str]:
    with RegistryClient([world.registry()]) as registry:
        return frozenset(registry.subjects(deleted=True))


def _delete_subjects(world: World, names: frozenset[str]) -> None:
    """In rounds, since a subject that another refers to goes after it."""
    left = sorted(names)
    with RegistryClient([world.registry()]) as registry:
        for permanent in (False, True):
            left = sorted(names)
            for _ in range(len(names)):
                left = [name for name in left if not _deleted(registry, name, permanent)]
                if not left:
                    break


def _deleted(registry: RegistryClient, name: str, permanent: bool) -> bool:
    try:
        registry.delete_subject(name, permanent=permanent)
    except RegistryError:
        return False
    return True


def _indexes(world: World) -> frozenset[str]:
    url = f"{world.elasticsearch()}/_cat/indices?format=json&expand_wildcards=open,closed"
    told = httpx.get(url, timeout=TIMEOUT, trust_env=False).raise_for_status().json()
    return frozenset(one["index"] for one in told if not one["index"].startswith("."))


def _delete_indexes(world: World, names: frozenset[str]) -> None:
    for name in names:
        httpx.delete(f"{world.elasticsearch()}/{name}", timeout=TIMEOUT, trust_env=False)
