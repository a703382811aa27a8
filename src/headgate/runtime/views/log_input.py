"""The changes of a materialized view as the input of another task: a sink over it, or another view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from pyspark.sql import DataFrame, SparkSession, functions as F

from headgate.catalog.positions import LogPosition, Position
from headgate.catalog.tasks import Ledger
from headgate.plan.definitions import MaterializedDefinition
from headgate.runtime.ports import NOTHING_REJECTED, Append, Changes, Diff, Limit, Rejected, Upsert
from headgate.runtime.views.errors import ChangesTrimmed, ViewFilledAnew, ViewStorageGone
from headgate.runtime.views.store import WEIGHT, Pinned, ViewStore, each_once, repeated
from headgate.schema.render import spark_identifier

Form: TypeAlias = Literal["signed", "rows"]
"""Signed rows are for views. Sinks take rows: those that came, or the present rows of changed keys."""


class LogInput:
    """One view that a task reads. ``reached`` is the ledger of the view as the catalog knows it: it is never ahead of the
    storage, and costs no look at it."""

    watched = None  # the catalog knows the end

    def __init__(
        self,
        view: MaterializedDefinition,
        store: ViewStore,
        reached: Callable[[], Ledger | None],
        form: Form,
        reader: str,
    ) -> None:
        self.view = view
        self.store = store
        self._reached = reached
        self._form = form
        self._reader = reader

    @property
    def known_end(self) -> LogPosition | None:
        reached = self._reached()
        return None if reached is None else LogPosition(self.view.id, reached.generation, reached.number)

    def begin(self) -> LogPosition:
        """The first batch of a reader takes the view as it is by then."""
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
        if reached is None or reached.number <= begin.number:
            return begin
        return LogPosition(self.view.id, reached.generation, reached.number)

    def read(self, session: SparkSession, start: Position, end: Position) -> Changes:
        """Before its first batch a view has no rows, and may have no storage. What a reader has not begun to read is taken
        from the rows as they are at the end: the log may not go back so far."""
        begin, until = _log(start), _log(end)
        if until.number == 0:
            stored = self.store.nothing_stored(session)
        elif begin.number == 0:
            stored = self.store.rows(session, self.pin(session), until.number)
        else:
            pinned = self.pin(session)
            if pinned.snapshot is not None and begin.number < pinned.snapshot.trimmed:
                raise ChangesTrimmed(self.view.name, self._reader)
            stored = self.store.changes(session, pinned.head, begin.number, until.number)
        signed = _summed(self.store.visible(stored), skip=self.view.stored_grows)
        if self._form == "signed":
            return Diff(each_once(signed), self.view.key)
        rows = repeated(signed)
        if self.view.appends:
            return Append(rows)
        key = self.view.key
        assert key is not None, "a sink over a view without a key is refused"
        return Upsert(rows, key, signed.select(*map(spark_identifier, key)).distinct())

    def rows(self, session: SparkSession, position: Position) -> DataFrame:
        """The rows of the view after a batch; none before the first."""
        number = _log(position).number
        return self.store.nothing(session) if number == 0 else self.store.shown(session, self.pin(session), number)

    def pin(self, session: SparkSession) -> Pinned:
        pinned = self.store.pin(session)
        if pinned is None:
            raise ViewStorageGone(self.view.name, self.store.folder)
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


def _summed(signed: DataFrame, *, skip: bool) -> DataFrame:
    """Rows that differ only in hidden columns may have come and gone: the visible ones are added up once more."""
    if skip:
        return signed
    names = [spark_identifier(name) for name in signed.columns if name != WEIGHT]
    return signed.groupBy(*names).agg(F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) != 0)
