"""OpenSearch: its own main class on a home folder that we put together from its jars, once per cache folder."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from headgate.embedded.errors import JavaTooNew
from headgate.embedded.host import LOOPBACK, User, check_reach, get, own_file, own_folder
from headgate.embedded.jars import cache_folder, fetch, find_java
from headgate.embedded.process import Launch
from headgate.embedded.service import Launches, Needs, ServiceName, Site

VERSION = "2.19.1"
NEWEST_JAVA = 23  # it asks for a security manager, which Java 24 no longer has

# A module's main class, and what it may do beyond what all code may.
MODULES: dict[str, tuple[str, str]] = {
    "transport-netty4": (
        "org.opensearch.transport.Netty4Plugin",
        """grant {
  permission java.io.FilePermission "/proc/sys/net/core/somaxconn", "read";
  permission java.net.SocketPermission "*", "accept,connect";
  permission java.lang.RuntimePermission "*", "setContextClassLoader";
  permission java.lang.RuntimePermission "getClassLoader";
  permission java.util.PropertyPermission "sun.nio.ch.bugLevel", "write";
};
""",
    ),
    "reindex": (
        "org.opensearch.index.reindex.ReindexPlugin",
        """grant {
  permission java.net.SocketPermission "*", "connect";
};
grant codeBase "${codebase.opensearch-rest-client}" {
  permission java.net.NetPermission "getProxySelector";
};
grant codeBase "${codebase.httpasyncclient}" {
  permission java.net.NetPermission "getProxySelector";
};
""",
    ),
    "mapper-extras": ("org.opensearch.index.mapper.MapperExtrasPlugin", ""),
}

LOG4J = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}] %p %m (%c{1.})%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""


class OpenSearch:
    name: ServiceName = "opensearch"
    needs = Needs(
        ("opensearch", "opensearch-transport"),
        memory=800,
        disk=500,
        patience=180,
        grace=15,
        refuses_root=True,
    )

    def prepare(self, site: Site) -> Launches:
        java = find_java()
        if java.version > NEWEST_JAVA:
            raise JavaTooNew(self.name, java.version, NEWEST_JAVA)
        home = install()
        for folder in (
            site.data,
            site.data / "config",
            site.data / "data",
            site.data / "logs",
            site.data / "tmp",
        ):
            own_folder(folder, site.user)
        configure(site)
        _check_reach(site.user, java.path.resolve(), home, site.data)
        return Launches(Launch(_command(java.path, home, site), site.data, site.user))

    def answers(self, site: Site) -> bool:
        found = get(site.port, "/_cluster/health")
        return found is not None and found[0] == 200 and json.loads(found[1])["status"] in ("green", "yellow")

    def settle(self, site: Site) -> None:
        """Nothing: indexes are made by those who want them."""

    def address(self, site: Site) -> str:
        return f"http://{LOOPBACK}:{site.port}"

    public_address = address


def _command(java: Path, home: Path, site: Site) -> tuple[str, ...]:
    options = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-Djava.security.manager=allow")
    # With log4j's own shutdown hook beside OpenSearch's, a stop takes 15 s and a kill instead of 0.1 s.
    logging = ("-Dlog4j2.disable.jmx=true", "-Dlog4j.shutdownHookEnabled=false")
    places = (
        f"-Djava.io.tmpdir={site.data / 'tmp'}",
        f"-Dopensearch.path.home={home}",
        f"-Dopensearch.path.conf={site.data / 'config'}",
    )
    return (
        str(java),
        *options,
        *logging,
        *places,
        "-cp",
        f"{home}/lib/*",
        "org.opensearch.bootstrap.OpenSearch",
    )


def configure(site: Site) -> None:
    """Write OpenSearch's settings, as YAML whose values are JSON."""
    settings = {
        "cluster.name": "headgate",
        "node.name": "headgate",
        "discovery.type": "single-node",
        "network.host": LOOPBACK,
        "http.port": site.ports[0],
        "transport.port": site.ports[1],
        "path.data": [str(site.data / "data")],  # a list, or it would be split at commas
        "path.logs": str(site.data / "logs"),
        # On a developer's disk that is 95 % full it would make every index read-only; we check for room ourselves.
        "cluster.routing.allocation.disk.threshold_enabled": False,
        # Memory maps need a kernel setting that a container often may not change.
        "node.store.allow_mmap": False,
        "bootstrap.system_call_filter": False,
    }
    text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in settings.items())
    own_file(site.data / "config" / "opensearch.yml", text, site.user)
    own_file(site.data / "config" / "log4j2.properties", LOG4J, site.user)


def _check_reach(user: User | None, java: Path, home: Path, data: Path) -> None:
    check_reach(user, java, "Java")
    check_reach(user, home / "lib", "OpenSearch's jars")
    check_reach(user, data, "OpenSearch's data")


def install() -> Path:
    """The home folder: `lib`, and a folder per module with its descriptor and policy. Made once, all or nothing."""
    jars = {name: fetch(f"opensearch-{name}") for name in ("lib", *MODULES)}
    home = cache_folder() / f"opensearch-{VERSION}-{_fingerprint(jars.values())}"
    if not home.exists():
        fresh = home.with_name(f"{home.name}.{os.getpid()}")
        shutil.rmtree(fresh, ignore_errors=True)
        _assemble(fresh, jars)
        try:
            fresh.rename(home)
        except OSError:  # another run was quicker
            shutil.rmtree(fresh, ignore_errors=True)
    return home


def _assemble(home: Path, jars: dict[str, tuple[Path, ...]]) -> None:
    for name in ("bin", "extensions", "modules", "plugins"):  # it makes them itself otherwise, and may not
        _readable_folder(home / name)
    for name, files in jars.items():
        folder = _readable_folder(home / "lib" if name == "lib" else home / "modules" / name)
        for file in files:
            _link(file, folder / file.name)
    for name, (main, policy) in MODULES.items():
        _write(home / "modules" / name / "plugin-descriptor.properties", _descriptor(name, main))
        if policy:
            _write(home / "modules" / name / "plugin-security.policy", policy)


def _descriptor(name: str, main: str) -> str:
    fields = {
        "name": name,
        "description": name,
        "version": VERSION,
        "opensearch.version": VERSION,
        "java.version": "17",
        "classname": main,
    }
    return "".join(f"{key}={value}\n" for key, value in fields.items())


def _link(file: Path, place: Path) -> None:
    """A hard link, for the security manager looks where a symbolic one leads; a copy where there is none to be had."""
    try:
        os.link(file, place)
    except OSError:
        shutil.copyfile(file, place)
        place.chmod(0o644)


def _readable_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    path.chmod(0o755)
    path.parent.chmod(0o755)
    return path


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o644)


def _fingerprint(sets: Iterable[tuple[Path, ...]]) -> str:
    names = "\n".join(path.name for files in sets for path in files) + json.dumps(MODULES)
    return hashlib.sha256(names.encode()).hexdigest()[:8]
