from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.registry.running import Door, door, registry


@pytest.fixture
def registry_url(tmp_path: Path) -> Iterator[str]:
    """An empty registry of this test's own."""
    with registry(tmp_path / "registry") as url:
        yield url


@pytest.fixture(name="door")
def door_fixture(tmp_path: Path) -> Iterator[Door]:
    """An empty registry of this test's own, without a network."""
    with door(tmp_path / "registry") as opened:
        yield opened
