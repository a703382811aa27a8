"""Growth and key of random queries against what really happens to their rows when the relations change.

HEADGATE_FUZZ sets how many queries are tried; the seed is part of what is printed when one fails.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from random import Random

import pytest

from headgate.sql.query.growth import Append, Changing, Growth, Keyed, derive
from headgate.sql.query.select import analyse
from tests.sql.query.random_queries import COLUMNS, GROWTHS, Contents, Queries, Query, find_relation

pytestmark = pytest.mark.unit

COUNT = int(os.environ.get("HEADGATE_FUZZ", "200"))
CHANGES = 4


def results(query: Query, random: Random) -> Iterator[Counter[tuple[object, ...]]]:
    """The rows of the query, at first and after each of several random changes."""
    contents = Contents(random)
    for _ in range(CHANGES):
        contents.change()
        with closing(sqlite3.connect(":memory:")) as database:
            for name, rows in contents.rows().items():
                database.execute(f"CREATE TABLE {name} ({', '.join(c.name for c in COLUMNS)})")
                database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?)", rows)
            yield Counter(database.execute(query.text.lite).fetchall())


def check(seed: int) -> str:
    """Check one query. Returns its kind."""
    random = Random(seed)
    query = Queries(random).query()
    claimed = derive(analyse(query.text.ours, find_relation).tree, lambda read: GROWTHS[read.name])
    before: Counter[tuple[object, ...]] = Counter()
    for rows in results(query, random):
        check_claim(claimed, before, rows, f"seed {seed}: {query.text.ours}")
        before = rows
    return type(claimed).__name__


def check_claim(
    claimed: Growth, before: Counter[tuple[object, ...]], rows: Counter[tuple[object, ...]], what: str
) -> None:
    """No row may go from an append result, and no two rows of a keyed one may have the same key."""
    match claimed:
        case Append():
            assert before <= rows, f"rows went from an append result, {what}"
        case Keyed(key):
            keys = Counter(tuple(row[at] for at in key) for row in rows.elements())
            assert max(keys.values(), default=1) == 1, f"two rows have one key {key}, {what}"
        case Changing():
            pass


def test_a_claimed_key_is_unique_and_append_rows_stay() -> None:
    start = Random().randrange(1 << 30)
    kinds = Counter(check(start + number) for number in range(COUNT))
    assert min(kinds["Append"], kinds["Keyed"]) >= COUNT // 25, f"most queries prove nothing: {kinds}"
