"""A topic of JSON -> a table of PostgreSQL of 12 columns, by key: Headgate against Debezium's JDBC sink and Flink's.

All three read the same topic and merge its rows by their key. The peers run with their defaults (batches of 500 and of 100
rows), and once more with larger batches, which their driver sends as statements of many rows. CPU seconds are those of all
processes of a side and of PostgreSQL.

What a side has written is counted by looking up a sample of a thousand keys, which takes PostgreSQL some milliseconds; the end
is the moment at which the table has all rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from bench.engines import Site, execute, open_site
from bench.figures import Report, Row, Size, load_note
from bench.materializations import SCALARS as FIELDS, SOURCE, documents, fill
from bench.peers import connect, downloads, flink
from bench.peers.children import Child, PeerFailed
from bench.peers.topics import compared, per_cpu_second
from bench.peers.watching import tasks_run, watch
from bench.pipeline import PARTITIONS, Course
from bench.rows_by_hand import NAMES as ARRAY_NAMES, SCALARS

RATIO = 2.0  # promised
SAMPLE = 1000
NAMES = (*ARRAY_NAMES[:-1], "tag")
TABLE = f"CREATE TABLE {{}} ({SCALARS}, tag text NOT NULL)"
COLUMNS = """id STRING NOT NULL, number BIGINT NOT NULL, name STRING NOT NULL, city STRING NOT NULL, price DOUBLE NOT NULL,
  score DOUBLE NOT NULL, amount DECIMAL(12, 2) NOT NULL, active BOOLEAN NOT NULL, `at` {timestamp} NOT NULL,
  `day` DATE NOT NULL, note STRING, tag STRING NOT NULL"""
# The rows of a topic may share a key, so Flink would keep state to find the last of them; without it the last one written wins.
WITHOUT_STATE = "SET 'table.exec.sink.upsert-materialize' = 'NONE';\n"
QUERY = """INSERT INTO target SELECT id, number, name, city, price, score, amount, active, CAST(`at` AS TIMESTAMP(6)), `day`, note, tag
FROM documents;
"""
SCHEMA: dict[str, Any] = {
    "type": "struct",
    "name": "document",
    "fields": [
        connect.field("id", "string"),
        connect.field("number", "int64"),
        connect.field("name", "string"),
        connect.field("city", "string"),
        connect.field("price", "double"),
        connect.field("score", "double"),
        connect.field("amount", "double"),
        connect.field("active", "boolean"),
        connect.field("at", "string", meaning="io.debezium.time.ZonedTimestamp"),
        connect.field("day", "string", meaning="io.debezium.time.IsoDate"),
        connect.field("note", "string", optional=True),
        connect.field("tag", "string"),
    ],
}
LARGER = 5000  # rows of a batch
SIDES = ("headgate", "debezium", "debezium_larger", "flink", "flink_larger")


def run(size: Size) -> Report:
    records, rounds = (300_000, 1) if size == "small" else (1_000_000, 2)
    flink.class_path()  # a download is nobody's start
    downloads.jars("connect")
    downloads.connectors()
    with open_site() as site, Tables(site, records) as tables:
        courses = tables.courses(rounds)
    notes = (
        f"{records:,} documents in {PARTITIONS} partitions, from 10 % to 100 % of the output; the rows of every table were checked.",
        f"{connect.SINK['tasks.max']} tasks of Debezium's sink, {flink.SETTINGS['parallelism.default']} of Flink's, without checkpoints.",
        "CPU of all processes of a side and of PostgreSQL.",
        load_note(),
    )
    return Report("JSON topic -> PostgreSQL, against JDBC sinks", tuple(rows(courses)), notes)


def rows(courses: Mapping[str, list[Course]]) -> Iterator[Row]:
    ours = courses["headgate"]
    for side in SIDES[1:]:
        name = "Debezium" if side.startswith("debezium") else "Flink"
        batches = f"batches of {LARGER:,}" if side.endswith("larger") else "its defaults"
        yield compared(f"{name} with {batches}", ours, courses[side], RATIO, name)
        yield per_cpu_second("the same", ours, courses[side], None, name)


@dataclass(frozen=True, slots=True)
class Address:
    """A database as JDBC wants it."""

    url: str
    user: str
    password: str

    @classmethod
    def of(cls, address: str) -> Address:
        match = re.fullmatch(r"postgresql://([^:@]+):([^@]+)@(.+)", address)
        assert match is not None
        return cls(f"jdbc:postgresql://{match[3]}", match[1], match[2])


class Tables:
    def __init__(self, site: Site, records: int) -> None:
        self._site = site
        self._records = records
        address = site.world.postgres()
        self._address = Address.of(address)
        self._connection = psycopg.connect(address, autocommit=True)
        self._server = next(one.pid for one in site.world.status().services if one.service == "postgres")

    def __enter__(self) -> Tables:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def courses(self, rounds: int) -> dict[str, list[Course]]:
        """The sides take turns, so that what else the machine does falls on all of them."""
        fill(self._site, "documents", flat_documents(self._records))
        expected = self._reference()
        found: dict[str, list[Course]] = {side: [] for side in SIDES}
        for number in range(rounds):
            for side in SIDES:
                table = f"{side}_{number}"
                found[side].append(self._headgate(table) if side == "headgate" else self._peer(side, table))
                if (summary := self._summary(table)) != expected:
                    raise PeerFailed(f"{table} holds other rows than it must: {summary} instead of {expected}")
                self._execute("DROP TABLE {} CASCADE", table)
        return found

    def _headgate(self, table: str) -> Course:
        with self._site.engine(table) as engine:
            execute(engine, SOURCE.format(name="documents", topic="documents"))
            into = f"INTO POSTGRES CONNECTION postgres (TABLE '{table}')"
            fields = f"FIELDS ({FIELDS}, tag string FROM '/data/tag')"
            execute(engine, f"CREATE MATERIALIZATION documents_rows FROM documents {into} {fields};")
            return self._watch("Headgate", table, engine.pid, lambda: tasks_run(engine))

    def _peer(self, side: str, table: str) -> Course:
        self._execute(TABLE, table)
        larger = side.endswith("larger")
        with (self._debezium if side.startswith("debezium") else self._flink)(table, larger) as child:
            return self._watch(child.name, table, child.pid, child.is_running)

    def _debezium(self, table: str, larger: bool) -> AbstractContextManager[Child]:
        settings = debezium_settings(self._address, table, larger=larger)
        return connect.running(self._site.folder / table, self._site.brokers, SCHEMA, settings)

    def _flink(self, table: str, larger: bool) -> AbstractContextManager[Child]:
        script = flink_script(self._site.brokers, self._address, table, larger=larger)
        return flink.running(self._site.folder / table, script)

    def _watch(self, name: str, table: str, pid: int, running: Callable[[], bool]) -> Course:
        assert self._server is not None
        return watch(name, self._records, lambda: self._count(table), (pid, self._server), running)

    def _count(self, table: str) -> int:
        """About how many rows are visible: exact where it is none or all of them."""
        if not self._connection.execute("SELECT to_regclass(%s)::text", [table]).fetchall()[0][0]:
            return 0  # Headgate makes the table when its task starts
        keys = [str(n) for n in range(0, self._records, self._records // SAMPLE)]
        query = sql.SQL("SELECT count(*) FROM {} WHERE id = ANY(%s)").format(sql.Identifier(table))
        ((found,),) = self._connection.execute(query, [keys]).fetchall()
        if found < len(keys):
            return int(self._records * found / len(keys))
        return int(self._value("SELECT count(*) FROM {}", table))

    def _reference(self) -> tuple[Any, ...]:
        """What a table must hold, from one that is filled from memory."""
        self._execute(TABLE, "reference")
        names = sql.SQL(", ").join(map(sql.Identifier, NAMES))
        copy = sql.SQL("COPY reference ({}) FROM STDIN").format(names)
        with self._connection.cursor() as cursor, cursor.copy(copy) as target:
            for document in flat_documents(self._records):
                target.write_row([document[name] for name in NAMES])
        found = self._summary("reference")
        self._execute("DROP TABLE {}", "reference")
        return found

    def _summary(self, table: str) -> tuple[Any, ...]:
        """The number of rows and of keys, and a sum of the hashes of all rows."""
        row = sql.SQL(", ").join(map(sql.Identifier, NAMES))
        query = sql.SQL("SELECT count(*), count(DISTINCT id), sum(hashtextextended(ROW({})::text, 0)) FROM {}")
        return self._connection.execute(query.format(row, sql.Identifier(table))).fetchall()[0]

    def _value(self, query: str, table: str) -> Any:
        return self._execute(query, table).fetchall()[0][0]

    def _execute(self, query: str, table: str) -> psycopg.Cursor[Any]:
        return self._connection.execute(sql.SQL(query).format(sql.Identifier(table)))


def flat_documents(count: int) -> Iterator[dict[str, Any]]:
    """Without the array, which Flink's sink cannot write."""
    for document in documents(count):
        yield {**{name: document[name] for name in NAMES[:-1]}, "tag": document["tags"][1]}


