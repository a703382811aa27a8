"""What this machine offers to a service: a user to run as, memory, disk, and free ports on loopback.

PostgreSQL and OpenSearch refuse to run as root, so under root they run as another user.

A service keeps its port over restarts, so that addresses stay valid. Ports are chosen below the range from which the
system takes ports of outgoing connections (from 32768 on Linux, from 49152 elsewhere). Otherwise such a connection could
occupy the port of a service while the service restarts.
"""

from __future__ import annotations

import fcntl
import http.client
import os
import pwd
import random
import socket
import subprocess
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from headgate.embedded import errors

USER_CANDIDATES = ("postgres", "nobody")  # in order of preference


@dataclass(frozen=True, slots=True)
class User:
    """A user of the system that a service can run as."""

    name: str
    uid: int
    gid: int


def is_root() -> bool:
    return os.geteuid() == 0


def service_user(service: str, candidates: Sequence[str] = USER_CANDIDATES, root: bool | None = None) -> User | None:
    """The user that a service runs as. None means our own user, which is right unless we are root."""
    if not (is_root() if root is None else root):
        return None
    for name in candidates:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return User(name, found.pw_uid, found.pw_gid)
    raise errors.NoUnprivilegedUser(service, tuple(candidates))


def check_readable(user: User | None, path: Path, what: str) -> None:
    """Raise UnreachableForUser unless the user can read the file or folder.

    A process of that user tries it: the modes of the parents, ACLs and mount options count too.
    """
    if user is None:
        return
    groups: list[int] | None = [] if is_root() else None  # only root may drop groups
    command = ("test", "-r", str(path))
    tried = subprocess.run(command, user=user.uid, group=user.gid, extra_groups=groups, cwd="/", check=False)
    if tried.returncode != 0:
        raise errors.UnreachableForUser(str(path), user.name, what)


def private_folder(path: Path, user: User | None) -> Path:
    """Create a folder that only its owner can enter."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    if user is not None:
        os.chown(path, user.uid, user.gid)
    return path


def private_file(path: Path, text: str, user: User | None) -> Path:
    """Write a file that only its owner can read. The mode is set before the text is written."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        if user is not None:
            os.fchown(file.fileno(), user.uid, user.gid)
        file.write(text)
    return path


MEGABYTE = 1024 * 1024
CGROUP = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")


def available_memory(cgroup: Path = CGROUP) -> int:
    """Megabytes that a new process may use: what is left on the machine, or in the container if that is less."""
    machine = int(psutil.virtual_memory().available)
    limit = _container_memory(cgroup)
    return (machine if limit is None else min(machine, limit)) // MEGABYTE


def total_memory(cgroup: Path = CGROUP, own: Path = OWN_CGROUP) -> int:
    """Megabytes of the machine, or of the smallest memory limit that this process is under if that is less."""
    limits = [int(psutil.virtual_memory().total), *_memory_limits(cgroup, own)]
    return min(limits) // MEGABYTE


def _memory_limits(cgroup: Path, own: Path) -> Iterator[int]:
    """The limits of all groups around this process, in cgroup v2 and v1. A container sees its own group as the outermost, and
    may not see the others."""
    for folder, file in ((cgroup, "memory.max"), (cgroup / "memory", "memory.limit_in_bytes")):
        for group in {folder, *(folder / inner for inner in _groups(own))}:
            try:
                limit = (group / file).read_text().strip()
            except OSError:
                continue
            if limit.isdigit():  # "max" otherwise
                yield int(limit)


def _groups(own: Path) -> Iterator[str]:
    """The group of this process and those around it, as /proc names them: a/b/c, a/b, a."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            inner = Path(path.strip("/"))
            yield from (str(each) for each in (inner, *inner.parents) if str(each) != ".")


def _container_memory(cgroup: Path) -> int | None:
    """Bytes left under the memory limit of cgroup v2, or None without a limit. The page cache counts as free, because the
    kernel gives it back when memory is needed."""
    try:
        limit = (cgroup / "memory.max").read_text().strip()
        used = int((cgroup / "memory.current").read_text())
        stat = dict(line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    if limit == "max":
        return None
    return max(0, int(limit) - used + int(stat.get("inactive_file", 0)))


def free_disk(folder: Path) -> int:
    """Megabytes that are free on the disk of a folder, which need not exist yet."""
    existing = folder
    while not existing.exists():
        existing = existing.parent
    return int(psutil.disk_usage(str(existing)).free) // MEGABYTE


def check_resources(service: str, folder: Path, memory: int, disk: int) -> None:
    """Raise NotEnoughMemory or NotEnoughDisk unless so many megabytes are free."""
    if (have := available_memory()) < memory:
        raise errors.NotEnoughMemory(service, memory, have)
    if (have := free_disk(folder)) < disk:
        raise errors.NotEnoughDisk(service, str(folder), disk, have)


LOOPBACK = "127.0.0.1"
PORT_RANGE = range(20_000, 32_000)


def is_free(port: int) -> bool:
    """Whether a server can listen on the port now. Closed connections in TIME_WAIT do not matter."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


class Reservations:
    """Ports that this process is going to use.

    A service binds its port up to half a minute after the port was chosen. Until then another world could choose the same
    one. So all worlds of a user share a file, and the reservation of port N is a lock on byte N of it. The kernel releases
    the locks when the process ends.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._held: int | None = None

    def take(self, port: int) -> bool:
        """Reserve the port. Returns False if it is in use or reserved."""
        if not is_free(port):
            return False
        if self._held is None:  # never closed: a close releases all locks
            self._held = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError:
            return False
        return True


def choose_port(remembered: int | None, others: Collection[int] = (), take: Callable[[int], bool] = is_free) -> int:
    """The remembered port if ``take`` accepts it, otherwise a random one that it accepts. Never one of ``others``."""
    if remembered is not None and remembered not in others and take(remembered):
        return remembered
    for _ in range(1000):
        port = random.choice(PORT_RANGE)
        if port not in others and take(port):
            return port
    raise errors.PortTaken("a service", PORT_RANGE.start)


def require_port(service: str, port: int) -> int:
    """Check that the port which the user asked for is free. Raises PortTaken."""
    if not is_free(port):
        raise errors.PortTaken(service, port, listening_process(port))
    return port


def listening_process(port: int) -> int | None:
    """The pid of the process that listens on the port. None if unknown: the system may hide other users' processes."""
    try:
        found = psutil.net_connections("tcp")
    except psutil.Error:
        return None
    return next((c.pid for c in found if c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == port), None)


def accepts_connections(port: int, timeout: float = 0.5) -> bool:
    """Whether a server accepts connections on the port."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=timeout):
            return True
    except OSError:
        return False


def http_get(port: int, path: str, timeout: float = 5) -> tuple[int, bytes] | None:
    """Status and body of an HTTP GET, or None without an answer. Never uses a proxy."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=timeout)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
