"""Every statement of the grammar is done, or says by name that it is not supported yet."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from headgate.catalog.names import DEFAULT_PATH
from headgate.connectors.errors import ConnectorError
from headgate.connectors.kafka import NewTopicOptions
from headgate.plan.errors import NotSupportedYet
from headgate.plan.plans import ChangeCatalog
from headgate.plan.statements import plan
from headgate.resolve.statements import Context, resolve_statement
from headgate.sql.script import parse_statement
from headgate.sql.statement import Statement
from tests.control.scripts import Shell

pytestmark = pytest.mark.unit

DONE = {
    "CreateDatabase": "CREATE DATABASE other",
    "CreateSchema": "CREATE SCHEMA other",
    "CreateSecret": "CREATE SECRET s AS 'x'",
    "CreateConnection": "CREATE CONNECTION c TO KAFKA (BROKER 'b:1') WITH (VALIDATE = false)",
    "ValidateConnection": "VALIDATE CONNECTION registry",
    "CreateType": "CREATE TYPE point AS (x integer)",
    "CreateSource": "CREATE SOURCE s FROM KAFKA CONNECTION kafka (TOPIC 'lines') FORMAT TEXT",
    "CreateView": "CREATE VIEW v AS SELECT text FROM lines",
    "CreateSink": "CREATE SINK s FROM lines INTO KAFKA CONNECTION kafka (TOPIC 'o') FORMAT TEXT",
    "CommentOn": "COMMENT ON SOURCE lines IS 'x'",
    "DropObject": "DROP SINK out",
    "RenameObject": "ALTER SINK out RENAME TO done",
    "ChangeTaskState": "ALTER SINK out PAUSE",
    "Select": "SELECT text FROM lines",
    "SetSearchPath": "SET search_path = public",
    "ShowSearchPath": "SHOW search_path",
    "ShowObjects": "SHOW SOURCES",
    "ShowCreate": "SHOW CREATE SOURCE lines",
    "ShowLineage": "SHOW LINEAGE FOR out",
    "Describe": "DESCRIBE lines",
    "Explain": "EXPLAIN SELECT text FROM lines",
    "ExplainObject": "EXPLAIN SINK out",
    "ExplainSchema": "EXPLAIN VALUE SCHEMA FOR SINK out",
    "AlterSecret": "ALTER SECRET kept AS 'HUNTER2'",
    "ReplayQuarantine": "REPLAY QUARANTINE FOR out",
    "RenameColumn": "ALTER SOURCE spare RENAME COLUMN text TO line",
    "AcceptSchemaChange": "ALTER SOURCE lines ACCEPT SCHEMA CHANGE",
    "AlterSinkDocs": "ALTER SINK out FORMAT AVRO (ADD DOC ON TYPE lines = 'x')",
    "CreateSinkPolicy": "CREATE SINK POLICY p FORMAT AVRO (REQUIRE DOCUMENTATION FOR ALL FIELDS)",
    "AlterSinkPolicy": "ALTER SINK POLICY kept FORMAT AVRO (REQUIRE DOCUMENTATION FOR ALL FIELDS)",
    "CreateMaterializedView": "CREATE MATERIALIZED VIEW kept_rows AS SELECT 1 AS one",
    "Subscribe": "SUBSCRIBE ones",
    "AlterSinkFrom": "ALTER SINK out SET FROM spare",
    "BackfillMaterialization": "ALTER MATERIALIZATION kept BACKFILL",
    "CreateStream": "CREATE STREAM s (a int) WITH (kafka_topic = 'lines', value_format = 'json')",
    "CreateStreamAs": "CREATE STREAM s WITH (kafka_topic = 't') AS SELECT text FROM lines",
    "CreateTableAs": "CREATE TABLE s WITH (kafka_topic = 't') AS SELECT k, a FROM tab",
    "InsertValues": "INSERT INTO tab VALUES ('x', 1)",
    "InsertQuery": "INSERT INTO tab (k) SELECT text FROM lines",
    "CreateTable": "CREATE TABLE s (k text PRIMARY KEY, a int) WITH (kafka_topic = 'lines', value_format = 'json')",
    "AlterConnection": "ALTER CONNECTION kafka SET (BROKER 'b') WITH (VALIDATE = false)",
}
# These look at the database of their target before anything is done, and no test here has one.
ASKS_A_DATABASE = {
    "CreateMaterialization": "CREATE MATERIALIZATION m FROM lines INTO POSTGRES CONNECTION postgres (TABLE 't')",
    "SetMaterializationFields": "ALTER MATERIALIZATION kept SET FIELDS (text string)",
}
KEPT = "CREATE MATERIALIZATION kept FROM lines INTO POSTGRES CONNECTION postgres (TABLE 'kept')"
LATER = {
    "CreateCollection": ("CREATE COLLECTION C KEY ('/id')", "CREATE COLLECTION"),
    "ResetCollection": ("ALTER COLLECTION c RESET", "ALTER COLLECTION"),
    "SetCollectionSchema": ("ALTER COLLECTION c SET READ SCHEMA '{}'", "ALTER COLLECTION"),
    "CreateCapture": (
        "CREATE CAPTURE c FROM KAFKA CONNECTION kafka (TOPIC 't') FORMAT JSON INTO n",
        "CREATE CAPTURE",
    ),
    "DiscoverCapture": ("ALTER CAPTURE c DISCOVER", "ALTER CAPTURE"),
    "ExplainChange": ("EXPLAIN CHANGE ALTER SINK out SET FROM lines", "EXPLAIN CHANGE ALTER SINK"),
    "ExplainSubjectChange": ("EXPLAIN CHANGE SUBJECT 's' TO '{}'", "EXPLAIN CHANGE SUBJECT"),
    "ShowCollectionSchema": ("SHOW READ SCHEMA FOR COLLECTION c", "SHOW READ SCHEMA"),
    "ShowSchemaHistory": ("SHOW SCHEMA HISTORY FOR COLLECTION c", "SHOW SCHEMA HISTORY"),
}


@pytest.fixture
def busy(sql: Shell) -> Shell:
    avro = "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
    sql.topics["lines"] = NewTopicOptions()
    sql.run(
        "CREATE SECRET kept AS 'HUNTER1';"
        "CREATE SOURCE lines FROM KAFKA CONNECTION kafka (TOPIC 'lines') FORMAT TEXT;"
        "CREATE SOURCE spare FROM KAFKA CONNECTION kafka (TOPIC 'lines') FORMAT TEXT;"
        f"CREATE SINK out FROM lines INTO KAFKA CONNECTION kafka (TOPIC 'out') {avro};"
        "CREATE TABLE tab (k text PRIMARY KEY, a int) WITH (kafka_topic = 'tab', partitions = 1, value_format = 'json');"
        "CREATE SINK POLICY kept FORMAT PROTOBUF (REQUIRE DOCUMENTATION FOR ALL TYPES);"
        "CREATE MATERIALIZED VIEW ones AS SELECT 1 AS one"
    )
    _without_effects(sql, KEPT)
    return sql


def _without_effects(sql: Shell, text: str) -> None:
    """Commit what a statement changes in the catalog, and do nothing outside."""
    context = Context(sql.store.load(), DEFAULT_PATH, datetime.now(UTC), text)
    made = plan(resolve_statement(parse_statement(text), context), context)
    assert isinstance(made, ChangeCatalog)
    sql.store.commit(list(made.changes), cause="statement", statement=text, planned=context.catalog.version)


def classes() -> set[str]:
    """The names of all statements; the script parser has imported every module that defines one."""
    return {c.__name__ for c in _subclasses(Statement)} - {"AboutObject", "Alter", "Create"}


def _subclasses(cls: type[Statement]) -> Iterator[type[Statement]]:
    for found in cls.__subclasses__():
        yield found
        yield from _subclasses(found)


def test_every_class_of_statement_is_tried_here() -> None:
    assert set(DONE) | set(LATER) | set(ASKS_A_DATABASE) == classes()
    assert not set(DONE) & set(LATER)


@pytest.mark.parametrize("name", DONE)
def test_it_is_done(busy: Shell, name: str) -> None:
    assert type(parse_statement(DONE[name])).__name__ == name
    assert len(busy.tags(DONE[name])) == 1


@pytest.mark.parametrize("name", ASKS_A_DATABASE)
def test_it_asks_its_database_before_it_changes_anything(busy: Shell, name: str) -> None:
    text, before = ASKS_A_DATABASE[name], busy.version
    assert type(parse_statement(text)).__name__ == name
    assert isinstance(busy.failure(text), ConnectorError)
    assert busy.version == before


@pytest.mark.parametrize("name", LATER)
def test_it_says_by_name_that_it_is_not_supported_yet(busy: Shell, name: str) -> None:
    text, spoken = LATER[name]
    assert type(parse_statement(text)).__name__ == name
    before = busy.version
    error = busy.failure(text)
    assert isinstance(error, NotSupportedYet)
    assert error.message() == f"{spoken} is not supported yet"
    assert busy.version == before


def test_only_materialized_views_keep_their_changes(busy: Shell) -> None:
    error = busy.failure("SELECT text FROM lines EMIT CHANGES")
    assert error.message() == "the changes of a source are not kept"
    error = busy.failure("SELECT count(*) AS n FROM lines EMIT CHANGES")
    assert error.message() == "the changes of a query with groups, joins, windows or several relations are not kept"
