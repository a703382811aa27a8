"""The ports of a task: where changes come from, where they go, and where its progress is kept.

Everything that moves rows is a task: inputs -> plan -> target. `runtime.task.Task` runs the batch protocol over these
protocols; Kafka sinks, views, tables, indexes and captures differ only in the inputs and targets that they bring.

What a scheduler needs of a `Task`, in the order of its life:

- `task.inputs`: each has `watched`, the cluster and topic that a poller asks for their end, or None.
- `task.begin()`: fence off other writers and find the ledger. Tasks may begin side by side. After a failed batch the
  next `run_batch` begins anew by itself.
- `task.has_work(available)` and `task.lag(available)`: `available` are the ends of the inputs as the poller saw them.
- `task.run_batch(session, limit, available)`: one batch; None if there was nothing to do. Raises HeadgateError, whose
  `retryable` says whether to try again, or `ReplanNeeded`, after which the task must be made anew.
- `task.progress`: counters for SHOW TASKS. `task.close()`: give back what the task holds.

A task is used by one thread at a time. Between two batches anybody may use it who keeps that rule (REPLAY, BACKFILL).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from headgate.catalog.positions import Position, Positions
from headgate.catalog.tasks import Ledger as Ledger, Mark as Mark, ProgressSlot, Quarantined, QuarantineFolder
from headgate.connectors.kafka import Topic
from headgate.plan.definitions import PRESENT
from headgate.runtime.errors import ComputationFailed
from headgate.runtime.source import ArrivedSchema
from headgate.schema.render import spark_identifier

# Batches and ledgers


@dataclass(frozen=True, slots=True)
class Batch:
    """One unit of work: all changes after `start` up to `end`.

    (task, generation, number) never means two different committed ranges. A re-run of a batch that crashed before its
    commit has the same number and may reach further. `epoch` orders the writers of one task: the number of the lease
    times 2^20, plus how often this engine started the task. `definition` names the definition it was computed with.
    """

    task: int
    generation: int
    number: int
    epoch: int
    start: Positions
    end: Positions
    definition: str
    now: datetime


@dataclass(frozen=True, slots=True)
class ManyRejected:
    """Rejected records that the driver does not see: the object and the number of them, and what writes them to a folder."""

    object: int
    count: int
    write: Callable[[QuarantineFolder], None]


@dataclass(frozen=True, slots=True)
class Rejected:
    """The records of a batch that could not be taken: how many of them are not kept, and those that are. They are few, or
    ``many``."""

    not_kept: int = 0
    records: Iterable[Quarantined] = ()
    many: ManyRejected | None = None


NOTHING_REJECTED = Rejected()


@dataclass(frozen=True, slots=True)
class Limit:
    """How large a batch may be. The number of rows is what the input has, before any filter. The bytes are those of the
    records as they are stored, and are estimated: a quarter of the smallest heap, because few large records take more time
    and memory than many small ones."""

    rows: int = 500_000
    bytes: int = 256 << 20

    def halved(self, times: int) -> Limit:
        """The limit for a range that failed again and again."""
        times = min(times, 40)
        return Limit(max(1, self.rows >> times), max(1, self.bytes >> times))


@dataclass(frozen=True, slots=True)
class Written:
    """What a target says of a write: the number of rows, None where it does not count, and whether it committed the batch. It
    need not if the batch reads nothing new and changes nothing."""

    rows: int | None = None
    committed: bool = True


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What a batch did. `rows` are those that were read; `more` is whether the inputs had more than the limit."""

    number: int
    rows: int
    seconds: float
    end: Positions
    more: bool = False


