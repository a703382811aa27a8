from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.registry.running import RegistryApi, in_process, registry


@pytest.fixture
def registry_url(tmp_path: Path) -> Iterator[str]:
    """The URL of an empty registry for this test alone."""
    with registry(tmp_path / "registry") as url:
        yield url


@pytest.fixture(name="api")
def api_fixture(tmp_path: Path) -> Iterator[RegistryApi]:
    """An empty registry for this test alone, without a network."""
    with in_process(tmp_path / "registry") as opened:
        yield opened
