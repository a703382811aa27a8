"""What can go wrong with the index of a materialization: RUN-06xx."""

from __future__ import annotations

from headgate.runtime.errors import RunError


class ForeignIndex(RunError, code="RUN-0601"):
    """A materialization would write an index that Headgate did not make, and its statement does not say ADOPT."""

    index: str
    materialization: str
    MESSAGE = 'index "{index}" exists, and materialization "{materialization}" did not make it'
    DETAIL = "Nothing was changed."
    HINT = (
        "Choose another name for the index, or write WITH (ADOPT = true): its documents stay, except those with the same _id "
        "as a row."
    )


class IndexTaken(RunError, code="RUN-0602"):
    """Another task writes the index: that of another materialization, perhaps of another project."""

    index: str
    materialization: str
    MESSAGE = 'index "{index}", which materialization "{materialization}" should write, belongs to another task'
    DETAIL = "Two tasks that write one index would overwrite each other's documents. Nothing was changed."
    HINT = "Choose another name for the index. If the other task is gone for good, write WITH (ADOPT = true)."


class IndexGone(RunError, code="RUN-0603"):
    """The index that a materialization made and writes to does not exist any more, or its alias was removed."""

    index: str
    materialization: str
    MESSAGE = 'index "{index}", which materialization "{materialization}" writes to, was deleted'
    DETAIL = "The documents that were in it are gone. Nothing was read since."
    HINT = "Drop materialization {materialization} and create it again: it then writes everything again."


class IndexConflict(RunError, code="RUN-0604"):
    """An index that is to be adopted has fields with other types than the materialization gives them."""

    index: str
    materialization: str
    differences: tuple[str, ...]
    MESSAGE = 'index "{index}" does not fit the fields of materialization "{materialization}"'
    DETAIL = "{differences:clauses}."
    HINT = "Give these fields the types of the index, for example with AS 'keyword', or leave them out."


class WideningFailed(RunError, code="RUN-0605"):
    """An index gets a new one with wider types, and documents could not be copied to it. Readers still have the old one."""

    index: str
    materialization: str
    reason: str
    MESSAGE = 'index "{index}" of materialization "{materialization}" cannot be copied into one with wider types'
    DETAIL = "{reason}. Readers go on with the documents that were there before."
    HINT = "Correct what the detail names, then write ALTER MATERIALIZATION {materialization} RESUME."


class NameTakenByIndex(RunError, code="RUN-0606"):
    """The name of an index is an alias for several indexes, so that it cannot be taken over."""

    index: str
    materialization: str
    indexes: tuple[str, ...]
    MESSAGE = '"{index}", which materialization "{materialization}" should write, is an alias for {indexes:quoted and}'
    HINT = "Choose another name for the index."
