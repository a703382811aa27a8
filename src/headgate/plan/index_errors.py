"""What is wrong with the index of a materialization that is well formed: PLN-065x."""

from __future__ import annotations

from headgate.plan.errors import PlanError


class MalformedIndexName(PlanError, code="PLN-0651"):
    """The option INDEX is not a name that an index can have."""

    text: str
    reason: str
    MESSAGE = 'INDEX "{text}" is not the name of an index: {reason}'
    HINT = "Write small letters, digits, dots, hyphens and underscores, and begin with a letter."


class NestedNotForIndex(PlanError, code="PLN-0652"):
    """NESTED says how objects become columns of a table, and an index has objects."""

    materialization: str
    option: str
    MESSAGE = 'materialization "{materialization}" writes an index, which has no NESTED = {option}'
    HINT = "Leave NESTED out: an index keeps objects as they are. AS 'nested' makes each object of an array a document of its own."
