"""An index of Elasticsearch or OpenSearch as the target of a task. The catalog keeps the ledger.

A document has the number of its batch as its version, so that writing a batch again ends in the same documents. The write
alias of the epoch (`search_index`) keeps older engines out. Rows come to the driver, which sends them in bulks: a batch is
bounded by what it takes of the driver's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions as F

from headgate.catalog.positions import KafkaPosition, KafkaRecord, Positions, lag
from headgate.connectors.elasticsearch import SearchClient
from headgate.crash_points import crash_point, is_armed
from headgate.plan.definitions import AT, DefinitionName
from headgate.plan.target_definitions import Fields, IndexDefinition, TargetField
from headgate.runtime.failures import result_is_too_large
from headgate.runtime.ports import Append, Batch, Changes, Diff, Ledger, Limit, Upsert, Written
from headgate.runtime.target_rows import pieces
from headgate.runtime.targets.errors import FieldsIncompatible, IndexTaken, OutputTooLarge, RowRefused
from headgate.runtime.targets.kafka import BAD_ROW
from headgate.runtime.targets.search_bulk import BulkWriter, Conflict, Item, RefusedItem, delete_lines, index_lines
from headgate.runtime.targets.search_documents import DOCUMENT, ID, LONGEST_ID, PROBLEM, IndexDocuments
from headgate.runtime.targets.search_index import SearchIndex, release_index
from headgate.schema.names import ROOT, field_path, internal_name
from headgate.schema.values import dumps

MOST_BYTES = 64 << 20  # of a batch: its documents are in the driver's memory while they are sent
PIECES_OF = 100_000  # rows of a piece, if nobody knows how large a batch is
PIECE_ROWS = 10_000  # rows that are Python objects at one time

POSITION = internal_name("position")


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that is no document of the index. ``record`` is None if the row has no position; ``id`` finds it then."""

    id: str
    reason: str
    path: str | None
    expected: str | None
    record: KafkaRecord | None = None
    time: datetime | None = None


class RowsRejected(Exception):
    """Rows that cannot be written, under HALT. The message is the one by which such rows are known."""

    def __init__(self, rows: Sequence[RejectedRow]) -> None:
        super().__init__(BAD_ROW)
        self.rows = rows


