"""Planning many statements: a hundred sinks over the same three views, planned as one script and not executed.

The peer is the least that planning must do: parsing the same script, and analysing each of the three queries once.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.figures import Report, Size, compared, cpu_seconds
from headgate.catalog.names import DEFAULT_PATH
from headgate.connectors.kafka import NewTopicOptions
from headgate.plan.relations import analyse_query
from headgate.sql.script import parse_script
from headgate.sql.views import CreateView
from tests.control.scripts import Shell, shell
from tests.registry.running import registry

LIMIT = 0.3  # seconds for a hundred sinks

SOURCE = "CREATE SOURCE work FROM KAFKA CONNECTION kafka (TOPIC 'work') FORMAT TEXT"
VIEWS = """
CREATE VIEW v1 AS SELECT text, length(text) AS size FROM work;
CREATE VIEW v2 AS SELECT text, size + 1 AS size FROM v1 WHERE size > 1;
CREATE VIEW v3 AS SELECT upper(text) AS text, size FROM v2
"""


def run(size: Size) -> Report:
    count, rounds = (5, 1) if size == "small" else (100, 3)
    sinks = ";".join(
        f"CREATE SINK to_{n} FROM v3 INTO KAFKA CONNECTION kafka (TOPIC 'to_{n}') FORMAT JSON" for n in range(count)
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        registry(Path(folder)) as url,
        shell(Path(folder), url) as client,
    ):
        client.topics["work"] = NewTopicOptions()
        client.run(f"{SOURCE};{VIEWS}")
        planned = cpu_seconds(lambda: _planned(client, sinks), rounds)
        least = cpu_seconds(lambda: _least(client, sinks), rounds)
    what = f"planning {count} sinks over three views"
    return Report(
        "Language: planning a script",
        (compared(what, planned, least, "parsing it, and analysing each query once", LIMIT),),
        ("CPU time, best of the rounds.",),
    )


def _planned(client: Shell, sinks: str) -> None:
    client.store.load().analyses.clear()
    client.executor.plan(sinks, client.session)


def _least(client: Shell, sinks: str) -> None:
    catalog = client.store.load()
    catalog.analyses.clear()
    for statement in (*parse_script(sinks), *parse_script(VIEWS)):
        if isinstance(statement, CreateView):
            analyse_query(catalog, DEFAULT_PATH, statement.query)
