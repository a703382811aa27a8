"""All actions by name."""

from __future__ import annotations

from headgate.errors import near_names
from headgate.testing.actions.action import Action
from headgate.testing.context import Stage
from headgate.testing.errors import UnknownAction
from headgate.testing.parse import Call

_FAMILIES = (elasticsearch, engine, kafka_verify, kafka_write, postgres, registry)

ACTIONS: dict[str, Action] = {action.name: action for family in _FAMILIES for action in family.ACTIONS}


def check_call(call: Call) -> None:
    """Raises what is wrong with a call before it runs."""
    _action(call).check(call)


def perform(call: Call, stage: Stage) -> None:
    _action(call).perform(call, stage)


def _action(call: Call) -> Action:
    found = ACTIONS.get(call.action)
    if found is None:
        raise UnknownAction(call.action, near_names(call.action, ACTIONS))
    return found
