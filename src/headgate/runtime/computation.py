"""Which expression failed, and at which record. Spark says only what is wrong, and for some functions where in its SQL.

Everything here happens after a failure. The record is found by computing parts of what failed once more, each time a half
of what is left, in a bounded time. If there is not enough time, the error goes without the record.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, functions as F

from headgate.catalog.positions import KafkaPosition, KafkaRecord, distance
from headgate.plan.definitions import ExpressionText, QueryDefinition, Relations, SourceDefinition, ViewDefinition
from headgate.runtime.errors import ComputationFailed
from headgate.runtime.failures import translated
from headgate.schema.render import spark_identifier

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ComputedQuery:
    """A query that takes part in what failed. ``view`` is None for the statement itself, ``relation`` the view's id."""

    query: QueryDefinition
    columns: tuple[str, ...]
    view: str | None = None
    relation: int | None = None


@dataclass(frozen=True, slots=True)
class Rerun:
    """How to compute a part of what failed once more: the rows of a query over the records from one position to another.

    ``last_per_key`` says that only the last record of each key counts.
    """

    start: KafkaPosition
    end: KafkaPosition
    last_per_key: bool
    rows: Callable[[ComputedQuery, KafkaPosition, KafkaPosition], DataFrame]


def queries_below(relations: Relations, ids: Sequence[int]) -> Iterator[ComputedQuery]:
    """The queries of the views among these relations and below them, each once, the upper ones first."""
    seen: set[int] = set()
    waiting = list(ids)
    while waiting:
        id_ = waiting.pop(0)
        relation = relations[id_]
        if isinstance(relation, ViewDefinition) and id_ not in seen:
            seen.add(id_)
            yield ComputedQuery(relation.query, relation.columns, relation.name, id_)
            waiting += relation.query.relations


def only_source(relations: Relations, queries: Sequence[ComputedQuery]) -> SourceDefinition | None:
    """The source whose records are computed one by one; None if a row depends on more than one record."""
    sources = [relation for relation in relations.values() if isinstance(relation, SourceDefinition)]
    one_by_one = len(sources) == 1 and all(each.query.row_by_row for each in queries)
    return sources[0] if one_by_one else None


def located(
    failed: ComputationFailed,
    error: BaseException,
    queries: Sequence[ComputedQuery],
    rerun: Rerun | None,
    seconds: float,
    rows: DataFrame | None = None,
) -> ComputationFailed:
    """The same error, with the expression and the record as far as they can be found. ``error`` is what Spark raised, and
    ``queries`` begin with the one whose rows were wanted. ``rows`` are all of these rows, where no single record can be computed."""
    place = _place(error, queries)
    record = None
    tries = _Tries(time.monotonic() + seconds)
    try:
        if rerun is not None:
            search = _Search(queries, rerun, tries)
            record, again = search.record()
            place = place or _place(again, queries) or search.place(record)
        elif place is None and rows is not None:  # Spark names no piece of SQL for a sum that is too large
            place = _failing_column(queries[0], rows, tries)
    except _NotFound as reason:
        log.info("the record that cannot be computed was not found: %s", reason)
    return _named(failed.reason, place, record)


@dataclass(frozen=True, slots=True)
class _Place:
    query: ComputedQuery
    expression: ExpressionText | None
    column: int | None


def _named(reason: str, place: _Place | None, record: KafkaRecord | None) -> ComputationFailed:
    expression = None if place is None or place.expression is None else place.expression.text
    column = None if place is None or place.column is None else place.query.columns[place.column]
    view = None if place is None else place.query.view
    if record is None:
        return ComputationFailed(reason, expression, column, view)
    return ComputationFailed(reason, expression, column, view, record.topic, record.partition, record.offset)


def _place(error: BaseException, queries: Sequence[ComputedQuery]) -> _Place | None:
    """The smallest expression around the piece of SQL that Spark names."""
    for start, end, piece in _pieces(error):
        for query in queries:
            if query.query.sql[start:end] != piece:
                continue
            around = [each for each in query.query.expressions if each.start <= start and end <= each.end]
            if around:
                smallest = min(around, key=lambda each: each.end - each.start)
                return _Place(query, smallest, smallest.column)
    return None


def _pieces(error: BaseException) -> Iterator[tuple[int, int, str]]:
    """Where in the SQL that it was given Spark failed. Spark is asked for it, and may be dead by then."""
    try:
        for context in (error.getQueryContext() or ()) if isinstance(error, PySparkException) else ():
            yield context.startIndex(), context.stopIndex() + 1, context.fragment()
    except Exception as failure:  # noqa: BLE001 - py4j has several; a context of a DataFrame has no indices
        log.debug("Spark did not say where it failed: %s", type(failure).__name__)


def failure_of(frame: DataFrame) -> BaseException | None:
    """What Spark raises for a value of the frame that cannot be computed; None if all can. Other errors are raised."""
    try:
        frame.write.format("noop").mode("append").save()
    except Exception as error:
        if isinstance(translated(error), ComputationFailed):
            return error
        raise
    return None


class _NotFound(Exception):
    """The search was given up, for the reason in its message."""


