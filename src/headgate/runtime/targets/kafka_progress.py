"""The progress of a task whose target is a topic: a record that is written in the transaction of each batch.

All tasks of a project share the compacted topic `headgate-progress-<uuid of the project>`. **A task has a partition of it for
itself**, whose number the catalog gave with the task's uuid, and the uuid is the key of its records. So a task finds its
record with certainty:

- Only its own transactions are in the partition. With a hash of the uuid, tasks would share partitions, and a transaction that
  one of them left open would hide the later records of all others from readers of committed records.
- A partition is used again when its task is dropped. Records of the task before it have another key and are passed over.
- The end of the partition is asked for with open transactions, and must be reached. The end that a reader of committed
  records is told is that of the first open transaction: what lies behind would be missed in silence.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from headgate.catalog.positions import Positions, dump_positions, load_positions
from headgate.catalog.tasks import Ledger, ProgressSlot
from headgate.connectors.kafka import KafkaCluster, NewTopicOptions
from headgate.runtime.targets.errors import ProgressHidden

FIRST_PARTITIONS = 8  # of a new progress topic; it is doubled when it has too few
READ_TIMEOUT = 90.0  # seconds; a broker aborts an open transaction after 60, and looks every ten
FIRST_STEP = 8  # offsets before the end; a batch takes two, its record and the mark of the commit
CONFIG = (("cleanup.policy", "compact"), ("segment.bytes", str(10 << 20)))
READER: dict[str, Any] = {
    "group.id": "headgate-progress",  # librdkafka wants a group; nothing is committed to it
    "enable.auto.commit": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 10,
    "enable.sparse.connections": False,
    "log_level": 0,
}


@dataclass(frozen=True, slots=True)
class ProgressRecord:
    """What a task has written, and who writes. `positions` is None before the first batch. `topic_id` is that of the target."""

    epoch: int = 0
    generation: int = 1
    number: int = 0
    positions: str | None = None  # as `dump_positions` makes it
    definition: str = ""
    topic_id: str = ""
    sent: int = 0  # transactions that belong to no batch

    def stands_at(self, positions: Positions) -> bool:
        return self.positions == dump_positions(positions)

    def ledger(self, task: int) -> Ledger | None:
        if self.positions is None:
            return None
        positions = load_positions(self.positions)
        return Ledger(task, self.generation, self.number, self.epoch, positions, self.definition)


def dump_record(record: ProgressRecord) -> bytes:
    return orjson.dumps(asdict(record))


def load_record(text: bytes) -> ProgressRecord:
    """The inverse of `dump_record`. Members that a later version has added are ignored."""
    members = orjson.loads(text)
    return ProgressRecord(**{name: members[name] for name in ProgressRecord.__slots__ if name in members})


class ProgressTopic:
    """The progress of one task. `key` is the task's uuid; `sink` appears in errors."""

    def __init__(
        self, cluster: KafkaCluster, slot: ProgressSlot, key: str, sink: str, timeout: float = READ_TIMEOUT
    ) -> None:
        self.name = f"headgate-progress-{slot.project}"
        self.partition = slot.number
        self.key = key
        self._cluster = cluster
        self._sink = sink
        self._timeout = timeout

    def ensure(self) -> None:
        """Create the topic, or the task's partition of it, if they do not exist. Tasks may do so side by side."""
        wanted = FIRST_PARTITIONS
        while wanted <= self.partition:
            wanted *= 2
        found = self._cluster.topics({self.name}).get(self.name)
        if found is None:
            self._cluster.create_topic(self.name, NewTopicOptions(wanted, config=CONFIG))
            found = self._cluster.topic(self.name)
        if found.partitions <= self.partition:
            self._cluster.add_partitions(self.name, wanted)

    def read(self) -> ProgressRecord:
        """The last committed record; an empty one if there is none. It is final only while no transaction of the task can be
        open: after a producer with its transactional id has been initialised. Raises ProgressHidden."""
        first, end = self._cluster.offset_range(self.name, self.partition)
        consumer = Consumer({**self._cluster.librdkafka(), **READER})
        try:
            return self._search(consumer, first, end, time.monotonic() + self._timeout)
        except KafkaException as error:
            raise self._cluster.failure("read the progress", error, self.name) from error
        finally:
            consumer.close()

    def _search(self, consumer: Consumer, first: int, end: int, deadline: float) -> ProgressRecord:
        """Read from a little before the end, and from further back if only aborted or foreign records are there."""
        step = FIRST_STEP
        while first < end:
            start = max(first, end - step)
            found = self._last_from(consumer, start, end, deadline)
            if found is not None:
                return load_record(found)
            if start == first:
                break
            step *= 8
        return ProgressRecord()

    def _last_from(self, consumer: Consumer, start: int, end: int, deadline: float) -> bytes | None:
        """The value of the task's last record from an offset on, once the end is reached."""
        consumer.assign([TopicPartition(self.name, self.partition, start)])
        last: bytes | None = None
        while True:
            message = consumer.poll(0.2)
            if message is not None and _is_end(message):
                if (message.offset() or 0) >= end:
                    return last
            elif message is not None and message.error() is not None:
                _raise_unless_passing(message, deadline)
            elif message is not None and message.key() == self.key.encode():
                last = message.value()
            if time.monotonic() > deadline:
                raise ProgressHidden(self._sink, self.name, self.partition)


def _is_end(message: Message) -> bool:
    """Whether the consumer says that it has read all that is committed, up to the offset of this message."""
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF


def _raise_unless_passing(message: Message, deadline: float) -> None:
    """The consumer goes on by itself after most errors, as when a leader moves."""
    error = message.error()
    if error is not None and (time.monotonic() > deadline or error.fatal()):
        raise KafkaException(error)
