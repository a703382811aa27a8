"""What is known of tasks: how each does, how far each came, and what each was about to do. Frozen values.

The ledger is the truth about a task's progress and moves with its output; an intent is written before a batch is
computed, so that a replay computes the same. A batch is known by generation and number: a new checkpoint begins
again at batch 0 under a new generation.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime


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


@dataclass(frozen=True, slots=True)
class PartitionOffset:
    """The next offset to read of a partition. `topic_id` tells a topic from a later one of the same name."""

    topic: str
    partition: int
    offset: int
    topic_id: str | None = None


@dataclass(frozen=True, slots=True)
class InputVersion:
    """The version of a stored relation that a batch read."""

    relation: int
    version: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """How far a task came: everything below `offsets`, and `versions` of its stored inputs, is in its output."""

    task: int
    generation: int
    batch: int
    offsets: tuple[PartitionOffset, ...] = ()
    versions: tuple[InputVersion, ...] = ()


@dataclass(frozen=True, slots=True)
class Intent:
    """What a batch will compute from: all that could differ when it is run again. `now` is the batch's clock."""

    task: int
    generation: int
    batch: int
    offsets: tuple[PartitionOffset, ...]
    versions: tuple[InputVersion, ...]
    schema_ids: tuple[int, ...]
    catalog_version: int
    now: datetime


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One record that could not be taken: where it lies, what was expected, why not. `raw` is not shown by `*`."""

    object: int
    task: int
    topic: str | None
    partition: int | None
    offset: int | None
    time: datetime
    schema_id: int | None
    path: str | None
    expected: str | None
    reason: str
    raw: bytes | None = None


@dataclass(frozen=True, slots=True)
class SchemaSeen:
    """A schema that a registry gave us. Ids are a registry's own, so it is named too, by its URL."""

    registry: str
    id: int
    subject: str
    version: int
    format: str
    text: str
