"""What is committed is what is loaded, with its history and events, now and after opening the file again."""

from __future__ import annotations

import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings

from headgate.catalog.catalog import Catalog
from headgate.catalog.changes import (
    Change,
    CommentSet,
    Commit,
    ObjectCreated,
    ObjectDropped,
    ObjectRenamed,
    TaskStateSet,
    apply,
)
from headgate.catalog.errors import AlreadyExists, CatalogChanged, LedgerMoved, NotUnicode
from headgate.catalog.objects import DesiredTaskState
from headgate.catalog.positions import KafkaPosition, KafkaRecord, Positions, SequenceRecord
from headgate.catalog.store.reader import SqliteReader
from headgate.catalog.store.sqlite import SqliteStore
from headgate.catalog.tasks import (
    Ledger,
    Mark,
    ProgressSlot,
    Quarantined,
    QuarantineFolder,
    State,
    TaskStatus,
)
from headgate.errors import InternalError
from headgate.sql.script import parse_statement
from headgate.sql.sinks import CreateSink
from headgate.sql.statement import Kind
from tests.catalog.building import NOW, START, created
from tests.catalog.strategies import commits

pytestmark = pytest.mark.unit


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(path, clock=lambda: NOW) as opened:
        yield opened


def create(store: SqliteStore, kind: Kind, name: str, *columns: str) -> int:
    change = created(store.load(), kind, name, *columns)
    store.commit([change], cause="statement", statement=change.object.statement)
    return change.object.id


