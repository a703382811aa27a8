"""A sink at work: one Structured Streaming query that reads the source, runs the chain of views, and writes the topic.

The ledger is the truth about progress; Spark's checkpoint is only the query's clock, new with every start, and the
query begins at the ledger's offsets. A batch writes its intent first, then its output, then the ledger: after a
crash the batch is computed again from the same offsets, so that nothing is lost and a keyed topic ends up the same.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import cast

from pyspark.sql import Column, DataFrame, DataFrameWriter, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.catalog.names import DEFAULT_PATH
from headgate.catalog.objects import Object
from headgate.catalog.snapshot import Catalog
from headgate.catalog.store import Store
from headgate.catalog.tasks import Intent, Ledger, PartitionOffset, Quarantined
from headgate.connectors.connections import Connections
from headgate.connectors.kafka import Topic
from headgate.errors import HeadgateError
from headgate.plan.errors import NotSupportedYet
from headgate.plan.relations import relations_read
from headgate.plan.sink import SinkPlan, plan_sink
from headgate.runtime.deletes import deleted_keys
from headgate.runtime.encode import encode
from headgate.runtime.errors import RecordsLost, TopicReplaced
from headgate.runtime.failures import bad_record, translated, unknown_schema_id
from headgate.runtime.frames import Frames, view_query
from headgate.runtime.source import SourceReader, offsets_json
from headgate.sql.ast.sinks import CreateSink
from headgate.sql.json import from_json

TRIGGER = "1 second"  # of idle tasks; RUNTIME §3
LEARN_TRIES = 3
CHUNK = 500  # bad records that are put into the quarantine at once

QUARANTINED = (
    "topic",
    "partition",
    "offset",
    "hg_problem.side AS side",
    "hg_problem.reason AS reason",
    "hg_problem.schema_id AS schema_id",
    "CASE hg_problem.side WHEN 'key' THEN key ELSE value END AS raw",
)


@dataclass(slots=True)
class Progress:
    """What a task tells of itself while it runs."""

    batch: int | None = None
    rows: int = 0
    skipped: int = 0
    lag: int | None = None
    error: HeadgateError | None = None


class SinkTask:
    """One run of a sink. ``start`` begins it, ``stop`` ends it; ``progress`` may be read at any time."""

    def __init__(
        self,
        session: SparkSession,
        catalog: Catalog,
        sink: Object,
        connections: Connections,
        store: Store,
        checkpoints: Path,
        told: Callable[[Progress], None],
    ) -> None:
        statement = from_json(cast("dict[str, object]", sink.purified_json()["statement"]))  # type: ignore[arg-type]
        assert isinstance(statement, CreateSink)
        self.object = sink
        self.plan: SinkPlan = plan_sink(catalog, DEFAULT_PATH, statement)
        self.catalog = catalog
        self.connections = connections
        self.store = store
        self.told = told
        self.progress = Progress()
        self._session = session.newSession()
        self._checkpoints = checkpoints
        self._source = SourceReader(catalog, source_of(catalog, self.plan.relation), connections)
        self._target = connections.kafka(catalog, self.plan.connection)
        self._query: StreamingQuery | None = None
        self._guard = threading.Lock()

    # life

    def start(self) -> None:
        topic = self._source.cluster.topic(self._source.topic_name)
        ledger = self.store.ledger(self.object.id)
        self._generation = (ledger.generation if ledger else 0) + 1
        start = self._start_offsets(topic, ledger)
        self._topic = topic
        self._reached = start
        options = {**self._source.options(), "startingOffsets": offsets_json(topic.name, start)}
        reader = self._session.readStream.format("kafka").options(**options)
        reader = reader.option("subscribe", topic.name).option("maxOffsetsPerTrigger", "500000")
        checkpoint = self._checkpoints / f"task-{self.object.id}" / f"generation-{self._generation}"
        writer = (
            reader.load().writeStream.foreachBatch(self._batch).option("checkpointLocation", str(checkpoint))
        )
        self._checkpoint = checkpoint
        self._query = writer.queryName(f"task {self.object.id}").trigger(processingTime=TRIGGER).start()

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()

    def failure(self) -> HeadgateError | None:
        """Why the query ended by itself, if it did."""
        if self._query is None or self._query.isActive:
            return None
        return self.progress.error or self._translated(self._query.exception())

    def _translated(self, error: BaseException | None) -> HeadgateError | None:
        if error is None:
            return None
        return translated(error, self._reader_of)

    def _start_offsets(self, topic: Topic, ledger: Ledger | None) -> dict[int, int]:
        """The ledger's offsets; partitions that it does not know begin at 0. A topic that is another one is refused."""
        if ledger is None or not ledger.offsets:
            return self._source.start_offsets(topic)
        known = {o.partition: o for o in ledger.offsets}
        if any(o.topic_id not in (None, topic.id) for o in known.values()):
            raise TopicReplaced(topic.name, f'sink "{self.object.name}"')
        earliest = self._source.cluster.offsets(topic, latest=False)
        for partition, reached in known.items():
            if reached.offset < earliest.get(partition, 0):
                raise RecordsLost(topic.name, partition, reached.offset, earliest[partition])
        return {p: known[p].offset if p in known else first for p, first in earliest.items()}

    # a batch

    def _batch(self, raw: DataFrame, batch: int) -> None:
        """Run by Spark for every batch. What is raised here ends the query, short, with the whole error kept aside."""
        try:
            self._run_batch(raw, batch)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must be told as one of ours
            self.progress.error = self._translated(error)
            raise RuntimeError("headgate: the batch failed") from None

    def _run_batch(self, raw: DataFrame, batch: int) -> None:
        topic = self._source.cluster.topic(self._topic.name)
        if topic.id != self._topic.id:
            raise TopicReplaced(topic.name, f'sink "{self.object.name}"')
        end = self._end_offsets(batch)
        self._intend(batch, end)
        self._write_with_known_schemas(raw)
        ledger = Ledger(self.object.id, self._generation, batch, self._partition_offsets(end))
        self.store.advance(ledger)
        read = sum(end[p] - self._reached.get(p, 0) for p in end)
        self._reached = end
        self._tell(batch, read)

    def _write_with_known_schemas(self, raw: DataFrame) -> None:
        """An id that no version of the subject has fails the batch before anything of it counts; it is learned, and
        the batch is run again."""
        for _ in range(LEARN_TRIES):
            try:
                self._write(raw)
                return
            except Exception as error:
                unknown = unknown_schema_id(error)
                if unknown is None:
                    raise
                self._source.learn(unknown)
        self._write(raw)

    def _write(self, raw: DataFrame) -> None:
        decoded = self._source.decode(raw)
        records = self._records(decoded)
        writer = records.write.format("kafka").options(**self._target.spark())
        writer = writer.option("topic", self.plan.topic).option("kafka.enable.idempotence", "true")
        if self._source.plan.on_error == "HALT":
            writer.save()
        else:
            self._write_and_set_aside(writer, decoded)

    def _records(self, decoded: DataFrame) -> DataFrame:
        """Keys and values to be written, tombstones for keys whose row is gone included."""
        session = decoded.sparkSession
        changed = self._source.changes(decoded)
        frames = Frames(session, self.catalog, self.store, lambda _: self._source.current(changed))
        rows = frames.relation(self.plan.relation)
        written = rows.select(*self._encoded())
        keys = deleted_keys(self.catalog, self.plan, self._source, changed, rows)
        return written if keys is None else written.unionByName(keys)

    def _encoded(self) -> list[Column]:
        columns = [encode(self.plan.value).alias("value")]
        if self.plan.key is not None:
            columns.append(encode(self.plan.key).alias("key"))
        return columns

    def _write_and_set_aside(self, writer: DataFrameWriter, decoded: DataFrame) -> None:
        """Write the good records, then count the bad ones, and keep them if the policy says so."""
        writer.save()
        bad = decoded.where("hg_problem IS NOT NULL")
        if self._source.plan.on_error == "SKIP":
            self.progress.skipped += bad.count()
            return
        set_aside = 0
        for chunk in chunks(bad.selectExpr(*QUARANTINED).toLocalIterator(), CHUNK):
            self.store.quarantine([self._quarantined(row) for row in chunk])
            set_aside += len(chunk)
        self.progress.skipped += set_aside

    def _quarantined(self, row: Row) -> Quarantined:
        side, place = row["side"], {name: row[name] for name in ("topic", "partition", "offset")}
        told = bad_record(
            {**place, "side": side, "reason": row["reason"], "schema_id": row["schema_id"]}, self._reader_of
        )
        return Quarantined(
            self._source.object.id,
            self.object.id,
            row["topic"],
            row["partition"],
            row["offset"],
            datetime.now(UTC),
            row["schema_id"],
            told.path or f"$.{side}",
            self._source.expected(side),
            told.reason,
            bytes(row["raw"]) if row["raw"] is not None else None,
        )

    def _reader_of(self, topic: str) -> SourceReader | None:
        return self._source if topic == self._source.topic_name else None

    def _end_offsets(self, batch: int) -> dict[int, int]:
        """Where Spark fixed the batch's end, before it called us: the last line of the batch's offset log."""
        text = (self._checkpoint / "offsets" / str(batch)).read_text()
        offsets = json.loads(text.strip().splitlines()[-1])[self._topic.name]
        return {int(partition): int(offset) for partition, offset in offsets.items()}

    def _intend(self, batch: int, end: dict[int, int]) -> None:
        self.store.intend(
            Intent(
                self.object.id,
                self._generation,
                batch,
                self._partition_offsets(end),
                (),
                (),
                self.catalog.version,
                datetime.now(UTC),
            )
        )

    def _partition_offsets(self, offsets: dict[int, int]) -> tuple[PartitionOffset, ...]:
        topic = self._topic
        return tuple(
            PartitionOffset(topic.name, p, offset, topic.id) for p, offset in sorted(offsets.items())
        )

    def _tell(self, batch: int, rows: int) -> None:
        latest = self._source.cluster.offsets(self._topic, latest=True)
        self.progress.batch = batch
        self.progress.rows += rows
        self.progress.lag = sum(max(0, latest[p] - self._reached.get(p, 0)) for p in latest)
        self.told(self.progress)


def source_of(catalog: Catalog, relation_id: int) -> Object:
    """The one source at the beginning of a chain of views; anything else is not run as a chain yet."""
    relation = catalog.get(relation_id)
    while relation.kind == "view":
        analysed = view_query(catalog, relation)
        reads = relations_read(analysed)
        if not analysed.stateless or len(reads) != 1:
            raise NotSupportedYet("a sink over a view that is not computed row by row")
        relation = catalog.get(reads[0])
    if relation.kind != "source":
        raise NotSupportedYet(f"a sink over a {relation.kind}")
    return relation


def chunks(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    left = iter(rows)
    while chunk := list(islice(left, size)):
        yield chunk