def debezium_settings(address: Address, table: str, *, larger: bool) -> dict[str, str]:
    """A text for a date must be sent without its type, so that PostgreSQL reads it."""
    rewrite = "&reWriteBatchedInserts=true" if larger else ""
    batches = {"batch.size": str(LARGER), "consumer.override.max.poll.records": str(LARGER)} if larger else {}
    return {
        "name": table,  # also of the consumer group, which has read nothing yet
        "topics": "documents",
        "connection.url": f"{address.url}?stringtype=unspecified{rewrite}",
        "connection.username": address.user,
        "connection.password": address.password,
        "primary.key.fields": "id",
        "collection.name.format": table,
        **batches,
    }


def flink_script(brokers: str, address: Address, table: str, *, larger: bool) -> str:
    json = {"value.format": "json", "value.json.timestamp-format.standard": "ISO-8601"}
    source = {**flink.topic("documents", brokers, {}), **flink.BOUNDED, **json}
    target = {
        "connector": "jdbc",
        "url": f"{address.url}?reWriteBatchedInserts=true" if larger else address.url,
        "table-name": table,
        "username": address.user,
        "password": address.password,
        **({"sink.buffer-flush.max-rows": str(LARGER)} if larger else {}),
    }
    read = flink.table("documents", COLUMNS.format(timestamp="TIMESTAMP_LTZ(6)"), source)
    key = ", PRIMARY KEY (id) NOT ENFORCED"
    return WITHOUT_STATE + read + flink.table("target", COLUMNS.format(timestamp="TIMESTAMP(6)") + key, target) + QUERY
