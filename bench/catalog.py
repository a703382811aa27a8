"""A catalog of ten thousand objects: opened, loaded, and names found in it.

The peer of opening is the least that any such program must do: SQLite reading all rows of the same file. The peer of
resolving is what a program does that keeps no snapshot: SQLite finding a name by an index, in memory.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

from bench.figures import Report, Row, Size, compared, cpu_seconds
from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import Change, ObjectCreated
from headgate.catalog.errors import UnknownObject
from headgate.catalog.names import DEFAULT_PATH, SearchPath, resolve
from headgate.catalog.objects import Column, Dependency, Growth, Object
from headgate.catalog.store.reader import SqliteReader
from headgate.catalog.store.sqlite import SqliteStore, utc_now
from headgate.schema.parse import parse_type
from headgate.sql.statement import Kind, ObjectName
from headgate.text.cursor import Identifier

OPENS, RESOLVES = 1.0, 1e-3  # seconds
FIND = "SELECT id FROM names WHERE name = ? AND parent IN (4, 5, 6)"  # the three schemas of the path
SCHEMAS = 10
COLUMNS = tuple(
    Column(number, f"column_{number}", parse_type(type_))
    for number, type_ in enumerate(("bigint", "text", "double", "decimal(10,2)", "timestamptz"), 1)
)


def run(size: Size) -> Report:
    objects, rounds = (200, 1) if size == "small" else (10_000, 5)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.db"
        catalog = _fill(path, objects)
        opened = cpu_seconds(lambda: _open(SqliteReader, path), rounds)
        written = cpu_seconds(lambda: _open(SqliteStore, path), rounds)
        raw = cpu_seconds(lambda: _raw(path), rounds)
    what = f"a catalog of {objects:,} objects with {objects * len(COLUMNS):,} columns"
    rows = (
        compared(f"{what} opens for reading", opened, raw, "SQLite, all rows", OPENS),
        compared(f"{what} opens for writing, with the lease", written, raw, "SQLite, all rows", OPENS),
        *_names(catalog, objects, rounds),
    )
    return Report("Language: the catalog", rows, ("CPU time, best of the rounds.",))


def _names(catalog: Catalog, objects: int, rounds: int) -> tuple[Row, ...]:
    path = SearchPath((("headgate", "s1"), ("headgate", "s2"), ("headgate", "s3")))
    names = [_name(f"object_{number}") for number in range(3, objects, SCHEMAS)]  # all in the path's last schema
    found = _per_name(names, rounds, lambda name: resolve(catalog, path, name))
    with closing(_indexed(catalog)) as database:
        peer = _per_name(names, rounds, lambda name: database.execute(FIND, (name.parts[0].name,)).fetchone())
    missing = [_name(f"objekt_{number}") for number in range(20)]
    similar = _per_name(missing, rounds, lambda name: _not_found(catalog, path, name))
    qualified = [_name("s3", f"OBJECT_{number}") for number in range(3, objects, SCHEMAS)]
    in_schema = _per_name(qualified, rounds, lambda name: resolve(catalog, DEFAULT_PATH, name))
    among = f"among {objects:,} objects"
    return (
        compared(
            f"a name found in the third schema of the path, {among}",
            found,
            peer,
            "SQLite, by index",
            RESOLVES,
        ),
        compared(f"schema.name in another case, {among}", in_schema, peer, "SQLite, by index", RESOLVES),
        compared(f"a name not found, with near names, {among}", similar),
    )


def _indexed(catalog: Catalog) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE names (id INTEGER PRIMARY KEY, parent INTEGER, name TEXT COLLATE NOCASE)")
    rows = [(entry.id, entry.parent, entry.name) for entry in catalog.objects.values()]
    database.executemany("INSERT INTO names VALUES (?, ?, ?)", rows)
    database.execute("CREATE INDEX by_name ON names (name)")
    return database


def _per_name(names: list[ObjectName], rounds: int, work: Callable[[ObjectName], object]) -> float:
    return cpu_seconds(lambda: [work(name) for name in names], rounds) / len(names)


def _not_found(catalog: Catalog, path: SearchPath, name: ObjectName) -> None:
    try:
        resolve(catalog, path, name)
    except UnknownObject:
        return
    raise AssertionError("the benchmark resolves a name that should not exist")


def _fill(path: Path, objects: int) -> Catalog:
    """Ten schemas under the default database, in each a tenth of the objects: sources, and views over them."""
    with SqliteStore(path) as store:
        ids = count(store.load().next_id)
        schemas = [Object(next(ids), Kind.SCHEMA, 1, f"s{number}", utc_now()) for number in range(SCHEMAS)]
        made: list[Change] = [ObjectCreated(schema) for schema in schemas]
        source = 0
        for number in range(objects):
            entry = _object(next(ids), number, schemas[number % SCHEMAS].id, source)
            source = entry.id if entry.kind is Kind.SOURCE else source
            made.append(ObjectCreated(entry))
        return store.commit(made, cause="statement")


def _object(id_: int, number: int, schema: int, source: int) -> Object:
    kind = Kind.SOURCE if number % 4 == 0 else Kind.VIEW
    reads = () if kind is Kind.SOURCE else (Dependency(source),)
    name = f"object_{number}"
    statement = f"CREATE {kind.upper()} {name} AS SELECT * FROM object_{number - 1}"
    return Object(
        id_, kind, schema, name, utc_now(), statement,
        columns=COLUMNS, growth=Growth.APPEND, dependencies=reads,
    )  # fmt: skip


def _open(kind: Callable[[Path], SqliteReader], path: Path) -> None:
    with kind(path) as opened:
        opened.load()


def _raw(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in tables:
            if table not in ("history", "events"):  # opening does not read them either
                database.execute(f'SELECT * FROM "{table}"').fetchall()


def _name(*parts: str) -> ObjectName:
    return ObjectName(tuple(Identifier(part) for part in parts))