class LedgerStore(Protocol):
    """Where ledgers live that their target cannot hold: the catalog. Every write raises LeaseLost once another engine has
    taken the catalog over. Writes of several tasks at one moment share one transaction."""

    def task_uuid(self, task: int) -> str:
        """What identifies a task outside of the catalog: two projects may share a cluster or a database."""

    def progress_slot(self, task: int) -> ProgressSlot:
        """Where a task keeps its progress whose target is a topic."""

    def next_epoch(self, task: int) -> int:
        """A new epoch for a task that starts: larger than all before it, also of engines that had the lease earlier."""

    def raise_epoch(self, above: int) -> None:
        """Make all further epochs larger than one that a target holds. Needed after the catalog was restored."""

    def ledger(self, task: int) -> Ledger | None: ...

    def advance(
        self,
        expected: Ledger | None,
        new: Ledger,
        rejected: Sequence[Quarantined] | None = (),
        folders: Sequence[QuarantineFolder] = (),
    ) -> None:
        """Compare-and-set. Stores the rejected records in the same transaction, in place of those that an earlier attempt
        at the batch left, and forgets the mark. ``folders`` hold further rejected records, which are shown from now on.
        None for `rejected` means that `reject` has stored all of them. Raises LedgerMoved and stores nothing if the ledger
        is not `expected`."""

    def reject(
        self, task: int, number: int, records: Iterable[Quarantined], folders: Sequence[QuarantineFolder] = ()
    ) -> None:
        """Store rejected records before the ledger moves: many of them, or those of a target that commits by itself. They
        replace those that an earlier attempt at the batch left."""

    def count_in_catalog(self, task: int) -> int:
        """How many rejected records of a task are not in folders."""

    def open_folders(self, task: int, folders: Sequence[QuarantineFolder]) -> None:
        """Announce folders before the first record is written to them, so that what a crash leaves of them is removed."""

    def mark(self, task: int) -> Mark | None: ...

    def save_mark(self, task: int, mark: Mark) -> None:
        """Before a batch is written: the next committed batch must reach at least here, or keys would go back in time."""


# Changes


@dataclass(frozen=True, slots=True)
class Append:
    """Rows that came. `in_one_part` says that all of them are in one partition of the frame."""

    rows: DataFrame
    in_one_part: bool = False


@dataclass(frozen=True, slots=True)
class Upsert:
    """The present row of each changed key, without old rows. Keys that are deleted are told in one of two ways:

    - `marked`: `rows` has a row for every changed key, and its column `PRESENT` says whether the key has a row now. The
      other columns of a deleted key mean nothing, but for its key.
    - `changed` has the key of every change, each once: a key that has no row in `rows` is deleted. None if none is.
    """

    rows: DataFrame
    key: tuple[str, ...]
    changed: DataFrame | None = None
    marked: bool = False

    def unmarked(self) -> Upsert:
        """The same changes in the second way."""
        if not self.marked:
            return self
        keys = self.rows.select(*[F.col(spark_identifier(name)) for name in self.key])
        return Upsert(self.rows.where(F.col(PRESENT)).drop(PRESENT), self.key, keys)


@dataclass(frozen=True, slots=True)
class Diff:
    """A signed bag: rows with the column `WEIGHT` of `views.signed`, +1 for a row that came and -1 for one that went. `few` says that the
    driver may well take them. `anew` gives the same rows in another way, which computes no value that the result does not have:
    what came and went in one batch may have been put together in between."""

    rows: DataFrame
    key: tuple[str, ...] | None
    few: bool = False
    anew: Callable[[], DataFrame] | None = None


Changes: TypeAlias = Append | Upsert | Diff


# Inputs


class Cluster(Protocol):
    """What a poller needs of a `KafkaCluster`."""

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """The topics that exist, described in one request."""

    def end_offsets(self, topics: Collection[Topic]) -> dict[str, dict[int, int]]:
        """The next offset of every partition, in one request."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A topic whose end a poller asks for. One request serves all watched topics of a cluster."""

    cluster: Cluster
    topic: str


class ReplanNeeded(Exception):
    """Records have schemas that their source must follow before the task can go on. Nothing of the batch is written.

    The caller lets the source follow and makes anew every task that reads it.
    """

    def __init__(self, source: int, arrived: Sequence[ArrivedSchema]) -> None:
        super().__init__(f"source {source} has new schemas")
        self.source = source
        self.arrived = tuple(arrived)


class Input(Protocol):
    """One relation that a task reads. Used by one thread at a time."""

    @property
    def watched(self) -> Watched | None:
        """The topic whose end says whether there is something to read; None if only `choose_end` knows."""

    @property
    def known_end(self) -> Position | None:
        """Where it ends, if that is known without asking anybody; None if a poller must ask, or only `choose_end` knows."""

    def begin(self) -> Position:
        """Where a new task starts. Creates what reading needs (a replication slot, a manifest)."""

    def check(self, position: Position) -> None:
        """Raise if reading on from here would skip or repeat: topic re-created, records deleted, slot lost."""

    def choose_end(
        self, session: SparkSession, start: Position, limit: Limit, available: Position | None, mark: Position | None
    ) -> Position:
        """How far the next batch goes; `start` itself if there is nothing.

        At most `limit`, but at least up to `mark`, where an earlier attempt ended. `available` is the end that a poller
        saw; None if nobody asked. Ends before the first record whose schema halts the task, even before the mark. May
        land data first (replication, HTTP). Raises ReplanNeeded for records whose schema the source must follow.
        """

    def read(self, session: SparkSession, start: Position, end: Position) -> Changes:
        """The decoded changes after `start` up to `end`. The same arguments give the same rows until `release`."""

    def rejected(self) -> Rejected:
        """The records of what was read last that could not be decoded. Called after the write."""

    def learn(self, error: BaseException) -> bool:
        """Whether the batch failed for something that the input has now taken up, such as a new schema id, so that it
        should be tried again at once."""

    def explain(self, error: BaseException, position: Position) -> BaseException:
        """The error to show for a failed batch that began at `position`: for example that its records were deleted."""

    def release(self, position: Position) -> None:
        """Everything up to here is committed: confirm the LSN, trim the manifest. Kafka does nothing."""


