"""The changes of a materialized view as the input of another task: a sink over it, or another view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from pyspark.sql import DataFrame, SparkSession, functions as F

from headgate.catalog.positions import LogPosition, Position, distance
from headgate.catalog.tasks import Ledger
from headgate.plan.definitions import MaterializedDefinition
from headgate.runtime.ports import NOTHING_REJECTED, Append, Changes, Diff, Limit, Rejected, Upsert
from headgate.runtime.views.errors import ChangesTrimmed, ViewFilledAnew, ViewStorageGone
from headgate.runtime.views.signed import WEIGHT, each_once, repeated, summed
from headgate.runtime.views.store import Pinned, ViewStore
from headgate.schema.render import spark_identifier

Form: TypeAlias = Literal["signed", "rows"]
"""Signed rows are for views. Sinks take rows: those that came, or the present rows of changed keys."""


class LogInput:
    """One view that a task reads. ``stores`` gives the storage of one of its generations. ``reached`` is the ledger of the view
    as the catalog knows it: it is never ahead of the storage, and costs no look at it. ``start`` is where a reader begins that does
    not want the rows which the view had by then.

    A view whose query was replaced has another generation. A reader goes on with what differs between the two.
    """

    watched = None  # the catalog knows the end

    def __init__(
        self,
        view: MaterializedDefinition,
        stores: Callable[[int], ViewStore],
        reached: Callable[[], Ledger | None],
        form: Form,
        reader: str,
        start: LogPosition | None = None,
    ) -> None:
        self.view = view
        self.stores = stores
        self._reached = reached
        self._form = form
        self._reader = reader
        self._start = start

    @property
    def known_end(self) -> LogPosition | None:
        reached = self._reached()
        return None if reached is None else LogPosition(self.view.id, reached.generation, reached.number)

    def begin(self) -> LogPosition:
        """The first batch of a reader takes the view as it is by then, unless the reader begins later."""
        return self._start or self.first

    @property
    def first(self) -> LogPosition:
        """From here on a reader gets all rows."""
        return LogPosition(self.view.id, 1, 0)

    def check(self, position: Position) -> None:
        known, reached = _log(position), self._reached()
        if known.number == 0:
            return
        if reached is None or (reached.generation, reached.number) < (known.generation, known.number):
            raise ViewFilledAnew(self.view.name, self._reader)

    def choose_end(
        self, session: SparkSession, start: Position, limit: Limit, available: Position | None, mark: Position | None
    ) -> LogPosition:  # fmt: skip
        begin, reached = _log(start), self._reached()
        if reached is None:
            return begin
        end = LogPosition(self.view.id, reached.generation, reached.number)
        return end if distance(begin, end) > 0 else begin

    def read(self, session: SparkSession, start: Position, end: Position) -> Changes:
        """What a reader has not begun to read is taken from the rows as they are at the end: the log may not go back so far."""
        begin, until = _log(start), _log(end)
        if begin.number == 0:
            signed = self._all_rows(session, until)
        elif begin.generation != until.generation:
            gone = self._all_rows(session, begin)
            signed = self._all_rows(session, until).unionAll(gone.withColumn(WEIGHT, -F.col(WEIGHT)))
        else:
            signed = self._changed_rows(session, begin, until)
        grows = self.view.stored_grows and (begin.number == 0 or begin.generation == until.generation)
        # The rows of one batch do not cancel, but for those that differ in hidden columns.
        one_batch = begin.generation == until.generation and until.number == begin.number + 1
        plain = one_batch and not any(column.hidden for column in self.view.stored)
        signed = summed(signed, skip=grows or (plain and self._form == "signed"))
        if self._form == "signed":
            # Rows that only come are stored with the weight 1.
            return Diff(signed if grows else each_once(signed), self.view.key)
        rows = repeated(signed)
        if self.view.appends:
            return Append(rows)
        key = self.view.key
        assert key is not None, "a sink over a view without a key is refused"
        return Upsert(rows, key, signed.select(*map(spark_identifier, key)).distinct())

    def _all_rows(self, session: SparkSession, position: LogPosition) -> DataFrame:
        """The signed rows of the view after a batch. Before its first batch a view has none, and may have no storage."""
        store = self.stores(position.generation)
        if position.number == 0:
            return store.visible(store.nothing_stored(session))
        return store.visible(store.signed_rows(session, self._pin(session, store, position), position.number))

    def _changed_rows(self, session: SparkSession, begin: LogPosition, until: LogPosition) -> DataFrame:
        store = self.stores(until.generation)
        pinned = self._pin(session, store, begin, until)
        return store.visible(store.changes(session, pinned.head, begin.number, until.number))

    def is_small(self, start: Position, end: Position) -> bool:
        """Whether the changes between two positions are few and at hand."""
        begin, until = _log(start), _log(end)
        if begin.generation != until.generation and begin.number > 0:
            return False
        return begin.number == until.number or self.stores(until.generation).has_at_hand(begin.number, until.number)

    def rows(self, session: SparkSession, position: Position) -> DataFrame:
        """The rows of the view after a batch; none before the first."""
        known = _log(position)
        store = self.stores(known.generation)
        if known.number == 0:
            return store.nothing(session)
        return store.shown(session, self._pin(session, store, known), known.number)

    def _pin(self, session: SparkSession, store: ViewStore, *positions: LogPosition) -> Pinned:
        """The present state of the view, from which its rows at these positions are known."""
        pinned = store.pin(session)
        if pinned is None:
            raise ViewStorageGone(self.view.name, store.folder)
        if not all(pinned.has_batch(position.number) for position in positions):
            raise ChangesTrimmed(self.view.name, self._reader)
        return pinned

    def rejected(self) -> Rejected:
        return NOTHING_REJECTED

    def accepted(self) -> None:
        """There are no records to look at again."""

    def learn(self, error: BaseException) -> bool:
        return False

    def explain(self, error: BaseException, position: Position) -> BaseException:
        return error

    def release(self, position: Position) -> None:
        """The log is trimmed by the view's own task, which knows its readers by their ledgers."""


def _log(position: Position) -> LogPosition:
    assert isinstance(position, LogPosition), "a view was given the position of another kind of input"
    return position
