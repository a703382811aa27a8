"""What tests that kill engines share: a steady flow of orders, deaths at a named step, and deaths at random.

`HEADGATE_KILLS` sets how many times an engine dies; `HEADGATE_KILL_SEED` repeats the moments of another run.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from headgate.catalog.store.reader import SqliteReader
from headgate.crash_points import VARIABLE
from headgate.serve.client import start_engine
from headgate.serve.errors import EngineDidNotStart
from tests.embedded.world_fixtures import eventually
from tests.runtime.orders import CHEAP, Orders
from tests.runtime.statements import run

KILLS = int(os.environ.get("HEADGATE_KILLS", "1"))
SEED = int(os.environ.get("HEADGATE_KILL_SEED", str(random.SystemRandom().randrange(10**6))))
A_START = 300.0  # seconds to the first batch of an engine on a machine that does much else; 20 on an idle one


class Flow(threading.Thread):
    """Writes orders, fifty a second, until it is told to end. ``sent`` of them are acknowledged."""

    def __init__(self, orders: Orders) -> None:
        super().__init__(daemon=True)
        self.sent = int(CHEAP)
        self._orders = orders
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.2):
            self._orders.put(range(self.sent, self.sent + 10))
            self.sent += 10

    def end(self) -> None:
        self._ended.set()
        self.join()


@contextmanager
def flowing(orders: Orders) -> Iterator[Flow]:
    flow = Flow(orders)
    flow.start()
    try:
        yield flow
    finally:
        flow.end()


def die_at(project: Path, environment: Mapping[str, str], point: str) -> None:
    """Start an engine that kills itself at this point, and wait for its end. It may die before it answers."""
    with suppress(EngineDidNotStart):
        engine = start_engine(project, environment={**environment, VARIABLE: point})
        try:
            assert eventually(lambda: not engine.is_running, A_START), f"the engine did not reach {point}"
        finally:
            engine.kill()


@dataclass(frozen=True, slots=True)
class Step:
    """Where an engine dies: at a point of a batch, which is so many behind the last one that the catalog knows of. ``task`` is
    the name of the task whose batch it is; None is the first that comes there."""

    point: str
    further: int = 1
    task: str | None = None


def in_turn(steps: Sequence[Step]) -> Sequence[Step]:
    """The same steps, beginning with another one in other runs. A short run takes one of them, so several runs take all."""
    first = SEED % len(steps)
    return (*steps[first:], *steps[:first])


def kill_engines(
    orders: Orders, pipeline: str, project: Path, environment: Mapping[str, str], steps: Sequence[Step], least: int = 1
) -> Flow:
    """Create a pipeline, and kill its engines while orders flow: at random moments, then at these steps. A short run takes the
    first ``least`` of them, because a start of an engine is dear. A soak takes all of them, again and again.

    Nothing flows on return, and no engine runs. The flow says what was sent."""
    moments = random.Random(SEED)
    engine = start_engine(project, environment=environment)
    try:
        run(engine, pipeline)
        with flowing(orders) as flow:
            for number in range(KILLS):
                if number:
                    engine = start_engine(project, environment=environment)
                wait_for_a_moment(moments, project)
                engine.kill()
            ahead = 0  # batches that the target has and the catalog does not know of
            for step in islice(cycle(steps), max(least, KILLS)):
                before, named = last_number(project), ""
                if step.task is not None:
                    task, before = committed(project)[step.task]
                    named = f"{task}@"
                die_at(project, environment, f"{named}{step.point}:{before + ahead + step.further}")
                assert last_number(project) >= before + step.further - 1, step
                ahead = int(step.point == "after_write")
    finally:
        engine.kill()
    return flow


def committed(project: Path) -> dict[str, tuple[int, int]]:
    """The id of each task, and the number of its last batch that the catalog knows of."""
    with SqliteReader(project / ".headgate" / "catalog.db") as reader:
        catalog = reader.load()
        ledgers = {catalog.get(task).name: (task, reader.ledger(task)) for task in catalog.desired}
    return {name: (task, 0 if ledger is None else ledger.number) for name, (task, ledger) in ledgers.items()}


def last_number(project: Path) -> int:
    """The largest number of a committed batch of any task."""
    return max((number for _, number in committed(project).values()), default=0)


def progress(project: Path) -> int:
    """How many batches are committed, of all tasks."""
    return sum(number for _, number in committed(project).values())


def wait_for_a_moment(moments: random.Random, project: Path) -> None:
    """A moment at random: mostly soon after a batch, when the next one is under way, sometimes in the midst of a start."""
    if moments.random() < 0.8:
        before = progress(project)
        assert eventually(lambda: progress(project) > before, A_START), "no task goes on"
        time.sleep(moments.uniform(0, 2))
    else:
        time.sleep(moments.uniform(0, 15))
