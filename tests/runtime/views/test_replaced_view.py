"""A view whose query was replaced is filled beside its old rows. An engine that dies in between loses nothing, and a reader of the
view goes on with what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from headgate.catalog.positions import LogPosition
from headgate.catalog.tasks import Ledger, Quarantined, QuarantineFolder
from headgate.connectors.connections import Clients
from headgate.errors import HeadgateError
from headgate.plan.definitions import MaterializedDefinition, StoredColumn
from headgate.plan.view_definitions import ViewTaskDefinition
from headgate.runtime.ports import Diff, Limit
from headgate.runtime.task import Task
from headgate.runtime.views.log_input import LogInput
from headgate.runtime.views.view_task import ViewFiles, log_input, view_task
from headgate.schema.types import Integer
from headgate.sql.query.kept_groups import STORED
from headgate.sql.query.maintenance import maintain
from headgate.sql.query.select import analyse
from tests.runtime.memory_ports import MemoryStore, Shared
from tests.sql.query.signed_queries import GROWTHS, find_relation

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

VIEW = 4


class Dying(MemoryStore):
    """The catalog of an engine that dies before a new generation is shown."""

    def advance(
        self,
        expected: Ledger | None,
        new: Ledger,
        rejected: Sequence[Quarantined] | None = (),
        folders: Sequence[QuarantineFolder] = (),
    ) -> None:
        raise RuntimeError("the engine dies")


def definition(query: str) -> ViewTaskDefinition:
    analysed = analyse(query, find_relation)
    columns = [(column.name, column.type or Integer()) for column in analysed.columns]
    made = maintain(analysed.tree, columns, lambda read: GROWTHS[read.name])
    stored = tuple(StoredColumn(c.name, c.type, c.hidden) for c in made.stored)
    view = MaterializedDefinition(VIEW, "v", stored, None, False, made.grows)
    name = STORED if made.reads_stored else None
    return ViewTaskDefinition(
        VIEW, "v", view, made.first, made.changed, (), (), (), name, {}, definition=f"{query}-", query_name=query
    )


class Engine:
    """One engine after the other over the same catalog and storage."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self.session, self.shared = session, Shared()
        self.files = ViewFiles(str(folder), lambda: session)

    def task(self, query: str, kind: type[MemoryStore] = MemoryStore) -> Task:
        return view_task(definition(query), cast("Clients", None), kind(self.shared), self.files)

    def reader(self, query: str) -> LogInput:
        return log_input(definition(query).view, self.files, MemoryStore(self.shared), "signed", "a test")

    def shown(self, query: str) -> Counter[tuple[object, ...]]:
        reader = self.reader(query)
        assert reader.known_end is not None
        return Counter(map(tuple, reader.rows(self.session, reader.known_end).collect()))


OLD = "SELECT sum(n) AS n, 1 AS old FROM (VALUES (1), (2)) AS t (n) HAVING count(*) > 1"
LOST = "SELECT 7 AS n"
NEW = "SELECT n FROM (VALUES (3), (3), (4)) AS t (n)"


def test_a_replaced_view_is_shown_when_it_has_caught_up_whatever_dies_before(
    session: SparkSession, tmp_path: Path
) -> None:
    engine = Engine(session, tmp_path)
    engine.task(OLD).run_batch(session)
    assert engine.shown(OLD) == Counter({(3, 1): 1})
    begun = engine.reader(OLD).known_end
    with pytest.raises(HeadgateError):
        engine.task(LOST, Dying).run_batch(session)
    assert engine.shown(OLD) == Counter({(3, 1): 1})  # the old rows, as long as nothing has caught up
    assert engine.shown(NEW) == Counter({(3,): 1})  # with the columns that the view has now

    engine.task(NEW).run_batch(session)
    reader = engine.reader(NEW)
    assert reader.known_end == LogPosition(VIEW, 3, 1)  # the second generation was begun with another query
    assert engine.shown(NEW) == Counter({(3,): 2, (4,): 1})
    assert begun is not None
    end = reader.choose_end(session, begun, Limit(), None, None)
    differs = reader.read(session, begun, end)
    assert isinstance(differs, Diff)
    assert Counter(map(tuple, differs.rows.collect())) == Counter({(3, 1): 1, (4, 1): 1})
    assert engine.task(NEW).run_batch(session) is None


def test_an_engine_that_dies_behind_the_last_batch_of_a_new_generation_shows_it_when_it_starts(
    session: SparkSession, tmp_path: Path
) -> None:
    engine = Engine(session, tmp_path)
    engine.task(LOST).run_batch(session)
    with pytest.raises(HeadgateError):
        engine.task(NEW, Dying).run_batch(session)
    engine.task(NEW).begin()
    assert engine.reader(NEW).known_end == LogPosition(VIEW, 2, 1)
    assert engine.shown(NEW) == Counter({(3,): 2, (4,): 1})
