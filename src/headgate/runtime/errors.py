"""What can go wrong while data flows: RUN-01xx records, RUN-02xx tasks, RUN-03xx the engine and Spark."""

from __future__ import annotations

from headgate.errors import HeadgateError, error


class RunError(HeadgateError):
    """Family RUN."""


@error
class BadRecord(RunError):
    """A record that cannot be decoded. Tells where it lies and why, never what it holds."""

    code = "RUN-0101"
    source: str
    topic: str
    partition: int
    offset: int
    side: str
    reason: str
    path: str | None = None
    schema_id: int | None = None

    def message(self) -> str:
        place = f'topic "{self.topic}" partition {self.partition} offset {self.offset}'
        return f'{self._part()} of a record of source "{self.source}" cannot be decoded ({place})'

    def detail(self) -> str:
        at = f" at {self.path}" if self.path else ""
        by = f" It was written with schema id {self.schema_id}." if self.schema_id is not None else ""
        return f"{self.reason}{at}.{by}"

    def _part(self) -> str:
        return "a header" if self.side == "header" else f"the {self.side}"

    def hint(self) -> str:
        return "Set ON ERROR = QUARANTINE or SKIP on the source to go on without such records."


@error
class TopicReplaced(RunError):
    code = "RUN-0102"
    topic: str
    task: str
    begins: str | None = None  # the source, if its statement names offsets of the old topic

    def message(self) -> str:
        return f'topic "{self.topic}" was deleted and created again while {self.task} was reading it'

    def detail(self) -> str:
        return "Its records have other offsets now, so going on would skip or repeat some in silence."

    def hint(self) -> str:
        if self.begins is not None:
            return f'Drop {self.task} and source "{self.begins}", which begins at offsets of the old topic, and create both again.'
        return f"Drop {self.task} and create it again: it then reads the new topic from its start. The source may stay."


@error
class RecordsLost(RunError):
    code = "RUN-0103"
    topic: str
    partition: int
    wanted: int
    earliest: int

    def message(self) -> str:
        return (
            f'records of topic "{self.topic}" partition {self.partition} from offset {self.wanted} were deleted '
            f"before they were read; the earliest is {self.earliest}"
        )

    def hint(self) -> str:
        return (
            "Raise the topic's retention. To go on without them, drop the task and create it again: it then reads all that "
            "the topic still has."
        )


@error
class TopicCut(RunError):
    """A topic of the same name and id that ends before what was read of it: its broker has lost records."""

    code = "RUN-0110"
    topic: str
    partition: int
    read: int
    end: int
    task: str

    def message(self) -> str:
        return (
            f'topic "{self.topic}" partition {self.partition} ends at offset {self.end}, and {self.task} has read it '
            f"up to {self.read}"
        )

    def detail(self) -> str:
        return (
            "The topic has lost records. New ones get their offsets, so going on would skip them in silence."
        )

    def hint(self) -> str:
        return f"Drop {self.task} and create it again: it then reads all that the topic still has."


@error
class RecordsWentAway(RunError):
    """A query that had given rows already, or that met deletions at each of its tries."""

    code = "RUN-0111"

    def message(self) -> str:
        return "records were deleted while the query read them"

    def hint(self) -> str:
        return "Send the query again: it reads what is there then. If this repeats, the topic's retention is too short."


@error
class SchemaChanged(RunError):
    """A record whose schema changed what the source gives, in a way that it may not or cannot follow by itself."""

    code = "RUN-0104"
    source: str
    topic: str
    partition: int
    offset: int
    side: str
    schema_id: int
    differences: tuple[str, ...]

    def message(self) -> str:
        place = f'topic "{self.topic}" partition {self.partition} offset {self.offset}'
        return f'schema id {self.schema_id} changes the {self.side} of source "{self.source}" ({place})'

    def detail(self) -> str:
        return "".join(f"{difference}; " for difference in self.differences).rstrip("; ") + "."

    def hint(self) -> str:
        if self.side == "key":
            return "A key with other fields is another key: create another source over the topic for it."
        return f"ALTER SOURCE {self.source} ACCEPT SCHEMA CHANGE takes the change; whoever uses the field is checked first."


