"""What a run of `headgate test` starts does not outlive it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headgate.embedded.world import World
from headgate.serve.client import EngineAddress
from headgate.serve.process import HEADGATE, program_environment
from tests.embedded.world_fixtures import eventually, is_gone

pytestmark = pytest.mark.e2e

NEVER = """$ registry-publish subject=a type=avro
"string"

> SELECT 1 AS one;
2
"""


@pytest.mark.timeout(600)
def test_a_run_that_is_killed_leaves_neither_its_engine_nor_its_world(tmp_path: Path) -> None:
    spec, keep = tmp_path / "never.spec", tmp_path / "kept"
    spec.write_text(NEVER)
    command = (*HEADGATE, "test", str(spec), "--keep", str(keep), "--timeout", "900s")
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=program_environment()
    ) as run:
        try:
            assert eventually(lambda: EngineAddress.read(keep / "engine") is not None, 240)
            engine = EngineAddress.read(keep / "engine")
            world = World.running(keep / "world")
        finally:
            run.kill()
    assert engine is not None
    assert world is not None
    assert eventually(lambda: is_gone(engine.pid), 120)
    assert eventually(lambda: is_gone(world.pid), 60)