@given(commits())
@settings(max_examples=30, deadline=None)
def test_a_store_opened_again_holds_what_was_applied(history: list[list[Change]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, expected = Path(folder) / "catalog.db", START
        with SqliteStore(path, clock=lambda: NOW) as store, SqliteReader(path) as reader:
            for commit in history:
                expected = apply(expected, *commit)
                assert store.commit(commit, cause="statement") == expected
                assert reader.load() == expected
        with SqliteStore(path) as again:
            found = again.load()
            assert found == expected
            assert (found.by_name, found.users) == (expected.by_name, expected.users)


def test_a_new_store_has_the_default_database_and_schema(store: SqliteStore) -> None:
    assert store.load() == START


def test_a_commit_that_fails_stores_nothing(store: SqliteStore) -> None:
    before, first = store.load(), created(START, Kind.VIEW, "v")
    with pytest.raises(AlreadyExists):
        store.commit([first, created(apply(START, first), Kind.VIEW, "v")], cause="statement")
    assert store.load() is before
    assert (store.history(), store.events()) == ((), ())
    create(store, Kind.VIEW, "v")
    assert store.load().version == 1


def test_changes_planned_for_an_older_catalog_are_refused(store: SqliteStore) -> None:
    planned = store.load()
    create(store, Kind.VIEW, "v")
    with pytest.raises(CatalogChanged):
        store.commit([ObjectRenamed(2, "main")], cause="statement", planned=planned.version)
    assert store.load().version == 1


def test_a_script_is_committed_whole_with_the_text_of_each_statement(store: SqliteStore) -> None:
    first = created(START, Kind.VIEW, "v")
    second = ObjectRenamed(first.object.id, "w")
    clash = created(apply(START, first), Kind.VIEW, "v")
    units = [
        Commit((first,), "statement", "CREATE VIEW v"),
        Commit((second,), "statement", "ALTER VIEW v RENAME TO w"),
    ]
    with pytest.raises(AlreadyExists):
        store.commit_all([units[0], Commit((clash,), "statement", "CREATE VIEW v")])
    assert (store.load(), store.history()) == (START, ())
    store.commit_all(units)
    assert [(e.change, e.statement) for e in store.history()] == [
        ("created view", "CREATE VIEW v"),
        ("renamed from v to w", "ALTER VIEW v RENAME TO w"),
    ]


def test_a_text_that_is_not_unicode_is_refused(store: SqliteStore) -> None:
    with pytest.raises(NotUnicode):
        store.commit([CommentSet(2, None, "\ud800")], cause="statement")
    assert store.load() == START


def test_history_tells_what_changed_in_order_with_cause_and_statement(store: SqliteStore) -> None:
    view = create(store, Kind.VIEW, "v")
    store.commit([ObjectRenamed(view, "w")], cause="schema 7 of orders-value", position=KafkaRecord("orders", 0, 42))
    store.commit([ObjectDropped(view)], cause="statement", statement="DROP VIEW w")
    lines = [(e.object, e.change, e.cause, e.position, e.statement) for e in store.history()]
    assert lines == [
        ("v", "created view", "statement", None, "CREATE VIEW v"),
        ("w", "renamed from v to w", "schema 7 of orders-value", KafkaRecord("orders", 0, 42), None),
        ("w", "dropped view", "statement", None, "DROP VIEW w"),
    ]
    assert [e.sequence for e in store.history(view)] == [1, 2, 3]
    assert all(e.time == NOW for e in store.history())


def test_every_change_makes_one_event(store: SqliteStore) -> None:
    sink = create(store, Kind.SINK, "s")
    store.commit(
        [TaskStateSet(sink, DesiredTaskState.PAUSED), TaskStateSet(sink, DesiredTaskState.RUNNING)],
        cause="statement",
    )
    assert [(e.sequence, e.object, e.event) for e in store.events()] == [
        (1, "s", "created"),
        (2, "s", "paused"),
        (3, "s", "resumed"),
    ]
    assert [e.sequence for e in store.events(after=2)] == [3]


@pytest.mark.parametrize("table", ["history", "events"])
@pytest.mark.parametrize("change", ["DELETE FROM {}", "UPDATE {} SET object = 'x'"])
def test_history_and_events_only_grow(store: SqliteStore, path: Path, table: str, change: str) -> None:
    create(store, Kind.VIEW, "v")
    other = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="only grows"):
        other.execute(change.format(table))
    other.close()


def test_readers_see_whole_snapshots_while_the_writer_writes(store: SqliteStore, path: Path) -> None:
    committed: dict[int, Catalog] = {0: store.load()}
    seen, last = list[Catalog](), list[Catalog]()
    done = threading.Event()

    def read() -> None:
        with SqliteReader(path) as reader:
            while not done.is_set():
                seen.append(reader.load())
            last.append(reader.load())

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(20):
        base = store.load()
        pair = created(base, Kind.VIEW, f"a{number}")
        partner = created(apply(base, pair), Kind.SINK, f"b{number}", reads=(pair.object.id,))
        after = store.commit([pair, partner], cause="statement")
        committed[after.version] = after
    done.set()
    for thread in threads:
        thread.join()
    assert all(catalog == committed[catalog.version] for catalog in seen)
    assert last == [store.load()] * 4


def test_several_threads_may_commit_through_one_store(store: SqliteStore) -> None:
    def work(name: str) -> None:
        for number in range(10):
            store.commit([CommentSet(2, None, f"{name}{number}")], cause="statement")

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.load().version == 30
    assert [e.sequence for e in store.events()] == list(range(1, 31))


def at(offset: int) -> Positions:
    return {3: KafkaPosition("orders", "topic-id", (offset, 7))}


def test_the_ledger_moves_only_from_where_it_is_expected(store: SqliteStore) -> None:
    sink = create(store, Kind.SINK, "s")
    first, second = Ledger(sink, 1, 0, 5, at(0), "d"), Ledger(sink, 1, 1, 5, at(42), "d")
    store.advance(None, first)
    store.advance(first, second)
    assert store.ledger(sink) == second
    for expected in (None, first, replace(second, positions=at(41)), replace(second, epoch=4)):
        with pytest.raises(LedgerMoved):
            store.advance(expected, replace(second, number=2))
    assert store.ledger(sink) == second


def test_a_mark_stays_until_the_ledger_moves(store: SqliteStore) -> None:
    sink = create(store, Kind.SINK, "s")
    ledger = Ledger(sink, 1, 0, 5, at(0))
    store.advance(None, ledger)
    assert store.mark(sink) is None
    for mark in (Mark(at(42), 1), Mark(None, 3)):
        store.save_mark(sink, mark)
        assert store.mark(sink) == mark
    store.advance(ledger, replace(ledger, number=1))
    assert store.mark(sink) is None


def test_epochs_grow_with_starts_and_with_leases(store: SqliteStore) -> None:
    first, second, other = store.next_epoch(1), store.next_epoch(1), store.next_epoch(2)
    assert (second, other) == (first + 1, first)
    assert first == 2**20 + 1
    store.raise_epoch(7 * 2**20 + 9)
    assert store.next_epoch(1) > 7 * 2**20 + 9
    store.heartbeat()  # the lease is still ours
    store.close()
    with SqliteStore(store.path) as later:
        assert later.next_epoch(1) > 8 * 2**20


def test_ledgers_of_many_threads_are_stored_together_and_one_failure_keeps_nobody(store: SqliteStore) -> None:
    sinks = [create(store, Kind.SINK, f"s{n}") for n in range(8)]
    failed: list[int] = []

    def work(sink: int) -> None:
        ledger = None
        for number in range(10):
            new = Ledger(sink, 1, number, 5, at(number))
            store.save_mark(sink, Mark(at(number), 1))
            store.advance(ledger, new)
            ledger = new
            try:
                store.advance(None, new)
            except LedgerMoved:
                failed.append(sink)

    threads = [threading.Thread(target=work, args=(sink,)) for sink in sinks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.ledger(sink) for sink in sinks] == [Ledger(sink, 1, 9, 5, at(9)) for sink in sinks]
    assert len(failed) == 80


def test_rejected_records_replace_those_of_an_earlier_attempt_at_their_batch(store: SqliteStore) -> None:
    source, sink = create(store, Kind.SOURCE, "o"), create(store, Kind.SINK, "s")
    records = [Quarantined(source, sink, KafkaRecord("o", 0, n), NOW, None, None, None, "bad") for n in range(3)]
    document = replace(records[0], position=SequenceRecord("files", 4))
    ledger = Ledger(sink, 1, 0, 5, at(0))
    store.advance(None, ledger)
    store.reject(sink, 1, [records[0], records[1], document, document])
    assert store.quarantined(sink) == (records[0], records[1], document)
    first = replace(ledger, number=1)
    store.advance(ledger, first, [records[1]])
    assert store.quarantined(sink) == (records[1],)
    store.reject(sink, 2, [records[2]])
    store.advance(first, replace(first, number=2), None)
    assert store.quarantined(sink) == (records[1], records[2])


def test_a_replayed_batch_quarantines_each_record_once(store: SqliteStore) -> None:
    source, sink = create(store, Kind.SOURCE, "orders"), create(store, Kind.SINK, "s")
    bad = Quarantined(
        source, sink, KafkaRecord("orders", 0, 7), NOW, 3, "$.price", "decimal(10,2)", "not a number", b"raw"
    )
    store.quarantine([bad])
    store.quarantine([bad])
    assert store.quarantined(raw=True) == store.quarantined(sink, raw=True) == (bad,)
    assert store.quarantined() == (replace(bad, raw=None),)
    assert (store.count_quarantined(sink), store.count_quarantined(source), store.count_in_catalog(sink)) == (1, 0, 1)


def test_a_replay_lets_some_records_go_and_says_why_others_stay(store: SqliteStore) -> None:
    source, sink, other = (create(store, k, n) for k, n in ((Kind.SOURCE, "o"), (Kind.SINK, "s"), (Kind.SINK, "t")))
    first, second = (
        Quarantined(source, sink, KafkaRecord("o", 0, n), NOW, 3, "$.value", "avro", "bad", b"r") for n in (1, 2)
    )
    elsewhere = replace(first, task=other)
    store.quarantine([first, second, elsewhere])
    changed = replace(second, reason="still bad", path="$.value.x", schema_id=4)
    store.release([first], [changed])
    assert store.quarantined(raw=True) == (changed, elsewhere)


def test_what_is_known_of_a_task_goes_with_it_and_history_stays(store: SqliteStore) -> None:
    sink = create(store, Kind.SINK, "s")
    status = TaskStatus(sink, State.HALTED, NOW, "RUN-0001: cannot decode", 3, 10, 1, 5, 4, 0.5, NOW, 2, None, 4096)
    store.report(status)
    store.advance(None, Ledger(sink, 1, 1, 5, at(0)))
    store.save_mark(sink, Mark(at(1), 1))
    store.quarantine([Quarantined(sink, sink, KafkaRecord("t", 0, 1), NOW, None, None, None, "trailing bytes")])
    assert store.statuses() == (status,)
    store.commit([ObjectDropped(sink)], cause="statement")
    assert (store.statuses(), store.ledger(sink), store.mark(sink), store.quarantined()) == (
        (),
        None,
        None,
        (),
    )
    assert [e.change for e in store.history(sink)] == ["created sink", "dropped sink"]


def test_what_a_dropped_task_quarantines_with_its_last_batch_is_not_kept(store: SqliteStore) -> None:
    source, sink = create(store, Kind.SOURCE, "o"), create(store, Kind.SINK, "s")
    store.commit([ObjectDropped(sink)], cause="statement")
    store.quarantine([Quarantined(source, sink, KafkaRecord("o", 0, 1), NOW, None, None, None, "trailing bytes")])
    assert store.quarantined() == ()


def folder(name: str, source: int, sink: int, batch: int, records: int = 7) -> QuarantineFolder:
    return QuarantineFolder(name, source, sink, batch, records)


def test_the_records_of_a_folder_are_shown_when_a_commit_names_it(store: SqliteStore) -> None:
    source, sink = create(store, Kind.SOURCE, "o"), create(store, Kind.SINK, "s")
    ledger = Ledger(sink, 1, 0, 5, at(0))
    store.advance(None, ledger)
    first, failed = folder("a", source, sink, 1), folder("lost", source, sink, 1)
    store.open_folders(sink, [failed])
    store.open_folders(sink, [first])
    assert (store.quarantine_folders(), store.leaving_folders(NOW)) == ((), (failed,))
    store.advance(ledger, replace(ledger, number=1), [], [first])
    assert store.quarantine_folders(sink) == store.quarantine_folders() == (first,)
    assert (store.quarantine_folders(source), store.count_quarantined(sink), store.count_in_catalog(sink)) == ((), 7, 0)
    store.forget_folder(failed)
    store.forget_folder(first)  # does nothing: it is kept
    assert (store.quarantine_folders(), store.leaving_folders(NOW)) == ((first,), ())


def test_a_folder_of_a_later_attempt_at_a_batch_takes_the_place_of_the_first(store: SqliteStore) -> None:
    source, sink = create(store, Kind.SOURCE, "o"), create(store, Kind.SINK, "s")
    first, second, third = (folder(name, source, sink, 1) for name in "abc")
    for each in (first, second):
        store.open_folders(sink, [each])
        store.reject(sink, 1, [], [each])
    assert (store.quarantine_folders(), store.leaving_folders(NOW)) == ((second,), (first,))
    store.open_folders(sink, [third])
    store.replace_folders([second], third)
    assert (store.quarantine_folders(), store.leaving_folders(NOW)) == ((third,), (first, second))
    store.replace_folders([third], None)
    assert store.quarantine_folders() == ()


def test_folders_of_dropped_tasks_and_of_batches_that_were_cut_short_are_to_be_removed(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "catalog.db", clock=lambda: NOW) as store:
        source, sink = create(store, Kind.SOURCE, "o"), create(store, Kind.SINK, "s")
        kept, unfinished = folder("a", source, sink, 1), folder("b", source, sink, 2)
        store.open_folders(sink, [kept])
        store.reject(sink, 1, [], [kept])
        store.open_folders(sink, [unfinished])
    with SqliteStore(tmp_path / "catalog.db", clock=lambda: NOW) as store:
        assert (store.quarantine_folders(), store.leaving_folders(NOW)) == ((kept,), (unfinished,))
        assert store.leaving_folders(NOW - timedelta(seconds=1)) == ()
        store.commit([ObjectDropped(sink)], cause="statement")
        assert (store.quarantine_folders(), set(store.leaving_folders(NOW))) == ((), {kept, unfinished})


def test_a_status_is_told_also_when_there_is_no_room_to_store_it(store: SqliteStore) -> None:
    sink = create(store, Kind.SINK, "s")
    store.report(TaskStatus(sink, State.RUNNING, NOW))
    store._database.execute("PRAGMA max_page_count = 1")  # the file may not grow from now on
    told = TaskStatus(sink, State.STARTING, NOW, "CAT-0303" * 10_000)
    store.report(told)
    assert store.statuses() == (told,)
    store._database.execute("PRAGMA max_page_count = 1000000")
    running = TaskStatus(sink, State.RUNNING, NOW)
    store.report(running)
    assert store.statuses() == (running,)


def test_a_closed_store_says_so(path: Path) -> None:
    store = SqliteStore(path)
    store.close()
    store.close()
    with pytest.raises(InternalError):
        store.load()


def test_a_megabyte_statement_that_touches_many_objects_is_stored_once(store: SqliteStore, path: Path) -> None:
    text, catalog, changes = "x" * 1_000_000, store.load(), list[Change]()
    for number in range(50):
        change: ObjectCreated = created(catalog, Kind.VIEW, f"v{number}")
        catalog = apply(catalog, change)
        changes.append(change)
    store.commit(changes, cause="statement", statement=text)
    assert {e.statement for e in store.history()} == {text}
    assert sum(file.stat().st_size for file in path.parent.iterdir()) < 5_000_000


def test_a_task_has_a_uuid_from_its_creation_to_its_end(store: SqliteStore, path: Path) -> None:
    sink, other = create(store, Kind.SINK, "s"), create(store, Kind.SINK, "t")
    given = store.task_uuid(sink)
    assert len(given) == 32
    assert given != store.task_uuid(other)
    store.commit([TaskStateSet(sink, DesiredTaskState.PAUSED)], cause="statement")
    store.close()
    with SqliteStore(path) as again:
        assert again.task_uuid(sink) == given
        again.commit([ObjectDropped(sink)], cause="statement")
        with pytest.raises(InternalError):
            again.task_uuid(sink)


EXACT = "CREATE SINK {} FROM r INTO KAFKA CONNECTION k (TOPIC 't') FORMAT JSON WITH (DELIVERY = 'exactly once')"


def test_a_sink_that_delivers_exactly_once_has_the_smallest_free_progress_slot(store: SqliteStore, path: Path) -> None:
    plain = create(store, Kind.SINK, "plain")
    first, second = (_create_exact(store, name) for name in ("a", "b"))
    project = store.progress_slot(first).project
    assert len(project) == 32
    assert [store.progress_slot(task) for task in (first, second)] == [ProgressSlot(project, n) for n in (0, 1)]
    with pytest.raises(InternalError):
        store.progress_slot(plain)
    store.commit([ObjectDropped(first)], cause="statement")
    store.close()
    with SqliteStore(path) as again:
        third, fourth = (_create_exact(again, name) for name in ("c", "d"))
        found = [again.progress_slot(task) for task in (second, third, fourth)]
        assert found == [ProgressSlot(project, n) for n in (1, 0, 2)]


def _create_exact(store: SqliteStore, name: str) -> int:
    change = created(store.load(), Kind.SINK, name)
    statement = parse_statement(EXACT.format(name))
    assert isinstance(statement, CreateSink)
    store.commit([ObjectCreated(replace(change.object, definition=statement))], cause="statement")
    return change.object.id