@error
class SinkCannotFollow(RunError):
    """The registry refused the schema that a sink needed after its relation had changed."""

    code = "RUN-0105"
    sink: str
    columns: tuple[str, ...]

    def message(self) -> str:
        return f'sink "{self.sink}" has no schema for {", ".join(self.columns)}'

    def detail(self) -> str:
        return "They came or changed with a schema that its source followed, and the registry refused the one for them."

    def hint(self) -> str:
        return f"Let the subject's compatibility level take new fields, then write ALTER SINK {self.sink} RESUME."


@error
class TargetTopicGone(RunError):
    """The topic that a sink made and writes to does not exist any more."""

    code = "RUN-0106"
    topic: str
    sink: str

    def message(self) -> str:
        return f'topic "{self.topic}", which sink "{self.sink}" writes to, was deleted'

    def detail(self) -> str:
        return "What was written to it is gone. Nothing was read since."

    def hint(self) -> str:
        return (
            f"Drop sink {self.sink} and create it again: it then writes everything anew. To go on from where it stopped, "
            f"create the topic and write ALTER SINK {self.sink} RESUME."
        )


@error
class RecordTooLarge(RunError):
    code = "RUN-0108"
    topic: str
    sink: str

    def message(self) -> str:
        return f'sink "{self.sink}" has a record that is larger than topic "{self.topic}" takes'

    def detail(self) -> str:
        return "Others of the same batch may be written already; they are written once more when the sink goes on."

    def hint(self) -> str:
        return f"Raise max.message.bytes of the topic, then write ALTER SINK {self.sink} RESUME."


@error
class TaskFailed(RunError):
    code = "RUN-0201"
    task: str
    reason: str

    def message(self) -> str:
        return f"{self.task} failed: {self.reason}"

    def hint(self) -> str:
        return "The engine's log has the whole trace. ALTER … RESUME tries again."


@error
class TaskNotRunning(RunError):
    code = "RUN-0202"
    task: str
    starting: bool = False

    def message(self) -> str:
        why = "is still starting" if self.starting else "does not run"
        return f'sink "{self.task}" {why}, so its quarantine cannot be replayed'

    def hint(self) -> str:
        if self.starting:
            return "SHOW TASKS says if it waits for something. Try again when it runs."
        return f"SHOW TASKS says why it does not. ALTER SINK {self.task} RESUME starts it."


@error
class SparkRefused(RunError):
    code = "RUN-0301"
    reason: str

    def message(self) -> str:
        return f"Spark refused the query: {self.reason}"


@error
class SparkGone(RunError):
    code = "RUN-0302"
    retryable = True
    reason: str

    def message(self) -> str:
        return "the connection to Spark is lost"

    def detail(self) -> str:
        return self.reason

    def hint(self) -> str:
        return "The engine starts Spark again by itself. If this repeats, look at its log and at the machine's memory."


@error
class DiskFull(RunError):
    code = "RUN-0304"
    retryable = True
    folder: str

    def message(self) -> str:
        return f'could not write to folder "{self.folder}": no space left'

    def hint(self) -> str:
        return "Make room there. Tasks try again by themselves and have lost nothing; a query has to be sent again."


@error
class NotANumber(RunError):
    """A value that a query cannot compute. Tells why, never what from."""

    code = "RUN-0107"
    reason: str

    def message(self) -> str:
        return f"a value cannot be computed: {self.reason}"

    def hint(self) -> str:
        return "TRY_CAST, and Spark's functions whose names begin with try_, give NULL for what does not fit."


@error
class QueryCancelled(RunError):
    """A query whose client went away, or asked to cancel it."""

    code = "RUN-0303"

    def message(self) -> str:
        return "the query was cancelled"
