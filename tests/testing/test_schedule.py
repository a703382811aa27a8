"""Which services a file needs, which files run alone, and in which order jobs take files."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from headgate.testing.actions import check_call
from headgate.testing.parse import SpecFaults, parse_spec
from headgate.testing.run import SpecFile, WaitingFiles, describe

pytestmark = pytest.mark.unit


def _file(text: str) -> SpecFile:
    return describe(Path("a.spec"), parse_spec("a.spec", text, check_call))


@pytest.mark.parametrize(
    ("text", "services"),
    [
        ("# postgres, kafka and elasticsearch\n\n> SELECT 1;\n", ""),
        ("$ kafka-create-topic topic=t\n", "kafka"),
        ('$ kafka-ingest topic=t format=text\n"postgres ${seed}"\n', "kafka"),
        ("$ kafka-ingest topic=t format=avro\n1\n", "kafka registry"),
        ("$ kafka-verify topic=t format=bytes key-format=protobuf\n", "kafka registry"),
        ("format: json, avro\n\n$ kafka-ingest topic=t format=${format}\n1\n", "kafka registry"),
        ('$ kafka-ingest topic=t schema-id=4 format=bytes\n"00"\n', "kafka registry"),
        ("$ registry-config subject=s compatibility=NONE\n", "registry"),
        ("$ postgres-execute\nSELECT 1\n", "postgres"),
        ("$ elasticsearch-verify index=i\n", "elasticsearch"),
        ("$ down postgres\n\n$ up postgres\n", "postgres"),
        ("> CREATE SOURCE s FROM KAFKA CONNECTION kafka (TOPIC 't');\n", "kafka"),
        (
            "> CREATE SOURCE s FROM KAFKA -- CONNECTION postgres\n  CONNECTION \"kafka\" (TOPIC 't');\n",
            "kafka",
        ),
        ("? EXPLAIN CREATE SINK s FROM t INTO KAFKA connection kafka (TOPIC 't');\n", "kafka"),
        ("! CREATE SOURCE s FROM KAFKA CONNECTION kafka (TOPIC 't;\n", "kafka"),
        ("> SELECT 'CONNECTION kafka';\n", ""),
        ("> SELECT kafka, postgres FROM registry;\n", ""),
        ("> CREATE CONNECTION c TO KAFKA (BROKER '${bootstrap}');\n", "kafka"),
        ("> CREATE CONNECTION c TO CONFLUENT SCHEMA REGISTRY (URL '${registry}/x');\n", "registry"),
        ("> SELECT '$${postgres}';\n", ""),
        ("$ set url=${elasticsearch}\n", "elasticsearch"),
        ("$ file-write path=a.sql\nCREATE SOURCE s FROM KAFKA CONNECTION kafka (TOPIC 't');\n", "kafka"),
        ('$ http POST /api/plan\n{"sql": "CREATE SINK s CONNECTION postgres"}\n', "postgres"),
    ],
)
def test_services_come_from_the_steps(text: str, services: str) -> None:
    assert _file(text).services == frozenset(services.split())


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("$ kill\n", True),
        ("$ restart\n", False),
        ("$ down kafka\n\n$ up kafka\n", True),
        ("# kill\n\n> SELECT 'restart';\n", False),
        ("$ wait-idle\n", False),
        ("$ file-write path=a\n$ kill\n", False),
    ],
)
def test_files_that_disrupt_headgate_or_a_service_run_alone(text: str, alone: bool) -> None:
    assert _file(text).is_alone is alone


def _named(name: str, *services: str, alone: bool = False) -> SpecFile:
    return SpecFile(Path(name), SpecFaults(()), frozenset(services), alone)


def test_files_are_taken_in_their_order_and_each_once() -> None:
    files = [_named(name) for name in "abc"]
    waiting = WaitingFiles(files, 2)
    assert [waiting.take(job) for job in (1, 2, 1, 2, 1)] == [*files, None, None]


def test_a_job_leaves_a_slow_service_to_the_job_that_has_it() -> None:
    slow, other = _named("a", "elasticsearch"), _named("b", "kafka")
    has, has_not = frozenset({"elasticsearch"}), frozenset({"kafka"})
    assert WaitingFiles([slow, other], 2).take(1, has) is slow
    assert WaitingFiles([slow, other], 2).take(2, has_not) is other
    assert WaitingFiles([slow], 2).take(2, has_not) is slow


def test_files_that_run_alone_wait_until_the_other_jobs_have_left() -> None:
    alone, shared = _named("a", alone=True), _named("b")
    waiting = WaitingFiles([alone, shared], 2)
    assert waiting.take(2) is shared
    taken: list[SpecFile | None] = []
    first = threading.Thread(target=lambda: taken.append(waiting.take(1)))
    first.start()
    assert waiting.take(2) is None
    first.join(0.05)
    assert taken == []
    waiting.leave()
    first.join(5)
    assert taken == [alone]
    assert waiting.take(1) is None
