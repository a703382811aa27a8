"""The checks of `headgate doctor`: everything that a world needs, and how to repair what is wrong."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from headgate.embedded import host
from headgate.embedded.errors import CacheUnusable, WorldInUse
from headgate.embedded.folder import WorldFolder, is_locked, lock_holder, open_folder
from headgate.embedded.jars import FOR_TESTS, Jar, cache_folder, find_java, hash_of, jar_path, jar_sets
from headgate.embedded.service import ServiceStatus
from headgate.embedded.services import all_services
from headgate.embedded.services.opensearch import NEWEST_JAVA
from headgate.embedded.services.postgres import CLUSTER, MAJOR, check_version
from headgate.embedded.spark import default_heap
from headgate.embedded.world import World
from headgate.errors import HeadgateError

Verdict: TypeAlias = Literal["ok", "warn", "fail"]

OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``repair`` says what to do; it is empty if the check passed."""

    check: str
    verdict: Verdict
    found: str
    repair: str = ""


def examine(folder: Path, heap: str | None = None) -> Iterator[Finding]:
    """Run all checks, in the order in which a first start would need them. Starts no service.

    ``heap`` is the size of Spark's heap that the settings name, as Java writes it; None if they name none.
    """
    checks: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        ("python", _python),
        ("java", _java),
        ("cache", check_cache),
        ("jars", _all_jars),
        ("ports", _ports),
        ("memory", _memory),
        ("spark heap", partial(check_heap, heap, host.total_memory())),
        ("disk", partial(_disk, folder)),
        ("service user", _user),
        ("world", partial(_world, folder)),
        ("postgres data", partial(check_postgres_data, folder)),
    ]
    for name, check in checks:
        try:
            yield from check()
        except HeadgateError as error:
            yield Finding(name, "fail", error.message(), error.hint() or "")


def _python() -> Iterator[Finding]:
    if sys.version_info >= OLDEST_PYTHON:
        yield Finding("python", "ok", f"{platform.python_version()} at {sys.executable}")
    else:
        yield Finding("python", "fail", platform.python_version(), "Install Python 3.11 or newer.")


def _java() -> Iterator[Finding]:
    java = find_java()
    if java.version <= NEWEST_JAVA:
        yield Finding("java", "ok", f"{java.version} at {java.path}")
    else:
        repair = f"OpenSearch runs on Java up to {NEWEST_JAVA}: set JAVA_HOME to a Java 17 or 21 if you need it."
        yield Finding("java", "warn", f"{java.version} at {java.path}", repair)


def check_cache() -> Iterator[Finding]:
    cache = cache_folder()
    writable = os.access(cache, os.W_OK | os.X_OK)
    found, repair = f"{cache}, which cannot be written", CacheUnusable.HINT or ""
    yield Finding("cache", "ok", str(cache)) if writable else Finding("cache", "warn", found, repair)


def _all_jars() -> Iterator[Finding]:
    """One finding per service. OpenSearch has several sets of jars, one per module."""
    groups: dict[str, list[tuple[str, tuple[Jar, ...]]]] = {}
    for name, jars in jar_sets().items():
        if name not in FOR_TESTS:
            groups.setdefault(name.partition("-")[0], []).append((name, jars))
    cache = cache_folder()
    for group, sets in groups.items():
        all_jars = [jar for _, of_set in sets for jar in of_set]
        yield check_jars(f"jars of {group}", all_jars, cache, " ".join(name for name, _ in sets))


def check_jars(check: str, jars: Sequence[Jar], cache: Path, sets: str) -> Finding:
    """Check that the cache has the jars with the right hashes. ``sets`` are the names to fetch them by."""
    hashes = [(jar, hash_of(jar_path(jar, cache))) for jar in jars]
    missing = [jar for jar, found in hashes if found is None]
    wrong = [jar for jar, found in hashes if found is not None and found != jar.sha256]
    fetch = f"Run `{sys.executable} -m headgate.embedded.jars {sets}`"
    if wrong:
        return Finding(
            check, "fail", f"{len(wrong)} are not what the lock names, {wrong[0].coordinate} first", f"{fetch}."
        )
    if missing:
        size = sum(jar.size for jar in missing) // 1_000_000
        found = f"{len(missing)} of {len(jars)} are not in {cache}, {size} MB"
        return Finding(check, "warn", found, f"{fetch}, or let the first start fetch them.")
    return Finding(check, "ok", f"{len(jars)} in {cache}, with the right hashes")


