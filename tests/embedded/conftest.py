from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.embedded.world_fixtures import remove_root_data


@pytest.fixture(scope="session", autouse=True)
def no_root_data_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Worlds of root have data outside of their folders, which would stay after the tests."""
    yield
    remove_root_data(tmp_path_factory.getbasetemp())