class _Tries:
    """Computes frames to see whether they fail, until a deadline."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline

    def failure(self, frame: DataFrame) -> BaseException | None:
        """What computing the frame raises; None if it can be computed."""
        if time.monotonic() > self._deadline:
            raise _NotFound("it took too long")
        try:
            return failure_of(frame)
        except Exception as error:
            raise _NotFound(translated(error).code) from error

    def column(self, rows: DataFrame, names: Sequence[Column], used: Sequence[int]) -> int:
        """The first of the columns that fails, given that one of them does."""
        while len(used) > 1:
            half = used[: len(used) // 2]
            failed = self.failure(rows.select(*[names[n] for n in half])) is not None
            used = half if failed else used[len(half) :]
        return used[0]


def _failing_column(query: ComputedQuery, rows: DataFrame, tries: _Tries) -> _Place | None:
    """The column of a query that cannot be computed, each over all rows; None if they all can, so that a condition fails."""
    names = _columns(rows)
    if tries.failure(rows.select(*names)) is None or tries.failure(rows.select(F.lit(1))) is not None:
        return None
    column = tries.column(rows, names, range(len(names)))
    return _Place(query, _expression(query, column), column)


def _columns(rows: DataFrame) -> list[Column]:
    return [F.col(spark_identifier(name)) for name in rows.columns]


class _Search:
    """Looks for the record that cannot be computed. Positions are counted over all partitions, one after the other."""

    def __init__(self, queries: Sequence[ComputedQuery], rerun: Rerun, tries: _Tries) -> None:
        self._queries = queries
        self._rerun = rerun
        self._tries = tries

    def record(self) -> tuple[KafkaRecord, BaseException]:
        """The record, and what Spark raised for it alone."""
        at = self._last_of_its_key() if self._rerun.last_per_key else self._first()
        error = self._tries.failure(self._rows(at, at + 1))
        if error is None:
            raise _NotFound("no record alone fails")
        return self._record_at(at), error

    def _first(self) -> int:
        """The first record that fails. What is before ``low`` does not fail."""
        low, high = 0, distance(self._rerun.start, self._rerun.end)
        while high - low > 1:
            middle = (low + high) // 2
            if self._tries.failure(self._rows(low, middle)) is None:
                low = middle
            else:
                high = middle
        return low

    def _last_of_its_key(self) -> int:
        """The last record that fails. A record before it may be replaced by a later one of its key; therefore always all up to
        the end is computed, so that only records count that are the last of their key."""
        all_ = distance(self._rerun.start, self._rerun.end)
        low, high = 0, all_
        while high - low > 1:
            middle = (low + high) // 2
            if self._tries.failure(self._rows(middle, all_)) is None:
                high = middle
            else:
                low = middle
        if low == 0 and self._tries.failure(self._rows(0, all_)) is None:
            raise _NotFound("all records together do not fail")
        return low

    def place(self, record: KafkaRecord) -> _Place | None:
        """The column that fails for the record, of the lowest view that fails. Needed for functions of which Spark does not
        say where they stand."""
        start, end = self._around(record)
        found, above = None, None
        for query in self._queries:
            used = [n for n, name in enumerate(query.columns) if above is None or f"`{name}`" in above.query.sql]
            rows = self._rerun.rows(query, start, end)
            names = _columns(rows)
            if not used or self._tries.failure(rows.select(*[names[n] for n in used])) is None:
                break
            in_condition = self._tries.failure(rows.select(F.lit(1))) is not None
            column = None if in_condition else self._tries.column(rows, names, used)
            found, above = _Place(query, _expression(query, column), column), query
        return found

    def _rows(self, low: int, high: int) -> DataFrame:
        return self._rerun.rows(self._queries[0], self._position(low), self._position(high))

    def _position(self, count: int) -> KafkaPosition:
        """The position behind so many records."""
        begin, offsets = self._rerun.start.by_partition, []
        for partition, last in enumerate(self._rerun.end.offsets):
            first = begin.get(partition, 0)
            taken = min(count, max(0, last - first))
            offsets.append(first + taken)
            count -= taken
        return replace(self._rerun.end, offsets=tuple(offsets))

    def _record_at(self, count: int) -> KafkaRecord:
        before, after = self._position(count).offsets, self._position(count + 1).offsets
        partition = next(p for p, offset in enumerate(after) if offset > before[p])
        return KafkaRecord(self._rerun.end.topic, partition, before[partition])

    def _around(self, record: KafkaRecord) -> tuple[KafkaPosition, KafkaPosition]:
        begin = self._rerun.start.by_partition
        before = [begin.get(p, 0) for p in range(len(self._rerun.end.offsets))]
        before[record.partition] = record.offset
        after = list(before)
        after[record.partition] += 1
        return replace(self._rerun.end, offsets=tuple(before)), replace(self._rerun.end, offsets=tuple(after))


def _expression(query: ComputedQuery, column: int | None) -> ExpressionText | None:
    """The whole expression of a column. A query may have several conditions; then none of them is named."""
    found = [each for each in query.query.expressions if each.column == column]
    outer = [
        each for each in found if not any(o is not each and o.start <= each.start and each.end <= o.end for o in found)
    ]
    return outer[0] if len(outer) == 1 else None
