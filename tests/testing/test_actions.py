"""Actions against the real services of an embedded world. The engine here takes statements and does nothing."""

from __future__ import annotations

from pathlib import Path

import httpx
import psycopg
import pytest
from confluent_kafka.admin import AdminClient

from headgate.errors import HeadgateError
from headgate.registry.client import RegistryClient
from headgate.serve.protocol import Done, Event
from headgate.testing.actions import check_call
from headgate.testing.context import SpecContext
from headgate.testing.environment import SpecEnvironment, create_database, drop_database
from headgate.testing.parse import parse_spec
from headgate.testing.run import Outcome, Settings, read_spec, run_file, run_step
from tests.testing.fake_engine import FakeEngine

pytestmark = pytest.mark.e2e


def _run(
    environment: SpecEnvironment, text: str, folder: Path, timeout: float = 2.0, *, rewrite: bool = False
) -> Outcome:
    path = folder / "a.spec"
    path.write_text(text)
    return run_file(read_spec(path), environment, Settings(timeout, rewrite))


def _run_steps(context: SpecContext, text: str) -> None:
    for step in parse_spec("a.spec", text, check_call).steps:
        run_step(step, context)


def _fails(context: SpecContext, text: str) -> str:
    with pytest.raises(HeadgateError) as caught:
        _run_steps(context, text)
    return caught.value.diagnostic().render()


INDEX = """
> MAKE things-${seed};

$ elasticsearch-verify index=things-${seed}
{"_id": "1", "name": "a", "n": 1.0, "inner": {"x": null}}
{"n": 2, "name": "b"}

$ elasticsearch-verify index=things-${seed} sort=n
{"n": 1, "name": "a", "inner": {}}
{"n": 2, "name": "b", "gone": null}

$ elasticsearch-mapping index=things-${seed}
{"n": {"type": "long"}, "name": {"type": "text", "fields": {"keyword": {"type": "keyword"}}}}

$ elasticsearch-mapping index=things-${seed}
{"_meta": {"made_by": "a test"}, "properties": {"n": {"type": "long"}}}

$ elasticsearch-mapping index=things-${seed} exact=true
{"n": {"type": "long"}, "inner": {"type": "object"},
 "name": {"type": "text", "fields": {"keyword": {"type": "keyword"}}}}
"""


def test_documents_and_mappings_of_an_index(environment: SpecEnvironment, engine: FakeEngine) -> None:
    context = environment.new_context(["elasticsearch"], 20)
    engine.answer = lambda sql: _make_index(context.elasticsearch, sql.split()[1].rstrip(";"))
    _run_steps(context, INDEX)
    context.timeout = 0.5
    index = "index=things-${seed}"
    message = _fails(context, f'$ elasticsearch-verify {index}\n{{"_id": "3", "n": 2, "name": "b"}}\n')
    lines = [line.strip() for line in message.splitlines()]
    at = lines.index('-{"_id": "3", "n": 2, "name": "b"}')
    assert lines[at + 1].startswith('+{"_id": "1"')
    assert '-n.type: "keyword"' in _fails(context, f'$ elasticsearch-mapping {index}\n{{"n": {{"type": "keyword"}}}}\n')
    assert "another one" in _fails(
        context, f'$ elasticsearch-mapping {index} exact=true\n{{"n": {{"type": "long"}}}}\n'
    )
    assert "no such index" in _fails(context, "$ elasticsearch-verify index=none\n")
    _run_steps(context, '$ elasticsearch-execute PUT /things-${seed}/_doc/9\n{"n": 9}\n\n')
    _run_steps(context, "$ elasticsearch-execute GET /things-${seed}/_doc/10 status=404\n")
    assert "status 400" in _fails(context, '$ elasticsearch-execute PUT /things-${seed}/_doc/9\n{"n": "x"}\n')
    assert "status 404" in _fails(context, "$ elasticsearch-execute GET /things-${seed}/_doc/10\n")
    environment.new_context([], 5)
    assert httpx.get(f"{context.elasticsearch}/_cat/indices?format=json", timeout=60).json() == []