class SearchTarget:
    """The index of a materialization. Documents become visible bulk by bulk, and to searches at the next refresh.

    ``ledger`` is that of the catalog: the index is made only if nothing was committed yet. ``name`` is that of the definition by which
    the task writes. ``is_unfinished`` says whether an earlier attempt at the next batch may have written documents. ``in_pieces``
    says that nobody knows how large a batch is. ``is_dropped`` says whether the catalog has dropped the task.

    Rows of an append relation have the column `AT`, whose position makes their `_id`. Those of a materialized view have the number of
    the batch and their place in it: a re-run has all rows of the attempt before, so it writes all of its ids again.
    """

    takes: frozenset[type[Changes]] = frozenset({Append, Upsert})
    commit: Literal["own", "catalog"] = "catalog"
    atomic = False  # whether the documents of a batch become visible together
    keyed = True  # a document that is written again replaces the one before it, with or without a key of its relation
    strict = False  # whether a row that does not fit fails the write whatever ON ERROR says

    def __init__(
        self,
        definition: IndexDefinition,
        client: SearchClient,
        task: str,
        ledger: Callable[[], Ledger | None] = lambda: None,
        is_unfinished: Callable[[], bool] = lambda: False,
        *,
        name: str = "",
        in_pieces: bool = False,
        is_dropped: Callable[[], bool] = lambda: False,
        on_notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.definition = definition
        self.documents = IndexDocuments(definition)
        self.index = SearchIndex(client, definition, task, on_notice)
        self.rejected: Sequence[RejectedRow] = ()  # rows that were left out of what was written last
        self.refused: Sequence[RejectedRow] = ()  # those of them that the index has refused
        self._client = client
        self._ledger = ledger
        self._name = name
        self._is_unfinished = is_unfinished
        self._in_pieces = in_pieces
        self._is_dropped = is_dropped
        self._leftovers = False  # whether there may be documents of an earlier attempt at the next batch
        self._task = task
        self._migrated = False
        self._row_bytes = 0.0  # of the output, for each row of the input

    def begin(self, epoch: int) -> Ledger | None:
        ledger = self._ledger()
        if ledger is None or ledger.number == 0 or self._is_filled_anew(ledger):  # somebody may have deleted it
            self.index.provision()
        self.index.begin(epoch)
        if self._is_dropped():  # DROP may have given the index up before it was made
            release_index(self._client, self.definition.index, self._task, drop=False)
            raise IndexTaken(self.definition.index, self.definition.name)
        self._migrated = False
        self._leftovers = self._is_unfinished()
        return None if ledger is None else self._ledger_to_fill_anew(ledger)

    def _ledger_to_fill_anew(self, ledger: Ledger) -> Ledger | None:
        """The ledger without a definition, if documents do not fit the fields any more: the task then writes them anew, and the first
        write empties the index. None if they fit, or if a statement has asked for new documents already."""
        narrowed, definition = self.index.narrowed(), self.definition
        if not narrowed or (self._is_filled_anew(ledger) and not self.index.adopted):
            return None
        if self.index.adopted or definition.on_incompatible not in (None, "BACKFILL"):
            disables = definition.on_incompatible in ("DISABLE TASK", "DISABLE BINDING")
            raise FieldsIncompatible(definition.name, definition.index, narrowed, disables)
        return replace(ledger, definition="")

    def _is_filled_anew(self, ledger: Ledger) -> bool:
        """Whether a statement has asked for all documents to be written again, which has not come about yet."""
        return DefinitionName.of(ledger.definition).keys != DefinitionName.of(self._name).keys

    def bounded(self, limit: Limit) -> Limit:
        """The rows of a batch are in memory, so it has a bound for its output too, as far as earlier batches tell."""
        rows = limit.rows if self._row_bytes == 0 else min(limit.rows, int(MOST_BYTES / self._row_bytes))
        return Limit(max(1, rows), min(limit.bytes, MOST_BYTES))

    # A batch

    def write(self, changes: Changes, batch: Batch, before_commit: Callable[[], None]) -> Written:
        return self.write_rows(self.rows(changes), batch)

    def rows(self, changes: Changes) -> DataFrame:
        """The documents of some changes: `_id`, the JSON text or NULL for a deletion, what is wrong with the row if something
        is, and its position if it has no key."""
        documents = self.documents
        match changes:
            case Append(rows) if AT not in rows.columns:
                return documents.frame(rows)
            case Append(rows):
                at = F.col(AT)
                time = F.unix_micros(at["timestamp"]).alias("time")
                position = F.struct(at["topic"], at["partition"], at["offset"], time)
                return documents.frame(rows, position.alias(POSITION))
            case Upsert(rows, _, _, marked=True):
                return documents.frame(rows, marked=True)
            case Upsert(rows, _, None):
                return documents.frame(rows)
            case Upsert(rows, _, changed):
                assert changed is not None
                return documents.frame(rows).unionAll(documents.keys(changed))
            case Diff():
                raise AssertionError("an index takes no signed changes")

    def write_rows(self, rows: DataFrame | None, batch: Batch) -> Written:
        """Write the frame of `rows`; None for a batch that has none. Under HALT nothing is written if a row has a problem that
        is known before."""
        self._migrate(batch.number)
        self.rejected = self.refused = ()
        if rows is None:
            return Written(0)
        count = 0
        for table in self._tables(rows):
            self._measure(table, lag(batch.start, batch.end))
            if is_armed("in_write", batch.task, batch.number):
                half = table.slice(0, max(1, table.num_rows // 2))
                self._write(half, batch.number, batch.end)
                crash_point("in_write", batch.task, batch.number)
            self._write(table, batch.number, batch.end, count)
            count += table.num_rows
        self._remove_leftovers(batch, count)
        return Written(count - len(self.rejected))

    def _tables(self, rows: DataFrame) -> Iterator[pa.Table]:
        if not self._in_pieces:
            yield rows.toArrow()
            return
        for piece in pieces(rows, PIECES_OF, (ID,) if self.definition.key else (DOCUMENT,)):
            yield piece.toArrow()

    def _remove_leftovers(self, batch: Batch, count: int) -> None:
        """Delete what an earlier attempt at the batch wrote and this one did not: the query may give fewer rows by now, or some of them
        may not fit any more. Documents with a key, or the position of a record, are known by these."""
        leftovers, self._leftovers = self._leftovers, False
        if not leftovers or not self._in_pieces or self.definition.key:
            return
        begin = self._ordinal_id(batch.number, "")
        bad = {row.id for row in self.rejected}
        written = {id_ for number in range(count) if (id_ := self._ordinal_id(batch.number, number)) not in bad}
        held = (hit.id for hit in self._client.documents(self.index.refreshed(), sources=False))
        self.delete([id_ for id_ in held if id_.startswith(begin) and id_ not in written], batch)

    def _ordinal_id(self, number: int, ordinal: int | str) -> str:
        return f"{self._task}.{number}.{ordinal}"

    def send(self, rows: DataFrame, ledger: Ledger | None) -> None:
        """Write rows that belong to no batch, as the last one would have written them."""
        assert ledger is not None, "records are replayed between two batches"
        self._migrate(ledger.number)
        self._write(rows.toArrow(), ledger.number, ledger.positions)

    def _migrate(self, number: int) -> None:
        """Before the first write of this target: its definition does not change."""
        if not self._migrated:
            self.index.migrate(number)
            self._migrated = True

    def _write(self, table: pa.Table, number: int, positions: Positions, before: int = 0) -> None:
        """Write a piece of a batch. ``before`` is how many rows the pieces before it had."""
        records = self._placed(table, number, positions, before)
        bad = list(_problems(table, records))
        if bad and self._halts:
            raise RowsRejected(bad)
        refused = self._send(table, records, self.index.base + number)
        self.refused = [*(self.refused if before else ()), *refused]
        self.rejected = [*(self.rejected if before else ()), *bad, *refused]
        if refused and self._halts:
            raise RowsRejected(refused)

    def _placed(self, table: pa.Table, number: int, positions: Positions, before: int) -> Sequence[_Placed] | None:
        """What makes the `_id` of rows without a key; None for rows that have one."""
        if POSITION in table.column_names:
            return list(_positions(table, positions))
        if self.definition.key:
            return None
        return [_Placed(self._ordinal_id(number, before + row)) for row in range(table.num_rows)]

    @property
    def _halts(self) -> bool:
        return self.strict or self.definition.on_error == "HALT"

    def delete(self, ids: Iterable[str], batch: Batch) -> None:
        """Delete documents by their ids, as a part of a batch."""
        version = self.index.base + batch.number
        self._settle(Item(id_, delete_lines(id_, version)) for id_ in ids)

    def _measure(self, table: pa.Table, read: int) -> None:
        """How much output a row of the input makes. It is forgotten slowly, as one large batch is enough to fill the memory."""
        if read > 0:
            self._row_bytes = max(table.nbytes / read, self._row_bytes * 0.9)

    def _send(self, table: pa.Table, records: Sequence[_Placed] | None, version: int) -> list[RejectedRow]:
        """Write and delete documents. Returns the rows that the index refuses."""
        refused = self._settle(_items(table, records, version))
        placed = {} if records is None else {one.id: one for one in records}
        return [self._rejected_row(one, placed.get(one.id)) for one in refused]

    def _settle(self, items: Iterable[Item]) -> list[RefusedItem]:
        try:
            return BulkWriter(self._client, self.index.alias).write(items)
        except Conflict as conflict:
            raise self.index.fenced() from conflict

    def _rejected_row(self, item: RefusedItem, placed: _Placed | None) -> RejectedRow:
        path = None if item.field is None else source_path(self.definition.fields, item.field.split("."))
        where = (None, None) if placed is None else (placed.record, placed.time)
        return RejectedRow(item.id, item.reason, path, item.expected, *where)

    # What it holds, failures, and the end

    def contents(self, session: SparkSession) -> Upsert:
        """The `_id` and the JSON text of every document."""
        hits = [(hit.id, dumps(dict(hit.source))) for hit in self._client.documents(self.index.refreshed())]
        return Upsert(session.createDataFrame(hits, f"`{ID}` string, `{DOCUMENT}` string"), (ID,))

    def ids(self, session: SparkSession) -> DataFrame:
        """The `_id` of every document, which the driver holds."""
        ids = pa.array((hit.id for hit in self._client.documents(self.index.refreshed(), sources=False)), pa.string())
        return session.createDataFrame(pa.table({ID: ids}))

    def explain(self, error: BaseException) -> BaseException:
        if isinstance(error, RowsRejected):
            return self.refusal(error.rows[0])
        return OutputTooLarge(self.definition.name) if result_is_too_large(error) else error

    def refusal(self, row: RejectedRow) -> RowRefused:
        """The error that halts the task for a row."""
        about = (self.definition.name, row.reason, row.path, row.expected)
        record = row.record
        if record is None:
            return RowRefused(*about)
        return RowRefused(*about, record.topic, record.partition, record.offset)

    def close(self) -> None:
        """The client belongs to the connection."""


def source_path(fields: Fields, names: Sequence[str]) -> str | None:
    """Where the value of a field comes from, as other errors of a row say it. None if no field of a document has these names: a
    member of a map has a name that comes from the data, which no error shows."""
    found: TargetField | None = None
    for name in names:
        inner = next((field for field in fields if field.name == name), None)
        if inner is None:
            break
        found, fields = inner, inner.fields
    if found is None or found.path is None:
        return None
    path = ROOT
    for step in found.path.tokens:
        path = field_path(path, step)
    return path


@dataclass(frozen=True, slots=True)
class _Placed:
    """The `_id` of a row without a key, and the position that it comes from; a row of a materialized view has none."""

    id: str
    record: KafkaRecord | None = None
    time: datetime | None = None


def _positions(table: pa.Table, positions: Positions) -> Iterator[_Placed]:
    """The positions of all rows. A record that gives several rows gives them in the same order each time, so that they are
    numbered."""
    ids = {p.topic: p.topic_id for p in positions.values() if isinstance(p, KafkaPosition)}
    seen: dict[tuple[str, int, int], int] = {}
    for piece in table.column(POSITION).chunks:
        for row in piece.to_pylist():
            place = row["topic"], row["partition"], row["offset"]
            ordinal = seen[place] = seen.get(place, -1) + 1
            topic, partition, offset = place
            id_ = f"{ids.get(topic, topic)}.{partition}.{offset}.{ordinal}"
            time = datetime.fromtimestamp(row["time"] / 1e6, UTC)
            yield _Placed(id_, KafkaRecord(topic, partition, offset, ids.get(topic)), time)


def _problems(table: pa.Table, records: Sequence[_Placed] | None) -> Iterator[RejectedRow]:
    """The rows that cannot be documents."""
    problems = table.column(PROBLEM)
    if problems.null_count == table.num_rows:
        return
    ids = table.column(ID).to_pylist()
    for number, problem in enumerate(problems.to_pylist()):
        if problem is None:
            continue
        placed = None if records is None else records[number]
        where = (None, None) if placed is None else (placed.record, placed.time)
        id_ = ids[number] if placed is None else placed.id
        yield RejectedRow(id_, problem["reason"], problem["path"], problem["expected"] or None, *where)


def _items(table: pa.Table, records: Sequence[_Placed] | None, version: int) -> Iterator[Item]:
    """Documents first, then deletions of keys that have no row. A row with a problem is neither written nor deleted."""
    deleted: list[str] = []
    present: set[str] = set()
    number = 0
    for piece in table.select([ID, DOCUMENT, PROBLEM]).to_batches(PIECE_ROWS):
        ids, valid = piece.column(0).to_pylist(), piece.column(2).is_null().to_pylist()
        documents = piece.column(1).cast(pa.large_binary()).to_pylist()
        for id_, document, good in zip(ids, documents, valid, strict=True):
            if records is not None:
                id_ = records[number].id
            number += 1
            if document is not None:
                present.add(id_)
                yield Item(id_, index_lines(id_, version, document))
            elif good:
                deleted.append(id_)
            else:
                present.add(id_)
    for id_ in deleted:
        if id_ not in present and len(id_.encode()) <= LONGEST_ID:
            yield Item(id_, delete_lines(id_, version))
