"""What one change does to one target.

A verdict is given for the field that changed. Whether a view or a sink uses that field at all is for the planner to
know: a change to a field that nobody uses breaks nobody.
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from headgate.schema.evolve.avro_sink import avro_sink
from headgate.schema.evolve.changes import Change
from headgate.schema.evolve.elasticsearch_index import elasticsearch_index
from headgate.schema.evolve.postgres_table import postgres_table
from headgate.schema.evolve.reader import reader
from headgate.schema.evolve.verdict import Verdict
from headgate.schema.evolve.view import view


class Target(Enum):
    READER = "a source that follows"
    AVRO_SINK = "an avro sink"
    POSTGRES = "a postgres table"
    ELASTICSEARCH = "an elasticsearch index"
    VIEW = "a view"


def verdict(change: Change, target: Target) -> Verdict:
    match target:
        case Target.READER:
            return reader(change)
        case Target.AVRO_SINK:
            return avro_sink(change)
        case Target.POSTGRES:
            return postgres_table(change)
        case Target.ELASTICSEARCH:
            return elasticsearch_index(change)
        case Target.VIEW:
            return view(change)
        case _:
            assert_never(target)