def _make_index(url: str, name: str) -> list[Event]:
    text = {"type": "text", "fields": {"keyword": {"type": "keyword"}}}
    properties = {"n": {"type": "long"}, "inner": {"type": "object"}, "name": text}
    mappings = {"_meta": {"made_by": "a test"}, "properties": properties}
    body = {"settings": {"number_of_replicas": 0}, "mappings": mappings}
    httpx.put(f"{url}/{name}", json=body, timeout=60).raise_for_status()
    for id_, document in (("1", {"name": "a", "n": 1, "inner": {}}), ("2", {"name": "b", "n": 2})):
        httpx.put(f"{url}/{name}/_doc/{id_}", json=document, timeout=60).raise_for_status()
    return [Done("")]


def test_a_failing_step_shows_its_line_and_a_diff_and_ends_its_file_alone(
    environment: SpecEnvironment, tmp_path: Path
) -> None:
    text = (
        "# a deliberate mistake\n$ kafka-create-topic topic=t-${seed}\n\n$ kafka-ingest topic=t-${seed} format=json\n"
        '{"a": 1}\n{"a": 2}\n\n$ kafka-verify topic=t-${seed} format=json\n{"a": 1.0}\n{"a": 3}\n\n$ down kafka\n'
    )
    outcome = _run(environment, text, tmp_path, 1)
    assert outcome.failures[0].render() == (
        f"{tmp_path}/a.spec:8: CLI-0407: the records are not the expected ones in topic "
        f'"{_topic(outcome)}"\n--- expected\n+++ actual\n {{"a": 1.0}}\n-{{"a": 3}}\n+{{"a": 2}}'
    )
    assert "down" not in [one.state for one in environment.world.status().services]
    assert _run(environment, "$ set a=b\n", tmp_path).passed


def _topic(outcome: Outcome) -> str:
    return outcome.failures[0].diagnostic.message.split('"')[1]


RECORDS = """
$ kafka-create-topic topic=t-${seed}

$ kafka-ingest topic=t-${seed}
{"a": 1}
{"a": 2}
"""


def test_records_that_are_not_the_expected_ones(environment: SpecEnvironment) -> None:
    context = environment.new_context([], 5)
    _run_steps(context, RECORDS)
    context.timeout = 0.5
    for verify, message in (
        ('format=json\n{"a": 1}\n', "the records are not the expected ones"),
        ('format=json sort=true\n{"a": 2}\n', "there are more records than expected"),
        ("format=json\n", "the records are not the expected ones"),
        ('format=json at-least=true\n{"a": 2}\n{"a": 1}\n', "records are missing"),
        ('format=avro\n{"a": 1}\n', "cannot be decoded"),
        ('format=json key-format=json\n{"a": 1}\n', "wants a key and a value"),
        ('format=xml\n{"a": 1}\n', "takes one of avro"),
        ('format=json sort=yes\n{"a": 1}\n', "takes true or false"),
    ):
        assert message in _fails(context, "$ kafka-verify topic=t-${seed} " + verify)
    assert "by key" in _fails(context, '$ kafka-verify-latest topic=t-${seed} key-format=text\n"a" 1\n')


def test_an_action_that_does_not_hold_says_why(environment: SpecEnvironment) -> None:
    context = environment.new_context(["postgres"], 0.5)
    for text, message in (
        ("$ registry-verify subject=none-${seed} versions=1\n", "another number of versions"),
        ('$ registry-verify subject=none-${seed}\n"int"\n', "none-"),
        ("$ registry-publish subject=s type=xml\n1\n", "takes one of avro"),
        ("$ registry-config subject=s compatibility=some\n", "BACKWARD"),
        ("$ postgres-execute\nSELECT nope;\n", 'column "nope" does not exist'),
        ("$ postgres-verify\nSELECT 1;\n2\n", "the rows are not the expected ones"),
        ("$ postgres-verify\nSELECT 1\n", "semicolon"),
        ("$ postgres-columns table=none\na int\n", "does not exist"),
        ("$ file-write path=../x\na\n", "only below"),
        ("$ kafka-ingest topic=none-${seed} format=avro\n1\n", "none-"),
        ("$ kafka-ingest topic=t key-subject=s\n1\n", 'without "key-format"'),
        ("$ kafka-ingest topic=t raw=true\n1\n", "format=bytes"),
        ("$ kafka-verify-topic topic=none-${seed} partitions=1\n", "none-"),
        ("$ down mongo\n", "mongo"),
        ("$ set a=${b}\n", 'variable "b" is not set'),
    ):
        assert message in _fails(context, text)
    context.timeout = 60
    assert "ended with status 2 and not 0" in _fails(context, "$ headgate nonsense\n")
    assert "did not print" in _fails(context, "$ headgate --version\ncontains: no such words\n")


