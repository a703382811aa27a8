"""Everything that begins with ``$`` in a spec, one module per family, and all of it by name.

An action gets its arguments with variables filled in, and the context of its file. It raises what did not hold. Actions
that check something try again until the time-out. Imports as ``testing`` does.
"""

from __future__ import annotations

from headgate.errors import similar_names
from headgate.testing.actions.elasticsearch import ACTIONS as _ELASTICSEARCH
from headgate.testing.actions.engine import ACTIONS as _ENGINE
from headgate.testing.actions.grpc_calls import ACTIONS as _GRPC
from headgate.testing.actions.kafka_verify import ACTIONS as _KAFKA_VERIFY
from headgate.testing.actions.kafka_write import ACTIONS as _KAFKA_WRITE
from headgate.testing.actions.postgres import ACTIONS as _POSTGRES
from headgate.testing.actions.registry import ACTIONS as _REGISTRY
from headgate.testing.context import Action, SpecContext
from headgate.testing.errors import UnknownAction
from headgate.testing.parse import ActionCall

_ALL = (*_ELASTICSEARCH, *_ENGINE, *_GRPC, *_KAFKA_VERIFY, *_KAFKA_WRITE, *_POSTGRES, *_REGISTRY)

ACTIONS: dict[str, Action] = {action.name: action for action in _ALL}


def check_call(call: ActionCall) -> None:
    """Raises what is wrong with a call before it runs."""
    _action(call).check(call)


def perform(call: ActionCall, context: SpecContext) -> None:
    _action(call).perform(call, context)


def _action(call: ActionCall) -> Action:
    found = ACTIONS.get(call.action)
    if found is None:
        raise UnknownAction(call.action, similar_names(call.action, ACTIONS))
    return found
