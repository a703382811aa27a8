"""What Spark raises, in our words."""

from __future__ import annotations

import tempfile

import pytest

from headgate.connectors.errors import BrokerUnreachable
from headgate.runtime.errors import DiskFull, RecordsDeleted, SparkGone, SparkRefused
from headgate.runtime.failures import path_of, reason_of, translated
from headgate.runtime.formats.side import MALFORMED
from headgate.schema.written import WrittenSchema

pytestmark = pytest.mark.unit

KAFKA = "org.apache.kafka.common.errors."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"[STREAM_FAILED] Query terminated with exception: {KAFKA}TimeoutException: Timed out waiting for a node.",
            "Timed out waiting for a node.",
        ),
        (
            f"Job aborted: {KAFKA}TimeoutException: Topic o not present in metadata after 60000 ms.\n\tat a.b.C",
            "Topic o not present in metadata after 60000 ms.",
        ),
        (
            "java.util.concurrent.TimeoutException: Cannot fetch record for offset 1 in 30000 milliseconds",
            "Cannot fetch record for offset 1 in 30000 milliseconds.",
        ),
    ],
)
def test_a_broker_that_does_not_answer_is_told_as_such(text: str, said: str) -> None:
    error = translated(RuntimeError(text), brokers="b:1")
    assert isinstance(error, BrokerUnreachable)
    assert (error.brokers, error.reason) == ("b:1", said)


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("java.io.IOException: No space left on device", tempfile.gettempdir()),
        ("java.io.FileNotFoundException: /data/blocks/0f/x.tmp (No space left on device)", "/data/blocks/0f"),
        ("java.io.IOException: File too large", tempfile.gettempdir()),
    ],
)
def test_a_full_disk_is_told_with_its_folder(text: str, folder: str) -> None:
    error = translated(RuntimeError(text))
    assert isinstance(error, DiskFull)
    assert error.folder == folder


def test_a_lost_connection_to_spark_is_told_apart_from_a_refusal() -> None:
    assert isinstance(translated(ConnectionRefusedError("no")), SparkGone)
    assert isinstance(translated(RuntimeError("no")), SparkRefused)


def test_of_a_failed_call_the_innermost_cause_is_told() -> None:
    text = (
        "An error occurred while calling o787.save.\n: org.apache.spark.SparkException: Job aborted.\n\tat a.b.C\n"
        "Caused by: java.lang.IllegalStateException: The partition 3 has no leader.\n\t... 32 more\n"
    )
    error = translated(RuntimeError(text))
    assert "IllegalStateException: The partition 3 has no leader." in error.message()


CALL = "An error occurred while calling o787.save.\n: org.apache.spark.SparkException: Job aborted.\n\tat a.b.C\nCaused by: "
CAST = "org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] The value 'SECRET' cannot be cast. SQLSTATE: 22018"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CALL + CAST, "a value cannot be computed: cast invalid input"),
        (
            f"Job aborted: Lost task 0.0 (TID 5) (h executor driver): {CAST}",
            "a value cannot be computed: cast invalid input",
        ),
        (
            CALL + "org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] SECRET SQLSTATE: P0001",
            "a value cannot be computed: user raised exception",
        ),
        (
            CALL
            + "org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] a text cannot be cast to json SQLSTATE: P0001",
            "a value cannot be computed: a text cannot be cast to json",
        ),
        (CALL + "java.time.DateTimeException: SECRET\n", "Spark refused the query: DateTimeException"),
        (
            'Lost task 0.0 (TID 5) (h executor driver): java.lang.NumberFormatException: For input string: "SECRET"',
            "Spark refused the query: NumberFormatException",
        ),
        (
            CALL + "java.lang.OutOfMemoryError: Java heap space\n",
            "Spark refused the query: OutOfMemoryError: Java heap space",
        ),
        (
            CALL + "org.apache.spark.SparkException: [INTERNAL_ERROR] No plan. SQLSTATE: XX000",
            "Spark refused the query: SparkException: [INTERNAL_ERROR] No plan.",
        ),
    ],
)
def test_what_spark_says_of_a_value_is_not_repeated(text: str, message: str) -> None:
    assert translated(RuntimeError(text)).message() == message


@pytest.mark.parametrize(
    ("reason", "path"),
    [
        ('What is at $.items[2].price is against "type" of its schema', "$.value.items[2].price"),
        ("Value at $ does not fit integer, found text", "$.value"),
        ("Value at $.a.b, which is there twice", "$.value.a.b"),
        ('Value at $."a b"{}.c does not fit', '$.value."a b"{}.c'),
        ("$.op is none of c, r, u and d", "$.value.op"),
        ("It is too short for a registry's frame", "$.value"),
    ],
)
def test_the_path_is_taken_from_the_reason(reason: str, path: str) -> None:
    assert path_of("value", reason) == path


@pytest.mark.parametrize(
    "text",
    [
        "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Some data was lost",
        "kafka010.KafkaIllegalStateException: Some data may have been lost because they are not available in Kafka any more;",
        f"Caused by: {KAFKA}OffsetOutOfRangeException: Offsets out of range with no configured reset policy",
    ],
)
def test_records_that_are_gone_are_told_as_such(text: str) -> None:
    assert isinstance(translated(RuntimeError(text)), RecordsDeleted)


def test_a_malformed_record_is_read_with_its_schema_to_say_what_is_wrong() -> None:
    writer = WrittenSchema('"string"', id=7)
    assert reason_of(MALFORMED, b"\0\0\0\0\7\4a", writer) == "It ends before its schema does"
    assert reason_of(MALFORMED, b"\0\0\0\0\7\2abc", writer) == "2 bytes are left over behind it"
    assert reason_of(MALFORMED, b"\0\0\0\0\7\2abc", None) == "The bytes are not a record of their schema"
    assert reason_of("it is short", None, writer) == "It is short"
