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
from headgate.embedded.service import ServiceRunner
from headgate.embedded.supervisor import Reply, Request, Supervisor, write_request
from tests.embedded.fake_services import REQUIREMENTS, FakeService
from tests.embedded.world_fixtures import is_gone

pytestmark = pytest.mark.unit


def _with_runner(tmp_path: Path, service: FakeService, scenario: Callable[[ServiceRunner], Awaitable[None]]) -> None:
    async def with_runner() -> None:
        runner = ServiceRunner(service, open_folder(tmp_path / "world"), lambda: None)
        try:
            await scenario(runner)
        finally:
            await runner.stop()

    asyncio.run(with_runner())


def _pid(runner: ServiceRunner) -> int:
    process = runner.process_id()
    assert process is not None
    return process.pid


async def _die(runner: ServiceRunner) -> None:
    os.kill(_pid(runner), signal.SIGKILL)
    while runner.status().state != "died":
        await asyncio.sleep(0.01)


def test_concurrent_requests_start_one_process(tmp_path: Path) -> None:
    async def scenario(runner: ServiceRunner) -> None:
        addresses = await asyncio.gather(*(runner.ensure() for _ in range(5)))
        assert len(set(addresses)) == 1
        before = _pid(runner)
        assert await runner.ensure() == addresses[0]
        assert _pid(runner) == before

    _with_runner(tmp_path, FakeService(), scenario)


def test_a_service_killed_on_purpose_stays_down_until_started_and_keeps_its_port(tmp_path: Path) -> None:
    async def scenario(runner: ServiceRunner) -> None:
        address, pid = await runner.ensure(), _pid(runner)
        await runner.stop(hard=True)
        assert is_gone(pid)
        assert runner.status().state == "down"
        with pytest.raises(ServiceIsDown):
            await runner.ensure()
        assert await runner.start() == address
        assert runner.status().state == "running"

    _with_runner(tmp_path, FakeService(), scenario)


def test_a_service_that_died_is_started_again_when_asked_for(tmp_path: Path) -> None:
    async def scenario(runner: ServiceRunner) -> None:
        address = await runner.ensure()
        await _die(runner)
        assert runner.status().pid is None
        assert await runner.ensure() == address

    _with_runner(tmp_path, FakeService(), scenario)


def test_a_service_that_dies_again_and_again_is_not_started_once_more(tmp_path: Path) -> None:
    async def scenario(runner: ServiceRunner) -> None:
        for _ in range(3):
            await runner.ensure()
            await _die(runner)
        with pytest.raises(ServiceDied) as caught:
            await runner.ensure()
        assert caught.value.times == 3

    _with_runner(tmp_path, FakeService(), scenario)


def test_a_service_that_ends_at_once_is_reported_with_its_last_words(tmp_path: Path) -> None:
    async def scenario(runner: ServiceRunner) -> None:
        with pytest.raises(ServiceDidNotStart) as caught:
            await runner.ensure()
        assert caught.value.reason == "it ended with status 4"
        assert caught.value.last_lines == ("no such planet",)
        assert Path(caught.value.log).exists()
        assert runner.status().state == "stopped"

    _with_runner(tmp_path, FakeService("print('no such planet'); raise SystemExit(4)"), scenario)


def test_a_service_that_never_answers_is_ended_and_reported(tmp_path: Path) -> None:
    async def scenario(runner: ServiceRunner) -> None:
        with pytest.raises(ServiceDidNotStart) as caught:
            await runner.ensure()
        assert caught.value.reason == "it did not answer within 1 s"
        assert runner.process_id() is None

    _with_runner(
        tmp_path,
        FakeService("import time; time.sleep(600)", requirements=replace(REQUIREMENTS, start_timeout=1)),
        scenario,
    )


def test_a_set_up_that_fails_is_reported(tmp_path: Path) -> None:
    async def scenario(runner: ServiceRunner) -> None:
        with pytest.raises(ServiceDidNotStart) as caught:
            await runner.ensure()
        assert caught.value.reason == "its set-up ended with status 5"

    _with_runner(tmp_path, FakeService(setup="raise SystemExit(5)"), scenario)


def test_a_service_moves_if_its_remembered_port_is_taken(tmp_path: Path) -> None:
    async def scenario(runner: ServiceRunner) -> None:
        before = await runner.ensure()
        await runner.stop()
        with socket.create_server((LOOPBACK, int(before.partition(":")[2]))):
            assert await runner.start() != before

    _with_runner(tmp_path, FakeService(), scenario)


def test_a_port_asked_for_by_number_does_not_move(tmp_path: Path) -> None:
    async def scenario(runner: ServiceRunner) -> None:
        with socket.create_server((LOOPBACK, choose_port(None))) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(PortTaken) as caught:
                await runner.start(port)
            assert (caught.value.port, caught.value.pid) == (port, os.getpid())
        assert await runner.start(port) == f"{LOOPBACK}:{port}"

    _with_runner(tmp_path, FakeService(), scenario)


def test_a_service_is_not_started_into_too_little_memory(tmp_path: Path) -> None:
    async def scenario(runner: ServiceRunner) -> None:
        with pytest.raises(NotEnoughMemory):
            await runner.ensure()
        assert runner.status().state == "stopped"

    _with_runner(tmp_path, FakeService(requirements=replace(REQUIREMENTS, memory=1_000_000_000)), scenario)


def test_a_supervisor_that_is_ending_takes_no_more_requests(tmp_path: Path) -> None:
    async def late() -> Reply:
        supervisor = Supervisor(open_folder(tmp_path / "world"), ())
        supervisor.end()
        return await supervisor._answer(write_request(Request("ensure", ("kafka",))))

    assert isinstance(asyncio.run(late()).error, SupervisorEnding)
