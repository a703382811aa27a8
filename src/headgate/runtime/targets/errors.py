"""What can go wrong with the table of a materialization (RUN-05xx), and with its index (RUN-06xx)."""

from __future__ import annotations

from headgate.runtime.errors import RowUnfit, RunError


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


class TableHasKey(RunError, code="RUN-0515"):
    """A materialization with DELTA UPDATES would write several rows for a key into a table that takes one."""

    materialization: str
    table: str
    key: tuple[str, ...]
    MESSAGE = (
        'table "{table}" has a unique index on ({key:list}), so materialization "{materialization}" cannot write every '
        "change of a key"
    )
    HINT = "Let the materialization write another table, or drop the table or its index."


class LinkKeepsRows(RunError, code="RUN-0516"):
    """A child table that is to be adopted has a foreign key to its parent that does not delete with it."""

    table: str
    constraints: tuple[str, ...]
    MESSAGE = (
        'rows of table "{table}" cannot be deleted with the records in them: {constraints:quoted and} would keep them'
    )
    HINT = "Drop the foreign key, or give it ON DELETE CASCADE."


class ForeignColumnRequired(RunError, code="RUN-0508"):
    """A table that was adopted has a column that must be given and that the materialization does not write."""

    table: str
    columns: tuple[str, ...]
    MESSAGE = 'table "{table}" requires {columns:quoted and}, which the materialization does not write'
    HINT = "Give the column a default or drop its NOT NULL, or add a field of that name."


class RowRefused(RowUnfit, code="RUN-0510"):
    """A row of a materialization has a value that does not fit its field, or that the target does not take. The error names the
    field and the record, never the value."""

    EXPECTED = "The field is {}."
    MESSAGE = 'a row of materialization "{name}" cannot be written: {place}'
    HINT = (
        "Change the field's type or the query so that the value fits, or create the materialization with ON ERROR = QUARANTINE or "
        "SKIP to go on without such rows."
    )


class TableLocked(RunError, code="RUN-0511"):
    """Another session holds a lock on the table and did not give it up in time, or each waited for the other.

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
    HINT = "ALTER MATERIALIZATION {materialization} BACKFILL makes it again and writes every document."


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


class FieldsIncompatible(RunError, code="RUN-0607"):
    """Fields of an index have types that the values of a materialization do not fit, and its statement says that the index is not
    to be emptied and filled again."""

    materialization: str
    index: str
    changes: tuple[str, ...]
    disables: bool = False  # whether the statement says that the task is disabled then
    MESSAGE = (
        'index "{index}" cannot hold the fields of materialization "{materialization}": it would narrow {changes:and}'
    )
    DETAIL = "Nothing was changed."
    HINT = (
        "ALTER MATERIALIZATION … SET FIELDS chooses types that fit. Without ON INCOMPATIBLE SCHEMA CHANGE, an index that Headgate made "
        "is emptied and filled again."
    )
