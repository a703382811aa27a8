"""`set` and `set-from-sql`."""

from __future__ import annotations

from headgate.serve.result_table import shown
from headgate.testing.actions.action import Action, Invocation
from headgate.testing.durations import read_duration
from headgate.testing.errors import StepFailed
from headgate.testing.patience import Deadline
from headgate.testing.stage import Stage
from headgate.testing.statements import query


def set_(call: Invocation, stage: Stage) -> None:
    for name, value in call.options.items():
        if name == "timeout":
            stage.timeout = read_duration(value)
        stage.variables.set(name, value)


def set_from_sql(call: Invocation, stage: Stage) -> None:
    sql = "\n".join(stage.fill(call.body))

    def attempt(deadline: Deadline) -> str:
        found = query(stage.engine.client, sql, deadline)
        if len(found.rows) != 1 or len(found.columns) != 1 or found.rows[0][0] is None:
            told = f"It gave {len(found.rows)} rows of {len(found.columns)} columns."
            raise StepFailed("the query did not give one value", told)
        return shown(found.rows[0][0])

    value = stage.eventually(attempt)
    if value is not None:
        stage.variables.set(call.positional[0], value)


ACTIONS = (
    Action("set", set_, options=None),
    Action("set-from-sql", set_from_sql, positional=1, body="required"),
)
