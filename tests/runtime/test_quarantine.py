"""Why a record is bad, as the executors find it out, and which bad records go to a folder."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from headgate.runtime.formats.side import MALFORMED
from headgate.runtime.quarantine import (
    FEW_BYTES,
    LARGEST_KEPT,
    SMALLEST_FOLDER,
    QuarantineFiles,
    _explain,
    new_folder,
)
from headgate.schema.written import WrittenSchema

pytestmark = pytest.mark.unit

WRITERS = {("value", 7): WrittenSchema('"string"', id=7)}
EXPECTED = {"key": "text", "value": "avro", "header": "text"}


def explain(*records: tuple[str | None, str | None, int | None, bytes | None]) -> list[dict[str, object]]:
    """Side, reason, schema id and bytes of records -> what is said of them, by a function that was sent to an executor."""
    sides, reasons, ids, raws = zip(*records, strict=True)
    count = len(records)
    batch = pa.RecordBatch.from_pydict(
        {
            "topic": ["t"] * count,
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "time": pa.array([5] * count, pa.int64()),
            "side": pa.array(sides, pa.string()),
            "reason": pa.array(reasons, pa.string()),
            "schema_id": pa.array(ids, pa.int64()),
            "raw": pa.array(raws, pa.binary()),
        }
    )
    writers, expected = pickle.loads(pickle.dumps((WRITERS, EXPECTED)))
    (found,) = _explain(writers, expected)([batch])
    rows: list[dict[str, object]] = found.to_pylist()
    assert [(row["topic"], row["offset"], row["time"]) for row in rows] == [("t", n, 5) for n in range(count)]
    return rows


def test_a_malformed_record_is_explained_and_a_path_is_found_in_its_reason() -> None:
    rows = explain(
        ("value", MALFORMED, 7, b"\0\0\0\0\7\4a"),
        ("key", "$.items[2].price is not a number", None, b"k"),
        ("value", MALFORMED, 8, b"\0\0\0\0\10\4a"),
        (None, None, None, None),
    )
    assert [(row["path"], row["expected"], row["reason"]) for row in rows] == [
        ("$.value", "avro", "It ends before its schema does"),
        ("$.key.items[2].price", "text", "$.items[2].price is not a number"),
        ("$.value", "avro", "The bytes are not a record of their schema"),
        (None, None, None),
    ]
    assert [row["raw"] for row in rows] == [b"\0\0\0\0\7\4a", b"k", b"\0\0\0\0\10\4a", None]


def test_the_bytes_of_the_largest_records_are_not_kept_and_the_reason_says_so() -> None:
    rows = explain(
        ("value", "it is not valid UTF-8", None, b"a" * LARGEST_KEPT),
        ("value", "it is not valid UTF-8", None, b"b" * (LARGEST_KEPT + 1)),
        ("value", "the record has no value", None, None),
    )
    assert [(row["raw"], row["reason"]) for row in rows] == [
        (b"a" * LARGEST_KEPT, "It is not valid UTF-8"),
        (None, "It is not valid UTF-8 (its 100,001 bytes are too many to be kept here)"),
        (None, "The record has no value"),
    ]


@pytest.mark.parametrize(
    ("count", "size", "in_catalog", "taken"),
    [
        (1000, 1, 0, False),
        (1001, 1, 0, True),
        (2, FEW_BYTES + 1, 0, True),
        (SMALLEST_FOLDER, 1, 10**6, False),
        (SMALLEST_FOLDER + 1, 1, 900, True),
        (SMALLEST_FOLDER + 1, 1, 800, False),
    ],
)
def test_many_or_large_bad_records_go_to_a_folder_and_few_once_the_catalog_has_its_share(
    count: int, size: int, in_catalog: int, taken: bool
) -> None:
    assert QuarantineFiles("hdfs://data/headgate", 1000).takes(count, size, in_catalog) is taken


def test_every_attempt_at_a_batch_has_a_folder_of_its_own() -> None:
    files = QuarantineFiles("hdfs://data/headgate/")
    one, other = new_folder(1, 2, 3, 4), new_folder(1, 2, 3, 4)
    assert files.path(one) == f"hdfs://data/headgate/{one.name}"
    assert one.name.startswith("2-3-")
    assert one.name != other.name
