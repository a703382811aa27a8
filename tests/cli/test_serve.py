"""What `headgate serve` gives an engine: the addresses of its world's services."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.cli.serve import Worlds
from headgate.embedded import world
from headgate.embedded.errors import NotEnoughMemory, ServiceIsDown
from headgate.errors import HeadgateError

pytestmark = pytest.mark.unit


class OneService:
    """A world with one service, which is down or fails as the test says."""

    def __init__(self) -> None:
        self.failure: HeadgateError | None = None

    def address(self, _service: str) -> str:
        if self.failure is not None:
            raise self.failure
        return "127.0.0.1:9"

    def close(self) -> None:
        return


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> OneService:
    made = OneService()
    monkeypatch.setattr(world.World, "open", lambda _folder: made)
    return made


def test_a_service_that_is_down_keeps_its_address_and_any_other_failure_is_told(
    service: OneService, tmp_path: Path
) -> None:
    with Worlds() as worlds:
        address = worlds.project(tmp_path, tmp_path / "world").address
        assert address is not None
        service.failure = ServiceIsDown("kafka")
        with pytest.raises(ServiceIsDown):
            address("kafka")  # nobody knows its address yet
        service.failure = None
        assert address("kafka") == "127.0.0.1:9"
        service.failure = ServiceIsDown("kafka")
        assert address("kafka") == "127.0.0.1:9"
        service.failure = NotEnoughMemory("kafka", 1, 2)
        with pytest.raises(NotEnoughMemory):
            address("kafka")
