"""Services and Headgate itself going down and coming back, and waiting until all is done."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.serve.protocol import Row
from headgate.serve.result_table import shown
from headgate.testing.actions.action import Action, Invocation
from headgate.testing.errors import StepFailed
from headgate.testing.patience import Deadline
from headgate.testing.stage import Stage
from headgate.testing.statements import query

TASKS = "SELECT name, state, lag FROM headgate_catalog.tasks;"
WAITED_FOR = ("starting", "running")


def down(call: Invocation, stage: Stage) -> None:
    stage.world.stop_hard(call.positional[0])


def up(call: Invocation, stage: Stage) -> None:
    stage.world.start(call.positional[0])


def restart(call: Invocation, stage: Stage) -> None:
    del call
    stage.engine.restart()


def kill(call: Invocation, stage: Stage) -> None:
    del call
    stage.engine.kill()


def wait_idle(call: Invocation, stage: Stage) -> None:
    """Idle twice in a row, since one look may fall between a batch's commit and the next look for records."""
    task = call.optional("task")
    idle = 0

    def attempt(deadline: Deadline) -> None:
        nonlocal idle
        found = query(stage.engine.client, TASKS, deadline)
        busy = _busy(found.rows, task)
        idle = 0 if busy else idle + 1
        if idle < 2:
            raise StepFailed("not all tasks are idle", "\n".join(busy) or None)

    stage.eventually(attempt)


def _busy(rows: Sequence[Row], task: str | None) -> list[str]:
    """A line for every task that still has to be waited for."""
    if task is not None and task not in [row[0] for row in rows]:
        return [f"there is no task {task}"]
    return [
        f"{shown(name)} is {shown(state)} with a lag of {shown(lag)}"
        for name, state, lag in rows
        if (name == task if task is not None else state in WAITED_FOR) and (state != "running" or lag != 0)
    ]


ACTIONS = (
    Action("down", down, positional=1),
    Action("up", up, positional=1),
    Action("restart", restart),
    Action("kill", kill),
    Action("wait-idle", wait_idle, options=("task",)),
)
