from __future__ import annotations

from collections.abc import Iterator

import pytest

from headgate.serve.protocol import Done
from headgate.testing.environment import SpecEnvironment
from tests.embedded.world_fixtures import open_world
from tests.testing.fake_engine import FakeEngine, run_fake_engine


@pytest.fixture(scope="module")
def engine() -> Iterator[FakeEngine]:
    with run_fake_engine(lambda sql: [Done("")]) as engine:
        yield engine


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, engine: FakeEngine) -> Iterator[SpecEnvironment]:
    """A real world, and an engine that takes every statement and does nothing."""

    for world in open_world(tmp_path_factory):
        yield SpecEnvironment(tmp_path_factory.mktemp("environment"), world, engine.start)
