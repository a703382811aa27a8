"""The process that runs SELECTs, from the inside: its main program, and the queries that it runs at once.

It ends when the engine closes the control socket, when its JVM has ended or does not answer, and when a cancelled query
does not end. It then takes its JVM, the workers and its files along.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from headgate.connectors.connections import SharedClients
from headgate.errors import InternalError
from headgate.runtime.errors import SparkGone
from headgate.runtime.on_demand import OnDemandQuery
from headgate.runtime.push import push
from headgate.runtime.query import Answer, BatchQuery, Failed, QueryRequest
from headgate.runtime.query_process import QuerySettings, read_message, write_message
from headgate.runtime.session import SparkSession, open_session, why_ended
from headgate.runtime.spool import Receiver

log = logging.getLogger(__name__)

CANCEL_INTERVAL = 0.2  # seconds. Spark cancels the jobs that it knows, and the query may have begun another
CANCEL_TIMEOUT = 60.0  # seconds until a query that cannot be cancelled ends the process
HEARTBEAT, HEARTBEAT_TIMEOUT = 1.0, 120.0  # seconds; a JVM that collects garbage all the time does not answer
SLOTS = 8
# For a process that is mostly started and then idle: 4.8 CPU seconds up to the first answer, against 19 with the defaults.
# Arrow makes room for 4,000 values of each column before it knows how many there are: 100 MB for 2,000 texts, in each of the
# slots. Without the option all of it would have to fit into as much memory as the heap has.
# Without its second compiler Java has room for 48 MB of compiled code. After some hundred queries Spark has more than that,
# and Java would spend a tenth of its time throwing code away and compiling it again.
JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:MaxDirectMemorySize=1g"


class Turns:
    """Lets so many queries run at once; the others wait in the order in which they came."""

    def __init__(self, at_once: int) -> None:
        self._free = deque(range(at_once))
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def turn(self, wanted: Callable[[], bool]) -> Iterator[int | None]:
        """The number of a free place. None if the query was cancelled while it waited."""
        place = self._wait(wanted)
        try:
            yield place
        finally:
            if place is not None:
                with self._changed:
                    self._free.append(place)
                    self._changed.notify_all()

    def _wait(self, wanted: Callable[[], bool]) -> int | None:
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                while wanted():
                    if self._free and self._waiting[0] is ticket:
                        return self._free.popleft()
                    self._changed.wait(0.2)
                return None
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()


class QueryServer:
    """Answers the queries of one engine."""

    def __init__(
        self, session: SparkSession, folder: Path, at_once: int, spool: int, die: Callable[[str], None]
    ) -> None:
        """``die`` ends the process; it is called with the reason when Spark has ended or a query cannot be ended."""
        self._session = session
        self._receiver = Receiver(folder, spool)
        self._turns = Turns(at_once)
        self._clients = SharedClients()
        self._die = die

    def serve(self, control: socket.socket) -> None:
        """Answer queries until the engine hangs up."""
        while True:
            try:
                message, descriptors, _, _ = socket.recv_fds(control, 1, 1)
            except ConnectionError:
                return
            if not message:
                return
            for descriptor in descriptors:
                connection = socket.socket(fileno=descriptor)
                threading.Thread(target=self._serve_one, args=(connection,), name="query", daemon=True).start()

    def close(self) -> None:
        self._receiver.close()

    def warm_up(self) -> None:
        """Run a small query on the way that all queries take, so that its classes and a worker are loaded."""
        spool = self._receiver.open()
        frame = self._session.sql("SELECT id, CAST(id AS string) AS word FROM range(9)")
        push(frame, self._receiver.address, spool.token)
        spool.close()

    def _serve_one(self, connection: socket.socket) -> None:
        spool = self._receiver.open()
        try:
            with connection, contextlib.suppress(EOFError, OSError):
                request = read_message(connection)
                assert isinstance(request, QueryRequest)
                make = BatchQuery if request.on_demand is None else OnDemandQuery
                query = make(self._session, request, self._clients.of(request.servers), spool)
                self._answer(connection, query)
        except Exception as error:
            log.exception("unexpected error in a query")
            if not self._session_lives():
                self._die(f"Spark has ended: {type(error).__name__}")
        finally:
            spool.close()

    def _answer(self, connection: socket.socket, query: BatchQuery) -> None:
        ended = threading.Event()
        running = threading.Thread(target=self._run, args=(query, ended), name="query job", daemon=True)
        running.start()
        threading.Thread(target=self._watch, args=(connection, query, ended), name="query watch", daemon=True).start()
        try:
            for answer in self._checked(query):
                write_message(connection, answer)
        finally:
            # The one that watches is inside recv, and close alone would not wake it.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _checked(self, query: BatchQuery) -> Iterator[Answer]:
        """The answers. If Spark has ended there is no last one, and the engine asks why."""
        try:
            for answer in query.answers():
                if isinstance(answer, Failed) and isinstance(answer.error, SparkGone):
                    self._die("Spark has ended")
                yield answer
        except (EOFError, OSError):
            raise
        except Exception as error:
            log.exception("unexpected error in a query")
            yield Failed(InternalError(type(error).__name__))

    def _run(self, query: BatchQuery, ended: threading.Event) -> None:
        try:
            with self._turns.turn(lambda: not query.cancelled) as place:
                if place is not None:
                    query.run(self._receiver.address, f"query-{place}")
        finally:
            ended.set()

    def _watch(self, connection: socket.socket, query: BatchQuery, ended: threading.Event) -> None:
        """Cancel the query when the engine hangs up. It says nothing more, so that anything read is the end."""
        with contextlib.suppress(OSError):
            connection.recv(1)
        for _ in range(int(CANCEL_TIMEOUT / CANCEL_INTERVAL)):
            if ended.wait(CANCEL_INTERVAL):
                return
            query.cancel()
        self._die("A cancelled query did not end")

    def _session_lives(self) -> bool:
        try:
            self._session.sparkContext.statusTracker().getActiveJobsIds()
        except Exception:  # noqa: BLE001 - py4j has several errors for a dead JVM
            return False
        return True


class Ending:
    """Ends this process with all its children, and tells the engine why."""

    def __init__(self, control: socket.socket, folder: Path, heap: str) -> None:
        """``heap`` is the size of the heap of Spark's JVM, for the reason."""
        self._control = control
        self._folder = folder
        self._heap = heap
        self._guard = threading.Lock()

    def __call__(self, reason: str) -> None:
        self._guard.acquire()  # for ever: only the first reason counts
        if (status := _java_status()) is not None:
            reason = why_ended(status, self._heap, "queries").removesuffix(".")
        with contextlib.suppress(OSError):
            write_message(self._control, reason)
        _kill_children()
        shutil.rmtree(self._folder, ignore_errors=True)
        os._exit(1)


