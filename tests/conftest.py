"""What tests of several packages share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from headgate.embedded.world import World
from tests.embedded.world_fixtures import open_world

pytest_plugins = ["tests.spark"]

# No test asserts a time: a busy machine would fail it.
settings.register_profile("headgate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("headgate")


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One world for the whole run; its services start when a test first asks for them."""
    yield from open_world(tmp_path_factory)
