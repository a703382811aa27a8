"""OpenSearch, started from a home folder that we assemble from its jars once per cache folder.

Maven Central has the jars of OpenSearch but not its distribution, so the layout of the home folder is made here.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from headgate.embedded.errors import JavaTooNew
from headgate.embedded.host import LOOPBACK, User, check_readable, http_get, private_file, private_folder
from headgate.embedded.jars import cache_folder, fetch, find_java, install_once, service_options
from headgate.embedded.process import Command
from headgate.embedded.service import Commands, Placement, Requirements, ServiceName, configuration

VERSION = "2.19.1"
NEWEST_JAVA = 23  # OpenSearch 2 needs the security manager, which Java 24 removed

# The plugin class of each module.
MODULES = {
    "transport-netty4": "org.opensearch.transport.Netty4Plugin",
    "reindex": "org.opensearch.index.reindex.ReindexPlugin",
    "mapper-extras": "org.opensearch.index.mapper.MapperExtrasPlugin",
}
WITH_POLICY = ("transport-netty4", "reindex")


class OpenSearch:
    """The service ``opensearch``. Its second port is the one between nodes."""

    name: ServiceName = "opensearch"
    requirements = Requirements(
        ("opensearch", "opensearch-transport"), memory=800, disk=500, start_timeout=180, stop_timeout=15, refuses_root=True
    )  # fmt: skip

    def prepare(self, placement: Placement) -> Commands:
        java = find_java()
        if java.version > NEWEST_JAVA:
            raise JavaTooNew(self.name, java.version, NEWEST_JAVA)
        home = install()
        for name in ("", "config", "data", "logs", "tmp"):
            private_folder(placement.data / name, placement.user)
        configure(placement)
        _check_reach(placement.user, java.path.resolve(), home, placement.data)
        return Commands(Command(_command(java.path, home, placement), placement.data, placement.user))

    def is_ready(self, placement: Placement) -> bool:
        found = http_get(placement.port, "/_cluster/health")
        return found is not None and found[0] == 200 and json.loads(found[1])["status"] in ("green", "yellow")

    def after_start(self, placement: Placement) -> None:
        """Nothing to do. Indexes are created by their users."""

    def address(self, placement: Placement) -> str:
        return f"http://{LOOPBACK}:{placement.port}"

    public_address = address


def _command(java: Path, home: Path, placement: Placement) -> tuple[str, ...]:
    """The command line of the server. All paths are absolute, because it runs as another user under root."""
    options = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-Djava.security.manager=allow")
    # With log4j's shutdown hook besides OpenSearch's own, a stop hangs for 15 s until the kill, instead of taking 0.1 s.
    logging = ("-Dlog4j2.disable.jmx=true", "-Dlog4j.shutdownHookEnabled=false")
    folders = (
        f"-Djava.io.tmpdir={placement.data / 'tmp'}",
        f"-Dopensearch.path.home={home}",
        f"-Dopensearch.path.conf={placement.data / 'config'}",
    )
    program = ("-cp", f"{home}/lib/*", "org.opensearch.bootstrap.OpenSearch")
    return (str(java), *options, *service_options(), *logging, *folders, *program)


def configure(placement: Placement) -> None:
    """Write OpenSearch's settings: YAML whose values are JSON, which YAML includes."""
    settings = {
        "cluster.name": "headgate",
        "node.name": "headgate",
        "discovery.type": "single-node",
        "network.host": LOOPBACK,
        "http.port": placement.ports[0],
        "transport.port": placement.ports[1],
        "path.data": [str(placement.data / "data")],  # a list, because a text is split at commas
        "path.logs": str(placement.data / "logs"),
        # On a disk that is 95 % full OpenSearch makes every index read-only. We check the free space ourselves.
        "cluster.routing.allocation.disk.threshold_enabled": False,
        # Memory maps need a kernel setting (vm.max_map_count) that a container often cannot change.
        "node.store.allow_mmap": False,
        "bootstrap.system_call_filter": False,
    }
    text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in settings.items())
    private_file(placement.data / "config" / "opensearch.yml", text, placement.user)
    private_file(
        placement.data / "config" / "log4j2.properties", configuration("opensearch.log4j2.properties"), placement.user
    )


def _check_reach(user: User | None, java: Path, home: Path, data: Path) -> None:
    check_readable(user, java, "Java")
    check_readable(user, home / "lib", "OpenSearch's jars")
    check_readable(user, data, "OpenSearch's data")


def install() -> Path:
    """The home folder: `lib`, and one folder per module with its descriptor and policy."""
    jars = {name: fetch(f"opensearch-{name}") for name in ("lib", *MODULES)}
    home = cache_folder() / f"opensearch-{VERSION}-{_fingerprint(jars.values())}"
    install_once(home, lambda fresh: _assemble(fresh, jars))
    return home


def _assemble(home: Path, jars: dict[str, tuple[Path, ...]]) -> None:
    """Fill a new home folder from the jars."""
    for name in ("bin", "extensions", "modules", "plugins"):  # OpenSearch would create them, but its user may not
        _readable_folder(home / name)
    for name, files in jars.items():
        folder = _readable_folder(home / "lib" if name == "lib" else home / "modules" / name)
        for file in files:
            _link(file, folder / file.name)
    for name, main in MODULES.items():
        _write(home / "modules" / name / "plugin-descriptor.properties", _descriptor(name, main))
        if policy := _policy(name):
            _write(home / "modules" / name / "plugin-security.policy", policy)


def _policy(module: str) -> str:
    """The permissions of a module beyond those of all code; empty if it has none."""
    return configuration(f"opensearch.{module}.policy") if module in WITH_POLICY else ""


def _descriptor(name: str, main: str) -> str:
    versions = {"version": VERSION, "opensearch.version": VERSION, "java.version": "17"}
    fields = {"name": name, "description": name, **versions, "classname": main}
    return "".join(f"{key}={value}\n" for key, value in fields.items())


def _link(file: Path, target: Path) -> None:
    """Make a hard link, or a copy on another file system. The security manager rejects symbolic links, because it checks
    the path that they lead to."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copyfile(file, target)
        target.chmod(0o644)


def _readable_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    path.chmod(0o755)
    path.parent.chmod(0o755)
    return path


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o644)


def _fingerprint(sets: Iterable[tuple[Path, ...]]) -> str:
    """Changes when the jars or modules change, so that a new home folder is assembled."""
    names = "\n".join(path.name for files in sets for path in files)
    modules = {name: (main, _policy(name)) for name, main in MODULES.items()}
    return hashlib.sha256((names + json.dumps(modules)).encode()).hexdigest()[:8]
