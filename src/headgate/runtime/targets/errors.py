"""What can go wrong with the topic of a sink (RUN-014x), the table of a materialization (RUN-05xx), and its index (RUN-06xx)."""

from __future__ import annotations

from headgate.runtime.errors import RowUnfit, RunError


class TargetTopicReplaced(RunError, code="RUN-0140"):
    """The topic of a sink that delivers exactly once was deleted and created again under the same name."""

    topic: str
    sink: str
    MESSAGE = 'topic "{topic}", which sink "{sink}" writes to, was deleted and created again'
    DETAIL = "What the sink had written is gone. To continue would deliver only the rows that come from now on."
    HINT = "Drop sink {sink} and create it again: it then writes everything again."


class ProgressLost(RunError, code="RUN-0141"):
    """A target that keeps the progress of its task has lost it. How much of the last batch it has is not known."""

    task: str
    MESSAGE = "the target of {task} has lost the progress of the task"
    DETAIL = "Nobody knows whether it has the last batch, so continuing could write rows twice."
    HINT = "Restore the topic whose name begins with headgate-progress, or drop the sink and create it again."


class TransactionsNotAllowed(RunError, code="RUN-0142"):
    """The broker does not allow the login of a connection to write in transactions."""

    sink: str
    transactional_id: str
    progress: str
    reason: str
    MESSAGE = 'the broker does not let sink "{sink}" write in transactions'
    DETAIL = "{reason}"
    HINT = (
        'Allow the login WRITE and DESCRIBE on transactional id "{transactional_id}", WRITE on the topic of the sink, and '
        'CREATE, ALTER, READ, WRITE and DESCRIBE on topic "{progress}". Then write ALTER SINK {sink} RESUME.'
    )


class TransactionTimeoutRefused(RunError, code="RUN-0143"):
    """The broker allows only transactions that are shorter than those of a sink that delivers exactly once."""

    sink: str
    milliseconds: int
    MESSAGE = 'the broker does not allow sink "{sink}" transactions of {milliseconds} ms'
    HINT = "Raise transaction.max.timeout.ms of the brokers to {milliseconds}, then write ALTER SINK {sink} RESUME."


class TransactionFailed(RunError, code="RUN-0144"):
    """The transactions of a batch were aborted again and again. Nothing of them is visible, and the batch is tried again."""

    retryable = True
    sink: str
    reason: str
    MESSAGE = 'could not commit a transaction of sink "{sink}"'
    DETAIL = "{reason}"
    HINT = "Read the detail, which is the broker's own text, and the broker's log. The sink tries again by itself."


class ProgressHidden(RunError, code="RUN-0145"):
    """A transaction that another writer left open hides the end of a sink's progress. The broker ends it after a while."""

    retryable = True
    sink: str
    topic: str
    partition: int
    MESSAGE = 'could not read the progress of sink "{sink}" (topic "{topic}" partition {partition})'
    DETAIL = "A transaction is open there. Nothing was written meanwhile."
    HINT = "The broker aborts such a transaction after at most a minute or so, and the sink tries again by itself."


class OutputTooLarge(RunError, code="RUN-0146"):
    """A batch of a sink that delivers exactly once has more output than fits the engine's memory. Smaller ones are tried."""

    retryable = True
    sink: str
    MESSAGE = 'a batch of sink "{sink}" has too many rows to write in one transaction'
    HINT = "The sink tries smaller batches by itself. If this repeats, the view makes very much of a single record."


class RecordTimeRefused(RunError, code="RUN-0147"):
    """The broker does not take the time of a record: it is further from the present than the settings of the topic allow."""

    topic: str
    sink: str
    MESSAGE = 'topic "{topic}" does not take the time of a record of "{sink}"'
    DETAIL = (
        "The settings message.timestamp.after.max.ms and message.timestamp.before.max.ms of the topic say how far from the present "
        "a time may be. A compacted topic also refuses records without a key. Nothing of the batch is visible."
    )
    HINT = "Raise these settings of the topic, then write ALTER STREAM (or TABLE) {sink} RESUME."


class OutputIndivisible(RunError, code="RUN-0148"):
    """A sink that delivers exactly once has more output than fits the engine's memory, and no smaller batch is possible."""

    sink: str
    MESSAGE = 'the rows of sink "{sink}" are too many to write in one transaction, and no smaller batch is possible'
    DETAIL = (
        "They come from one record, from a batch of a materialized view, or from the keys of a query that was replaced."
    )
    HINT = (
        "Raise spark.driver.maxResultSize in the table [spark.settings] of headgate.toml, or drop the sink and create it with "
        "DELIVERY = 'at least once'."
    )


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
