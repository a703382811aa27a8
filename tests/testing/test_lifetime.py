"""What a run of `headgate test` starts does not outlive it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headgate.embedded.world import World
from headgate.processes import program_environment
from headgate.serve.client import HEADGATE, EngineAddress
from tests.embedded.world_fixtures import eventually, is_gone

pytestmark = pytest.mark.e2e

NEVER = """$ registry-publish subject=a type=avro
"string"

> SELECT 1 AS one;
2
"""


def _engines(keep: Path) -> list[int]:
    addresses = [EngineAddress.read(project) for project in keep.glob("job-*/projects/*")]
    return [address.pid for address in addresses if address is not None]


@pytest.mark.timeout(600)
def test_a_run_that_is_killed_leaves_neither_its_engines_nor_its_worlds(tmp_path: Path) -> None:
    specs, keep = [tmp_path / "a.spec", tmp_path / "b.spec"], tmp_path / "kept"
    for spec in specs:
        spec.write_text(NEVER)
    command = (*HEADGATE, "test", "--jobs", "2", *map(str, specs), "--keep", str(keep), "--timeout", "900s")
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=program_environment()
    ) as run:
        try:
            assert eventually(lambda: len(_engines(keep)) == 2, 240)
            engines = _engines(keep)
            worlds = [World.running(keep / f"job-{job}" / "world") for job in (1, 2)]
        finally:
            run.kill()
    assert eventually(lambda: all(map(is_gone, engines)), 120)
    for world in worlds:
        assert world is not None
        assert eventually(lambda pid=world.pid: is_gone(pid), 60)  # type: ignore[misc]
