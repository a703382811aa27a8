"""What SHOW, EXPLAIN and DROP say and do of a materialized view, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from headgate.control.view_cleaner import remove_dropped_views
from headgate.runtime.views.view_task import ViewFiles
from tests.control.scripts import Shell

pytestmark = pytest.mark.unit


@dataclass
class Folders:
    """Notes which views would be removed."""

    removed: list[str] = field(default_factory=list)

    def remove(self, uuid: str) -> None:
        self.removed.append(uuid)


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
    assert "LIMIT: recomputed, LIMIT drops a row when another one comes." in lines


def test_a_view_is_a_task_that_can_be_paused_and_its_storage_is_removed_when_it_is_dropped(sql: Shell) -> None:
    sql.run("CREATE MATERIALIZED VIEW ones AS SELECT 1 AS one")
    assert sql.rows("SHOW TASKS")[0][:3] == ("ones", "materialized view", "starting")
    sql.run("ALTER MATERIALIZED VIEW ones PAUSE")
    assert sql.rows("SHOW TASKS")[0][2] == "disabled"
    (view,) = sql.store.load().desired
    uuid = sql.store.task_uuid(view)
    sql.run("DROP MATERIALIZED VIEW ones")
    folders = Folders()
    remove_dropped_views(sql.store, cast("ViewFiles", folders), timedelta(hours=1))
    assert folders.removed == []
    remove_dropped_views(sql.store, cast("ViewFiles", folders), timedelta())
    assert folders.removed == [uuid]
    assert sql.store.leaving_views(datetime.now(UTC)) == ()
