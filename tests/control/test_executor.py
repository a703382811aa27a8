"""Scripts: planned as a whole, done in order, and errors that point at their place."""

from __future__ import annotations

import json

import pytest

from headgate.catalog.errors import UnknownObject
from headgate.connectors.errors import TopicNotFound
from headgate.connectors.kafka import NewTopicOptions
from headgate.control.sessions import Done, Notice, Session
from headgate.registry.errors import IncompatibleSchema, RegistryUnreachable, SubjectNotFound
from headgate.resolve.errors import NoSchemaForTopic, SecretWrittenOut
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind
from tests.control.scripts import Shell

pytestmark = pytest.mark.unit

AVRO = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
LINES = "CREATE SOURCE lines FROM KAFKA CONNECTION kafka (TOPIC 'lines') FORMAT TEXT"


@pytest.fixture
def lines(sql: Shell) -> Shell:
    sql.topics["lines"] = NewTopicOptions()
    return sql


def excerpt(sql: Shell, script: str) -> str:
    """The line of the error with its carets."""
    told = sql.failure(script).diagnostic(script)
    assert told.excerpt is not None
    return told.excerpt


# all or nothing


def test_statements_answer_one_after_another(lines: Shell) -> None:
    script = f"{LINES}; CREATE VIEW v AS SELECT text FROM lines; CREATE VIEW IF NOT EXISTS v AS SELECT 1 AS one"
    assert lines.run(script) == [
        Done("CREATE SOURCE"),
        Done("CREATE VIEW"),
        Notice('view "v" exists already, skipped'),
        Done("CREATE VIEW"),
    ]


@pytest.mark.parametrize(
    "third",
    [
        "CREATE VIEW w AS SELECT nosuch FROM v",
        "CREATE SOURCE s FROM KAFKA CONNECTION kafka (TOPIC 'nosuch') FORMAT TEXT",
        "DROP SOURCE lines",
        "SELECT nosuch FROM v",
        "SHOW CREATE VIEW nosuch",
        "CREATE MATERIALIZED VIEW m AS SELECT rand() AS one",
        "SET search_path = nosuch",
        "CREATE VIEW v AS SELECT 2 AS two",
    ],
)
def test_a_script_whose_third_statement_fails_does_nothing(lines: Shell, third: str) -> None:
    before, events = lines.version, lines.store.events()
    lines.failure(f"{LINES}; CREATE VIEW v AS SELECT text FROM lines; {third}")
    assert lines.version == before
    assert lines.store.events() == events


def test_nothing_outside_is_made_by_a_script_that_fails(lines: Shell) -> None:
    sink = f"CREATE SINK s FROM lines INTO KAFKA CONNECTION kafka (TOPIC 'never') {AVRO}"
    lines.failure(f"{LINES}; {sink}; CREATE VIEW w AS SELECT nosuch FROM lines")
    assert set(lines.topics) == {"lines"}
    with pytest.raises(SubjectNotFound):
        lines.registry.latest("never-value")


def test_a_source_can_read_what_an_earlier_sink_of_the_script_will_write(lines: Shell) -> None:
    script = (
        f"{LINES}; CREATE SINK s FROM lines INTO KAFKA CONNECTION kafka (TOPIC 'relay') {AVRO};"
        f"CREATE SOURCE again FROM KAFKA CONNECTION kafka (TOPIC 'relay') {AVRO}"
    )
    assert lines.tags(script) == ["CREATE SOURCE", "CREATE SINK", "CREATE SOURCE"]
    assert lines.rows("DESCRIBE again") == [("text", "text", False, False, None)]
    ((_, created),) = lines.rows("SHOW CREATE SOURCE again")
    schema_id = lines.registry.latest("relay-value").schema_id
    assert f"SEED VALUE SCHEMA ID {schema_id} " in str(created)


def test_an_empty_script_does_nothing(sql: Shell) -> None:
    assert sql.run(" ; -- nothing\n ;") == []


# sinks


