"""What SHOW, EXPLAIN and DROP say and do of a materialized view, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from headgate.catalog.positions import KafkaPosition, LogPosition
from headgate.catalog.tasks import Ledger, State, TaskStatus
from headgate.control.view_cleaner import ViewCleaner, old_generations
from headgate.control.view_tasks import batches_read, last_batch, shown_generation, view_task_definition
from headgate.errors import HeadgateError
from headgate.plan.errors import ReplacementBreaks
from headgate.runtime.views.errors import ViewReplaced
from headgate.runtime.views.filling import FillingStore
from headgate.runtime.views.view_task import ViewFiles
from tests.control.scripts import Shell
from tests.runtime.memory_ports import MemoryStore, Shared

pytestmark = pytest.mark.unit


@dataclass
class Folders:
    """Notes which views would be removed."""

    removed: list[str] = field(default_factory=list)

    def remove(self, uuid: str, generation: int | None = None) -> None:
        self.removed.append(uuid if generation is None else f"{uuid}/{generation}")


def test_explain_says_how_each_operator_is_kept(sql: Shell) -> None:
    sql.run("CREATE MATERIALIZED VIEW ones AS SELECT 1 AS one")
    sql.run("CREATE MATERIALIZED VIEW counted AS SELECT one, count(*) AS n FROM ones GROUP BY one")
    lines = [row[0] for row in sql.rows("EXPLAIN MATERIALIZED VIEW counted")]
    assert lines[0] == "reads ones"
    assert "kept by the changes of what it reads" in lines
    assert "GROUP BY (one): incremental, merged from the changes" in lines
    lines = [
        row[0] for row in sql.rows("EXPLAIN CREATE MATERIALIZED VIEW m AS SELECT one FROM ones ORDER BY one LIMIT 1")
    ]
    assert "computed anew with every batch" in lines
    said = (
        "LIMIT: recomputed, LIMIT drops a row when another one comes. Write ORDER BY and LIMIT in what reads the view."
    )
    assert said in lines


def test_explain_says_what_the_task_has_measured(sql: Shell) -> None:
    sql.run("CREATE MATERIALIZED VIEW ones AS SELECT 1 AS one")
    (view,) = sql.store.load().desired
    before = sql.rows("EXPLAIN MATERIALIZED VIEW ones")
    said = "batches with many changes are computed anew: the last took 9.0 s by its changes, and 2.0 s anew"
    sql.store.report(TaskStatus(view, State.RUNNING, datetime.now(UTC), notice=said))
    assert sql.rows("EXPLAIN MATERIALIZED VIEW ones") == [*before, (said,)]


def test_a_view_is_a_task_that_can_be_paused_and_its_storage_is_removed_when_it_is_dropped(sql: Shell) -> None:
    sql.run("CREATE MATERIALIZED VIEW ones AS SELECT 1 AS one")
    assert sql.rows("SHOW TASKS")[0][:3] == ("ones", "materialized view", "starting")
    sql.run("ALTER MATERIALIZED VIEW ones PAUSE")
    assert sql.rows("SHOW TASKS")[0][2] == "disabled"
    (view,) = sql.store.load().desired
    uuid = sql.store.task_uuid(view)
    sql.run("DROP MATERIALIZED VIEW ones")
    folders = Folders()
    ViewCleaner(sql.store, cast("ViewFiles", folders), timedelta(hours=1)).clean()
    assert folders.removed == []
    ViewCleaner(sql.store, cast("ViewFiles", folders), timedelta()).clean()
    assert folders.removed == [uuid]
    assert sql.store.leaving_views(datetime.now(UTC)) == ()


def test_the_same_query_again_fills_a_view_anew(sql: Shell) -> None:
    statement = "CREATE OR REPLACE MATERIALIZED VIEW ones AS SELECT 1 AS one"
    names = []
    for name in ("ones", "ones", "units"):
        sql.run(statement.replace("ones", name))
        catalog = sql.store.load()
        (view,) = catalog.desired
        names.append(view_task_definition(catalog, catalog.get(view)).query_name)
        if name == "ones" and len(names) == 2:
            sql.run("ALTER MATERIALIZED VIEW ones RENAME TO units")
            assert view_task_definition(sql.store.load(), sql.store.load().get(view)).query_name == names[1]
    assert len(set(names)) == 3


def columns(sql: Shell, view: str) -> list[str]:
    return [str(row[0]) for row in sql.rows(f"DESCRIBE {view}")]


def test_a_view_is_replaced_with_what_reads_it_if_its_columns_allow_it(sql: Shell) -> None:
    sql.run("CREATE MATERIALIZED VIEW ones AS SELECT 1 AS one, 'a' AS word")
    sql.run("CREATE MATERIALIZED VIEW named AS SELECT word, count(*) AS n FROM ones GROUP BY word")
    sql.run("CREATE MATERIALIZED VIEW everything AS SELECT * FROM ones")
    before = sql.store.load()
    sql.run("CREATE OR REPLACE MATERIALIZED VIEW ones AS SELECT 2 AS one, 'b' AS word, true AS sure")
    after = sql.store.load()
    assert (columns(sql, "ones"), columns(sql, "everything")) == (["one", "word", "sure"], ["one", "word", "sure"])
    assert columns(sql, "named") == ["word", "n"]
    assert before.desired == after.desired
    with pytest.raises(ReplacementBreaks) as raised:
        sql.run("CREATE OR REPLACE MATERIALIZED VIEW ones AS SELECT 2 AS one")
    assert [name for _, name, _ in raised.value.broken] == ["named"]
    with pytest.raises(ReplacementBreaks) as raised:
        sql.run("CREATE OR REPLACE MATERIALIZED VIEW ones AS SELECT 2 AS one, 7 AS word, true AS sure")
    assert {name for _, name, _ in raised.value.broken} == {"named", "everything"}
    assert columns(sql, "ones") == ["one", "word", "sure"]
    sql.run("CREATE OR REPLACE MATERIALIZED VIEW fresh AS SELECT 1 AS one")
    assert columns(sql, "fresh") == ["one"]
    with pytest.raises(HeadgateError):
        sql.run("CREATE OR REPLACE MATERIALIZED VIEW ones AS SELECT one, word, one > 1 AS sure FROM everything")


def test_a_view_whose_query_was_replaced_is_filled_beside_its_old_rows(sql: Shell) -> None:
    sql.run("CREATE MATERIALIZED VIEW ones AS SELECT 1 AS one")
    sql.run("CREATE VIEW middle AS SELECT one FROM ones")
    sql.run("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM middle")
    catalog = sql.store.load()
    ones, counted = sorted(catalog.desired)
    old = view_task_definition(catalog, catalog.get(counted))
    assert old.definition.startswith(old.query_name)
    sql.run("CREATE OR REPLACE VIEW middle AS SELECT one FROM ones WHERE one > 0")
    catalog = sql.store.load()
    assert view_task_definition(catalog, catalog.get(counted)).query_name != old.query_name
    sql.store.advance(None, Ledger(ones, 1, 7, 1, {}, "x"))
    sql.store.advance(None, Ledger(counted, 1, 3, 1, {ones: LogPosition(ones, 1, 7)}, "x"))
    sql.store.advance(sql.store.ledger(ones), Ledger(ones, 2, 1, 1, {}, "y"))
    assert (shown_generation(sql.store, ones), batches_read(sql.store, ones)) == (2, ())
    with pytest.raises(ViewReplaced):
        last_batch(sql.store, ones, 1)
    assert (last_batch(sql.store, ones, 2), last_batch(sql.store, 99, 1)) == (1, None)
    assert list(old_generations(sql.store)) == []
    sql.store.advance(sql.store.ledger(counted), Ledger(counted, 1, 4, 1, {ones: LogPosition(ones, 2, 1)}, "x"))
    assert batches_read(sql.store, ones) == (1,)
    folders = Folders()
    waits, cleans = (ViewCleaner(sql.store, cast("ViewFiles", folders), retention=timedelta(hours=h)) for h in (1, 0))
    waits.clean()
    assert folders.removed == []
    cleans.clean()
    cleans.clean()
    assert folders.removed == [f"{sql.store.task_uuid(ones)}/1"]


def test_readers_see_a_new_generation_when_it_has_caught_up() -> None:
    memory = MemoryStore(Shared())
    start, middle, end = ({5: KafkaPosition("t", "x", (at,))} for at in (0, 4, 8))
    memory.advance(None, Ledger(1, 1, 9, 1, end, "old"))
    filling = FillingStore(memory, 1, lambda: end)
    assert filling.ledger(1) is None
    for number, positions in enumerate((start, middle)):
        filling.advance(filling.ledger(1), Ledger(1, 2, number, 1, positions, "new"))
        assert filling.ledger(1) == Ledger(1, 2, number, 1, positions, "new")
    shown = memory.ledger(1)
    assert shown is not None
    assert (shown.generation, shown.number) == (1, 9)
    filling.advance(filling.ledger(1), Ledger(1, 2, 2, 1, end, "new"))
    assert memory.ledger(1) == filling.ledger(1) == Ledger(1, 2, 2, 1, end, "new")
    further = {5: KafkaPosition("t", "x", (9,))}
    filling.advance(filling.ledger(1), Ledger(1, 2, 3, 1, further, "new"))
    assert memory.ledger(1) == Ledger(1, 2, 3, 1, further, "new")
