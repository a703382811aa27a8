"""Streams and tables over a real catalog and a real registry: what is registered, what is written, and what a failure leaves."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from headgate.catalog.errors import CatalogFull
from headgate.catalog.store.sqlite import SqliteStore
from headgate.connectors.errors import BrokerUnreachable
from headgate.connectors.kafka_rows import Record
from headgate.control.sessions import Result, ResultRows, Session
from headgate.registry.client import RegistryClient
from headgate.registry.errors import (
    IncompatibleSchema,
    NotAllowed,
    RegistryError,
    RegistryFailed,
    RegistryUnreachable,
    UnknownReference,
    WrongCredentials,
)
from headgate.registry.schemas import Reference, Schema
from headgate.resolve.stream_errors import (
    InsertFollows,
    InsertTypeDiffers,
    RowUnwritable,
    SchemaGotOtherId,
    SchemaIdUnknown,
)
from headgate.runtime.record_times import NO_TIME, NULL, TOO_EARLY
from headgate.schema.errors import RecursiveSchema
from headgate.schema.written import CompatibilityLevel
from tests.control.scripts import Answers, Shell, TopicNames

pytestmark = pytest.mark.unit

ORDER = '{"type": "record", "name": "o", "fields": [{"name": "Id", "type": "long"}, {"name": "n", "type": "int", "default": 7}]}'
BY_ID = "CREATE STREAM s WITH (kafka_topic = 't', partitions = 1, value_format = 'avro', value_schema_id = {id}{more})"


@pytest.fixture(autouse=True)
def no_subjects(sql: Shell) -> None:
    """All tests share one registry."""
    for subject in reversed(sql.registry.subjects()):
        sql.registry.delete_subject(subject)


def test_rows_are_written_with_the_given_id_and_the_defaults_of_the_schema(sql: Shell) -> None:
    id_ = sql.subject("given", ORDER)
    sql.run(BY_ID.format(id=id_, more=""))
    assert sql.tags('INSERT INTO s ("Id") VALUES (1), (2); INSERT INTO s VALUES (3, 4)') == ["INSERT 2", "INSERT 1"]
    frame = b"\x00" + id_.to_bytes(4, "big")
    assert sql.connections.cluster.written == [
        ("t", None, frame + b"\x02\x0e"), ("t", None, frame + b"\x04\x0e"), ("t", None, frame + b"\x06\x08"),
    ]  # fmt: skip
    assert sql.registry.latest("t-value").schema_id == id_


def test_a_stream_and_its_rows_are_made_in_one_script(sql: Shell) -> None:
    sql.run(
        "CREATE TABLE t (k bigint PRIMARY KEY, a text) WITH (kafka_topic = 't', partitions = 1, key_format = 'kafka', value_format = 'avro');"
        "INSERT INTO t VALUES (1, 'x'); INSERT INTO t (k) VALUES (1)"
    )
    (_, key, value), (_, other, nothing) = sql.connections.cluster.written
    assert (key, other, nothing) == (b"\x00\x00\x00\x00\x00\x00\x00\x01",) * 2 + (None,)
    assert value is not None
    assert value[:5] == b"\x00" + sql.registry.latest("t-value").schema_id.to_bytes(4, "big")


def test_a_stream_by_inference_reads_what_an_earlier_statement_of_the_script_registers(sql: Shell) -> None:
    sql.run(
        "CREATE STREAM a (x int, y text) WITH (kafka_topic = 't', partitions = 1, value_format = 'avro');"
        "CREATE STREAM b WITH (kafka_topic = 't', value_format = 'avro')"
    )
    assert [row[0] for row in sql.rows("DESCRIBE b")] == ["x", "y"]


def test_a_row_that_cannot_be_written_writes_nothing_of_its_statements(sql: Shell) -> None:
    sql.run(BY_ID.format(id=sql.subject("given", ORDER), more=""))
    error = sql.failure('INSERT INTO s ("Id") VALUES (1); INSERT INTO s (n) VALUES (1)')
    assert isinstance(error, RowUnwritable)
    assert error.path == "$.Id"
    assert sql.connections.cluster.written == []


def test_a_subject_that_has_an_incompatible_schema_refuses_another_stream(sql: Shell) -> None:
    sql.run(BY_ID.format(id=sql.subject("given", ORDER), more=""))
    other = sql.subject("other", '{"type": "record", "name": "o", "fields": [{"name": "Id", "type": "string"}]}')
    error = sql.failure(BY_ID.format(id=other, more="").replace("STREAM s", "STREAM u"))
    assert isinstance(error, IncompatibleSchema)
    assert error.subject == "t-value"


def test_an_earlier_version_of_the_subject_is_taken_and_nothing_is_registered(
    sql: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = sql.subject("t-value", ORDER)
    # A later version which the earlier one could not read: the subject would refuse the earlier one now.
    sql.registry.set_level(CompatibilityLevel.NONE, "t-value")
    sql.subject("t-value", ORDER.replace('"long"', '"string"'))
    sql.registry.set_level(CompatibilityLevel.FULL, "t-value")
    refused = NotAllowed("http://registry", "register a schema", "ann")
    monkeypatch.setattr(RegistryClient, "register", _raising(refused))
    sql.run(BY_ID.format(id=earlier, more="") + '; INSERT INTO s ("Id") VALUES (1)')
    assert sql.connections.cluster.written == [("t", None, b"\x00" + earlier.to_bytes(4, "big") + b"\x02\x0e")]
    sql.registry.set_level(None, "t-value")
    assert len(sql.registry.versions("t-value")) == 2


@pytest.mark.parametrize("fails", ["register", "commit"])
def test_a_failure_takes_back_the_topic_and_the_schemas(
    sql: Shell, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    ids = sql.subject("k", '"string"'), sql.subject("given", ORDER)
    text = (
        f"CREATE TABLE s WITH (kafka_topic = 't', partitions = 1, format = 'avro', key_schema_id = {ids[0]},"
        f" value_schema_id = {ids[1]})"
    )
    with monkeypatch.context() as patched:
        if fails == "commit":
            patched.setattr(SqliteStore, "commit", _raising(CatalogFull("catalog.db")))
        else:
            real = RegistryClient.register

            def register(self: RegistryClient, subject: str, schema: Schema) -> int:
                if subject == "t-value":
                    raise RegistryUnreachable("http://registry", "no answer")
                return real(self, subject, schema)

            patched.setattr(RegistryClient, "register", register)
        sql.failure(text)
    assert "t" not in sql.topics
    assert [name for name in sql.registry.subjects() if name.startswith("t-")] == []
    sql.run(text)
    assert [name for name in sql.registry.subjects() if name.startswith("t-")] == ["t-key", "t-value"]


def _raising(error: Exception) -> Any:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_a_registry_that_gives_another_id_is_told_and_nothing_stays(
    sql: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = sql.subject("given", ORDER)
    real = RegistryClient.register
    monkeypatch.setattr(RegistryClient, "register", lambda self, subject, schema: real(self, subject, schema) + 1)
    error = sql.failure(BY_ID.format(id=id_, more=""))
    assert isinstance(error, SchemaGotOtherId)
    assert (error.id, error.found) == (id_, id_ + 1)
    assert "t-value" not in sql.registry.subjects()


def test_schemas_with_references_are_registered_with_them(sql: Shell) -> None:
    sql.registry.register(
        "inner", Schema('{"type": "record", "name": "inner", "fields": [{"name": "x", "type": "int"}]}')
    )
    outer = Schema(
        '{"type": "record", "name": "outer", "fields": [{"name": "i", "type": "inner"}]}',
        references=(Reference("inner", "inner", 1),),
    )
    id_ = sql.registry.register("outer", outer)
    sql.run(BY_ID.format(id=id_, more="") + "; INSERT INTO s VALUES (STRUCT(x := 5))")
    assert sql.connections.cluster.written == [("t", None, b"\x00" + id_.to_bytes(4, "big") + b"\x0a")]
    assert sql.registry.latest("t-value").schema.references == outer.references


def test_a_recursive_schema_is_refused_with_its_path(sql: Shell) -> None:
    id_ = sql.subject(
        "given", '{"type": "record", "name": "tree", "fields": [{"name": "left", "type": ["null", "tree"]}]}'
    )
    assert isinstance(sql.failure(BY_ID.format(id=id_, more="")), RecursiveSchema)
    assert "t" not in sql.topics


def test_a_schema_whose_reference_is_gone_is_refused(sql: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    id_ = sql.subject("given", ORDER)
    gone = Schema(ORDER, references=(Reference("inner", "nowhere", 1),))
    monkeypatch.setattr(RegistryClient, "schema_by_id", lambda *_: gone)
    assert isinstance(sql.failure(BY_ID.format(id=id_, more="")), UnknownReference)


def test_describe_extended_shows_both_schemas_side_by_side(sql: Shell) -> None:
    id_ = sql.subject("given", ORDER)
    sql.run(f"CREATE STREAM src (\"Id\" bigint) WITH (kafka_topic = 'src', partitions = 1, value_format = 'json');"
            f"CREATE STREAM s WITH (kafka_topic = 't', value_format = 'avro', value_schema_id = {id_}) AS SELECT \"Id\" FROM src")  # fmt: skip
    found = {str(name): value for name, value in sql.rows("DESCRIBE EXTENDED s")}
    assert found["topic"] == "t"
    assert found["value schema id"] == id_
    assert found["value subject"] == "t-value"
    assert found["value version"] == sql.registry.latest("t-value").version
    assert found["value full name"] == "o"
    assert found["value field Id"] == "bigint | bigint not null"
    assert found["value field n"] == "no column | integer not null default 7"


def test_describe_extended_gives_the_version_of_the_subject_and_works_without_the_registry(
    sql: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql.subject("t-value", ORDER.replace("7", "8"))
    sql.run(BY_ID.format(id=sql.subject("given", ORDER), more=""))

    def shown() -> object:
        return {str(name): value for name, value in sql.rows("DESCRIBE EXTENDED s")}["value version"]

    version = sql.registry.latest("t-value").version
    assert shown() == version
    sql.registry.delete_version("t-value", version)
    assert shown() is None
    monkeypatch.setattr(RegistryClient, "look_up", _raising(RegistryUnreachable("http://registry", "no answer")))
    assert "http://registry" in str(shown())


def test_drop_delete_topic_deletes_the_topic_and_its_subjects(sql: Shell) -> None:
    sql.run(BY_ID.format(id=sql.subject("given", ORDER), more="") + "; DROP STREAM s DELETE TOPIC")
    assert "t" not in sql.topics
    assert "t-value" not in sql.registry.subjects()


def test_a_drop_whose_commit_fails_leaves_the_topic_and_its_subjects(
    sql: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql.run(BY_ID.format(id=sql.subject("given", ORDER), more=""))
    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "commit", _raising(CatalogFull("catalog.db")))
        sql.failure("DROP STREAM s DELETE TOPIC")
    assert [row[0] for row in sql.rows("SHOW STREAMS")] == ["s"]
    assert "t" in sql.topics
    assert "t-value" in sql.registry.subjects()
    sql.run("DROP STREAM s DELETE TOPIC")
    assert ("t" in sql.topics, "t-value" in sql.registry.subjects()) == (False, False)


@pytest.mark.parametrize("fails", ["topic", "subject"])
def test_what_cannot_be_deleted_is_told_and_the_rest_is_deleted(
    sql: Shell, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    sql.run(BY_ID.format(id=sql.subject("given", ORDER), more=""))
    if fails == "topic":
        monkeypatch.setattr(TopicNames, "delete_topic", _raising(BrokerUnreachable("broker", "no answer")))
    else:
        gone = _raising(RegistryUnreachable("http://registry", "no answer"))
        monkeypatch.setattr(RegistryClient, "delete_subject", gone)
    notices = sql.notices("DROP STREAM s DELETE TOPIC")
    left = 'topic "t"' if fails == "topic" else 'subject "t-value"'
    (notice,) = [text for text in notices if text.startswith(left)]
    assert "delete it yourself" in notice
    assert sql.rows("SHOW STREAMS") == []
    assert ("t" in sql.topics, "t-value" in sql.registry.subjects()) == (fails == "topic", fails == "subject")


def test_a_query_is_inserted_by_position_and_type(sql: Shell) -> None:
    sql.run(
        "CREATE STREAM a (x int, y text) WITH (kafka_topic = 'a', partitions = 1, value_format = 'json');"
        "CREATE STREAM b (z bigint, w text) WITH (kafka_topic = 'b', partitions = 1, value_format = 'json')"
    )
    assert sql.tags("INSERT INTO b (w) SELECT y FROM a") == ["INSERT 1"]  # the shell answers with the text of the query
    assert sql.connections.cluster.written == [("b", None, b'{"z":null,"w":"SELECT y FROM a"}')]
    assert isinstance(sql.failure("INSERT INTO b SELECT y, x FROM a"), InsertTypeDiffers)
    assert isinstance(sql.failure("INSERT INTO b SELECT x, y FROM a EMIT CHANGES"), InsertFollows)


def test_a_query_that_stops_at_a_row_tells_how_many_were_written(sql: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sql.run(BY_ID.format(id=sql.subject("given", ORDER), more=""))
    sql.run("CREATE STREAM a (x bigint, y int) WITH (kafka_topic = 'a', partitions = 1, value_format = 'json')")

    def two_batches(*_: object) -> Iterator[Result]:
        yield ResultRows(((1, 1), (2, 2)))
        yield ResultRows(((None, 3),))

    monkeypatch.setattr(Answers, "select", two_batches)
    found = sql.failure("INSERT INTO s SELECT x, y FROM a")
    assert isinstance(found, RowUnwritable)
    assert str(found.detail()).startswith("2 rows of the query before it were written")
    assert len(sql.connections.cluster.written) == 2


def test_an_insert_that_waits_for_its_broker_holds_up_no_other(sql: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        sql.run(f"CREATE STREAM {name} (n int) WITH (kafka_topic = '{name}', partitions = 1, value_format = 'json')")
    waits, answers = threading.Event(), threading.Event()

    def write(self: TopicNames, records: Sequence[Record]) -> None:
        if records[0].topic == "a":
            waits.set()
            assert answers.wait(60)
        real(self, records)

    real = TopicNames.write
    monkeypatch.setattr(TopicNames, "write", write)
    first = threading.Thread(target=lambda: list(sql.executor.run("INSERT INTO a VALUES (1)", Session())))
    first.start()
    assert waits.wait(60)
    sql.run("INSERT INTO b VALUES (2)")
    answers.set()
    first.join()
    assert [topic for topic, _, _ in sql.connections.cluster.written] == ["b", "a"]


def test_show_create_of_a_stream_runs_again(sql: Shell) -> None:
    sql.run(BY_ID.format(id=sql.subject("given", ORDER), more=", on_error = 'skip'"))
    ((_, text),) = sql.rows("SHOW CREATE STREAM s")
    sql.run("DROP STREAM s")
    sql.run(str(text))
    assert sql.rows("SHOW CREATE STREAM s") == [("s", text)]


def test_planning_a_thousand_inserts_asks_nobody_outside(sql: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sql.run(BY_ID.format(id=sql.subject("given", ORDER), more=""))
    monkeypatch.setattr(RegistryClient, "schema_by_id", _raising(AssertionError("the registry is asked")))
    sql.run(";".join(f"INSERT INTO s VALUES ({n}, {n})" for n in range(1000)))
    assert len(sql.connections.cluster.written) == 1000


@pytest.mark.parametrize(
    "error",
    [
        WrongCredentials("http://registry", "ann"),
        NotAllowed("http://registry", "read schema 1", "ann"),
        RegistryFailed("http://registry", "read schema 1", 500, "broken"),
        RegistryUnreachable("http://registry", "no answer in time"),
    ],
)
def test_what_is_wrong_with_the_registry_is_told_apart(
    sql: Shell, monkeypatch: pytest.MonkeyPatch, error: RegistryError
) -> None:
    sql.run("CREATE STREAM src (k int KEY, n int) WITH (kafka_topic = 'src', partitions = 1, format = 'avro')")
    monkeypatch.setattr(RegistryClient, "schema_by_id", _raising(error))
    for side in ("key", "value"):
        declared = "v int" if side == "key" else "k int KEY"
        given = f"kafka_topic = 't', partitions = 1, {side}_format = 'avro', {side}_schema_id = 1"
        other = "value_format = 'json'" if side == "key" else "key_format = 'kafka'"
        by_id = f"CREATE STREAM s ({declared}) WITH ({given}, {other})"
        assert type(sql.failure(by_id)) is type(error)
        assert type(sql.failure(f"CREATE STREAM t WITH ({side}_schema_id = 1) AS SELECT k, n FROM src")) is type(error)
    assert "t" not in sql.topics


def test_the_id_of_a_schema_that_was_deleted_for_good_is_refused(sql: Shell) -> None:
    id_ = sql.subject("given", ORDER.replace('"o"', '"deleted"'))
    sql.registry.delete_subject("given")
    sql.registry.delete_subject("given", permanent=True)
    assert isinstance(sql.failure(BY_ID.format(id=id_, more="")), SchemaIdUnknown)


def test_formats_are_written_in_any_case_and_a_schema_may_have_two_thousand_fields(sql: Shell) -> None:
    fields = ", ".join(f'{{"name": "f{n}", "type": ["null", "int"], "default": null}}' for n in range(2000))
    id_ = sql.subject("given", f'{{"type": "record", "name": "o", "fields": [{fields}]}}')
    sql.run(
        f"CREATE STREAM s WITH (KAFKA_TOPIC = 't', PARTITIONS = 1, VALUE_FORMAT = 'AVRO', VALUE_SCHEMA_ID = {id_});"
        "INSERT INTO s (f1999) VALUES (1)"
    )
    ((_, _, value),) = sql.connections.cluster.written
    assert value == b"\x00" + id_.to_bytes(4, "big") + bytes(1999) + b"\x02\x02"


TIMED = "CREATE STREAM s (t {type}, n int) WITH (kafka_topic = 't', partitions = 1, value_format = 'json', timestamp = 't'{more})"


@pytest.mark.parametrize(
    ("type_", "value", "time"),
    [
        ("bigint", "1500000000123", 1500000000123),
        ("timestamp", "'2026-11-15T12:30:00.123456'", 1794745800123),
        ("timestamptz", "'2026-11-15T12:30:00.123456+01:00'", 1794742200123),
        ("text", "'2026-11-15 12:30:00'", 1794745800000),
    ],
)
def test_a_record_has_the_time_of_its_column(sql: Shell, type_: str, value: str, time: int) -> None:
    more = ", timestamp_format = 'yyyy-MM-dd HH:mm:ss'" if type_ == "text" else ""
    sql.run(TIMED.format(type=type_, more=more) + f"; INSERT INTO s VALUES ({value}, 1)")
    assert sql.connections.cluster.times == [time]


@pytest.mark.parametrize(
    ("type_", "value", "reason"),
    [
        ("bigint", "NULL", NULL),
        ("bigint", "0", TOO_EARLY),
        ("bigint", "-1", TOO_EARLY),
        ("timestamp", "'1969-12-31T23:59:59'", TOO_EARLY),
        ("timestamptz", "'1970-01-01T00:00:00+01:00'", TOO_EARLY),
        ("text", "'tomorrow'", NO_TIME),
        ("text", "NULL", NULL),
    ],
)
def test_a_row_without_a_time_writes_nothing_of_its_statements(sql: Shell, type_: str, value: str, reason: str) -> None:
    more = ", timestamp_format = 'yyyy-MM-dd HH:mm:ss'" if type_ == "text" else ""
    good = "'2026-11-15 12:30:00'" if type_ == "text" else "'2026-11-15T12:30:00Z'" if type_ == "timestamptz" else "1"
    good = "'2026-11-15T12:30:00'" if type_ == "timestamp" else good
    sql.run(TIMED.format(type=type_, more=more))
    error = sql.failure(f"INSERT INTO s VALUES ({good}, 1); INSERT INTO s VALUES ({value}, 2)")
    assert isinstance(error, RowUnwritable)
    assert (error.path, error.reason) == ("$.t", reason)
    assert sql.connections.cluster.written == []


def test_a_deletion_has_the_time_of_its_key_or_that_of_its_writing(sql: Shell) -> None:
    table = "CREATE TABLE {0} (k bigint PRIMARY KEY, t bigint) WITH (kafka_topic = '{0}', partitions = 1, value_format = 'json', timestamp = '{1}')"
    assert "deletes a key" in sql.notices(table.format("a", "t"))[-1]
    assert "deletes a key" not in sql.notices(table.format("b", "k"))[-1]
    sql.run(
        "INSERT INTO a VALUES (1, 2); INSERT INTO a (k) VALUES (1); INSERT INTO b VALUES (3, 4); INSERT INTO b (k) VALUES (3)"
    )
    assert sql.connections.cluster.times == [2, None, 3, 3]


def test_describe_and_show_create_tell_the_time(sql: Shell) -> None:
    sql.run(TIMED.format(type="text", more=", timestamp_format = 'yyyy-MM-dd HH:mm:ss'"))
    found = {str(name): value for name, value in sql.rows("DESCRIBE EXTENDED s")}
    assert found["record time"] == "column t, a text as yyyy-MM-dd HH:mm:ss"
    ((_, text),) = sql.rows("SHOW CREATE STREAM s")
    assert "timestamp = 't',\n    timestamp_format = 'yyyy-MM-dd HH:mm:ss'" in str(text)
    sql.run(f"DROP STREAM s; {text}")


def test_the_rows_of_a_query_have_times_too(sql: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sql.run(TIMED.format(type="timestamp", more=""))
    sql.run("CREATE STREAM a (x timestamp, y int) WITH (kafka_topic = 'a', partitions = 1, value_format = 'json')")

    def rows(*_: object) -> Iterator[Result]:
        yield ResultRows((("2026-11-15T12:30:00", 1), ("2026-11-15T12:30:01", 2)))

    monkeypatch.setattr(Answers, "select", rows)
    assert sql.tags("INSERT INTO s SELECT x, y FROM a") == ["INSERT 2"]
    assert sql.connections.cluster.times == [1794745800000, 1794745801000]