def test_a_sink_makes_its_topic_and_freezes_its_schema_with_its_id(lines: Shell) -> None:
    options = "(TOPIC 'frozen', TOPIC PARTITION COUNT 4)"
    lines.run(f"{LINES}; CREATE SINK s FROM lines INTO KAFKA CONNECTION kafka {options} {AVRO}")
    assert lines.topics["frozen"].partitions == 4
    registered = lines.registry.latest("frozen-value")
    (stored,) = lines.store.load().of_kind(Kind.SINK)
    assert isinstance(stored.definition, CreateSink)
    ((_, created),) = lines.rows("SHOW CREATE SINK s")
    assert f"SEED VALUE SCHEMA ID {registered.schema_id} '{registered.schema.text}'" in str(created)


def test_a_schema_that_the_subject_refuses_is_told_before_anything_is_done(lines: Shell) -> None:
    schema = {"type": "record", "name": "envelope", "fields": [{"name": "text", "type": "int"}]}
    lines.subject("taken-value", json.dumps(schema))
    before = lines.version
    error = lines.failure(f"{LINES}; CREATE SINK s FROM lines INTO KAFKA CONNECTION kafka (TOPIC 'taken') {AVRO}")
    assert isinstance(error, IncompatibleSchema)
    assert lines.version == before
    assert "taken" not in lines.topics


# places


def test_an_error_points_into_the_whole_script(lines: Shell) -> None:
    script = f"{LINES};\nCREATE VIEW v AS\n  SELECT text, nosuch\n  FROM lines;\n"
    assert excerpt(lines, script) == "3 |   SELECT text, nosuch\n                   ^^^^^^"


def test_a_missing_relation_is_marked_where_the_query_names_it(sql: Shell) -> None:
    script = "SHOW SOURCES;\nSELECT 1\nFROM nosuch"
    assert excerpt(sql, script) == "3 | FROM nosuch\n         ^^^^^^"


def test_explain_points_into_its_query_too(lines: Shell) -> None:
    lines.run(LINES)
    assert excerpt(lines, "EXPLAIN SELECT nosuch FROM lines") == (
        "1 | EXPLAIN SELECT nosuch FROM lines\n                   ^^^^^^"
    )


def test_a_name_in_a_statement_is_marked(sql: Shell) -> None:
    script = "SHOW SINKS; DROP VIEW nosuch"
    assert excerpt(sql, script) == "1 | SHOW SINKS; DROP VIEW nosuch\n                          ^^^^^^"


def test_an_error_without_a_place_of_its_own_marks_the_statement(sql: Shell) -> None:
    script = "SHOW SINKS;\n  CREATE SOURCE s FROM KAFKA CONNECTION kafka (TOPIC 'nosuch') FORMAT TEXT"
    told = sql.failure(script).diagnostic(script)
    assert (told.code, told.line, told.column) == ("CON-0203", 2, 3)


def test_a_syntax_error_points_at_its_place(sql: Shell) -> None:
    script = "SHOW SINKS;\nCREATE NONSENSE x"
    told = sql.failure(script).diagnostic(script)
    assert (told.line, told.column) == (2, 8)


# outside


def test_a_missing_topic_names_what_is_near(lines: Shell) -> None:
    error = lines.failure("CREATE SOURCE s FROM KAFKA CONNECTION kafka (TOPIC 'liens') FORMAT TEXT")
    assert isinstance(error, TopicNotFound)
    assert error.similar == ("lines",)


def test_a_topic_without_schema_says_which_subject_is_missing(lines: Shell) -> None:
    error = lines.failure(f"CREATE SOURCE s FROM KAFKA CONNECTION kafka (TOPIC 'lines') {AVRO}")
    assert isinstance(error, NoSchemaForTopic)
    assert error.subject == "lines-value"


def test_a_connection_is_checked_unless_told_otherwise(sql: Shell) -> None:
    to = "CREATE CONNECTION away TO CONFLUENT SCHEMA REGISTRY (URL 'http://127.0.0.1:1')"
    assert isinstance(sql.failure(to), RegistryUnreachable)
    assert sql.tags(f"{to} WITH (VALIDATE = false)") == ["CREATE CONNECTION"]
    assert isinstance(sql.failure("VALIDATE CONNECTION away"), RegistryUnreachable)
    assert sql.tags("VALIDATE CONNECTION registry") == ["VALIDATE CONNECTION"]
    assert isinstance(sql.failure("VALIDATE CONNECTION nosuch"), UnknownObject)


# secrets


