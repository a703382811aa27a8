"""Actions against a service that does not answer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from headgate.embedded.world import World
from headgate.testing.actions import check_call
from headgate.testing.context import Engine, SpecContext, Variables
from headgate.testing.errors import ServiceFailed
from headgate.testing.parse import parse_spec
from headgate.testing.run import run_step
from tests.connectors.brokers import closed_port

pytestmark = pytest.mark.unit


def test_a_database_that_is_away_is_named_in_the_error(tmp_path: Path) -> None:
    world = SimpleNamespace(postgres=lambda: f"postgresql://ada@127.0.0.1:{closed_port()}/db")
    context = SpecContext(cast("Engine", None), cast("World", world), tmp_path, tmp_path, Variables({}), timeout=0.1)
    (step,) = parse_spec("a.spec", "$ postgres-execute\nSELECT 1;\n", check_call).steps
    with pytest.raises(ServiceFailed) as caught:
        run_step(step, context)
    assert caught.value.message().startswith("postgres could not do it: ")
