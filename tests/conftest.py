"""What tests of several packages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from headgate.embedded.world import World
from tests.embedded.world_fixtures import open_world
from tools.run_tests import ROOT, read_timings

pytest_plugins = ["tests.spark"]

# No test asserts a time: a busy machine would fail it.
settings.register_profile("headgate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("headgate")

LONG = 20  # seconds of a module


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the modules that take long. One that began last would keep one worker busy while the other has nothing to do.

    All others stay in the random order that they have."""
    seconds = read_timings()

    def place(item: pytest.Item) -> int:
        took = seconds.get(item.path.relative_to(ROOT).as_posix(), 0)
        return -took if took >= LONG else 0

    items.sort(key=place)


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One world for the whole run; its services start when a test first asks for them."""
    yield from open_world(tmp_path_factory)
