"""A task that runs in real time: a streaming query hands every record on, and batches do all the rest.

The task begins as any other, with batches from its ledger. When nothing is left for them, it starts a query at the ledger's
position, and from then on every boundary of the query moves the ledger (about once a minute). The query ends when a record
needs more than to be passed on (it is bad, or has a new schema), when the task changes or leaves, and when the topic gets more
partitions. Then one batch **settles** what the query has done: it goes from the ledger to where the query came, and writes only
the records that the topic lacks. So an ended query repeats and loses nothing, and what ended it is left to ordinary batches.

A query says only at a boundary how far it is. For a task that has become idle, a job that writes nothing compares the records
since the ledger with the topic; if all are there, the ledger moves while the query runs on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, SparkSession

from headgate.catalog.positions import KafkaPosition, Positions, distance, furthest
from headgate.errors import HeadgateError
from headgate.runtime.decode import count_rows
from headgate.runtime.errors import BadRecord, SchemaChanged, SparkGone
from headgate.runtime.failures import StoppedAt, stopped_at, translated
from headgate.runtime.live_input import LiveInput, LiveTarget, kafka_offsets
from headgate.runtime.live_queries import LiveQueries, LiveQuery
from headgate.runtime.ports import NOTHING_REJECTED, BatchResult, Input, Limit, Plan, Progress, ReplanNeeded
from headgate.runtime.sink_task import SinkPlan
from headgate.runtime.task import Task

log = logging.getLogger(__name__)

CATCHING_UP = "it catches up before it runs in real time"
MOST_BEHIND = 10_000  # records that a query may begin with; batches are better at more
QUIET = 1.5  # seconds without a record after which a task is idle
FALLS, FALL_TIME, REST = 3, 300.0, 300.0  # so many queries ended by records in so many seconds: batches for so many
LOOK_EVERY = 0.5  # seconds between two looks whether a query may start
LOOK_AGAIN = 30.0  # seconds until a task without slots looks for some again
BOUNDARY_TIMEOUT = 8.0  # seconds that the end of a sink without a key waits for a boundary


class RealTimeTask:
    """Runs a `Task` in real time. Used by one thread at a time, but for boundaries, which come from a thread of the queries.

    ``wake`` lets the scheduler run a batch of the task soon; ``report`` and ``fail`` tell it of commits and failures.
    """

    def __init__(
        self,
        task: Task,
        queries: LiveQueries,
        reason: str,
        *,
        wake: Callable[[int], None],
        report: Callable[[int, BatchResult], None],
        fail: Callable[[int, Exception], None],
    ) -> None:
        (input_,) = task.inputs.values()
        assert isinstance(input_, LiveInput)
        assert isinstance(task.target, LiveTarget)
        assert isinstance(task.plan, SinkPlan)
        self.task = task
        self._input, self._target, self._plan = input_, task.target, task.plan
        self._queries = queries
        self._reason = reason
        self._wake, self._report, self._fail = wake, report, fail
        self._live: LiveQuery | None = None
        self._ledger_guard = threading.Lock()  # held while the ledger moves, or the query begins or ends
        self._stood_at: KafkaPosition | None = None
        self._seen: KafkaPosition | None = None  # the end of the topic
        self._moved_at = 0.0  # when it moved
        self._batches_first = task.id not in queries.handed_over
        # The ends of the target before the last two boundaries.
        self._tails: tuple[Mapping[int, int], Mapping[int, int]] = ({}, {})
        self._passed_ids: Mapping[str, frozenset[int]] = {}  # schema ids that the query knows
        self._falls: list[float] = []
        self._rests_until = 0.0  # time.time() of the next attempt at a query
        self._look_at = 0.0  # time.time() of the next look whether one may start
        self._why_not: str | None = None
        queries.handed_over.discard(task.id)

    # What the scheduler and the controller see

    @property
    def id(self) -> int:
        return self.task.id

    @property
    def name(self) -> str:
        return self.task.name

    @property
    def inputs(self) -> Mapping[int, Input]:
        return self.task.inputs

    @property
    def plan(self) -> Plan:
        return self.task.plan

    @property
    def progress(self) -> Progress:
        return self.task.progress

    @progress.setter
    def progress(self, progress: Progress) -> None:
        self.task.progress = progress

    @property
    def positions(self) -> Positions:
        return self.task.positions

    can_go_live = True

    @property
    def is_live(self) -> bool:
        return self._live is not None

    @property
    def notice(self) -> str:
        if self.is_live:
            return f"real time: {self._reason}"
        return f"micro-batch: {self._why_not or CATCHING_UP}"

    @property
    def due(self) -> float | None:
        """When to look whether all is written, or when to try to start a query."""
        if self._live is None:
            return max(self._rests_until, self._look_at) if self._stood_at is not None else None
        if self._seen is None or not self._is_keyed or not self._is_behind(self._seen):
            return None
        allowed = time.time() + self._queries.settle_at() - time.monotonic()
        return max(self._moved_at + QUIET, allowed)

    def begin(self) -> None:
        self.task.begin()
        self._position()
        # Records without a key cannot be told apart, so that all of them are written again.
        self._target.tail = self._queries.unsettled.get(self.id) if self._is_keyed else None

    def has_work(self, available: Positions) -> bool:
        end = available.get(self._input.reader.id)
        if isinstance(end, KafkaPosition) and end != self._seen:
            self._seen, self._moved_at = end, time.time()
        if self._live is None:
            return self.task.has_work(available)
        return self._live.ended or self._live.outdated or self.task.ledger is None or self._must_end(available)

    def lag(self, available: Positions) -> int | None:
        return self.task.lag(available)

    def run_batch(
        self, session: SparkSession, limit: Limit | None = None, available: Positions | None = None
    ) -> BatchResult | None:
        known = available or {}
        if self._live is not None:
            if not (self._live.ended or self._is_lost() or self._must_end(known) or self._knows_more()):
                return self._settle_idle(session, known)
            self._end(session)
        elif self._target.tail is not None:  # a query has written up to somewhere
            end = self._input.end()
            known, limit = {self._input.reader.id: end}, self._whole(end)
        result = self.task.run_batch(session, limit, known) if self._needs_batch(known) else None
        if result is not None:
            self._batches_first = False
        if self.task.lag(known) == 0:  # whatever an earlier query left is settled
            self._target.tail = None
            self._queries.unsettled.pop(self.id, None)
        self._go_live(known)
        return result

    def finish(self, session: SparkSession, *, settle: bool = True) -> None:
        """End the query before the task leaves. Whoever comes after it goes on exactly where it stopped, if it may settle."""
        if self._live is not None and settle:
            try:
                self._end(session)
            except ReplanNeeded:
                log.debug("task %s leaves, and whoever comes after it meets the new schema", self.name)
        self.close()

    def settled(self, session: SparkSession) -> Task:
        """The task while no query runs. A query is started again after it."""
        if self._live is not None:
            self._end(session)
        return self.task

    def close(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            self._queries.stop(live)
        self.task.close()

    # Beginning

    def _needs_batch(self, available: Positions) -> bool:
        lag = self.task.lag(available)
        if lag is None or not self.task.is_in_step or self._target.tail is not None:
            return True
        must_wait = time.time() < self._rests_until or self._queries.next_start() > 0
        return lag > 0 and (self._batches_first or lag > MOST_BEHIND or must_wait)

    def _go_live(self, available: Positions) -> None:
        """Start a query if nothing is left for batches and there are slots."""
        wait = self._queries.next_start()
        self._look_at = time.time() + (wait or LOOK_EVERY)
        if wait > 0 or time.time() < self._rests_until or self._needs_batch(available):
            return
        try:
            if self._lacks_slots(len(self._position().offsets)):  # many may wait for slots, and nobody is asked for it
                return
            self._input.reader.refresh()
            position = self._all_partitions()
        except HeadgateError as error:
            if not error.retryable:
                raise
            self._rest_for(error.message(), LOOK_AGAIN)
            return
        count = len(position.offsets)
        if any(side.writers().unreadable_fields for side in self._input.reader.schemas.values()):
            self._rest_for("a schema changed a field in a way that cannot be followed", LOOK_AGAIN)
        elif not self._lacks_slots(count) and self._queries.slots.take(count):
            self._start(position, count)

    def _lacks_slots(self, count: int) -> bool:
        """Whether there are too few slots. Then the task rests."""
        if lacks := count > (slots := self._queries.slots).free:
            needed = f"{count} slot{'' if count == 1 else 's'}"
            self._rest_for(f"it needs {needed} of Spark, and {slots.free} of {slots.total} are free", LOOK_AGAIN)
        return lacks

    def _knows_more(self) -> bool:
        """Whether a query that started now would pass on records of a new version, at which the one that runs would end."""
        live = self._live
        if live is None or not live.outdated:
            return False
        live.outdated = False
        try:
            self._input.reader.refresh()
        except HeadgateError as error:
            log.debug("task %s: %s", self.name, error)
            return False
        return self._input.passed_ids() != self._passed_ids

    def _start(self, position: KafkaPosition, slots: int) -> None:
        keyed, began = self._is_keyed, time.monotonic()
        try:
            ends, self._passed_ids = self._target.ends(), self._input.passed_ids()
            live = self._queries.start(
                f"task {self.id}",
                lambda session: self._streamed(session, position),
                self._target.live_options(),
                slots,
                self._on_boundary,
                lambda ended: self._wake(self.id),
                self._input.has_new_version,
                short=not keyed,
            )
        except Exception as error:
            self._queries.slots.give_back(slots)
            known = translated(error, [self._input.reader], self._input.reader.cluster.brokers)
            if isinstance(known, SparkGone):
                raise known from error
            log.warning("task %s: no query could be started: %s", self.name, known)
            self._rest_for(f"no query could be started ({known.message()})", REST)
            return
        self._tails = ends, ends
        self._queries.unsettled[self.id] = ends
        self._why_not, self._live = None, live
        log.info("task %s: its query started in %.2f s", self.name, time.monotonic() - began)
        number = 0 if self.task.ledger is None else self.task.ledger.number
        self._report(self.id, BatchResult(number, 0, 0.0, self.positions))

    def _streamed(self, session: SparkSession, position: KafkaPosition) -> DataFrame:
        return self._target.streamed(self._plan.output(session, self._input.stream(session, position)))

    def _rest_for(self, reason: str, seconds: float) -> None:
        self._why_not, self._rests_until = reason, time.time() + seconds

    # While it runs

    def _on_boundary(self, live: LiveQuery, end_offsets: str) -> None:
        """Spark has written everything up to here and flushed it."""
        try:
            with self._ledger_guard:
                live.boundaries += 1
                if self._live is not live or self.task.ledger is None:
                    return
                offsets = kafka_offsets(end_offsets, self._input.reader.topic_name)
                ends = self._target.ends()
                result = self._advance(tuple(offsets[partition] for partition in sorted(offsets)))
                # After the next boundary, they may lie behind what came since: those before them do not.
                is_late = live.announced > live.boundaries
                self._tails = self._tails[1], self._tails[1] if is_late else ends
                self._queries.unsettled[self.id] = self._tails[0]
        except HeadgateError as error:
            self._fail(self.id, error)
            return
        if result is not None:
            self._report(self.id, result)

    def _advance(self, offsets: tuple[int, ...]) -> BatchResult | None:
        position = self._position()
        end = furthest(position, KafkaPosition(position.topic, position.topic_id, offsets))
        return None if end == position else self.task.advance({self._input.reader.id: end})

    def _settle_idle(self, session: SparkSession, available: Positions) -> BatchResult | None:
        """Move the ledger to the end of the topic if all that came is written. The query runs on."""
        end, position = available.get(self._input.reader.id), self._position()
        if not isinstance(end, KafkaPosition) or not self._is_behind(end) or not self._queries.take_settle():
            return None
        began = time.monotonic()
        try:
            complete = self._is_written(session, position, end)
        finally:
            self._queries.settled(time.monotonic() - began)
        self._moved_at = time.time()  # if it is not, look again later
        with self._ledger_guard:
            if not complete or self._live is None or self.task.ledger is None or self._position() != position:
                return None
            return self._advance(end.offsets)

    def _is_written(self, session: SparkSession, start: KafkaPosition, end: KafkaPosition) -> bool:
        """Whether the topic has the output of a range. False also if a record of it cannot be read."""
        tail = self._tails[0]
        self._input.bound = end
        try:
            output = self._plan.output(session, self._input.read(session, start, end))
            records = self._target.records(output, distance(start, end))
            complete = count_rows(self._target.unwritten(records, tail)) == 0
            return complete and self._input.rejected() is NOTHING_REJECTED  # the query is about to end at a bad record
        except Exception as error:  # noqa: BLE001 - the query meets the same record, or the next look does
            log.debug("task %s: %s", self.name, type(error).__name__)
            return False
        finally:
            self._input.bound = None

    def _is_lost(self) -> bool:
        """Whether a boundary could not store the ledger, so that nobody knows where it stands. To settle finds it out."""
        with self._ledger_guard:
            return self.task.ledger is None

    def _must_end(self, available: Positions) -> bool:
        """Whether the topic is another one or has more partitions, for which the query has no slots."""
        end, position = available.get(self._input.reader.id), self._position()
        if not isinstance(end, KafkaPosition) or self._live is None:
            return False
        return end.topic_id != position.topic_id or len(end.offsets) > self._live.slots

    # The end of a query

    def _end(self, session: SparkSession) -> None:
        """Stop the query, and settle what it has done. Raises ReplanNeeded if a record's new schema has ended it."""
        live, began = self._live, time.monotonic()
        assert live is not None
        stopped = stopped_at(live.failure or "") if live.ended else None
        if not live.ended and not self._is_keyed:
            self._await_boundary(live)
        with self._ledger_guard:
            self._live = None
        try:
            self._queries.stop(live)
        except Exception as error:
            raise translated(error) from error
        if live.ended:
            self._note_fall(stopped)
        ended = time.monotonic()
        if self._is_keyed:
            self._settle(session, stopped)
        log.info(
            "task %s: its query ended in %.2f s, and settled %.2f s later",
            self.name,
            ended - began,
            time.monotonic() - ended,
        )
        self._queries.unsettled.pop(self.id, None)
        self._queries.handed_over.add(self.id)
        if stopped is not None and (arrived := self._input.arrived_with(stopped)) is not None:
            raise ReplanNeeded(self._input.reader.id, [arrived])
        if live.ended and (stopped is None or not self._input.knows_schema(stopped)):
            self._count_fall("failures" if stopped is None else "bad records")

    def _await_boundary(self, live: LiveQuery) -> None:
        """Right after a boundary nothing has been read since it. Others than keyed topics cannot be settled in another way."""
        before, deadline = live.boundaries, time.monotonic() + BOUNDARY_TIMEOUT
        while live.boundaries == before and not live.ended and time.monotonic() < deadline:
            time.sleep(0.01)

    def _note_fall(self, stopped: StoppedAt | None) -> None:
        """A query ended by itself. Batches go first."""
        self._batches_first = True
        # What Spark says otherwise may hold a value; the batch that meets the same trouble has the words for it.
        log.info("task %s: its query ended by itself%s", self.name, "" if stopped is None else f" at {stopped}")

    def _count_fall(self, what: str) -> None:
        """After several ends of a query, batches stay for a while. New schemas do not count, but ids that no schema has do."""
        now = time.time()
        self._falls = [fall for fall in self._falls if now - fall < FALL_TIME] + [now]
        if len(self._falls) >= FALLS:
            self._falls.clear()
            self._rest_for(f"{what} ended its query {FALLS} times within {FALL_TIME / 60:.0f} minutes", REST)

    def _settle(self, session: SparkSession, stopped: StoppedAt | None) -> None:
        """Write what the query has not written of the records up to where it came. Behind the record that stopped it, and
        behind others that would have, it has written nothing."""
        self._target.await_delivery()
        if (bound := self._input.end()).topic_id != self._position().topic_id:
            return  # the next batch refuses the topic
        if stopped is not None:
            bound = bound.without(stopped.partition, stopped.offset)
        self._target.tail = self._tails[0]
        source = self._input.reader.id
        while self._is_behind(bound):
            self._input.bound = bound
            try:
                # As a whole: what the query has written of a key may come from any part of it.
                self.task.run_batch(session, self._whole(bound), {source: bound})
            except (BadRecord, SchemaChanged) as error:
                bound = bound.without(error.partition, error.offset)
                self.task.begin()
            finally:
                self._input.bound = None
        self._target.tail = None

    def _whole(self, end: KafkaPosition) -> Limit:
        """The limit of a batch that reaches from the ledger to there. It is halved as any other if it fails again and again."""
        return Limit(max(Limit().rows, distance(self._position(), end)))

    # Where it stands

    @property
    def _is_keyed(self) -> bool:
        return self._target.sink.envelope == "UPSERT"

    def _position(self) -> KafkaPosition:
        """Where the ledger stands. While it moves, where it stood before."""
        position = self.task.positions.get(self._input.reader.id, self._stood_at)
        assert isinstance(position, KafkaPosition)
        self._stood_at = position
        return position

    def _all_partitions(self) -> KafkaPosition:
        """Where the task stands, with partitions that were added since."""
        position, count = self._position(), self._input.partitions()
        offsets = tuple(position.by_partition.get(partition, 0) for partition in range(count))
        return KafkaPosition(position.topic, position.topic_id, offsets)

    def _is_behind(self, end: KafkaPosition) -> bool:
        return distance(self._position(), end) > 0
