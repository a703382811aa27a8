"""A task and the batch protocol: one function per step, the same for every kind of input and target.

    begin    a new epoch; the target fences off older writers; the ledger is the target's own, otherwise the catalog's,
             otherwise the first positions, which are stored at once
    choose   an end for each input, not before an open mark; nothing new: no batch
    mark     for targets whose ledger is in the catalog: the end becomes durable before anything is written
    write    the plan over (start, end] goes to the target. If the plan is another one than that of the ledger, batches
             without new records bring a keyed target in step first, each for a part of the keys
    commit   the ledger moves by compare-and-set, with the rejected records; then the inputs are released

After a crash the next batch starts at the ledger. A target with its own ledger has either all of the lost batch or nothing.
Any other target may have a part of it; the next batch reaches at least the mark, so that it rewrites every key of that part
with a value that is at least as new.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from pyspark.sql import SparkSession

from headgate.catalog.positions import Positions, is_smallest, lag, reaches
from headgate.catalog.tasks import Ledger, Mark
from headgate.crash_points import crash_point
from headgate.errors import HeadgateError
from headgate.runtime.batch_rejects import BatchRejects
from headgate.runtime.errors import ComputationFailed, Fenced, SparkGone
from headgate.runtime.failures import is_of_spark, own_error, translated
from headgate.runtime.ports import (
    Batch,
    BatchResult,
    Chores,
    Input,
    InputRange,
    LedgerStore,
    Limit,
    Plan,
    Progress,
    Rejected,
    ReplanNeeded,
    RowRejects,
    Step,
    Target,
    Written,
)
from headgate.runtime.targets.errors import OutputIndivisible, OutputTooLarge, ProgressLost

log = logging.getLogger(__name__)

LEARN_TRIES = 3  # times that a batch is tried again because an input took up a new schema
ATTEMPTS = 3  # failed attempts at a range after which its mark is dropped and the batch halved

NO_MARK = Mark(None, 0)


class Task:
    """Moves rows from its inputs through its plan to its target. Used by one thread at a time."""

    def __init__(
        self,
        id_: int,
        name: str,
        inputs: Mapping[int, Input],
        plan: Plan,
        target: Target,
        store: LedgerStore,
        *,
        step: Step | None = None,
        rejects: RowRejects | None = None,
        begins_empty: bool = False,
        generation: int = 1,
        next_due: Callable[[float], float] | None = None,
        chores: Chores | None = None,
        stored_bytes: Callable[[], int | None] = lambda: None,
        told: Callable[[], str | None] = lambda: None,
        guard: Callable[[], None] = lambda: None,
        on_notice: Callable[[str], None] = lambda _: None,
        crash: Callable[[str, int], None] | None = None,
    ) -> None:
        """`step` brings the target in step when the plan is another one than that of the ledger; None for targets without a
        key, whose old rows stay. `rejects` finds the rows that the target cannot take. `begins_empty` says that the first batch is
        wanted even if there is nothing to read: a query may have rows then. `generation` is that of a target which is empty. `next_due` gives the time at which a batch is wanted without new
        input, after one that took so many seconds. `stored_bytes` is what the target's rows take. `told` is a
        sentence on how it works. `guard` is called before mark, write and commit, and raises if this engine may not write any more. `on_notice`
        is given sentences for the event log."""
        self.id = id_
        self.name = name
        self.inputs = inputs
        self.plan = plan
        self.target = target
        self.progress = Progress()
        # When a batch is wanted without new input, in seconds since 1970; None for no timer.
        self.due: float | None = None
        self.epoch = 0
        self.ledger: Ledger | None = None  # None: the progress is not known, and `begin` must find it
        self._store = store
        self._step = step
        self.rejects = rejects
        self._begins_empty = begins_empty
        self._generation = generation
        self._next_due = next_due
        self._chores = chores
        self._stored_bytes = stored_bytes
        self._told = told
        self._guard = guard
        self._on_notice = on_notice
        self._crash = crash or (lambda point, number: crash_point(point, id_, number))
        self._batch_rejects = BatchRejects(id_, store, self._crash)
        self._mark = NO_MARK
        self._counted = False  # whether the attempt under way is counted in the mark
        self._tried: Batch | None = None  # the batch of the attempt under way

    # Where it stands

    def begin(self) -> None:
        """Take over from earlier writers, and find out where to go on. Raises if an input cannot be read on from there."""
        self.ledger = None
        self.epoch = self._store.next_epoch(self.id)
        own = self._fence()
        stored = self._store.ledger(self.id)
        if own is None and self.target.commit == "own" and stored is not None and stored.number > 0:
            raise ProgressLost(f'"{self.name}"')
        ledger = own or stored or self._first_ledger()
        if ledger.positions.keys() != self.inputs.keys():
            ledger = self._ledger_of_other_inputs(ledger)
        if ledger != stored:
            self._store.advance(stored, ledger, None)
        for id_, position in ledger.positions.items():
            self.inputs[id_].check(position)
        self._mark = self._store.mark(self.id) or NO_MARK
        self.ledger = ledger
        self.progress.batch = ledger.number or None
        self.progress.stored_bytes = self._stored_bytes()
        self.due = None if self._next_due is None else time.time()

    def _fence(self) -> Ledger | None:
        """Only the holder of the lease begins tasks. A target with a larger epoch therefore means that the catalog was
        restored from a copy: the lease is raised above it once."""
        try:
            return self._begun_target()
        except Fenced as fenced:
            self._store.raise_epoch(fenced.held)
            self.epoch = self._store.next_epoch(self.id)
            self._on_notice(
                f"The target held epoch {fenced.held}, which is newer than the catalog's; the epoch is now {self.epoch}."
            )
            return self._begun_target()

    def _begun_target(self) -> Ledger | None:
        own = self.target.begin(self.epoch)
        if own is not None and own.epoch > self.epoch:
            raise Fenced("the target", f'"{self.name}"', own.epoch, self.epoch)
        return own

    def _first_ledger(self) -> Ledger:
        """Stored before the first batch. Otherwise nobody would miss records that are deleted before it."""
        first = {id_: input_.begin() for id_, input_ in self.inputs.items()}
        return Ledger(self.id, self._generation, 0, self.epoch, first, self.plan.definition)

    def _ledger_of_other_inputs(self, ledger: Ledger) -> Ledger:
        """The ledger of a task that is to read other relations than before. A keyed target is brought in step with all that
        they have now; any other one gets it as new rows."""
        if self._step is None:
            begun = self._first_ledger()
            return replace(begun, generation=ledger.generation + 1, number=ledger.number)
        return Ledger(
            self.id, ledger.generation + 1, ledger.number, self.epoch, self._step.input_ends(), ledger.definition
        )  # fmt: skip

    @property
    def positions(self) -> Positions:
        """Up to where the target has everything; empty while that is not known."""
        ledger = self.ledger  # a boundary may move it in another thread
        return {} if ledger is None else ledger.positions

    def lag(self, available: Positions) -> int | None:
        """How much of the inputs is not in the target yet, given their ends; None while that is not known."""
        return None if (ledger := self.ledger) is None else lag(ledger.positions, available)

    def has_work(self, available: Positions) -> bool:
        """Whether a batch would do something. True also while the progress is not known."""
        return self.lag(available) != 0 or self._is_out_of_step() or self._wants_first()

    def _wants_first(self) -> bool:
        """Whether the first batch is wanted, whatever there is to read."""
        return self._begins_empty and self.ledger is not None and self.ledger.number == 0

    def _is_out_of_step(self) -> bool:
        """Whether the target was written with another definition, and can be brought in step."""
        ledger = self.ledger
        return self._step is not None and ledger is not None and ledger.definition != self.plan.definition

    @property
    def chore_due(self) -> float | None:
        """When the next step of the target's chores is wanted."""
        return None if self._chores is None or self.ledger is None else self._chores.due

    def do_chore(self, session: SparkSession) -> None:
        self._guard()
        if self._chores is not None:
            self._chores.step(session)

    can_go_live = is_live = False  # whether it runs by itself, between two calls

    def finish(self, session: SparkSession, *, settle: bool = True) -> None:
        """Nothing is under way between two batches."""

    def settled(self, session: SparkSession) -> Task:
        """The task while nothing of it runs by itself."""
        return self

    def close(self) -> None:
        self.target.close()

    # A batch

    def run_batch(
        self, session: SparkSession, limit: Limit | None = None, available: Positions | None = None
    ) -> BatchResult | None:
        """Run one batch; None if there is nothing to read. `available` are the ends of the inputs as far as the caller
        knows them. Raises ReplanNeeded, or the HeadgateError that explains the failure."""
        for attempt in range(LEARN_TRIES + 1):
            try:
                return self._run(session, limit or Limit(), available or {})
            except ReplanNeeded:
                self._uncount_attempt()
                raise
            except Exception as error:
                if attempt < LEARN_TRIES and self._learned(error):
                    self._uncount_attempt()
                    continue
                raise self._failure(session, error) from error
        raise AssertionError("the last attempt returns or raises")

    def _learned(self, error: BaseException) -> bool:
        """Every input is asked, because a record may have a new schema on two sides."""
        learned = [input_.learn(error) for input_ in self.inputs.values()]
        return any(learned)

    def _run(self, session: SparkSession, limit: Limit, available: Positions) -> BatchResult | None:
        began = time.monotonic()
        self._counted, self._tried, self._batch_rejects.count = False, None, 0
        if self.ledger is None:
            self.begin()
        # First up to an open mark: the target may already have newer rows than those of the ledger.
        step = self._step if self._is_out_of_step() and self._mark.end is None else None
        batch = self._choose(session, limit, available) if step is None else self._step_batch(step)
        if batch is None:
            return None
        self._tried = batch
        self._crash("after_choose", batch.number)
        self._save_mark(batch)
        self._crash("after_mark", batch.number)
        if step is None:
            if not self._write(session, batch).committed:
                self._mark = NO_MARK
                self._wait(began)
                return None
        else:
            stored = partial(self._reject, session, batch, with_inputs=False)
            step.write(session, batch, self._known_ledger().definition, stored)
        self._crash("after_write", batch.number)
        self._commit(session, batch, with_inputs=step is None)
        self._crash("after_commit", batch.number)
        return self._finish(batch, available, began)

    def _choose(self, session: SparkSession, limit: Limit, available: Positions) -> Batch | None:
        ledger = self._known_ledger()
        if self._mark.attempts >= ATTEMPTS:
            self._drop_mark(f"{self._mark.attempts} attempts at it failed")
        limit = self.target.bounded(limit).halved(max(0, self._mark.attempts - ATTEMPTS + 1))
        mark = self._mark.end or {}
        end = {
            id_: self.inputs[id_].choose_end(session, start, limit, available.get(id_), mark.get(id_))
            for id_, start in ledger.positions.items()
        }
        is_due = self.due is not None and self.due <= time.time()
        if lag(ledger.positions, end) == 0 and not self._wants_first() and not is_due:
            return None
        if not reaches(end, mark):
            self._drop_mark("a record before its end halts the task, or its records are gone")
        return self._batch(end, ledger.definition if self._is_out_of_step() else self.plan.definition)

    def _step_batch(self, step: Step) -> Batch:
        """A batch without new records. The target has the new definition when the last of them is committed."""
        last = step.is_last(self.positions)
        return self._batch(self.positions, self.plan.definition if last else self._known_ledger().definition)

    def _batch(self, end: Positions, definition: str) -> Batch:
        ledger, now = self._known_ledger(), datetime.now(UTC)
        return Batch(self.id, ledger.generation, ledger.number + 1, self.epoch, ledger.positions, end, definition, now)

    def _drop_mark(self, reason: str) -> None:
        if self._mark.end is None:
            return
        self._mark = Mark(None, self._mark.attempts)
        self._store.save_mark(self.id, self._mark)
        self._on_notice(
            f"The end of an unfinished batch was given up because {reason}. "
            "A key may show an older value until the next batch."
        )

    def _save_mark(self, batch: Batch) -> None:
        """The attempt is counted durably, so that a batch that kills the engine is noticed too. For a target with its own
        ledger it is counted when it has failed (`_failure`), which saves a transaction of the catalog per batch."""
        self._guard()
        if self.target.commit == "catalog":
            self._store.save_mark(self.id, Mark(batch.end, self._mark.attempts + 1))
            self._mark = Mark(batch.end, self._mark.attempts + 1)
        else:
            self._mark = Mark(None, self._mark.attempts + 1)
        self._counted = True

    def _write(self, session: SparkSession, batch: Batch) -> Written:
        changes = {id_: input_.read(session, batch.start[id_], batch.end[id_]) for id_, input_ in self.inputs.items()}
        output = self.plan.compute(session, changes, batch)
        assert type(output) in self.target.takes, "the planner chose a form of changes that the target does not take"
        self._guard()
        return self.target.write(output, batch, lambda: self._reject(session, batch))

    def _commit(self, session: SparkSession, batch: Batch, *, with_inputs: bool) -> None:
        """For a target with its own ledger, the write was the commit, and the catalog only gets a copy for SHOW.

        ``with_inputs`` is false for a batch without new records, whose rejected records are stored already.
        """
        self._guard()
        ledger = self._known_ledger()
        new = Ledger(self.id, batch.generation, batch.number, batch.epoch, batch.end, batch.definition)
        self.ledger = None  # until the outcome is known
        if self.target.commit == "own":
            self._store.advance(self._store.ledger(self.id), new, None)
        else:
            found = self._rejected(session, batch, with_inputs=with_inputs)
            self._store.advance(ledger, new, *self._batch_rejects.for_ledger(batch, found))
        self.ledger = new
        self._mark = NO_MARK
        for id_, input_ in self.inputs.items():
            input_.release(batch.end[id_])

    @property
    def is_in_step(self) -> bool:
        """Whether all that the target has is known and of this plan, so that somebody else may write on from `positions`."""
        return self.ledger is not None and self._mark.end is None and not self._is_out_of_step()

    def advance(self, end: Positions) -> BatchResult:
        """Move the ledger to where somebody else, a streaming query, has written the output."""
        began, batch, ledger = time.monotonic(), self._batch(end, self.plan.definition), self._known_ledger()
        self._guard()
        self.ledger = None  # until the outcome is known
        new = Ledger(self.id, batch.generation, batch.number, batch.epoch, batch.end, batch.definition)
        self._store.advance(ledger, new)
        self.ledger, self._batch_rejects.count = new, 0
        self._crash("after_commit", batch.number)
        return self._finish(batch, {}, began)

    def _reject(self, session: SparkSession, batch: Batch, *, with_inputs: bool = True) -> None:
        self._batch_rejects.store(batch, self._rejected(session, batch, with_inputs=with_inputs))

    def _rejected(self, session: SparkSession, batch: Batch, *, with_inputs: bool) -> list[Rejected]:
        """What the inputs could not decode, and what could not be encoded for the target."""
        found = [input_.rejected() for input_ in self.inputs.values()] if with_inputs else []
        # While the target is brought in step, the parts before the last one count the same rows.
        whole = with_inputs or batch.definition == self.plan.definition
        return [*found, self.rejects.rejected(session)] if self.rejects is not None and whole else found

    def _wait(self, began: float) -> None:
        """Set the timer for the next batch that is wanted without new input."""
        if self._next_due is not None:
            self.due = self._next_due(time.monotonic() - began)

    def _finish(self, batch: Batch, available: Positions, began: float) -> BatchResult:
        self._wait(began)
        rows, seconds = lag(batch.start, batch.end), time.monotonic() - began
        left = lag(batch.end, available)
        progress = self.progress
        progress.batch, progress.last_commit = batch.number, datetime.now(UTC)
        progress.rows += rows
        progress.skipped += self._batch_rejects.count
        progress.batches += 1
        progress.batch_seconds += seconds
        progress.stored_bytes, progress.told = self._stored_bytes(), self._told()
        return BatchResult(batch.number, rows, seconds, batch.end, left > 0)

    # Failures

    def _failure(self, session: SparkSession, raised: BaseException) -> HeadgateError:
        """The error to show. What the target has is not known any more, so the next batch begins anew."""
        error = raised if self.rejects is None else self.rejects.explain(session, raised)
        error = self.target.explain(error)
        for id_, position in self.positions.items():
            error = self.inputs[id_].explain(error, position)
        error = translated(error) if is_of_spark(error) else error
        self.ledger = None
        if isinstance(error, ComputationFailed):
            error = self._located(session, error, raised)
        known = own_error(error, f'"{self.name}"')
        if isinstance(known, OutputTooLarge) and self._is_indivisible():
            known = OutputIndivisible(known.sink)
        # A batch that is too large for Spark's memory ends Spark, so that counts against it.
        if known.retryable and not isinstance(known, SparkGone | OutputTooLarge):
            self._uncount_attempt()
        elif self._counted and self.target.commit == "own":
            self._keep_mark()
        return known

    def _is_indivisible(self) -> bool:
        """Whether no batch is smaller than the one that was tried: it has a record of each partition, or reads a stored view."""
        tried = self._tried
        return tried is not None and all(is_smallest(tried.start[id_], end) for id_, end in tried.end.items())

    def _located(self, session: SparkSession, failed: ComputationFailed, raised: BaseException) -> ComputationFailed:
        if self._tried is None:
            return failed
        start, end = self._tried.start, self._tried.end
        ranges = {
            id_: InputRange(start[id_], end[id_], partial(input_.read, session)) for id_, input_ in self.inputs.items()
        }
        try:
            return self.plan.locate(session, failed, raised, ranges)
        except Exception:  # what failed is known, and that it cannot be said more exactly is no other failure
            log.exception("task %s: the record that cannot be computed was not found", self.name)
            return failed

    def _uncount_attempt(self) -> None:
        """An attempt that failed for an outage or a new schema says nothing against its range."""
        if not self._counted:
            return
        self._counted = False
        self._mark = Mark(self._mark.end, self._mark.attempts - 1)
        if self.target.commit == "catalog":
            self._keep_mark()

    def _keep_mark(self) -> None:
        try:
            self._store.save_mark(self.id, self._mark)
        except HeadgateError as error:
            log.warning("task %s: its mark was not stored: %s", self.name, error)

    def _known_ledger(self) -> Ledger:
        assert self.ledger is not None, "begin comes first"
        return self.ledger
