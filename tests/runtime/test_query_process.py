"""The query process: what passes between it and the engine, and what happens when one of them ends."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import orjson
import psutil
import pytest

from headgate.connectors.connections import ServerOptions
from headgate.embedded.spark import query_settings
from headgate.plan.definitions import QueryDefinition, SelectDefinition
from headgate.runtime.errors import ComputationFailed, QueryCancelled, QueryProcessEnded
from headgate.runtime.query import Columns, Failed, Finished, QueryRequest, Rows
from headgate.runtime.query_process import (
    QueryClient,
    QueryProcess,
    RunningQuery,
    read_message,
    write_message,
)
from headgate.runtime.query_server import Turns, own_folder


def request(sql: str, columns: int = 1) -> QueryRequest:
    query = QueryDefinition(sql, tuple((f"c{number}", None) for number in range(columns)))
    return QueryRequest(SelectDefinition(query, {}), ServerOptions({}, {}), {})


def rows(query: RunningQuery) -> list[list[object]]:
    with closing(query):
        return [row for one in query.answers() if isinstance(one, Rows) for row in orjson.loads(one.json)]


def until(holds: Callable[[], bool]) -> None:
    for _ in range(6000):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError("it did not come to hold")


# without a process


@pytest.fixture
def ends() -> Iterator[tuple[QueryClient, socket.socket]]:
    """The engine's end of a control socket, and the other end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield QueryClient(ours), theirs


def accept(control: socket.socket) -> socket.socket:
    _, (descriptor,), _, _ = socket.recv_fds(control, 1, 1)
    return socket.socket(fileno=descriptor)


@pytest.mark.unit
def test_a_message_that_is_cut_off_is_an_end() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            write_message(theirs, ("a", 1))
            theirs.sendall(b"\0\0\0\0\0\0\0\x09half")
        assert read_message(ours) == ("a", 1)
        with pytest.raises(EOFError):
            read_message(ours)


@pytest.mark.unit
def test_answers_come_as_they_were_sent(ends: tuple[QueryClient, socket.socket]) -> None:
    client, control = ends
    query = client.open(request("SELECT 1"))
    sent = [Columns((("one", "integer"),)), Rows(1, b"[[1]]"), Finished({7: 2})]
    with accept(control) as process:
        assert read_message(process) == request("SELECT 1")
        for answer in sent:
            write_message(process, answer)
        with closing(query):
            assert list(query.answers()) == sent


@pytest.mark.unit
def test_the_error_of_a_query_is_raised(ends: tuple[QueryClient, socket.socket]) -> None:
    client, control = ends
    query = client.open(request("SELECT 1/0"))
    with accept(control) as process:
        write_message(process, Failed(ComputationFailed("divide by zero")))
        with pytest.raises(ComputationFailed):
            rows(query)


@pytest.mark.unit
@pytest.mark.parametrize("others", [0, 1, 2])
def test_an_end_without_a_last_answer_means_that_the_process_ended(
    ends: tuple[QueryClient, socket.socket], others: int
) -> None:
    client, control = ends
    queries = [client.open(request("SELECT 1")) for _ in range(others + 1)]
    client.reason = "It ran out of memory"
    client.gone.set()
    for _ in queries:
        with accept(control) as process:
            write_message(process, Columns((("one", "integer"),)))
    with pytest.raises(QueryProcessEnded) as raised:
        list(queries[0].answers())
    for query in queries:
        query.close()
    shown = raised.value.diagnostic()
    assert shown.message.startswith("the process" if others else "the query ended the process")
    assert (shown.detail or "").startswith("It ran out of memory.")
    assert ("at the same time" in (shown.detail or "")) == bool(others)


@pytest.mark.unit
def test_to_cancel_closes_the_connection(ends: tuple[QueryClient, socket.socket]) -> None:
    client, control = ends
    query = client.open(request("SELECT 1"))
    with accept(control) as process:
        query.cancel()
        with pytest.raises(QueryCancelled):
            rows(query)
        assert read_message(process) == request("SELECT 1")
        with pytest.raises(EOFError):
            read_message(process)


@pytest.mark.unit
def test_queries_take_turns_in_the_order_in_which_they_came() -> None:
    turns, order = Turns(1), list[int]()

    def wait(number: int) -> None:
        with turns.turn(lambda: True):
            order.append(number)

    with turns.turn(lambda: True):
        threads = []
        for number in range(4):
            threads.append(threading.Thread(target=wait, args=(number,)))
            threads[-1].start()
            until(lambda number=number: len(turns._waiting) == number + 1)  # type: ignore[misc]
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3]


