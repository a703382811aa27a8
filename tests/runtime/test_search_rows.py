"""Collected rows of an index: what is written, deleted and left out, the ids of rows without a key, and what an error names."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from headgate.catalog.positions import KafkaPosition
from headgate.runtime.targets import search
from headgate.runtime.targets.search_documents import DOCUMENT, ID, LONGEST_ID, PROBLEM
from tests.runtime.test_search_mapping import field, index

pytestmark = pytest.mark.unit

PROBLEM_TYPE = pa.struct([("path", pa.string()), ("expected", pa.string()), ("reason", pa.string())])
BAD = {"path": "$.n", "expected": "bigint", "reason": "it is odd"}
ENDS = {7: KafkaPosition("orders", "x7", (9, 9))}

Rows = list[tuple[str, str | None, dict[str, str] | None]]


def table(rows: Rows, positions: list[tuple[int, int]] | None = None) -> pa.Table:
    ids, documents, problems = ([row[n] for row in rows] for n in range(3))
    columns = {
        ID: pa.array(ids, pa.string()),
        DOCUMENT: pa.array(documents, pa.string()),
        PROBLEM: pa.array(problems, PROBLEM_TYPE),
    }
    if positions is not None:
        columns[search.POSITION] = pa.array(
            [{"topic": "orders", "partition": p, "offset": o, "time": 1_000_000} for p, o in positions]
        )
    return pa.table(columns)


def written(rows: pa.Table, records: list[search._Placed] | None = None) -> list[tuple[str, str]]:
    """The verb and the id of every item."""
    items = list(search._items(rows, records, 3))
    assert all(json.loads(item.lines.splitlines()[0]).popitem()[1]["_id"] == item.id for item in items)
    return [(next(iter(json.loads(item.lines.splitlines()[0]))), item.id) for item in items]


def test_a_key_without_a_row_is_deleted_unless_it_has_one() -> None:
    rows = table([("a", "{}", None), ("b", None, None), ("a", None, None), ("c", None, None)])
    assert written(rows) == [("index", "a"), ("delete", "b"), ("delete", "c")]


def test_a_row_with_a_problem_is_neither_written_nor_deleted() -> None:
    rows = table([("a", None, BAD), ("a", None, None), ("b", "{}", None)])
    assert written(rows) == [("index", "b")]
    [rejected] = search._problems(rows, None)
    assert (rejected.id, rejected.path, rejected.reason, rejected.record) == ("a", "$.n", "it is odd", None)


def test_a_key_that_is_too_long_has_no_document_to_delete() -> None:
    assert written(table([("x" * (LONGEST_ID + 1), None, None), ("x" * LONGEST_ID, None, None)])) == [
        ("delete", "x" * LONGEST_ID)
    ]


def test_rows_without_a_key_are_known_by_the_position_of_their_record() -> None:
    rows = table(
        [("", "{}", None), ("", "{}", None), ("", None, BAD), ("", "{}", None)], [(0, 4), (0, 4), (1, 5), (1, 4)]
    )
    records = list(search._positions(rows, ENDS))
    assert [one.id for one in records] == ["x7.0.4.0", "x7.0.4.1", "x7.1.5.0", "x7.1.4.0"]
    assert written(rows, records) == [("index", "x7.0.4.0"), ("index", "x7.0.4.1"), ("index", "x7.1.4.0")]
    [rejected] = search._problems(rows, records)
    assert rejected.record is not None
    assert (rejected.record.partition, rejected.record.offset, rejected.record.topic_id) == (1, 5, "x7")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("n", "$.n"),
        ("home.street", "$.home.street"),
        ("home.unknown", "$.home"),
        ("m.secret", "$.m"),
        ("unknown", None),
    ],
)
def test_an_error_names_fields_and_no_members_of_maps(name: str, path: str | None) -> None:
    fields = index(field("n", "bigint"), field("home", "record(street text)"), field("m", "map<text, bigint>")).fields
    assert search.source_path(fields, name.split(".")) == path
