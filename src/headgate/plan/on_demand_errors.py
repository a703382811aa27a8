"""What is wrong with a materialization ON DEMAND, or with what a client asks of it: PLN-067x."""

from __future__ import annotations

from headgate.errors import joined
from headgate.plan.errors import PlanError


class OptionNotOnDemand(PlanError, code="PLN-0671"):
    """An option of a materialization says how its target is written, and a materialization ON DEMAND has none."""

    materialization: str
    option: str
    MESSAGE = 'materialization "{materialization}" is ON DEMAND and cannot have {option}'
    HINT = "Leave {option} out. ON ERROR = SKIP or HALT is the only option of such a materialization."


class NoTaskOnDemand(PlanError, code="PLN-0672"):
    """A statement is about the task of a materialization, and no task runs for one that is ON DEMAND."""

    materialization: str
    action: str
    MESSAGE = 'materialization "{materialization}" is ON DEMAND and has no task for {action}'
    HINT = "Its rows are computed when a client asks for them. DROP MATERIALIZATION ends its service."


class ServiceNameTaken(PlanError, code="PLN-0673"):
    """The gRPC services of two materializations would have the same name."""

    materialization: str
    service: str
    other: str
    MESSAGE = (
        'materialization "{materialization}" would be the gRPC service {service}, which materialization "{other}" is'
    )
    HINT = (
        "Choose another name. The service has the letters and digits of the materialization's name, without its schema."
    )


class FilterNotCondition(PlanError, code="PLN-0674"):
    """A filter is no condition over the fields of one row."""

    materialization: str
    reason: str
    MESSAGE = 'the filter on materialization "{materialization}" is not one condition over a row: {reason}'
    HINT = "Write one condition as after WHERE, without subqueries, such as price > 10 AND vip."


class UnknownRowField(PlanError, code="PLN-0675"):
    """A client asks for a field that a materialization does not have.

    Cure: Name fields of the materialization. DESCRIBE lists them; those inside an object come with the object.
    """

    materialization: str
    field: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'field "{field}" of materialization "{materialization}" does not exist'


class NoKeyOnDemand(PlanError, code="PLN-0676"):
    """A client looks a row up by its key, and the relation has no key."""

    materialization: str
    relation: str
    MESSAGE = 'materialization "{materialization}" has no key to look up: "{relation}" has none'
    HINT = "Use a filter."


class MalformedKey(PlanError, code="PLN-0677"):
    """The key that a client looks up does not have the form of the relation's key.

    Cure: Write the key as `object_id` has it: the text of one value, or a JSON array of several.
    """

    materialization: str
    reason: str
    key: tuple[tuple[str, str], ...]
    MESSAGE = 'the key does not fit the key of materialization "{materialization}": {reason}'

    def hint(self) -> str:
        parts = joined([f"{name} {type_}" for name, type_ in self.key], "and")
        if len(self.key) == 1:
            return f"Write the value of {parts} as text, or a JSON array of it."
        return f"Write a JSON array of {parts}."


class MalformedLimit(PlanError, code="PLN-0678"):
    """A client asks for a number of rows that is no number, or a negative one."""

    text: str
    MESSAGE = 'the limit "{text}" is not a number of rows'
    HINT = "Write a whole number, at least 0, or leave it out."


class NotOnDemand(PlanError, code="PLN-0679"):
    """A client asks for the rows of a materialization that writes a table or an index."""

    materialization: str
    MESSAGE = 'materialization "{materialization}" is not ON DEMAND'
    HINT = "Read its table or its index, or create another one with INTO ON DEMAND."
