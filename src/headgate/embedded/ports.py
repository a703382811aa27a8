"""Ports on loopback: which are free, and choosing one that is likely to stay so.

A service keeps its port over restarts, so that what clients were told stays true. Ports are chosen below the
range from which the system takes the near end of outgoing connections (32768 and up on Linux, 49152 elsewhere):
otherwise some client's connection may sit on a service's port just when the service comes back.
"""

from __future__ import annotations

import fcntl
import http.client
import os
import random
import socket
from collections.abc import Callable, Collection
from pathlib import Path

import psutil

from headgate.embedded.errors import PortTaken

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
