from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.embedded.world_fixtures import remove_outside


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Worlds of root's have data outside of their folder, which would stay until their folders are removed."""
    yield
    remove_outside(tmp_path_factory.getbasetemp())
