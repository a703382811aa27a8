"""INSERT: turns rows into records and writes them before the statement ends."""

from __future__ import annotations

import decimal
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from headgate.catalog.catalog import Catalog
from headgate.catalog.objects import Object
from headgate.connectors.connections import ConnectionRef, Connections
from headgate.connectors.kafka_rows import Record
from headgate.control.sessions import Done, JsonRows, Notice, Result, ResultRows
from headgate.plan import plans
from headgate.plan.definitions import RecordEncoding
from headgate.plan.insert import checked_row, from_result, insert_columns, insert_target, who
from headgate.plan.reading import written_sides
from headgate.plan.record_times import known_time
from headgate.resolve.statements import kafka_server, topic_name
from headgate.resolve.stream_errors import RowUnwritable
from headgate.resolve.streams import read_statement
from headgate.runtime.formats.given.values import Unwritable
from headgate.runtime.formats.given.writer import row_writer
from headgate.runtime.record_times import ReadTimes, times_of
from headgate.sql.streams import CreateStream, CreateStreamAs

Write = Callable[[Mapping[str, Any]], bytes]


class Inserts:
    """Writes rows to the topics of streams and tables."""

    def __init__(self, connections: Connections, read_times: ReadTimes) -> None:
        self._connections = connections
        self._read_times = read_times
        self._writers: dict[tuple[RecordEncoding | None, RecordEncoding], tuple[Write | None, Write]] = {}
        self._guard = threading.Lock()

    def insert(self, catalog: Catalog, inserts: Sequence[plans.InsertRows]) -> None:
        """Write the rows of several statements together, and return when the broker has acknowledged all of them. All rows are
        encoded before the first one is sent."""
        with self._guard:  # only while rows are encoded: a broker that does not answer holds up nobody else
            records = self._encoded(catalog, inserts)
        for server, of_server in records.items():
            if of_server:
                self._connections.kafka(catalog, server).write(of_server)

    def _encoded(self, catalog: Catalog, inserts: Sequence[plans.InsertRows]) -> dict[ConnectionRef, list[Record]]:
        """The records of all statements, by the cluster that they go to."""
        records: dict[ConnectionRef, list[Record]] = {}
        for one in inserts:
            target = insert_target(catalog, one.target)
            kafka = read_statement(target).kafka
            records.setdefault(kafka_server(kafka), []).extend(self._records(target, topic_name(kafka), one))
        return records

    def insert_results(self, catalog: Catalog, plan: plans.InsertQuery, results: Iterator[Result]) -> Iterator[Result]:
        """Write the rows of a query as they arrive. Yields the notices of the query, and then the number of rows."""
        target = insert_target(catalog, plan.target)
        types = {column.name: column.type for column in insert_columns(target, ())}
        count = 0
        for result in results:
            match result:
                case JsonRows(text):
                    rows = json.loads(text, parse_float=decimal.Decimal)
                case ResultRows(found):
                    rows = found
                case Notice():
                    yield result
                    continue
                case _:
                    continue
            made = [
                {name: from_result(v, types[name]) for name, v in zip(plan.columns, row, strict=True)} for row in rows
            ]
            try:
                self.insert(catalog, [plans.InsertRows(target.id, tuple(checked_row(target, row) for row in made))])
            except RowUnwritable as wrong:
                raise RowUnwritable(*who(target), wrong.path, wrong.reason, count) from None
            count += len(made)
        yield Done(f"INSERT {count}")

    def _records(self, target: Object, topic: str, insert: plans.InsertRows) -> list[Record]:
        assert isinstance(target.definition, CreateStream | CreateStreamAs)
        key_side, value_side = written_sides(target.definition)
        write_key, write_value = self._writer(key_side, value_side)
        none = {column.name: None for column in target.columns}
        rows = [{**none, **dict(given)} for given in insert.rows]
        made: list[Record] = []
        try:
            for row, time in zip(rows, self._times(target.definition, rows, insert), strict=True):
                has_key = key_side is not None and any(row[name] is not None for name in key_side.columns)
                key = write_key(row) if write_key is not None and has_key else None
                made.append(Record(topic, key, None if insert.deletes else write_value(row), time))
        except Unwritable as wrong:
            raise RowUnwritable(*who(target), wrong.path, wrong.reason) from None
        return made

    def _times(
        self, stream: CreateStream | CreateStreamAs, rows: Sequence[Mapping[str, Any]], insert: plans.InsertRows
    ) -> Sequence[int | None]:
        """The times of the records. A deletion names key columns alone, and has the present time unless the time is one of these."""
        time = known_time(stream)
        if time is None or (insert.deletes and not any(name == time.column for name, _ in insert.rows[0])):
            return [None] * len(rows)
        return times_of([row[time.column] for row in rows], time, self._read_times)

    def _writer(self, key: RecordEncoding | None, value: RecordEncoding) -> tuple[Write | None, Write]:
        """The writers of keys and values. They are kept, because making them compiles a schema."""
        known = self._writers.get((key, value))
        if known is None:
            known = self._writers[key, value] = (None if key is None else row_writer(key), row_writer(value))
        return known
