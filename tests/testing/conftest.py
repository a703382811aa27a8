from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.serve.protocol import Done
from headgate.testing.environment import House
from tests.embedded.world_fixtures import open_world
from tests.testing.fake_engine import StandIn, standing_in


@pytest.fixture(scope="module")
def engine() -> Iterator[StandIn]:
    with standing_in(lambda sql: [Done("")]) as engine:
        yield engine


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, engine: StandIn) -> Iterator[House]:
    """A real world, and an engine that takes every statement and does nothing."""

    def start(project: Path, world: Path) -> StandIn:
        return engine

    for world in open_world(tmp_path_factory):
        yield House(tmp_path_factory.mktemp("house"), world, start)
