from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.scripts import Shell, shell
from tests.registry.running import registry


@pytest.fixture(scope="session")
def registry_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One registry for all: starting one takes half a second. Tests keep to topics of their own."""
    with registry(tmp_path_factory.mktemp("registry")) as url:
        yield url


@pytest.fixture
def sql(tmp_path: Path, registry_url: str) -> Iterator[Shell]:
    """An engine without Spark, with the connections `kafka` and `registry` and nothing else."""
    with shell(tmp_path, registry_url) as opened:
        yield opened
