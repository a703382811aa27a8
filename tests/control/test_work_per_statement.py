"""A statement is resolved, purified and planned once, each of its queries is analysed once, and each subject is asked for once.

The numbers are upper bounds. Lower one when a change makes it smaller, so that it cannot grow again unnoticed.
"""

from __future__ import annotations

import cProfile
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import PurePath

import pytest

from headgate.catalog.positions import KafkaRecord
from headgate.connectors.kafka import NewTopicOptions
from headgate.control.apply import Scripts
from headgate.control.definitions import task_definition
from headgate.control.schema_changes import SchemaChanges
from headgate.runtime.source import ArrivedSchema
from headgate.schema.written import SchemaFormat, WrittenSchema
from headgate.sql.statement import Kind
from tests.control.scripts import Answers, Shell

pytestmark = pytest.mark.unit

# The package and the name of each function that is counted, whichever module of the package holds it.
COUNTED = {
    ("query", "analyse"): "analyses",
    ("catalog", "resolve"): "name look-ups",
    ("resolve", "resolve_statement"): "resolutions",
    ("purify", "purify"): "purifications",
    ("plan", "plan"): "plans",
    ("control", "show"): "answers of SHOW",
    ("registry", "latest"): "latest schemas",
    ("plan", "plan_new_sink"): "plans of a sink",
    ("control", "source_definition"): "definitions of a source",
}

SCHEMA = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}]}'
SOURCE = "CREATE SOURCE work FROM KAFKA CONNECTION kafka (TOPIC 'work') FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
VIEWS = tuple(
    f"CREATE VIEW v{number} AS SELECT id, item FROM {relation}"
    for number, relation in ((1, "work"), (2, "v1"), (3, "v2"))
)
SINK = "CREATE SINK to_work FROM v3 INTO KAFKA CONNECTION kafka (TOPIC 'to_work') FORMAT JSON"
AVRO_SINK = (
    "CREATE SINK avro FROM work INTO KAFKA CONNECTION kafka (TOPIC 'avro') "
    "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
)


def counted(work: Callable[[], object], functions: Mapping[tuple[str, str], str] = COUNTED) -> Counter[str]:
    """How often ``work`` calls each of the counted functions."""
    profile = cProfile.Profile()
    profile.runcall(work)
    found: Counter[str] = Counter()
    for entry in profile.getstats():
        if not isinstance(entry.code, str):
            package = PurePath(entry.code.co_filename).parent.name
            if (name := functions.get((package, entry.code.co_name))) is not None:
                found[name] += entry.callcount
    return found


@pytest.fixture
def shell(sql: Shell) -> Shell:
    sql.topics["work"] = NewTopicOptions()
    sql.subject("work-value", SCHEMA)
    return sql


@pytest.mark.parametrize(
    ("statement", "bounds"),
    [
        (SOURCE, {"name look-ups": 2, "latest schemas": 2}),
        (VIEWS[0], {"analyses": 1, "name look-ups": 1}),
        (SINK, {"name look-ups": 2, "plans of a sink": 1}),
        ("SHOW SINKS", {"answers of SHOW": 1}),
        ("DESCRIBE v1", {"name look-ups": 1, "answers of SHOW": 1}),
        ("SHOW CREATE VIEW v1", {"name look-ups": 1, "answers of SHOW": 1}),
        ("SHOW LINEAGE FOR v1", {"name look-ups": 1, "answers of SHOW": 1}),
        ("SELECT id FROM v3", {"analyses": 1, "name look-ups": 1}),
        ("EXPLAIN SELECT id FROM v3", {"analyses": 1, "name look-ups": 1, "answers of SHOW": 1}),
        ("EXPLAIN VALUE SCHEMA FOR SINK avro", {"name look-ups": 1, "answers of SHOW": 1, "plans of a sink": 1}),
        ("ALTER SINK to_work PAUSE", {"name look-ups": 1}),
        ("ALTER SOURCE work ACCEPT SCHEMA CHANGE", {"name look-ups": 1, "definitions of a source": 1}),
        ("COMMENT ON COLUMN v1.id IS 'x'", {"name look-ups": 1}),
        ("DROP SINK to_work", {"name look-ups": 1}),
        ("REPLAY QUARANTINE FOR to_work", {"name look-ups": 1}),
    ],
    ids=lambda value: " ".join(value.split()[:3]) if isinstance(value, str) else "",
)
def test_a_statement_does_its_work_once(shell: Shell, statement: str, bounds: dict[str, int]) -> None:
    script = [SOURCE, *VIEWS, SINK, AVRO_SINK]
    bounds = {"resolutions": 1, "purifications": 1, "plans": 1} | bounds
    if statement.startswith("EXPLAIN SELECT"):
        bounds["resolutions"] = 2  # EXPLAIN and the statement in it
    for before in script[: script.index(statement)] if statement in script else script:
        shell.run(before)
    found = counted(lambda: shell.run(statement))
    assert {what: times for what, times in found.items() if times > bounds.get(what, 0)} == {}


