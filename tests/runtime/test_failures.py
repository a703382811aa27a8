"""What Spark raises, in our words."""

from __future__ import annotations

import tempfile

import pytest

from headgate.connectors.errors import BrokerUnreachable
from headgate.runtime.errors import DiskFull, SparkGone, SparkRefused
from headgate.runtime.failures import path_of, translated

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


@pytest.mark.parametrize(
    ("reason", "path"),
    [
        ('What is at $.items[2].price is against "type" of its schema', "$.value.items[2].price"),
        ("Value at $ does not fit integer, found text", "$.value"),
        ("Value at $.a.b, which is there twice", "$.value.a.b"),
        ('Value at $."a b"{}.c does not fit', '$.value."a b"{}.c'),
        ("It is too short for a registry's frame", "$.value"),
    ],
)
def test_the_path_is_taken_from_the_reason(reason: str, path: str) -> None:
    assert path_of("value", reason) == path
