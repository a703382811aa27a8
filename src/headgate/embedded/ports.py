"""Ports on loopback: which are free, and choosing one that is likely to stay so.

A service keeps its port over restarts, so that what clients were told stays true. Ports are chosen below the
range from which the system takes the near end of outgoing connections (32768 and up on Linux, 49152 elsewhere):
otherwise some client's connection may sit on a service's port just when the service comes back.
"""

from __future__ import annotations

import http.client
import random
import socket
from collections.abc import Collection

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


def choose_port(remembered: int | None, others: Collection[int] = ()) -> int:
    """The remembered port if it is free, else a free one at random that is none of the others."""
    if remembered is not None and remembered not in others and is_free(remembered):
        return remembered
    for _ in range(1000):
        port = random.choice(CHOICE)
        if port not in others and is_free(port):
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
