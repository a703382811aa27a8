"""A materialized view on Spark equals its query after every batch, over views that change under it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from random import Random
from shutil import rmtree

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.catalog.positions import ClockPosition, KafkaPosition
from headgate.catalog.tasks import Ledger
from headgate.control.view_tasks import version_reads
from headgate.errors import HeadgateError
from headgate.plan.definitions import MaterializedDefinition, StoredColumn
from headgate.plan.view_definitions import ViewTaskDefinition
from headgate.runtime.errors import ComputationFailed
from headgate.runtime.ports import Batch, Diff, Input
from headgate.runtime.task import Task
from headgate.runtime.views.clock import CLOCK_INPUT, ClockInput
from headgate.runtime.views.errors import NullAsserted, ViewStorageGone
from headgate.runtime.views.log_input import LogInput
from headgate.runtime.views.signed import WEIGHT
from headgate.runtime.views.store import view_store
from headgate.runtime.views.target import ViewTarget
from headgate.runtime.views.view_task import ViewPlan
from headgate.schema.render import spark_identifier
from headgate.sql.query.clock import NOW, TIME
from headgate.sql.query.kept_groups import STORED as STORED_NAME
from headgate.sql.query.maintenance import maintain
from headgate.sql.query.select import analyse
from tests.runtime.memory_ports import MemoryStore, Shared
from tests.spark import small_frame
from tests.sql.query.signed_queries import GROWTHS, IDS, Contents, Row, find_relation

pytestmark = pytest.mark.spark

VIEW = 9
SCHEMA = "id bigint, a int, b int, s string, d decimal(10, 2)"
STORED = tuple(StoredColumn(name, type_) for name, _, type_ in (c.partition(" ") for c in SCHEMA.split(", ", 4)))


class Upstream:
    """A view that others read, written by hand. Its rows are signed. ``few`` lets its readers find them in memory."""

    def __init__(self, session: SparkSession, name: str, folder: Path, few: bool) -> None:
        self.session = session
        self.few = few
        self.view = MaterializedDefinition(IDS[name], name, STORED, None, name == "ap", name == "ap")
        self.store = view_store(self.view, str(folder / name))
        self.target = ViewTarget(self.store, name, name, lambda: session)
        self.target.begin(1)
        self.ledger: Ledger | None = None

    def put(self, rows: list[tuple[Row, int]]) -> None:
        number = 1 if self.ledger is None else self.ledger.number + 1
        start, end = ({7: KafkaPosition("t", "x", (at,))} for at in (number - 1, number))
        batch = Batch(self.view.id, 1, number, 1, start, end, "", datetime.now(UTC))
        changes = frame(self.session, [(*row, weight) for row, weight in rows])
        self.target.write(Diff(changes, None, self.few), batch, lambda: None)
        self.ledger = Ledger(self.view.id, 1, number, 1, end)

    def input(self) -> Input:
        return LogInput(self.view, lambda _: self.store, lambda: self.ledger, "signed", "the view")


def frame(session: SparkSession, rows: list[Row]) -> DataFrame:
    typed = [(*row[:4], None if row[4] is None else Decimal(str(row[4])), *row[5:]) for row in rows]
    weight = f", {spark_identifier(WEIGHT)} int" if not rows or len(rows[0]) > 5 else ""
    return small_frame(session, typed, SCHEMA + weight)


class View:
    """A view over the three relations, and what it must equal."""

    def __init__(
        self, session: SparkSession, query: str, folder: Path, not_null: tuple[str, ...] = (), *, few: bool = False
    ) -> None:
        self.session = session
        self.analysed = analyse(query, find_relation).pinned
        columns = [(column.name, column.type) for column in self.analysed.columns if column.type is not None]
        made = maintain(self.analysed.tree, columns, lambda read: GROWTHS[read.name])
        own = tuple(StoredColumn(c.name, c.type, c.hidden) for c in made.stored)
        stored = MaterializedDefinition(VIEW, "v", own, None, False, made.grows)
        read = {id_ for id_, _ in made.first_reads}
        self.upstreams = {name: Upstream(session, name, folder, few) for name in GROWTHS if IDS[name] in read}
        relations = {up.view.id: up.view for up in self.upstreams.values()}
        definition = ViewTaskDefinition(
            VIEW, "v", stored, made.first, made.changed, tuple(relations.values()), version_reads(made.first_reads),
            version_reads(made.reads), STORED_NAME if made.reads_stored else None, relations, not_null=not_null,
            time=(NOW, TIME), anew=(made.anew, STORED_NAME),
        )  # fmt: skip
        self.inputs: dict[int, Input] = {up.view.id: up.input() for up in self.upstreams.values()}
        self.seconds: int | None = None  # what the clock of the view shows
        if NOW in self.analysed.spark_sql:
            self.seconds = 0
            self.inputs[CLOCK_INPUT] = ClockInput(lambda: (self.seconds or 0) * 1_000_000)
        self.store = view_store(stored, str(folder / "v"))
        logs = {id_: one for id_, one in self.inputs.items() if isinstance(one, LogInput)}
        self.plan = ViewPlan(definition, self.store, logs)
        self.target = ViewTarget(self.store, "v", "v", lambda: session)
        self.ledgers = MemoryStore(Shared())
        self.current: dict[str, DataFrame] = {}

    def task(self, dies_at: str | None = None) -> Task:
        """A task from where the view stands, as another engine would make it. It may die at a step of its batch."""

        def crash(point: str, number: int) -> None:
            if point == dies_at:
                raise RuntimeError(f"the engine dies at {point} of batch {number}")

        always = None if self.seconds is None else lambda _: 0.0
        return Task(
            VIEW, "v", self.inputs, self.plan, self.target, self.ledgers, begins_empty=True, next_due=always, crash=crash
        )  # fmt: skip

    def task_ledger(self) -> Ledger:
        head = self.store.head(self.session)
        assert head is not None
        assert head.ledger is not None
        return head.ledger

    def change(self, contents: Contents, changed: Mapping[str, list[tuple[Row, int]]]) -> None:
        for name, upstream in self.upstreams.items():
            if changed[name]:
                upstream.put(changed[name])
            now = frame(self.session, [*contents.rows[name].elements()])
            self.current[f"rel_{IDS[name]}"] = now.select("id", "a", "b", "s", "d")

    def held(self) -> Counter[tuple[object, ...]]:
        pinned = self.store.pin(self.session)
        assert pinned is not None
        return Counter(map(tuple, self.store.shown(self.session, pinned).collect()))

    def rows(self) -> Counter[tuple[object, ...]]:
        for name, now in self.current.items():  # a batch drops the names that it uses
            now.createOrReplaceTempView(name)
        self.session.sql(f"SELECT timestamp_seconds({self.seconds or 0}) AS {TIME}").createOrReplaceTempView(NOW)
        return Counter(map(tuple, self.session.sql(self.analysed.spark_sql).collect()))


QUERIES = {
    "linear": "SELECT id, a + 1 AS n FROM bag WHERE b >= 0 UNION ALL SELECT 7, 7",
    "join": "SELECT k.id, k.s, ap.d FROM k JOIN ap ON k.a = ap.a AND k.b <=> ap.b",
    "merged": "SELECT a, count(*) AS n, count(b) AS c, sum(d) AS s, avg(b) AS m FROM bag GROUP BY a HAVING count(*) > 1",
    "touched": "SELECT b, max(d) AS m, count(DISTINCT a) AS n FROM bag GROUP BY b",
    "global": "SELECT count(*) AS n, sum(id) AS s, min(a) AS m FROM ap",
    "joined groups": "SELECT k.id, t.n FROM k JOIN (SELECT a, count(*) AS n FROM bag GROUP BY a) AS t ON t.a = k.a",
    "sliding windows": "SELECT a, (window(timestamp_seconds(id), '4 seconds', '2 seconds')).start AS w, count(DISTINCT b) AS n "
    "FROM bag GROUP BY a, window(timestamp_seconds(id), '4 seconds', '2 seconds')",
    "left join": "SELECT k.id, bag.d FROM k LEFT JOIN bag ON k.a = bag.a",
    "distinct and subquery": "SELECT DISTINCT a, s FROM k WHERE b IN (SELECT b FROM ap)",
}


STEPS = ("after_choose", "after_mark", "after_write", "after_commit")


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.timeout(900)
def test_a_view_equals_its_query_after_every_batch_and_after_crashes(
    session: SparkSession, tmp_path: Path, name: str
) -> None:
    random = Random(name)
    few = list(QUERIES).index(name) % 2 == 0  # every other view is kept from memory, and the rest from files
    view, contents = View(session, QUERIES[name], tmp_path, few=few), Contents(random)
    task = view.task()
    for number in range(3):
        changed = contents.change() if number else {relation: [] for relation in GROWTHS}
        view.change(contents, changed)
        if number == 1:
            with suppress(HeadgateError):  # nothing dies in a batch without changes
                view.task(STEPS[list(QUERIES).index(name) % len(STEPS)]).run_batch(session)
            task = view.task()
        elif number == 2:  # a large batch is computed as a whole now
            view.target.costs.took(9.0, anew=False)
        task.run_batch(session)
        assert view.held() == view.rows(), f"batch {number}"


@pytest.mark.parametrize("name", ["linear", "merged"])
@pytest.mark.timeout(900)
def test_storage_that_is_deleted_while_its_task_runs_is_named(session: SparkSession, tmp_path: Path, name: str) -> None:
    view = View(session, QUERIES[name], tmp_path)
    task = view.task()
    task.run_batch(session)
    rmtree(tmp_path / "v")
    view.upstreams["bag"].put([((1, 1, 2, "a", "1.00"), 1)])
    with pytest.raises(ViewStorageGone) as raised:
        task.run_batch(session)
    assert (raised.value.view, raised.value.folder) == ("v", str(tmp_path / "v"))
    assert not (tmp_path / "v").exists()


TIMED = {
    "entering and leaving": "SELECT id, a FROM bag WHERE timestamp_seconds(id * 100) <= now() AND id * 100 > "
    "unix_timestamp() - 200",
    "groups": "SELECT t.a, count(*) AS n FROM ap AS t JOIN ap AS u ON t.id = u.id AND t.id * 100 < unix_timestamp(current_timestamp) "
    "WHERE current_date = DATE '1970-01-01' GROUP BY t.a HAVING max(t.id) <= minute(localtimestamp)",
}


@pytest.mark.parametrize("name", TIMED)
@pytest.mark.timeout(900)
def test_a_view_that_reads_the_time_equals_its_query_at_the_time_of_the_batch(
    session: SparkSession, tmp_path: Path, name: str
) -> None:
    view, contents = View(session, TIMED[name], tmp_path, few=True), Contents(Random(name))
    task, batches = view.task(), 0
    seen: list[Counter[tuple[object, ...]]] = []
    for number in range(6):
        view.change(contents, contents.change() if number < 2 else {relation: [] for relation in GROWTHS})
        view.seconds = 150 + 100 * number if number < 5 else 1_000_000
        before = seen[-1] if seen else None
        batches += (result := task.run_batch(session)) is not None
        assert view.held() == view.rows(), f"batch {number}"
        seen.append(view.held())
        assert result is not None or seen[-1] == before
        if result is not None:
            assert task.positions[CLOCK_INPUT] == ClockPosition(view.seconds * 1_000_000)
    assert any(before != after for before, after in pairwise(seen[1:5])), "only the time has changed it"
    assert seen[-1] == Counter()
    assert task.run_batch(session) is None  # nothing changes any more, so that nothing is written
    assert task.positions[CLOCK_INPUT] == view.task_ledger().positions[CLOCK_INPUT]
    assert view.task_ledger().number == batches


@pytest.mark.timeout(900)
def test_a_batch_that_fails_leaves_the_view_as_it_was_and_compaction_changes_nothing(
    session: SparkSession, tmp_path: Path
) -> None:
    view = View(session, "SELECT a, 10 / b AS q FROM bag", tmp_path, ("a",), few=True)
    contents = Contents(Random(1))
    good: list[tuple[Row, int]] = [((1, 1, 2, "a", "1.00"), 1), ((1, 1, 2, "a", "1.00"), 1), ((2, 2, 5, None, None), 1)]
    view.upstreams["bag"].put(good)
    view.task().run_batch(session)
    before = view.held()
    view.upstreams["bag"].put([((3, 1, 0, "a", None), 1)])
    with pytest.raises(ComputationFailed, match="divide by zero"):
        view.task().run_batch(session)
    assert view.held() == before
    view.upstreams["bag"].put([((3, 1, 0, "a", None), -1), ((4, None, 1, None, None), 1)])
    with pytest.raises(NullAsserted) as raised:
        view.task().run_batch(session)
    assert (raised.value.view, raised.value.column) == ("v", "a")
    view.upstreams["bag"].put([((4, None, 1, None, None), -1), ((1, 1, 2, "a", "1.00"), -1)])
    view.task().run_batch(session)
    pinned = view.store.pin(session)
    assert pinned is not None
    after = view.held()
    view.store.compact(session, pinned)
    assert view.held() == after
    assert sum(after.values()) == sum(before.values()) - 1
    assert contents.rows["bag"] == Counter()


PHANTOMS = {
    "rows": "SELECT k.id, 10 / (k.a - bag.b) AS q FROM k JOIN bag ON k.id = bag.id",
    "groups": "SELECT k.s, sum(CAST(10 / (k.a - bag.b) AS decimal(10, 2))) AS q FROM k JOIN bag ON k.id = bag.id GROUP BY k.s",
}


@pytest.mark.parametrize("name", PHANTOMS)
@pytest.mark.timeout(900)
def test_a_value_of_rows_that_were_never_there_together_does_not_halt_a_view(
    session: SparkSession, tmp_path: Path, name: str
) -> None:
    """By its changes a join puts the old rows of one side and the new ones of the other together, and takes them away again."""
    view = View(session, PHANTOMS[name], tmp_path, few=True)
    k, bag = view.upstreams["k"], view.upstreams["bag"]
    k.put([((1, 1, None, "a", None), 1)])
    bag.put([((1, None, 2, None, None), 1)])
    task = view.task()
    task.run_batch(session)
    assert {row[1] for row in view.held()} == {-10}
    k.put([((1, 1, None, "a", None), -1), ((1, 5, None, "a", None), 1)])
    bag.put([((1, None, 2, None, None), -1), ((1, None, 1, None, None), 1)])
    task.run_batch(session)
    assert {row[1] for row in view.held()} == {2.5}
    bag.put([((1, None, 1, None, None), -1), ((1, None, 5, None, None), 1)])
    with pytest.raises(ComputationFailed, match="divide by zero"):
        task.run_batch(session)
    assert {row[1] for row in view.held()} == {2.5}
