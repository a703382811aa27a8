"""What this machine offers a service: a user to run as, memory and disk, and a free port."""

from __future__ import annotations

import fcntl
import http.client
import os
import pwd
import random
import socket
import subprocess
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from headgate.embedded.errors import (
    NotEnoughDisk,
    NotEnoughMemory,
    NoUnprivilegedUser,
    PortTaken,
    UnreachableForUser,
)

CANDIDATES = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class User:
    name: str
    uid: int
    gid: int


def is_root() -> bool:
    return os.geteuid() == 0


def service_user(
    service: str, candidates: Sequence[str] = CANDIDATES, root: bool | None = None
) -> User | None:
    """The user to run a service as: None, the one we are, unless we are root."""
    if not (is_root() if root is None else root):
        return None
    for name in candidates:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return User(name, found.pw_uid, found.pw_gid)
    raise NoUnprivilegedUser(service, tuple(candidates))


def check_reach(user: User | None, path: Path, what: str) -> None:
    """Raise unless the user can read the file, or list the folder; by trying, since modes do not tell all."""
    if user is None:
        return
    groups: list[int] | None = [] if is_root() else None  # only root can give groups up
    command = ("test", "-r", str(path))
    tried = subprocess.run(command, user=user.uid, group=user.gid, extra_groups=groups, cwd="/", check=False)
    if tried.returncode != 0:
        raise UnreachableForUser(str(path), user.name, what)


def own_folder(path: Path, user: User | None) -> Path:
    """Make the folder, for its owner alone."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    if user is not None:
        os.chown(path, user.uid, user.gid)
    return path


def own_file(path: Path, text: str, user: User | None) -> Path:
    """Write a file that only its owner can read; the mode is right before the text is there."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        if user is not None:
            os.fchown(file.fileno(), user.uid, user.gid)
        file.write(text)
    return path


MEGABYTE = 1024 * 1024
CGROUP = Path("/sys/fs/cgroup")


def available_memory(cgroup: Path = CGROUP) -> int:
    """Megabytes that a new process may use: what the machine has left, or the container if that is less."""
    machine = int(psutil.virtual_memory().available)
    limit = _container_memory(cgroup)
    return (machine if limit is None else min(machine, limit)) // MEGABYTE


def _container_memory(cgroup: Path) -> int | None:
    """Bytes left under the limit of cgroup v2, None without one. Pages of files can be taken back, so they are free."""
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
    """Megabytes free where the folder is, or will be."""
    place = folder
    while not place.exists():
        place = place.parent
    return int(psutil.disk_usage(str(place)).free) // MEGABYTE


def check_room(service: str, folder: Path, memory: int, disk: int) -> None:
    """Raise unless these megabytes of memory, and of disk at the folder, are to be had."""
    if (have := available_memory()) < memory:
        raise NotEnoughMemory(service, memory, have)
    if (have := free_disk(folder)) < disk:
        raise NotEnoughDisk(service, str(folder), disk, have)


LOOPBACK = "127.0.0.1"
CHOICE = range(20_000, 32_000)


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now. Closed connections that linger do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


class Reservations:
    """Ports that a process means to use. A service binds its port up to half a minute after it was chosen, and until
    then another world could choose the same. It is a lock on the byte of that number in a file which all worlds of a
    user share, so it goes with the process."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._held: int | None = None

    def take(self, port: int) -> bool:
        """Whether the port is free and now ours."""
        if not is_free(port):
            return False
        if self._held is None:  # never closed: that would give up all
            self._held = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError:
            return False
        return True


def choose_port(
    remembered: int | None, others: Collection[int] = (), take: Callable[[int], bool] = is_free
) -> int:
    """The remembered port if it can be taken, else one at random that can, and is none of the others."""
    if remembered is not None and remembered not in others and take(remembered):
        return remembered
    for _ in range(1000):
        port = random.choice(CHOICE)
        if port not in others and take(port):
            return port
    raise PortTaken("a service", CHOICE.start)


def claim_port(service: str, port: int) -> int:
    """The port asked for by number, which must be free."""
    if not is_free(port):
        raise PortTaken(service, port, listener(port))
    return port


def listener(port: int) -> int | None:
    """The process that listens on the port, if the system tells us."""
    try:
        found = psutil.net_connections("tcp")
    except psutil.Error:
        return None
    return next(
        (c.pid for c in found if c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == port), None
    )


def answers(port: int, timeout: float = 0.5) -> bool:
    """Whether something accepts connections there."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=timeout):
            return True
    except OSError:
        return False


def get(port: int, path: str, timeout: float = 5) -> tuple[int, bytes] | None:
    """Status and body of an HTTP GET; None if nobody answers. Never through a proxy."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=timeout)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
