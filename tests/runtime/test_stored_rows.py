"""Rows of materialized views in tables and indexes: a batch of any size comes in pieces, and a row without a key has no position."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.catalog.positions import LogPosition
from headgate.connectors.elasticsearch import SearchClient
from headgate.embedded.world import World
from headgate.runtime.ports import Append, Batch, Upsert
from headgate.runtime.target_rows import pieces
from headgate.runtime.targets import postgres, search
from headgate.runtime.targets.errors import IndexTaken
from headgate.runtime.targets.postgres import PostgresTarget
from headgate.runtime.targets.search import SearchTarget
from headgate.schema.types import Bigint, Text
from tests.runtime.search_targets import definition, field as document_field
from tests.runtime.tables import database, field, table

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

_names = count()

Rows = Sequence[tuple[str, int | None]]


def frame(session: SparkSession, rows: Rows) -> DataFrame:
    return session.createDataFrame(list(rows), "key string, value bigint")


def batch(number: int) -> Batch:
    start, end = {7: LogPosition(7, 1, number - 1)}, {7: LogPosition(7, 1, number)}
    return Batch(3, 1, number, 1, start, end, "d", datetime(2026, 1, 1, tzinfo=UTC))


def upsert(session: SparkSession, rows: Rows) -> Upsert:
    return Upsert(frame(session, [r for r in rows if r[1] is not None]), ("key",), frame(session, rows).select("key"))


@pytest.mark.parametrize("most", [1, 3, 100])
def test_every_row_is_in_one_piece_and_equal_keys_are_together(session: SparkSession, most: int) -> None:
    rows = frame(session, [(f"k{number % 7}", number) for number in range(20)])
    found = [[(row["key"], row["value"]) for row in piece.collect()] for piece in pieces(rows, most, ("key",))]
    assert sorted(row for piece in found for row in piece) == sorted((r["key"], r["value"]) for r in rows.collect())
    homes = [{key for key, _ in piece} for piece in found]
    assert sum(map(len, homes)) == len(set().union(*homes))


def test_a_table_takes_a_batch_in_pieces_in_one_transaction(
    session: SparkSession, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "MOST_ROWS", 3)
    made = table(f"pieces_{next(_names)}", field("key", Text(), key=True), field("value", Bigint(), nullable=True))
    target = PostgresTarget(
        made, database(world.ensure("postgres")["postgres"]), 3, f"uuid {made.name}", in_pieces=True
    )
    target.begin(1)
    target.write(upsert(session, [(f"k{number}", number) for number in range(10)]), batch(1), lambda: None)
    target.write(upsert(session, [("k1", None), ("k2", 22), ("k11", 11)]), batch(2), lambda: None)
    held = {row["key"]: row["value"] for row in target.contents(session).rows.collect()}
    target.close()
    assert held == {f"k{number}": number for number in range(10) if number != 1} | {"k2": 22, "k11": 11}


def test_a_key_that_is_null_is_an_invalid_value_in_a_table(session: SparkSession, world: World) -> None:
    made = table(
        f"nulls_{next(_names)}",
        field("key", Text(), key=True, nullable=True),
        field("value", Bigint()),
        on_error="SKIP",
    )
    target = PostgresTarget(
        made, database(world.ensure("postgres")["postgres"]), 3, f"uuid {made.name}", in_pieces=True
    )
    target.begin(1)
    rows = session.createDataFrame([(None, 1), ("a", 2)], "key string, value bigint")
    target.write(Upsert(rows, ("key",), rows.select("key")), batch(1), lambda: None)
    held = [tuple(row) for row in target.contents(session).rows.collect()]
    target.close()
    assert (held, [one.path for one in target.refused]) == ([("a", 2)], ["$.key"])


class Documents:
    """An index over rows of a view. ``unfinished`` is whether an attempt at the next batch may have written documents."""

    def __init__(self, session: SparkSession, client: SearchClient, *, keyed: bool) -> None:
        fields = document_field("key", "text", key=keyed), document_field("value", "bigint")
        self._session = session
        self.unfinished = False
        made = definition(f"stored_{next(_names)}", *fields)
        self.target = SearchTarget(made, client, "task", is_unfinished=lambda: self.unfinished, in_pieces=True)
        self._client = client
        self.target.begin(1)

    def held(self) -> list[tuple[str, int]]:
        found = self._client.documents(self.target.index.refreshed())
        return sorted((str(hit.source["key"]), int(str(hit.source["value"]))) for hit in found)


def test_documents_of_a_keyed_view_are_written_and_deleted_in_pieces(
    session: SparkSession, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "PIECES_OF", 3)
    with SearchClient(world.ensure("elasticsearch")["opensearch"]) as client:
        index = Documents(session, client, keyed=True)
        index.target.write(upsert(session, [(f"k{n}", n) for n in range(10)]), batch(1), lambda: None)
        index.target.write(upsert(session, [("k1", None), ("k2", 22), ("k11", 11)]), batch(2), lambda: None)
        wanted = {f"k{n}": n for n in range(10) if n != 1} | {"k2": 22, "k11": 11}
        assert index.held() == sorted(wanted.items())


def test_a_batch_without_a_key_that_is_written_again_leaves_only_its_own_documents(
    session: SparkSession, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt before it may have had other rows: a view between was replaced since."""
    monkeypatch.setattr(search, "PIECES_OF", 3)
    with SearchClient(world.ensure("elasticsearch")["opensearch"]) as client:
        index = Documents(session, client, keyed=False)
        first: Rows = [("a", 1), ("a", 1), ("b", 2)]
        index.target.write(Append(frame(session, first)), batch(1), lambda: None)
        lost: Rows = [(f"x{n}", n) for n in range(8)]
        index.target.write(Append(frame(session, lost)), batch(2), lambda: None)  # the engine dies here
        index.unfinished = True
        index.target.begin(2)
        again: Rows = [("x1", 1), ("y", 2)]
        index.target.write(Append(frame(session, again)), batch(2), lambda: None)
        assert index.held() == sorted([*first, *again])


def test_a_task_that_was_dropped_while_it_began_leaves_the_index_free(world: World) -> None:
    with SearchClient(world.ensure("elasticsearch")["opensearch"]) as client:
        made = definition(f"stored_{next(_names)}", document_field("value", "bigint"))
        with pytest.raises(IndexTaken):
            SearchTarget(made, client, "task", is_dropped=lambda: True).begin(1)
        SearchTarget(made, client, "another task").begin(1)  # needs no ADOPT