@pytest.mark.unit
def test_a_cancelled_query_leaves_the_queue() -> None:
    turns = Turns(1)
    with turns.turn(lambda: True), turns.turn(lambda: False) as place:
        assert place is None
    with turns.turn(lambda: True) as place:
        assert place == 0


@pytest.mark.unit
def test_files_of_processes_that_ended_are_removed_and_others_stay(tmp_path: Path) -> None:
    first, lock = own_folder(tmp_path)
    (first / "rows").write_text("left behind")
    second, other = own_folder(tmp_path)
    assert first.exists()
    os.close(lock)
    third, last = own_folder(tmp_path)
    assert not first.exists()
    assert second.exists()
    assert third.exists()
    os.close(other)
    os.close(last)


# with a process


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryProcess]:
    folder = tmp_path_factory.mktemp("queries")
    ansi = {"spark.sql.ansi.enabled": "true"}
    running = QueryProcess(lambda: query_settings(folder, memory="512m", at_once=2, spool=64 << 20, spark=ansi))
    running.warm_up()
    yield running
    running.close()
    assert [path.name for path in folder.iterdir()] == ["lock"]


LARGE = "SELECT id, repeat('x', 2000) FROM range(0, 300000, 1, 1)"  # more than the heap of 512 MB
ENDLESS = "SELECT max(a.id % 7 + b.id) AS most FROM range(1000000) AS a JOIN range(1000000) AS b ON a.id <> b.id"


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_one_partition_of_more_rows_than_the_heap_holds_is_read_to_its_end(process: QueryProcess) -> None:
    expected = 0
    with closing(process.open(request(LARGE, 2))) as query:
        for answer in query.answers():
            if isinstance(answer, Rows):
                assert orjson.loads(answer.json)[0][0] == expected
                expected += answer.count
    assert expected == 300_000


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_many_columns_of_all_partitions_at_once_have_room(process: QueryProcess) -> None:
    columns = 2000
    texts = ", ".join(f"CAST(id AS string) AS c{number}" for number in range(columns))
    found = rows(process.open(request(f"SELECT {texts} FROM range(0, 80, 1, 8)", columns)))
    assert found == [[str(number)] * columns for number in range(80)]


@pytest.mark.e2e
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT length(repeat('x', 500000000)) + length(repeat(uuid(), 15000000)) AS n",
        "SELECT size(collect_list(repeat(CAST(id AS string), 1000))) AS n FROM range(3000000)",
        "SELECT explode(sequence(1, 200000000 + CAST(rand() AS int))) AS n",
    ],
)
def test_a_query_that_ends_its_process_is_told_so_and_the_next_one_works(process: QueryProcess, sql: str) -> None:
    with pytest.raises(QueryProcessEnded) as raised:
        rows(process.open(request(sql)))
    assert "memory" in raised.value.reason
    assert rows(process.open(request("SELECT 1"))) == [[1]]


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_a_process_that_is_killed_is_started_again(process: QueryProcess) -> None:
    assert rows(process.open(request("SELECT 1"))) == [[1]]
    killed = process.pid
    assert killed is not None
    running = process.open(request(ENDLESS))
    os.kill(killed, signal.SIGKILL)
    with pytest.raises(QueryProcessEnded):
        rows(running)
    assert rows(process.open(request("SELECT 2"))) == [[2]]
    assert process.pid != killed


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_clients_that_do_not_read_keep_nobody_from_reading(process: QueryProcess) -> None:
    idle = [process.open(request(LARGE, 2)) for _ in range(6)]
    assert rows(process.open(request("SELECT id FROM range(3)"))) == [[0], [1], [2]]
    for one in idle:
        one.close()


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_a_cancelled_query_leaves_its_place_to_the_next(process: QueryProcess) -> None:
    endless = [process.open(request(ENDLESS)) for _ in range(2)]
    waiting = process.open(request("SELECT 1"))
    for one in endless:
        one.close()
    assert rows(waiting) == [[1]]


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_the_process_ends_with_the_engine(process: QueryProcess, tmp_path: Path) -> None:
    other = QueryProcess(lambda: query_settings(tmp_path, memory="512m", at_once=2, spool=64 << 20, spark={}))
    assert rows(other.open(request("SELECT 1"))) == [[1]]
    assert other.pid is not None
    tree = [psutil.Process(other.pid), *psutil.Process(other.pid).children(recursive=True)]
    assert any(one.name() == "java" for one in tree)
    other.close()
    assert psutil.wait_procs(tree, timeout=60)[1] == []
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]