def watch_java(session: SparkSession, end: Callable[[str], None]) -> None:
    """End the process when its JVM has ended or does not answer any more."""
    beaten = threading.Event()

    def beat() -> None:
        while True:
            try:
                session.sparkContext.statusTracker().getActiveJobsIds()
            except Exception:  # noqa: BLE001 - py4j has several errors for a dead JVM
                return end("Spark has ended")
            beaten.set()
            threading.Event().wait(HEARTBEAT)

    def watch() -> None:
        while beaten.wait(HEARTBEAT_TIMEOUT):
            beaten.clear()
            threading.Event().wait(2 * HEARTBEAT)
        end("Spark did not answer")

    for target in (beat, watch):
        threading.Thread(target=target, name="heartbeat", daemon=True).start()


def _java_status() -> int | None:
    """The exit status of the JVM, negative for a signal; None if it runs or is not known."""
    # pyspark holds the Popen; a zombie child can be asked without it.
    with contextlib.suppress(ChildProcessError):
        for _ in range(20):
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid != 0:
                return os.waitstatus_to_exitcode(status)
            threading.Event().wait(0.05)
    return None


def _kill_children() -> None:
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            child.kill()


def own_folder(parent: Path) -> tuple[Path, int]:
    """A new folder for the files of this process, with a lock that is held as long as the process lives. The folders of
    processes that do not live any more are removed: a JVM that ran out of memory leaves its files behind."""
    parent.mkdir(parents=True, exist_ok=True)
    with (parent / "lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        for old in parent.iterdir():
            if old.is_dir() and _is_left(old):
                shutil.rmtree(old, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(dir=parent))
        lock = os.open(folder / "lock", os.O_CREAT | os.O_WRONLY, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return folder, lock


def _is_left(folder: Path) -> bool:
    try:
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def open_query_session(settings: QuerySettings, folder: Path) -> SparkSession:
    spark = {
        **settings.spark,
        "spark.driver.memory": settings.memory,
        "spark.driver.defaultJavaOptions": JAVA_OPTIONS,
        "spark.scheduler.mode": "FAIR",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(4 << 20),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.local.dir": str(folder / "spark"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    return open_session(
        settings.jars, application="headgate queries", master=f"local[{SLOTS}]", java=settings.java,
        archive=settings.archive, settings=spark,
    )  # fmt: skip


def main(descriptor: str) -> None:
    """The query process. It ends when the engine hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    with socket.socket(fileno=int(descriptor)) as control:
        settings = read_message(control)
        assert isinstance(settings, QuerySettings)
        os.nice(settings.niceness)
        folder, _ = own_folder(settings.folder)
        end = Ending(control, folder, settings.memory)
        session = open_query_session(settings, folder)
        watch_java(session, end)
        server = QueryServer(session, folder / "spool", settings.at_once, settings.spool, end)
        write_message(control, "ready")
        threading.Thread(target=server.warm_up, name="warm up", daemon=True).start()
        server.serve(control)
        end("The engine has ended")


if __name__ == "__main__":
    main(sys.argv[1])
