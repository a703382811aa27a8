from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result

from headgate.cli.main import headgate
from headgate.embedded.errors import PortTaken, UnknownService, WorldInUse
from headgate.embedded.host import LOOPBACK, choose_port
from headgate.embedded.world import World
from tests.embedded.world_fixtures import eventually, is_gone

pytestmark = pytest.mark.e2e


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "world"
    if World.running(tmp_path / "world") is not None:
        _run("down", tmp_path / "world")


def _run(command: str, folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(headgate, ("world", command, *arguments, "--folder", str(folder)))


def test_a_world_that_is_up_stays_without_any_command_until_it_is_down(folder: Path) -> None:
    up = _run("up", folder, "postgres", "--output", "json")
    assert up.exit_code == 0, up.output
    result = json.loads(up.stdout)
    assert (result["pinned"], result["folder"]) == (True, str(folder))
    time.sleep(4)  # longer than the idle time-out
    shown = _run("status", folder)
    assert shown.exit_code == 0
    address = next(one["address"] for one in result["services"] if one["service"] == "postgres")
    assert address in shown.stdout
    assert f"{folder} runs until `headgate world down`" in shown.stdout
    with psycopg.connect(address, password=(folder / "secrets" / "postgres").read_text()) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    down = _run("down", folder)
    assert (down.exit_code, is_gone(result["pid"])) == (0, True)
    assert _run("status", folder).exit_code == 1


def test_up_names_where_the_password_is_and_never_the_password(folder: Path) -> None:
    up = _run("up", folder, "postgres", "registry")
    assert up.exit_code == 0, up.output
    secret = folder / "secrets" / "postgres"
    assert str(secret) in up.stdout
    assert secret.read_text() not in up.output


def test_a_fixed_port_is_the_one_it_runs_on(folder: Path) -> None:
    port = choose_port(None)
    up = _run("up", folder, "registry", "--port", f"registry={port}")
    assert up.exit_code == 0, up.output
    assert f"http://{LOOPBACK}:{port}" in up.stdout


def test_a_fixed_port_that_is_taken_is_an_error_and_no_world_stays(folder: Path) -> None:
    with socket.create_server((LOOPBACK, choose_port(None))) as taken:
        up = _run("up", folder, "registry", "--port", f"registry={taken.getsockname()[1]}")
    assert isinstance(up.exception, PortTaken)
    assert eventually(lambda: World.running(folder) is None, 10)


def test_down_and_status_of_no_world_say_so(folder: Path) -> None:
    assert "no world runs" in _run("down", folder).stdout
    status = _run("status", folder, "--output", "json")
    assert (status.exit_code, json.loads(status.stdout)) == (1, None)
    assert not folder.exists()


def test_a_misspelt_service_is_reported(folder: Path) -> None:
    assert isinstance(_run("up", folder, "postgre").exception, UnknownService)
    wrong = _run("up", folder, "--port", "kafka=lots")
    assert wrong.exit_code == 2
    assert '"kafka=lots" is not SERVICE=PORT' in wrong.stderr


def test_the_status_of_a_world_that_stands_still_is_an_error(folder: Path) -> None:
    with World.open(folder, idle_timeout=0.2) as world:
        pid = world.status().pid
        os.kill(pid, signal.SIGSTOP)
        try:
            assert isinstance(_run("status", folder).exception, WorldInUse)
        finally:
            os.kill(pid, signal.SIGCONT)
