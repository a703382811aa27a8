from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.embedded.errors import (
    NotEnoughMemory,
    PortTaken,
    ServiceDidNotStart,
    ServiceDied,
    ServiceIsDown,
    SupervisorEnding,
)
from headgate.embedded.folder import open_folder
from headgate.embedded.host import LOOPBACK, choose_port
from headgate.embedded.protocol import Reply, Request, write_request
from headgate.embedded.service import Keeper
from headgate.embedded.supervisor import Supervisor
from tests.embedded.fake_services import NEEDS, Toy
from tests.embedded.world_fixtures import is_gone

pytestmark = pytest.mark.unit


def _keep(tmp_path: Path, toy: Toy, scenario: Callable[[Keeper], Awaitable[None]]) -> None:
    async def with_keeper() -> None:
        keeper = Keeper(toy, open_folder(tmp_path / "world"), lambda: None)
        try:
            await scenario(keeper)
        finally:
            await keeper.stop()

    asyncio.run(with_keeper())


def _pid(keeper: Keeper) -> int:
    record = keeper.record()
    assert record is not None
    return record.pid


async def _die(keeper: Keeper) -> None:
    os.kill(_pid(keeper), signal.SIGKILL)
    while keeper.status().state != "died":
        await asyncio.sleep(0.01)


def test_those_who_ask_at_once_get_one_process(tmp_path: Path) -> None:
    async def scenario(keeper: Keeper) -> None:
        addresses = await asyncio.gather(*(keeper.ensure() for _ in range(5)))
        assert len(set(addresses)) == 1
        before = _pid(keeper)
        assert await keeper.ensure() == addresses[0]
        assert _pid(keeper) == before

    _keep(tmp_path, Toy(), scenario)


def test_a_service_killed_on_purpose_stays_down_until_started_and_keeps_its_port(tmp_path: Path) -> None:
    async def scenario(keeper: Keeper) -> None:
        address, pid = await keeper.ensure(), _pid(keeper)
        await keeper.stop(hard=True)
        assert is_gone(pid)
        assert keeper.status().state == "down"
        with pytest.raises(ServiceIsDown):
            await keeper.ensure()
        assert await keeper.start() == address
        assert keeper.status().state == "running"

    _keep(tmp_path, Toy(), scenario)


def test_a_service_that_died_is_started_again_when_asked_for(tmp_path: Path) -> None:
    async def scenario(keeper: Keeper) -> None:
        address = await keeper.ensure()
        await _die(keeper)
        assert keeper.status().pid is None
        assert await keeper.ensure() == address

    _keep(tmp_path, Toy(), scenario)


def test_a_service_that_dies_again_and_again_is_not_started_once_more(tmp_path: Path) -> None:
    async def scenario(keeper: Keeper) -> None:
        for _ in range(3):
            await keeper.ensure()
            await _die(keeper)
        with pytest.raises(ServiceDied) as caught:
            await keeper.ensure()
        assert caught.value.times == 3

    _keep(tmp_path, Toy(), scenario)


def test_a_service_that_ends_at_once_is_reported_with_its_last_words(tmp_path: Path) -> None:
    async def scenario(keeper: Keeper) -> None:
        with pytest.raises(ServiceDidNotStart) as caught:
            await keeper.ensure()
        assert caught.value.reason == "it ended with status 4"
        assert caught.value.last_lines == ("no such planet",)
        assert Path(caught.value.log).exists()
        assert keeper.status().state == "stopped"

    _keep(tmp_path, Toy("print('no such planet'); raise SystemExit(4)"), scenario)


def test_a_service_that_never_answers_is_ended_and_reported(tmp_path: Path) -> None:
    async def scenario(keeper: Keeper) -> None:
        with pytest.raises(ServiceDidNotStart) as caught:
            await keeper.ensure()
        assert caught.value.reason == "it did not answer within 1 s"
        assert keeper.record() is None

    _keep(tmp_path, Toy("import time; time.sleep(600)", needs=replace(NEEDS, patience=1)), scenario)


def test_a_set_up_that_fails_is_reported(tmp_path: Path) -> None:
    async def scenario(keeper: Keeper) -> None:
        with pytest.raises(ServiceDidNotStart) as caught:
            await keeper.ensure()
        assert caught.value.reason == "its set-up ended with status 5"

    _keep(tmp_path, Toy(first="raise SystemExit(5)"), scenario)


def test_a_remembered_port_that_is_taken_meanwhile_moves(tmp_path: Path) -> None:
    async def scenario(keeper: Keeper) -> None:
        before = await keeper.ensure()
        await keeper.stop()
        with socket.create_server((LOOPBACK, int(before.partition(":")[2]))):
            assert await keeper.start() != before

    _keep(tmp_path, Toy(), scenario)


def test_a_port_asked_for_by_number_does_not_move(tmp_path: Path) -> None:
    async def scenario(keeper: Keeper) -> None:
        with socket.create_server((LOOPBACK, choose_port(None))) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(PortTaken) as caught:
                await keeper.start(port)
            assert (caught.value.port, caught.value.pid) == (port, os.getpid())
        assert await keeper.start(port) == f"{LOOPBACK}:{port}"

    _keep(tmp_path, Toy(), scenario)


def test_a_service_is_not_started_into_too_little_memory(tmp_path: Path) -> None:
    async def scenario(keeper: Keeper) -> None:
        with pytest.raises(NotEnoughMemory):
            await keeper.ensure()
        assert keeper.status().state == "stopped"

    _keep(tmp_path, Toy(needs=replace(NEEDS, memory=1_000_000_000)), scenario)


def test_a_supervisor_that_is_ending_takes_no_more_requests(tmp_path: Path) -> None:
    async def late() -> Reply:
        supervisor = Supervisor(open_folder(tmp_path / "world"), ())
        supervisor.end()
        return await supervisor._answer(write_request(Request("ensure", ("kafka",))))

    assert isinstance(asyncio.run(late()).error, SupervisorEnding)
