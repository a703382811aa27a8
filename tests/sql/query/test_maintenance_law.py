"""A materialized view equals its query after every batch: random queries and changes on DuckDB.

HEADGATE_EXAMPLES multiplies how many queries are tried; the seed is part of what is printed when one fails.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random

import duckdb
import pytest
import sqlglot

from headgate.schema.types import Bigint, Decimal, Text, Type
from headgate.sql.query import incremental, tree as n
from headgate.sql.query.maintenance import Maintenance, maintain, maintain_by_key, undetermined
from headgate.sql.query.scope import AnalysedQuery
from headgate.sql.query.select import analyse
from tests.sql.query.signed_queries import COLUMNS, GROWTHS, IDS, Contents, Kind, Queries, Query, Row, find_relation

pytestmark = pytest.mark.unit

COUNT = 150 * int(os.environ.get("HEADGATE_EXAMPLES", "1"))
BATCHES = 4
WEIGHT = f'"{incremental.WEIGHT.name}"'
TYPES: Mapping[Kind, Type] = {"number": Bigint(), "decimal": Decimal(38, 6), "text": Text()}
DDL = "id BIGINT, a INTEGER, b INTEGER, s VARCHAR, d DECIMAL(10, 2)"


def duck(sql: str) -> str:
    """The same query for DuckDB. Its expressions are the same but for how they are written."""
    return sqlglot.transpile(sql, read="databricks", write="duckdb")[0]


def bag(rows: Iterable[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    return Counter(rows)


class Kept:
    """A view that is kept on DuckDB: the relations, the stored rows, and its query."""

    def __init__(self, query: Query, seed: int, database: duckdb.DuckDBPyConnection) -> None:
        self.random = Random(seed)
        self.names = list(query.columns)
        self.types = [TYPES[query.columns[name]] for name in self.names]
        analysed = analyse(query.ours, find_relation)
        assert undetermined(analysed.tree) is None
        self.made = self.maintenance(analysed)
        self.first, self.changed, self.anew = map(
            duck, (self.made.first, self.made.changed, self.made.anew or "SELECT 1")
        )
        self.batch = duck(self.expected(analyse(query.batch, find_relation)))
        self.database = database
        for id_ in IDS.values():
            for table in (f"rel_{id_}", f"rel_{id_}_before"):
                database.execute(f"CREATE OR REPLACE TABLE {table} ({DDL})")
            database.execute(f"CREATE OR REPLACE TABLE rel_{id_}_changes ({DDL}, {WEIGHT} INTEGER)")

    @property
    def has_hidden(self) -> bool:
        return any(column.hidden for column in self.made.stored)

    def maintenance(self, analysed: AnalysedQuery) -> Maintenance:
        columns = list(zip(self.names, self.types, strict=True))
        return maintain(analysed.tree, columns, lambda read: GROWTHS[read.name])

    def expected(self, analysed: AnalysedQuery) -> str:
        casts = [
            f"CAST({name} AS {'DECIMAL(38, 6)' if isinstance(type_, Decimal) else 'BIGINT'}) AS {name}"
            if not isinstance(type_, Text)
            else name
            for name, type_ in zip(self.names, self.types, strict=True)
        ]
        return f"SELECT {', '.join(casts)} FROM ({analysed.spark_sql})"

    def load(self, contents: Contents, changed: Mapping[str, list[tuple[Row, int]]]) -> None:
        """Give the relations their rows after a batch, in another order each time."""
        script = []
        for name, id_ in IDS.items():
            rows = list(contents.rows[name].elements())
            self.random.shuffle(rows)
            script += [
                f"DELETE FROM rel_{id_}_before; INSERT INTO rel_{id_}_before SELECT * FROM rel_{id_}",
                f"DELETE FROM rel_{id_}_changes; DELETE FROM rel_{id_}",
                insert(f"rel_{id_}_changes", [(*row, weight) for row, weight in changed[name]]),
                insert(f"rel_{id_}", rows),
            ]
        self.database.execute(";".join(script))

    def run_batch(self, first: bool) -> None:
        """Add the changes to the stored rows."""
        if first:
            self.database.execute(f"CREATE OR REPLACE TABLE hg_stored AS {self.first}")
        else:
            anew = self.made.anew and self.random.random() < 0.3
            self.database.execute(f"INSERT INTO hg_stored {self.anew if anew else self.changed}")
            listed = ", ".join(column.name for column in self.made.stored)
            self.database.execute(
                f"CREATE OR REPLACE TABLE hg_stored AS SELECT {listed}, CAST(sum({WEIGHT}) AS BIGINT) AS {WEIGHT}"
                f" FROM hg_stored GROUP BY {listed} HAVING sum({WEIGHT}) <> 0"
            )

    def held(self) -> Counter[tuple[object, ...]]:
        """The rows of the view. None may be there less than no times."""
        present = "WHERE hg_present" if self.has_hidden else ""
        rows = self.database.execute(f"SELECT {', '.join(self.names)}, {WEIGHT} FROM hg_stored {present}").fetchall()
        found: Counter[tuple[object, ...]] = Counter()
        for row in rows:
            found[row[:-1]] += row[-1]
        assert all(count > 0 for count in found.values())
        return found

    def rows(self) -> Counter[tuple[object, ...]]:
        return bag(self.database.execute(self.batch).fetchall())


class KeptByKey(Kept):
    """A view over `k` that is given the present rows of changed keys, and no old ones."""

    def maintenance(self, analysed: AnalysedQuery) -> Maintenance:
        columns = list(zip(self.names, self.types, strict=True))
        (scan,) = (node for node in n.walk(analysed.tree) if isinstance(node, n.Scan))
        return maintain_by_key(analysed.tree, columns, {"id": "key"}, scan)

    def load(self, contents: Contents, changed: Mapping[str, list[tuple[Row, int]]]) -> None:
        keys = {row[0] for row, _ in changed["k"]}
        present = [(row, 1) for row in contents.rows["k"] if row[0] in keys]
        super().load(contents, {**changed, "k": present})
        self.database.execute("CREATE OR REPLACE TABLE rel_1_keys (id BIGINT)")
        self.database.execute(insert("rel_1_keys", [(key,) for key in keys]) or "SELECT 1")


class QueriesOfRows(Queries):
    """Makes queries row by row over `k`, which keep its key."""

    def query(self, depth: int = 3) -> Query:
        if depth == 0:
            text = "SELECT id AS key, a AS c1, b AS c2, s AS c3, d AS c4 FROM k"
            kinds: list[Kind] = ["number", "number", "number", "text", "decimal"]
            return Query(text, text, dict(zip(("key", "c1", "c2", "c3", "c4"), kinds, strict=True)))
        below = self.query(depth - 1)
        if self.random.random() < 0.5:
            return self._made(below, f"SELECT * FROM {{}} WHERE {self._condition(below)}", below.columns)
        chosen = self.random.sample(list(below.columns)[1:], self.random.randint(0, len(below.columns) - 1))
        columns: dict[str, Kind] = {"key": "number", **{self._name(): below.columns[old] for old in chosen}}
        listed = [f"{old} AS {new}" for old, new in zip(chosen, list(columns)[1:], strict=True)]
        if numbers := below.of("number"):
            listed.append(f"coalesce({self.random.choice(numbers)}, 0) % 3 AS {(name := self._name())}")
            columns[name] = "number"
        return self._made(below, f"SELECT {', '.join(['key', *listed])} FROM {{}}", columns)


def insert(table: str, rows: Sequence[Row]) -> str:
    """The statement that inserts rows, if there are any."""
    listed = ["(" + ", ".join("NULL" if v is None else f"'{v}'" for v in row) + ")" for row in rows]
    return f"INSERT INTO {table} VALUES {', '.join(listed)}" if rows else ""


def check(
    seed: int, database: duckdb.DuckDBPyConnection, queries: type[Queries] = Queries, kind: type[Kept] = Kept
) -> str:
    """Check one query. Returns how it is kept."""
    random = Random(seed)
    query = queries(random).query(random.choice([1, 2, 2, 3]))
    contents = Contents(random)
    kept = kind(query, seed, database)
    for number in range(BATCHES):
        changed = contents.change()
        kept.load(contents, changed)
        kept.run_batch(first=number == 0)
        assert kept.held() == kept.rows(), f"seed {seed}, batch {number}: {query.ours}"
    if not kept.made.incremental:
        return "recomputed"
    return "groups" if kept.has_hidden else "rows"


def test_a_view_equals_its_query_after_every_batch() -> None:
    start = Random().randrange(1 << 30)
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        kinds = Counter(check(start + number, database) for number in range(COUNT))
    assert min(kinds["rows"], kinds["groups"], kinds["recomputed"]) >= COUNT // 12, f"most prove nothing: {kinds}"


def test_a_view_over_a_source_with_a_key_needs_no_old_rows() -> None:
    start = Random().randrange(1 << 30)
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        kinds = {check(start + number, database, QueriesOfRows, KeptByKey) for number in range(COUNT // 8)}
    assert kinds == {"rows"}


def test_the_relations_of_the_law_have_the_columns_that_it_loads() -> None:
    assert [name for name, _ in COLUMNS] == [part.split()[0] for part in DDL.replace("(10, 2)", "").split(", ")]