def test_applying_a_pipeline_analyses_each_query_and_asks_for_each_subject_once(shell: Shell) -> None:
    scripts = Scripts(shell.store, shell.connections, shell.executor)
    again = SOURCE.replace("SOURCE work", "SOURCE same")
    script = ";".join([SOURCE, again, *VIEWS, SINK])
    found = counted(lambda: list(scripts.apply(script)))
    assert found.pop("name look-ups") <= 9
    assert found == {
        "analyses": 3,
        "resolutions": 6,
        "purifications": 6,
        "plans": 6,
        "latest schemas": 2,
        "plans of a sink": 1,
    }
    kept = counted(lambda: list(scripts.apply(script)))
    assert kept["analyses"] == kept["plans"] == kept["latest schemas"] == 0


def test_the_same_view_is_analysed_once_for_all_sinks_over_it(shell: Shell) -> None:
    for statement in (SOURCE, *VIEWS):
        shell.run(statement)
    shell.store.load().analyses.clear()
    sinks = ";".join(SINK.replace("to_work", f"to_work_{number}") for number in range(20))
    found = counted(lambda: shell.executor.plan(sinks, shell.session))
    assert found["analyses"] == 3
    assert found["plans"] == 20


def test_a_task_is_started_by_planning_its_sink_and_its_source_once(shell: Shell) -> None:
    for statement in (SOURCE, *VIEWS, SINK, AVRO_SINK):
        shell.run(statement)
    catalog = shell.store.load()
    sinks = list(catalog.of_kind(Kind.SINK))
    found = counted(lambda: [task_definition(catalog, sink) for sink in sinks])
    assert found == {"plans of a sink": len(sinks), "definitions of a source": len(sinks)}


def test_a_schema_change_plans_what_reads_the_source_once_and_nothing_else(sql: Shell) -> None:
    for topic, texts in (("growing", (SOURCE, *VIEWS, SINK)), ("other", (SOURCE, VIEWS[0], SINK.replace("v3", "v1")))):
        sql.topics[topic] = NewTopicOptions()
        sql.subject(f"{topic}-value", SCHEMA)
        for text in texts:
            sql.run(re.sub(r"\bv(\d)", rf"{topic}_\1", text.replace("work", topic)))
    grown = SCHEMA.replace("]}", ', {"name": "more", "type": ["null", "int"], "default": null}]}')
    schema = WrittenSchema(grown, id=sql.subject("growing-value", grown), format=SchemaFormat.AVRO)
    arrived = ArrivedSchema(schema, KafkaRecord("growing", 0, 7), "value")
    source = next(one for one in sql.store.load().of_kind(Kind.SOURCE) if one.name == "growing")
    changes = SchemaChanges(sql.store, sql.connections, Answers().types)
    found = counted(lambda: changes.follow(source.id, [arrived]))
    assert found == {"analyses": 3, "plans of a sink": 1}
    assert counted(lambda: changes.follow(source.id, [arrived])) == {}


def test_a_schema_is_followed_without_looking_at_the_earlier_ones_again(sql: Shell) -> None:
    """Otherwise each schema would take longer than the one before it."""
    sql.topics["later"] = NewTopicOptions()
    sql.subject("later-value", SCHEMA)
    sql.run(SOURCE.replace("work", "later"))
    (source,) = sql.store.load().of_kind(Kind.SOURCE)
    changes = SchemaChanges(sql.store, sql.connections, Answers().types)
    steps = {("evolve", "names_of_later"): "fields named", ("evolve", "merge_fields"): "types merged"}
    found = []
    for number in range(1, 7):
        more = "".join(f', {{"name": "more{n}", "type": ["null", "int"], "default": null}}' for n in range(number))
        text = SCHEMA.replace("]}", f"{more}]}}")
        schema = WrittenSchema(text, id=sql.subject("later-value", text), format=SchemaFormat.AVRO)
        arrived = ArrivedSchema(schema, KafkaRecord("later", 0, number), "value")
        found.append(counted(lambda arrived=arrived: changes.follow(source.id, [arrived]), steps))  # type: ignore[misc]
    assert found[0]["types merged"] > 0
    assert found[1:] == found[1:2] * 5
