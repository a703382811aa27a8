"""What can be wrong with a row of a materialization ON DEMAND: RUN-055x."""

from __future__ import annotations

from headgate.runtime.errors import RunError


class RowDoesNotFit(RunError, code="RUN-0551"):
    """A row that a client asked for has a value that its field in a materialization ON DEMAND cannot have."""

    materialization: str
    path: str
    expected: str
    reason: str
    MESSAGE = 'a row of materialization "{materialization}" does not fit at {path}, expected {expected}: {reason}'
    DETAIL = "Rows that came before it were sent."
    HINT = "Correct the value, give the field another type, or write ON ERROR = SKIP, which leaves such rows out and counts them."
