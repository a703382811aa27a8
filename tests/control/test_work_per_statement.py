"""How often a statement asks the same question: analyses of queries, look-ups of names, and calls of the registry.

The numbers are upper bounds. Lower one when a change makes it smaller, so that it cannot grow again unnoticed.
"""

from __future__ import annotations

import cProfile
from collections import Counter
from collections.abc import Callable
from pathlib import PurePath

import pytest

from headgate.connectors.kafka import NewTopicOptions
from tests.control.scripts import Shell

pytestmark = pytest.mark.unit

# The package and the name of each function that is counted, whichever module of the package holds it.
COUNTED = {
    ("query", "analyse"): "analyses",
    ("catalog", "resolve"): "name look-ups",
    ("purify", "purify"): "purifications",
    ("registry", "latest"): "latest schemas",
}

SCHEMA = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}]}'
SOURCE = "CREATE SOURCE work FROM KAFKA CONNECTION kafka (TOPIC 'work') FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry"
VIEWS = tuple(
    f"CREATE VIEW v{number} AS SELECT id, item FROM {relation}"
    for number, relation in ((1, "work"), (2, "v1"), (3, "v2"))
)
SINK = "CREATE SINK to_work FROM v3 INTO KAFKA CONNECTION kafka (TOPIC 'to_work') FORMAT JSON"


def counted(work: Callable[[], object]) -> Counter[str]:
    """How often ``work`` calls each of the counted functions."""
    profile = cProfile.Profile()
    profile.runcall(work)
    found: Counter[str] = Counter()
    for entry in profile.getstats():
        if not isinstance(entry.code, str):
            package = PurePath(entry.code.co_filename).parent.name
            if (name := COUNTED.get((package, entry.code.co_name))) is not None:
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
        (SOURCE, {"name look-ups": 18, "purifications": 2, "latest schemas": 4}),
        (VIEWS[0], {"analyses": 4, "name look-ups": 4, "purifications": 2}),
        (SINK, {"analyses": 9, "name look-ups": 27, "purifications": 2}),
        ("SHOW SINKS", {}),
    ],
    ids=["source", "view", "sink", "show"],
)
def test_a_statement_repeats_no_more_work_than_it_did(
    shell: Shell, statement: str, bounds: dict[str, int]
) -> None:
    script = [SOURCE, *VIEWS, SINK]
    for before in script[: script.index(statement)] if statement in script else script:
        shell.run(before)
    found = counted(lambda: shell.run(statement))
    assert {what: times for what, times in found.items() if times > bounds.get(what, 0)} == {}
