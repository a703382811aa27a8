from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.embedded.errors import PortTaken
from headgate.embedded.ports import CHOICE, LOOPBACK, Reservations, answers, choose_port, claim_port, is_free

pytestmark = pytest.mark.unit


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((LOOPBACK, choose_port(None))) as server:
        yield server.getsockname()[1]


def test_a_port_that_somebody_listens_on_is_not_free(taken: int) -> None:
    assert not is_free(taken)
    assert answers(taken)


def test_a_port_that_is_listened_on_at_every_address_is_not_free() -> None:
    port = choose_port(None)
    with socket.create_server(("0.0.0.0", port)):
        assert not is_free(port)
    assert is_free(port)


def test_a_port_whose_connections_only_linger_is_free(taken: int) -> None:
    port = choose_port(None)
    with (
        socket.create_server((LOOPBACK, port)) as server,
        socket.create_connection((LOOPBACK, port)) as client,
    ):
        accepted, _ = server.accept()
        accepted.close()  # the server's side closes first, so that it is the one to linger
        assert client.recv(1) == b""
    assert is_free(port)


def test_a_remembered_port_is_kept_while_it_is_free() -> None:
    port = choose_port(None)
    assert choose_port(port) == port


def test_a_remembered_port_that_is_taken_is_replaced(taken: int) -> None:
    assert choose_port(taken) != taken


def test_a_chosen_port_is_none_of_the_others_and_not_one_for_outgoing_connections() -> None:
    port = choose_port(None)
    assert choose_port(port, others={port}) != port
    assert port in CHOICE
    assert max(CHOICE) < 32768


RESERVE = """
import sys
from pathlib import Path
from headgate.embedded.ports import Reservations
print(Reservations(Path(sys.argv[1])).take(int(sys.argv[2])), flush=True)
sys.stdin.read()
"""


def test_a_port_that_another_process_means_to_use_is_not_taken_until_it_ends(tmp_path: Path) -> None:
    port, mine = choose_port(None), Reservations(tmp_path / "ports")
    command = (sys.executable, "-c", RESERVE, str(tmp_path / "ports"), str(port))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"True\n"
        assert not mine.take(port)
        assert choose_port(port, take=mine.take) != port
        other.kill()
    assert mine.take(port)
    assert mine.take(port)


def test_a_port_asked_for_by_number_must_be_free(taken: int) -> None:
    with pytest.raises(PortTaken) as caught:
        claim_port("kafka", taken)
    assert (caught.value.service, caught.value.port, caught.value.pid) == ("kafka", taken, os.getpid())
    assert caught.value.message() == f"port {taken} of kafka is taken by process {os.getpid()}"
