"""A materialized view equals its query after every batch: random queries and changes on Spark, without storage.

The same law is tried on DuckDB with many more queries (`tests/sql/query/test_maintenance_law.py`). HEADGATE_EXAMPLES multiplies
how many are tried here; the seed is part of what is printed when one fails.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from random import Random

import pytest
from pyspark.sql import SparkSession

from headgate.runtime.session import SMALL_SETTINGS
from headgate.runtime.views.signed import WEIGHT
from headgate.schema.render import spark_ddl, spark_identifier
from headgate.sql.query.kept_groups import STORED
from headgate.sql.query.maintenance import maintain, undetermined
from headgate.sql.query.select import analyse
from tests.spark import small_frame
from tests.sql.query.signed_queries import GROWTHS, IDS, Contents, Queries, Query, Row, find_relation
from tests.sql.query.test_maintenance_law import TYPES

EXAMPLES = int(os.environ.get("HEADGATE_EXAMPLES", "1"))
COUNT, BATCHES = 12 if EXAMPLES == 1 else 24 * EXAMPLES, 3
DDL = "id bigint, a int, b int, s string, d decimal(10, 2)"

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(1200 * EXAMPLES)]

Bag = Counter[tuple[object, ...]]


class Kept:
    """A view that is kept on Spark. Its stored rows are here, with their weights."""

    def __init__(self, query: Query, session: SparkSession, random: Random) -> None:
        columns = [(name, TYPES[kind]) for name, kind in query.columns.items()]
        analysed = analyse(query.ours, find_relation)
        assert undetermined(analysed.tree) is None
        self.made = maintain(analysed.tree, columns, lambda read: GROWTHS[read.name])
        casts = ", ".join(f"CAST({name} AS {spark_ddl(type_)}) AS {name}" for name, type_ in columns)
        self.batch = f"SELECT {casts} FROM ({analyse(query.batch, find_relation).spark_sql})"
        self.shown = [at for at, column in enumerate(self.made.stored) if not column.hidden]
        self.present = next((at for at, column in enumerate(self.made.stored) if column.name == "hg_present"), None)
        self.stored: Bag | None = None
        self.before: dict[str, list[Row]] = {name: [] for name in GROWTHS}
        self._session, self._random = session, random

    def run_batch(self, contents: Contents, changed: Mapping[str, list[tuple[Row, int]]]) -> None:
        """Add the changes to the stored rows."""
        for name, id_ in IDS.items():
            rows = list(contents.rows[name].elements())
            self._random.shuffle(rows)
            self._register(f"rel_{id_}", rows, DDL)
            self._register(f"rel_{id_}_before", self.before[name], DDL)
            self._register(
                f"rel_{id_}_changes",
                [(*row, weight) for row, weight in changed[name]],
                f"{DDL}, {spark_identifier(WEIGHT)} int",
            )
            self.before[name] = rows
        sql = self.made.first
        if self.stored is not None:
            ddl = ", ".join(f"`{column.name}` {column.type}" for column in self.made.stored)
            held = [(*row, weight) for row, weight in self.stored.items()]
            self._register(STORED, held, f"{ddl}, {spark_identifier(WEIGHT)} bigint")
            sql = self.made.changed
        self.stored = Counter() if self.stored is None else self.stored
        for row in map(tuple, self._session.sql(sql).collect()):
            self.stored[row[:-1]] += row[-1]
        self.stored = Counter({row: weight for row, weight in self.stored.items() if weight})

    def _register(self, name: str, rows: Sequence[Row], ddl: str) -> None:
        typed = [tuple(_value(value, at, ddl) for at, value in enumerate(row)) for row in rows]
        small_frame(self._session, typed, ddl).createOrReplaceTempView(name)

    def held(self) -> Bag:
        """The rows of the view. None may be there less than no times."""
        found: Bag = Counter()
        for row, weight in (self.stored or Counter()).items():
            if self.present is None or row[self.present]:
                found[tuple(row[at] for at in self.shown)] += weight
        assert all(count > 0 for count in found.values())
        return found

    def rows(self) -> Bag:
        return Counter(map(tuple, self._session.sql(self.batch).collect()))


def _value(value: object, at: int, ddl: str) -> object:
    """Decimals of the random contents are text."""
    return Decimal(value) if isinstance(value, str) and at == 4 and ddl.startswith(DDL) else value


def check(seed: int, session: SparkSession) -> str:
    random = Random(seed)
    query = Queries(random).query(random.choice([1, 2, 2]))
    contents, kept = Contents(random), Kept(query, session, random)
    for number in range(BATCHES):
        kept.run_batch(contents, contents.change())
        assert kept.held() == kept.rows(), f"seed {seed}, batch {number}: {query.ours}"
    return "incremental" if kept.made.incremental else "recomputed"


def test_a_view_equals_its_query_after_every_batch_on_spark(session: SparkSession) -> None:
    for name, value in SMALL_SETTINGS.items():
        session.conf.set(name, value)
    start = Random().randrange(1 << 30)
    kinds = Counter(check(start + number, session) for number in range(COUNT))
    assert min(kinds["incremental"], kinds["recomputed"]) >= COUNT // 12, f"most prove nothing: {kinds}"