# Plans and targets


@dataclass(frozen=True, slots=True)
class InputRange:
    """What a failed batch read of an input, and how to read a part of it again."""

    start: Position
    end: Position
    read: Callable[[Position, Position], Changes]


class Plan(Protocol):
    """What a task computes. Made from a resolved definition; keeps what does not depend on a batch."""

    @property
    def definition(self) -> str:
        """A name for the definition, which differs for definitions that compute different rows."""

    def compute(self, session: SparkSession, changes: Mapping[int, Changes], batch: Batch) -> Changes:
        """The changes of the output for the changes of the inputs. Nothing is run yet."""

    def locate(
        self, session: SparkSession, failed: ComputationFailed, error: BaseException, ranges: Mapping[int, InputRange]
    ) -> ComputationFailed:
        """The same error, which names the expression and the record that cannot be computed, as far as they can be found in
        a bounded time. ``error`` is what the write raised."""


class Target(Protocol):
    """Where a task writes. Used by one thread at a time."""

    @property
    def takes(self) -> frozenset[type[Changes]]: ...

    @property
    def commit(self) -> Literal["own", "catalog"]:
        """Who moves the ledger: `own`, the target in the transaction that writes the rows; `catalog`, the catalog after the
        write, which is therefore repeated after a crash from the ledger to at least the mark."""

    def bounded(self, limit: Limit) -> Limit:
        """How large its next batch may be at most, given the limit of the scheduler."""

    def begin(self, epoch: int) -> Ledger | None:
        """Fence off smaller epochs, durably where the target can. The ledger that it holds, None if it holds none. Raises
        Fenced if it has seen a larger epoch."""

    def write(self, changes: Changes, batch: Batch, before_commit: Callable[[], None]) -> Written:
        """Visible and durable on return. An append target shows nothing before all of `changes` is computed.

        With commit `own`: calls `before_commit`, which stores rejected records, when everything is computed and nothing is
        visible yet. Moves its ledger in the same transaction as the rows if it stands at `batch.start` or the batch begins a
        new generation, does nothing if it
        stands at `batch.end` with this number, and raises Fenced otherwise. A target without a ledger stands at the start
        of batch 1.
        """

    def contents(self, session: SparkSession) -> Upsert:
        """What it holds now, for bringing it in step."""

    def explain(self, error: BaseException) -> BaseException:
        """The error to show for a write that failed."""

    def close(self) -> None: ...


# Rows that a target cannot take


class RowRejects(Protocol):
    """Finds the rows of a batch that could not be encoded for a target. Used by the thread that ran the batch."""

    def rejected(self, session: SparkSession) -> Rejected:
        """Those of what was written last. Called after the write."""

    def explain(self, session: SparkSession, error: BaseException) -> BaseException:
        """The error to show if a row that cannot be encoded has failed the write, with its position; otherwise `error`."""


# Sides of a record


class SideWriter(Protocol):
    """Encodes one side of a record: the mirror of `formats.side.SideReader`. `row` has the columns by name."""

    @property
    def can_reject(self) -> bool:
        """Whether there are rows that it does not accept."""

    def accepts(self, row: Mapping[str, Column]) -> Column:
        """Whether the row can be encoded. TRUE or FALSE, never NULL."""

    def error(self, row: Mapping[str, Column]) -> Column:
        """struct<path, reason> for a row that is not accepted; holds nothing of the row."""

    def encode(self, row: Mapping[str, Column]) -> Column:
        """The bytes, for a row that is accepted."""


@dataclass(slots=True)
class Progress:
    """Counters of a task since its engine started it. `batch` is the number of the last commit, `batch_seconds` the time of all
    batches together, `skipped` the number of rejected records, `stored_bytes` what the rows take that the task keeps, `told` a
    sentence on how it works."""

    batch: int | None = None
    rows: int = 0
    skipped: int = 0
    batches: int = 0
    batch_seconds: float = 0.0
    last_commit: datetime | None = None
    stored_bytes: int | None = None
    told: str | None = None
