"""What can go wrong while data flows: RUN-01xx records, RUN-02xx tasks, RUN-03xx the engine and Spark,
RUN-055x rows that a client asked for."""

from __future__ import annotations

from typing import ClassVar

from headgate.errors import HeadgateError


class RunError(HeadgateError):
    """An error of a task or query that runs: RUN-…."""


class BadRecord(RunError, code="RUN-0101"):
    """A record cannot be decoded with the format of its source, stream or table. The error names its position and the reason,
    never its content."""

    source: str
    topic: str
    partition: int
    offset: int
    side: str
    reason: str
    path: str | None = None
    schema_id: int | None = None
    kind: str = "source"
    MESSAGE = (
        '{part} of a record of {kind} "{source}" cannot be decoded '
        '(topic "{topic}" partition {partition} offset {offset})'
    )
    HINT = "Set ON ERROR = QUARANTINE or SKIP on the source to continue without such records."

    def hint(self) -> str | None:
        if self.kind != "source":
            return f"Set on_error = 'quarantine' or 'skip' on the {self.kind} to continue without such records."
        return super().hint()

    @property
    def part(self) -> str:
        return "a header" if self.side == "header" else f"the {self.side}"

    def detail(self) -> str:
        at = f" at {self.path}" if self.path else ""
        by = f" It was written with schema id {self.schema_id}." if self.schema_id is not None else ""
        return f"{self.reason}{at}.{by}"


class TopicReplaced(RunError, code="RUN-0102"):
    """A topic was deleted and created again under the same name, so that the offsets that were read mean other records."""

    topic: str
    task: str
    begins: str | None = None  # the source, if its statement names offsets of the old topic
    MESSAGE = 'topic "{topic}" was deleted and created again while {task} was reading it'
    DETAIL = "Its records have other offsets now, so continuing would silently skip or repeat records."
    HINT = "Drop {task} and create it again: it then reads the new topic from its start. The source may stay."

    def hint(self) -> str | None:
        if self.begins is not None:
            return f'Drop {self.task} and source "{self.begins}", which begins at offsets of the old topic, and create both again.'
        return super().hint()


class RecordsLost(RunError, code="RUN-0103"):
    """The topic's retention removed records before the task had read them."""

    topic: str
    partition: int
    wanted: int
    earliest: int
    MESSAGE = (
        'records of topic "{topic}" partition {partition} from offset {wanted} were deleted before they were '
        "read; the earliest is {earliest}"
    )
    HINT = (
        "Raise the topic's retention. To continue without them, drop the task and create it again: it then reads "
        "all that the topic still has."
    )


class SchemaChanged(RunError, code="RUN-0104"):
    """A record has a schema that changes the columns of its source in a way that the source may not follow by itself."""

    source: str
    topic: str
    partition: int
    offset: int
    side: str
    schema_id: int
    differences: tuple[str, ...]
    kind: str = "source"
    MESSAGE = (
        'schema id {schema_id} changes the {side} of {kind} "{source}" '
        '(topic "{topic}" partition {partition} offset {offset})'
    )
    DETAIL = "{differences:clauses}."
    HINT = (
        "ALTER {words} {source} ACCEPT SCHEMA CHANGE accepts the change; objects that use the field are checked first."
    )

    @property
    def words(self) -> str:
        return self.kind.upper()

    def hint(self) -> str | None:
        if self.side == "key":
            return "A key with other fields is another key: create another source over the topic for it."
        return super().hint()


class SinkCannotFollow(RunError, code="RUN-0105"):
    """A sink needs a new schema because its relation changed, and the registry refused it."""

    sink: str
    columns: tuple[str, ...]
    MESSAGE = 'sink "{sink}" has no schema for {columns:list}'
    DETAIL = "The source followed a schema change that added or changed these columns. The registry refused the sink's new schema."
    HINT = "Let the subject's compatibility level take new fields, then write ALTER SINK {sink} RESUME."


