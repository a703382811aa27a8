"""What is known of tasks: how each does, how far each came, and which records it could not take. Frozen values.

The ledger is the truth about a task's progress and moves with its output. A batch is known by task, generation and number.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime

from headgate.catalog.errors import LedgerMoved
from headgate.catalog.positions import KafkaRecord, Positions, RecordPosition


class State(enum.StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    HALTED = "halted"
    DISABLED = "disabled"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """How a task does. `lag` is in records, None where it is not known; `error` is the text of a diagnostic.

    What is counted is counted since the engine started or the task was changed; `batch_seconds` is the time that all
    `batches` took, `last_commit` when the last one was done, `failures` how often the task failed.
    `notice` says which way the task runs, and why. `stored_bytes` is what the rows take that the task keeps for a view.
    """

    task: int
    state: State
    since: datetime
    error: str | None = None
    batch: int | None = None
    rows: int = 0
    skipped: int = 0
    lag: int | None = None
    batches: int = 0
    batch_seconds: float = 0.0
    last_commit: datetime | None = None
    failures: int = 0
    notice: str | None = None
    stored_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """The last batch that is in the target: the truth about a task's progress. Number 0 holds the first positions.

    `epoch` is that of the writer: the number of the lease times 2^20, plus how often its engine had started the task.
    `definition` names the definition that the batch was computed with.
    """

    task: int
    generation: int
    number: int
    epoch: int
    positions: Positions
    definition: str = ""


def require_ledger(expected: Ledger | None, found: Ledger | None, task: int) -> None:
    """The comparison of the compare-and-set. Raises LedgerMoved."""
    if found != expected:
        raise LedgerMoved(task, expected.number if expected else None, found.number if found else None)


@dataclass(frozen=True, slots=True)
class ProgressSlot:
    """Where a task keeps its progress if its target is a topic: the uuid of the project, which names the progress topic, and
    the number of a partition of it that no other task of the project has."""

    project: str
    number: int


@dataclass(frozen=True, slots=True)
class Mark:
    """The end of an attempt that may have written something, and how many attempts there were since the last commit.

    `end` is None after a mark was dropped; the number of attempts stays until a batch commits.
    """

    end: Positions | None
    attempts: int


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One record that could not be taken: where it lies, what was expected, why not. `raw` is not shown by `*`, and is None
    if it was not read."""

    object: int
    task: int
    position: RecordPosition
    time: datetime
    schema_id: int | None
    path: str | None
    expected: str | None
    reason: str
    raw: bytes | None = None

    @property
    def topic(self) -> str | None:
        return self.position.topic if isinstance(self.position, KafkaRecord) else None

    @property
    def partition(self) -> int | None:
        return self.position.partition if isinstance(self.position, KafkaRecord) else None

    @property
    def offset(self) -> int | None:
        return self.position.offset if isinstance(self.position, KafkaRecord) else None


@dataclass(frozen=True, slots=True)
class QuarantineFolder:
    """A folder of the warehouse with the rejected records of one batch, which are too many for the catalog. The catalog knows
    their number; asking for it reads no record."""

    name: str
    object: int
    task: int
    batch: int
    records: int