def test_a_secret_appears_nowhere_but_sealed(sql: Shell) -> None:
    sql.run("CREATE SECRET token AS 'hunter2'")
    told = [str(e) for e in (*sql.store.history(), *sql.store.events())]
    shown = sql.rows("SHOW CREATE SECRET token; SHOW HISTORY; SHOW SECRETS; DESCRIBE EXTENDED SECRET token")
    assert "hunter2" not in "\n".join([*told, *map(str, shown)])
    sql.store.close()
    assert not [f for f in sql.store.path.parent.glob("catalog.db*") if b"hunter2" in f.read_bytes()]


def test_a_connection_can_use_a_secret_of_the_same_script(sql: Shell, registry_url: str) -> None:
    script = (
        "CREATE SECRET pass AS 'hunter2';"
        f"CREATE CONNECTION r TO CONFLUENT SCHEMA REGISTRY (URL '{registry_url}', USERNAME 'u', PASSWORD SECRET pass)"
    )
    assert sql.tags(script) == ["CREATE SECRET", "CREATE CONNECTION"]
    assert sql.rows("SHOW LINEAGE FOR CONNECTION r") == [("r", "pass", "connection")]


def test_a_renamed_secret_still_opens_its_connection(sql: Shell, registry_url: str) -> None:
    sql.run(
        "CREATE SECRET pass AS 'hunter2';"
        f"CREATE CONNECTION r TO CONFLUENT SCHEMA REGISTRY (URL '{registry_url}', USERNAME 'u', PASSWORD SECRET pass);"
        "ALTER SECRET pass RENAME TO word"
    )
    assert sql.tags("VALIDATE CONNECTION r") == ["VALIDATE CONNECTION"]


def test_a_password_that_is_written_out_is_refused_and_not_repeated(sql: Shell) -> None:
    script = "CREATE CONNECTION k TO KAFKA (BROKER 'b', SASL PASSWORD 'hunter2')"
    error = sql.failure(script)
    assert isinstance(error, SecretWrittenOut)
    assert "hunter2" not in error.diagnostic().render()
    assert sql.rows("SHOW CONNECTIONS LIKE 'k'") == []


# the search path


def test_set_search_path_holds_for_the_session_and_for_the_rest_of_the_script(sql: Shell) -> None:
    sql.run("CREATE SCHEMA sales; SET search_path = sales, public; CREATE TYPE t AS (x integer)")
    assert sql.rows("SHOW TYPES") == [("t", "headgate.sales", None)]
    assert sql.rows("SHOW search_path") == [("headgate.sales, headgate.public",)]
    sql.session = Session()
    assert isinstance(sql.failure("DESCRIBE t"), UnknownObject)
    assert sql.rows("DESCRIBE sales.t") == [("x", "integer", True, False, None)]


def test_a_script_that_fails_leaves_the_search_path_alone(sql: Shell) -> None:
    sql.run("CREATE SCHEMA sales")
    sql.failure("SET search_path = sales; DROP VIEW nosuch")
    assert sql.rows("SHOW search_path") == [("headgate.public",)]


def test_what_is_made_under_another_path_means_the_same_under_the_default(lines: Shell, registry_url: str) -> None:
    lines.subject("elsewhere-value", '"string"')
    lines.topics["elsewhere"] = NewTopicOptions()
    lines.run(
        f"CREATE SCHEMA sales; SET search_path = sales;"
        "CREATE CONNECTION kafka TO KAFKA (BROKER 'b') WITH (VALIDATE = false);"
        f"CREATE CONNECTION registry TO CONFLUENT SCHEMA REGISTRY (URL '{registry_url}');"
        f"CREATE SOURCE s FROM KAFKA CONNECTION kafka (TOPIC 'elsewhere') {AVRO};"
        f"CREATE SINK FROM s INTO KAFKA CONNECTION kafka (TOPIC 'far') {AVRO}"
    )
    lines.session = Session()
    ((_, source),) = lines.rows("SHOW CREATE SOURCE sales.s")
    assert "CONNECTION sales.kafka " in str(source)
    assert "REGISTRY CONNECTION sales.registry " in str(source)
    ((_, sink),) = lines.rows("SHOW CREATE SINK sales.s_sink")
    assert "FROM sales.s\n" in str(sink)
    catalog = lines.store.load()
    (stored,) = catalog.of_kind(Kind.SINK)
    assert catalog.path(stored.id) == ("headgate", "sales", "s_sink")