class TargetTopicGone(RunError, code="RUN-0106"):
    """The topic that a sink created and writes to does not exist any more."""

    topic: str
    sink: str
    MESSAGE = 'topic "{topic}", which sink "{sink}" writes to, was deleted'
    DETAIL = "What was written to it is gone. Nothing was read since."
    HINT = (
        "Drop sink {sink} and create it again: it then writes everything again. To continue where it stopped, "
        "create the topic and write ALTER SINK {sink} RESUME."
    )


class ComputationFailed(RunError, code="RUN-0107"):
    """A query computes a value that does not exist or does not fit its type. The error names the expression, its column and
    the record as far as they are known, never the value."""

    reason: str
    expression: str | None = None  # as it was written
    column: str | None = None  # None for a condition
    view: str | None = None  # None if the expression is part of the statement itself
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    MESSAGE = "a value cannot be computed: {reason}"
    HINT = "TRY_CAST, and Spark's functions whose names begin with try_, give NULL for what does not fit."

    def detail(self) -> str | None:
        column = f'column "{self.column}"' if self.column is not None else None
        view = f'view "{self.view}"' if self.view is not None else None
        place = " of ".join(filter(None, (column, view)))
        sentences = []
        if self.expression is not None:
            sentences.append(f"The expression is {self.expression}{f', in {place}' if place else ''}.")
        elif place:
            sentences.append(f"It belongs to {place}.")
        if self.topic is not None:
            sentences.append(f'The record is at topic "{self.topic}" partition {self.partition} offset {self.offset}.')
        return " ".join(sentences) or None


class RecordTooLarge(RunError, code="RUN-0108"):
    """A row is larger in its format than the sink's topic accepts."""

    topic: str
    sink: str
    MESSAGE = 'sink "{sink}" has a record that is larger than topic "{topic}" takes'
    DETAIL = "Other records of the same batch may already be written; they are written again when the sink continues."
    HINT = "Raise max.message.bytes of the topic, then write ALTER SINK {sink} RESUME."


class TopicTruncated(RunError, code="RUN-0110"):
    """A topic with the same id ends before the offset up to which it was read: the broker has lost records."""

    topic: str
    partition: int
    read: int
    end: int
    task: str
    MESSAGE = 'topic "{topic}" partition {partition} ends at offset {end}, and {task} has read it up to {read}'
    DETAIL = "The topic has lost records. New records reuse their offsets, so continuing would silently skip them."
    HINT = "Drop {task} and create it again: it then reads all that the topic still has."


class RecordsDeleted(RunError, code="RUN-0111"):
    """Retention removed records while a query was reading them, after rows were returned or at each attempt."""

    MESSAGE = "records were deleted while the query read them"
    HINT = "Send the query again: it reads what is there then. If this repeats, the topic's retention is too short."


class RowUnfit(RunError):
    """A row does not fit the target that it is written to."""

    name: str  # of the sink or materialization
    reason: str
    path: str | None = None
    expected: str | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    EXPECTED: ClassVar[str] = "The schema has {} there."

    @property
    def place(self) -> str:
        return self.reason if self.path is None else f"{self.reason} at {self.path}"

    def detail(self) -> str | None:
        expected = self.EXPECTED.format(self.expected) if self.expected is not None else None
        record = None
        if self.topic is not None:
            record = f'The record is at topic "{self.topic}" partition {self.partition} offset {self.offset}.'
        return " ".join(filter(None, (expected, record))) or None


class RowNotEncodable(RowUnfit, code="RUN-0130"):
    """A row of a sink does not fit the schema that the sink writes with. The error names the field and the record, never the
    value."""

    MESSAGE = 'a row of sink "{name}" cannot be written: {place}'
    HINT = (
        "Change the query so that it gives a value that fits, or create the sink with ON ERROR = QUARANTINE or SKIP to go on "
        "without such rows."
    )


class TaskFailed(RunError, code="RUN-0201"):
    """A task ended with an error that Headgate does not know."""

    task: str
    reason: str
    MESSAGE = "{task} failed: {reason}"
    HINT = "The engine's log has the whole trace. ALTER … RESUME tries again."