def _ports() -> Iterator[Finding]:
    yield Finding("ports", "ok", f"loopback ports can be opened, for example {host.choose_port(None)}")


def _memory() -> Iterator[Finding]:
    needed = sum(one.requirements.memory for one in all_services())
    largest = max(one.requirements.memory for one in all_services())
    have = host.available_memory()
    found = f"{have} MB available, {needed} MB for all services"
    repair = "Close other programs, or raise the memory limit of this container or machine."
    if have >= needed:
        yield Finding("memory", "ok", found)
    else:
        yield Finding("memory", "warn" if have >= largest else "fail", found, repair)


def check_heap(given: str | None, total: int) -> Iterator[Finding]:
    """How much memory Spark gets, of ``total`` megabytes. The rest of the machine needs some too."""
    if given is None:
        yield Finding(
            "spark heap", "ok", f"{default_heap(total)} MB of {total} MB; memory in [spark] sets another size"
        )
        return
    wanted = int(given[:-1]) << {"k": 10, "m": 20, "g": 30}[given[-1].lower()] >> 20
    found = f"{wanted} MB of {total} MB, as memory in [spark] says"
    if wanted <= total * 3 // 4:
        yield Finding("spark heap", "ok", found)
    else:
        repair = "Set memory in the table [spark] of headgate.toml to at most three quarters of it, or leave it out."
        yield Finding("spark heap", "warn", found, repair)


def _disk(folder: Path) -> Iterator[Finding]:
    needed = sum(one.requirements.disk for one in all_services())
    for path in (folder, cache_folder()):
        have = host.free_disk(path.absolute())
        found = f"{have} MB free at {path}, {needed} MB for all services"
        repair = "Free some space there, or use a folder on another disk."
        yield Finding("disk", "ok" if have >= needed else "fail", found, "" if have >= needed else repair)


def _user() -> Iterator[Finding]:
    """PostgreSQL and OpenSearch refuse to run as root."""
    user = host.service_user("PostgreSQL or OpenSearch")
    yield Finding("service user", "ok", f'"{user.name}", because we are root' if user else "our own user")


def _world(folder: Path) -> Iterator[Finding]:
    if not (folder / "world.json").exists():
        yield Finding("world", "ok", f"none in {folder} yet")
        return
    opened = open_folder(folder)
    running = World.running(folder)
    if running is not None:
        yield Finding("world", "ok", f"runs in {folder}, supervisor {running.pid}")
        yield from map(check_service, running.services)
    elif is_locked(opened):
        raise WorldInUse(str(folder), lock_holder(opened))
    else:
        yield Finding("world", "ok", f"in {folder}, not running")
        yield from _kept_ports(opened)


def check_postgres_data(folder: Path) -> Iterator[Finding]:
    """Check the version of PostgreSQL's data. Raises PostgresDataOfOtherVersion."""
    if (folder / "world.json").exists():
        cluster = open_folder(folder).data("postgres", as_other_user=host.is_root()) / CLUSTER
        check_version(cluster)
        if cluster.exists():
            yield Finding("postgres data", "ok", f"of PostgreSQL {MAJOR}, in {cluster}")


def check_service(status: ServiceStatus) -> Finding:
    check = f"service {status.service}"
    if status.state == "died":
        repair = f"Read {status.log}. It is started again when it is next asked for."
        return Finding(check, "fail", "died by itself", repair)
    return Finding(check, "ok", f"{status.state} at {status.address}" if status.pid else status.state)


def _kept_ports(folder: WorldFolder) -> Iterator[Finding]:
    for name, port in folder.ports().items():
        if not host.is_free(port):
            holder = host.listening_process(port)
            found = f"port {port} of {name} is taken" + (f" by process {holder}" if holder else "")
            yield Finding(
                "world", "warn", found, "The service will start on another port. End what listens there to keep it."
            )
