"""What can go wrong with the table of a materialization: RUN-05xx."""

from __future__ import annotations

from headgate.runtime.errors import RunError


class TableForeign(RunError, code="RUN-0501"):
    """A materialization would write a table that exists and that Headgate did not make."""

    table: str
    materialization: str
    MESSAGE = 'table "{table}" exists, and materialization "{materialization}" did not make it'
    HINT = (
        "Choose another table, or write WITH (ADOPT = true): its rows and columns are kept, and rows with equal keys are "
        "overwritten."
    )


class TableInUse(RunError, code="RUN-0502"):
    """Another task, perhaps of another project, writes the table."""

    table: str
    materialization: str
    MESSAGE = 'table "{table}" is written by another task, so materialization "{materialization}" cannot write it'
    HINT = (
        "Drop the other materialization first. WITH (ADOPT = true) takes the table over if that task is gone for good."
    )


class NotATable(RunError, code="RUN-0503"):
    """The name of a materialization's table belongs to a view or to something else that is not a table.

    Cure: Choose another name.
    """

    table: str
    MESSAGE = '"{table}" is not a table'


class TableSchemaMissing(RunError, code="RUN-0504"):
    """The schema of a materialization's table does not exist in the database."""

    schema: str
    MESSAGE = 'schema "{schema}" does not exist in the database'
    HINT = 'Run CREATE SCHEMA "{schema}" in the database.'


class TableNotAllowed(RunError, code="RUN-0505"):
    """The login of a connection may not make the table of a materialization, or the schema that holds the progress of tasks."""

    what: str
    statement: str
    MESSAGE = "the login of the connection may not {what}"
    HINT = "Let an owner of the database run: {statement}"


class ColumnsIncompatible(RunError, code="RUN-0506"):
    """Columns of a table have types that the values of a materialization do not fit, and cannot be widened in place."""

    materialization: str
    table: str
    changes: tuple[str, ...]
    disables: bool = False  # whether the statement says that the task is disabled then
    MESSAGE = 'table "{table}" cannot hold the fields of materialization "{materialization}": {changes:clauses}'
    HINT = (
        "ALTER MATERIALIZATION … SET FIELDS chooses types that fit. Without ON INCOMPATIBLE SCHEMA CHANGE, a column of a table that "
        "Headgate made is made anew, and the table is filled again."
    )


class TableLacksKey(RunError, code="RUN-0507"):
    """A table does not tell rows apart by the key of a materialization."""

    materialization: str
    table: str
    key: tuple[str, ...]
    MESSAGE = 'table "{table}" has no unique index on the key ({key:list}) of materialization "{materialization}"'
    DETAIL = "Rows are replaced and deleted by this key."
    HINT = "Add a primary key of these columns to the table, or let the materialization write another table."


class ForeignColumnRequired(RunError, code="RUN-0508"):
    """A table that was adopted has a column that must be given and that the materialization does not write."""

    table: str
    columns: tuple[str, ...]
    MESSAGE = 'table "{table}" requires {columns:quoted and}, which the materialization does not write'
    HINT = "Give the column a default or drop its NOT NULL, or add a field of that name."


class RowRefused(RunError, code="RUN-0510"):
    """A row of a materialization has a value that does not fit its field, or that the target does not take. The error names the
    field and the record, never the value."""

    materialization: str
    reason: str
    path: str | None = None
    expected: str | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    MESSAGE = 'a row of materialization "{materialization}" cannot be written: {place}'
    HINT = (
        "Change the field's type or the query so that the value fits, or create the materialization with ON ERROR = QUARANTINE or "
        "SKIP to go on without such rows."
    )

    @property
    def place(self) -> str:
        return self.reason if self.path is None else f"{self.reason} at {self.path}"

    def detail(self) -> str | None:
        expected = f"The field is {self.expected}." if self.expected is not None else None
        record = None
        if self.topic is not None:
            record = f'The record is at topic "{self.topic}" partition {self.partition} offset {self.offset}.'
        return " ".join(filter(None, (expected, record))) or None


class TableLocked(RunError, code="RUN-0511"):
    """Another session holds a lock on the table, and did not give it up in time.

    Cure: End the transaction that holds the lock. The task tries again by itself.
    """

    retryable = True
    table: str
    MESSAGE = 'could not lock table "{table}" in time'


class UnknownNativeType(RunError, code="RUN-0512"):
    """A type after AS does not exist in the database.

    Cure: Write the name of a type of the database, with its schema if it is not on the search path.
    """

    materialization: str
    column: str
    native: str
    MESSAGE = (
        'column "{column}" of materialization "{materialization}" cannot be {native}: the database has no such type'
    )


class TableTooWide(RunError, code="RUN-0513"):
    """A table cannot have as many columns as the materialization has fields.

    Cure: Leave fields out, or keep records as json with DEPTH or NESTED = JSON.
    """

    materialization: str
    table: str
    MESSAGE = 'materialization "{materialization}" has too many fields for table "{table}"'


class TableChanged(RunError, code="RUN-0514"):
    """Somebody has dropped or changed the table of a materialization while it was written.

    Cure: None is needed. The task looks at the table again, and makes what is missing or says what cannot be repaired.
    """

    retryable = True
    table: str
    reason: str
    MESSAGE = 'table "{table}" is not as it was: {reason}'