class TaskNotRunning(RunError, code="RUN-0202"):
    """REPLAY needs the running task of a sink."""

    task: str
    starting: bool = False
    MESSAGE = 'sink "{task}" {state}, so its quarantine cannot be replayed'
    HINT = "SHOW TASKS says why it does not. ALTER SINK {task} RESUME starts it."

    @property
    def state(self) -> str:
        return "is still starting" if self.starting else "does not run"

    def hint(self) -> str | None:
        if self.starting:
            return "SHOW TASKS says if it waits for something. Try again when it runs."
        return super().hint()


class Fenced(RunError, code="RUN-0203"):
    """Another engine has written to the target of a task since this engine started it, or the target stands at another
    position than the task."""

    target: str
    task: str
    held: int  # the epoch that the target holds
    epoch: int
    MESSAGE = "cannot write to {target}: another writer of {task} has taken it over"
    DETAIL = "The target holds epoch {held}, and this engine has epoch {epoch}. Nothing was written."
    HINT = "Stop the engine that should not run. ALTER … RESUME makes this one try again."


class BatchEndsSpark(RunError, code="RUN-0204"):
    """Spark ended again and again while it ran a batch of the same task. The others go on without it."""

    task: str
    attempts: int
    MESSAGE = 'sink "{task}" was halted, because Spark ended in each of {attempts} attempts at its next batch'
    DETAIL = (
        "The batch was made smaller each time. A record may be too large, or a view may make too large a value of it."
    )
    HINT = (
        "Raise memory in the table [spark] of headgate.toml, or change the view. ALTER SINK {task} RESUME tries again."
    )


class SparkRefused(RunError, code="RUN-0301"):
    """Spark does not accept a query that Headgate accepted.

    Cure: Write the query in another way, and report this as a bug.
    """

    reason: str
    MESSAGE = "Spark refused the query: {reason}"


class SparkGone(RunError, code="RUN-0302"):
    """The process that runs Spark ended or does not answer."""

    retryable = True
    reason: str
    MESSAGE = "the connection to Spark is lost"
    DETAIL = "{reason}"
    HINT = "The engine starts Spark again by itself. If this repeats, look at its log and at the machine's memory."


class QueryCancelled(RunError, code="RUN-0303"):
    """The client of a query went away or cancelled it.

    Cure: Send the query again.
    """

    MESSAGE = "the query was cancelled"


class DiskFull(RunError, code="RUN-0304"):
    """The disk that holds Spark's files or the state of tasks is full."""

    retryable = True
    folder: str
    MESSAGE = 'could not write to folder "{folder}": no space left'
    HINT = "Make room there. Tasks try again by themselves and have lost nothing; a query has to be sent again."


class QueryProcessEnded(RunError, code="RUN-0305"):
    """The process that runs queries ended before the query did, most often because the query needed more memory than that
    process has. Tasks and other statements are not affected."""

    retryable = True
    reason: str
    others: int = 0
    HINT = (
        "The next query gets a new process. Let the query hold less at once: fewer values in one array or group, smaller "
        "values, a LIMIT. Or raise memory in the table [queries] of headgate.toml."
    )

    def message(self) -> str:
        if self.others:
            return "the process that ran the query ended"
        return "the query ended the process that ran it"

    def detail(self) -> str:
        if not self.others:
            return f"{self.reason}."
        those = "Another query" if self.others == 1 else f"{self.others} other queries"
        return f"{self.reason}. {those} ran in it at the same time and may be the cause."


class AnswerNotRead(RunError, code="RUN-0306"):
    """A client stopped reading the rows of its query, and more came than may wait for it on disk."""

    megabytes: int
    MESSAGE = "the rows of the query were not read in time"
    DETAIL = "More than {megabytes} MB of them waited on disk, and their writers kept others from running."
    HINT = "Read the answer without long pauses, add a LIMIT, or raise spool in the table [queries] of headgate.toml."


class RowDoesNotFit(RunError, code="RUN-0551"):
    """A row that a client asked for has a value that its field in a materialization ON DEMAND cannot have."""

    materialization: str
    path: str
    expected: str
    reason: str
    MESSAGE = 'a row of materialization "{materialization}" does not fit at {path}, expected {expected}: {reason}'
    DETAIL = "Rows that came before it were sent."
    HINT = "Correct the value, give the field another type, or write ON ERROR = SKIP, which leaves such rows out and counts them."
