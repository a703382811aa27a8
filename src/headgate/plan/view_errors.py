"""What is wrong with a materialized view that is to be created (PLN-08xx)."""

from __future__ import annotations

from headgate.plan.errors import PlanError


class ViewNotStable(PlanError, code="PLN-0801"):
    """The query of a materialized view has a function whose result differs each time it is computed."""

    view: str
    functions: tuple[str, ...]
    MESSAGE = 'materialized view "{view}" depends on {functions:list}'
    DETAIL = "Its rows would differ each time they are computed, so that nothing could be kept equal to the query."
    HINT = "Use a time or an id of the records instead. A plain VIEW may have such functions."


class ViewNotDetermined(PlanError, code="PLN-0802"):
    """Two runs of the query over the same rows may give different results, because of the order in which rows are read."""

    view: str
    why: str
    instead: str = ""
    MESSAGE = 'the query of materialized view "{view}" may give different results for the same rows'
    DETAIL = "{why}"
    HINT = "Write a query whose result does not depend on the order of rows."

    def hint(self) -> str | None:
        return self.instead or super().hint()


class OldRowsNeeded(PlanError, code="PLN-0803"):
    """A materialized view needs rows of a source that it has read before, and a topic does not keep them."""

    view: str
    source: str
    source_id: int
    why: str
    MESSAGE = 'materialized view "{view}" needs the rows of source "{source}" that were read before'
    DETAIL = "{why}"
    HINT = (
        "Keep them first: CREATE MATERIALIZED VIEW {source}_rows AS SELECT * FROM {source}. Then read {source}_rows "
        "instead of {source}."
    )


class AssertedColumnUnknown(PlanError, code="PLN-0804"):
    """ASSERT NOT NULL names a column that the materialized view does not have."""

    view: str
    column: str
    MESSAGE = 'ASSERT NOT NULL names column "{column}", which materialized view "{view}" does not have'
    HINT = "Name a column of the query's result."


class ColumnNameReserved(PlanError, code="PLN-0805"):
    """A column of a materialized view has a name that its storage needs."""

    view: str
    column: str
    prefix: str
    MESSAGE = 'column "{column}" of materialized view "{view}" has a reserved name'
    DETAIL = "Names that begin with {prefix} are those of columns that Headgate stores beside the rows."
    HINT = "Give it another name with AS."