def test_the_command_line_is_called_in_the_folder_and_for_the_project(
    environment: SpecEnvironment, tmp_path: Path
) -> None:
    text = (
        "$ file-write path=a.sql\nSELECT 1;\n\n$ headgate --help\ncontains: Schema-first streaming SQL\ncontains: world\n\n"
        "$ headgate world status --output json\ncontains: postgres\n\n$ headgate doctor --nonsense status=2\ncontains: --nonsense\n"
    )
    outcome = _run(environment, text, tmp_path, 60)
    assert outcome.passed, outcome.failures[0].render()


def test_rewriting_puts_what_was_there_and_keeps_the_rest(environment: SpecEnvironment, tmp_path: Path) -> None:
    text = (
        "# kept\n$ kafka-create-topic topic=t-${seed}\n\n$ kafka-ingest topic=t-${seed} format=json\n"
        '{"a": "${seed}"}\n\n$ kafka-verify topic=t-${seed} format=json\n{"a": 0}\n{"a": 1}\n\n'
        "# this stays as it is written\n$ postgres-verify\nSELECT 1.50;\n1.5\n\n$ postgres-verify\nSELECT 1 AS a, 'x y' AS b;\na b\n----\n7 8\n\n"
        "$ postgres-verify\nSELECT 1 WHERE false;\n1\n"
    )
    outcome = _run(environment, text, tmp_path, 1, rewrite=True)
    assert (outcome.passed, outcome.rewritten) == (True, 3)
    expected = text.replace('{"a": 0}\n{"a": 1}', '{"a": "${seed}"}').replace("7 8", '1 "x y"')
    assert (tmp_path / "a.spec").read_text() == expected.replace("false;\n1\n", "false;\n<empty>\n")
    assert _run(environment, (tmp_path / "a.spec").read_text(), tmp_path, 5).passed


def test_what_a_file_leaves_behind_is_removed_when_the_next_begins(
    environment: SpecEnvironment, engine: FakeEngine, tmp_path: Path
) -> None:
    text = (
        "$ kafka-create-topic topic=left-${seed}\n\n"
        '$ registry-publish subject=left-a-${seed} type=protobuf\nsyntax = "proto3"; message A {}\n\n'
        "$ registry-publish subject=left-b-${seed} type=protobuf references="
        """'[{"name": "a.proto", "subject": "left-a-${seed}", "version": 1}]'\n"""
        'syntax = "proto3"; import "a.proto"; message B { A a = 1; }\n\n'
        "$ postgres-execute\nCREATE TABLE t (a int);\n\n$ down registry\n"
    )
    assert _run(environment, text, tmp_path, 20).passed
    used = engine.projects[-1]
    assert str(used.postgres_database).startswith("spec_s")
    assert _run(environment, "$ set a=b\n", tmp_path).passed
    assert engine.projects[-1].folder != used.folder
    assert engine.projects[-1].postgres_database is None
    world = environment.world
    topics = AdminClient({"bootstrap.servers": world.kafka()}).list_topics(timeout=30).topics
    assert not [name for name in topics if name.startswith("left-")]
    with RegistryClient([world.registry()]) as registry:
        assert not [name for name in registry.subjects(deleted=True) if name.startswith("left-")]
    with psycopg.connect(world.postgres()) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [used.postgres_database])
        assert found.fetchone() is None


def test_a_database_goes_also_when_somebody_is_connected(environment: SpecEnvironment) -> None:
    create_database(environment.world, "spec_in_use")
    url = environment.world.postgres().rpartition("/")[0] + "/spec_in_use"
    connection = psycopg.connect(url)
    drop_database(environment.world, "spec_in_use")
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    connection.close()


def test_each_format_is_a_run_of_its_own(environment: SpecEnvironment, tmp_path: Path) -> None:
    text = 'format: avro, protobuf\n\n$ registry-publish subject=s-${seed} type=${format}\n"int"\n'
    outcome = _run(environment, text, tmp_path, 5)
    [failure] = outcome.failures
    assert (failure.format, failure.line) == ("protobuf", 3)
    assert f"{tmp_path}/a.spec:3 (format protobuf)" in failure.render()
