"""A poller asks for all topics at once, and says what moved and what is wrong."""

from __future__ import annotations

import queue
import threading
from collections.abc import Collection, Iterator

import pytest

from headgate.catalog.positions import KafkaPosition
from headgate.connectors.errors import BrokerUnreachable, TopicNotFound
from headgate.errors import HeadgateError
from headgate.runtime import poller
from headgate.runtime.poller import Pollers
from headgate.runtime.ports import Watched
from tests.runtime.memory_tasks import LONG, MemoryCluster

pytestmark = pytest.mark.unit


class Watching:
    """Pollers, and what they told."""

    def __init__(self) -> None:
        self.moved: queue.Queue[set[Watched]] = queue.Queue()
        self.failed: queue.Queue[tuple[set[Watched], HeadgateError]] = queue.Queue()
        self.pollers = Pollers(self._on_moved, self._on_failure)

    def _on_moved(self, moved: Collection[Watched]) -> None:
        self.moved.put(set(moved))

    def _on_failure(self, lost: Collection[Watched], error: HeadgateError) -> None:
        self.failed.put((set(lost), error))


@pytest.fixture
def watching(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watching]:
    monkeypatch.setattr(poller, "FAILED_INTERVAL", 0.01)
    monkeypatch.setattr(poller, "DESCRIBE_EVERY", 0.01)
    made = Watching()
    yield made
    made.pollers.stop()


def test_all_topics_of_a_cluster_are_asked_for_in_one_request(watching: Watching) -> None:
    cluster = MemoryCluster()
    topics = [f"t{number}" for number in range(20)]
    for topic in topics:
        cluster.put(topic, 3)
    watching.pollers.watch(frozenset(Watched(cluster, topic) for topic in topics))
    assert watching.moved.get(timeout=LONG) == {Watched(cluster, topic) for topic in topics}
    assert cluster.requests[0] == frozenset(topics)
    assert watching.pollers.ends[Watched(cluster, "t7")] == KafkaPosition("t7", "id of t7", (3,))


def test_only_what_moved_is_told(watching: Watching) -> None:
    cluster = MemoryCluster()
    cluster.put("a")
    cluster.put("b")
    watching.pollers.watch(frozenset({Watched(cluster, "a"), Watched(cluster, "b")}))
    watching.moved.get(timeout=LONG)
    cluster.put("b")
    assert watching.moved.get(timeout=LONG) == {Watched(cluster, "b")}


def test_who_asks_is_given_the_ends_of_that_moment(watching: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "BUSY_INTERVAL", LONG)
    monkeypatch.setattr(poller, "IDLE_INTERVAL", LONG)
    cluster = MemoryCluster()
    a = Watched(cluster, "a")
    cluster.put("a")
    watching.pollers.watch(frozenset({a}))
    watching.moved.get(timeout=LONG)
    for count in range(2, 30):
        cluster.put("a")
        watching.pollers.refresh(LONG)
        assert watching.pollers.ends[a] == KafkaPosition("a", "id of a", (count,))


def test_who_asks_does_not_wait_for_a_cluster_that_is_away(watching: Watching) -> None:
    cluster = MemoryCluster()
    cluster.failure = BrokerUnreachable("broker:9092", "no answer")
    watching.pollers.watch(frozenset({Watched(cluster, "a")}))
    watching.failed.get(timeout=LONG)
    watching.pollers.refresh(threading.TIMEOUT_MAX)


def test_a_topic_that_is_watched_no_more_is_not_asked_for(watching: Watching) -> None:
    cluster = MemoryCluster()
    cluster.put("a")
    cluster.put("b")
    watching.pollers.watch(frozenset({Watched(cluster, "a"), Watched(cluster, "b")}))
    watching.moved.get(timeout=LONG)
    watching.pollers.watch(frozenset({Watched(cluster, "a")}))
    assert watching.pollers.ends.keys() == {Watched(cluster, "a")}
    cluster.put("a")
    assert watching.moved.get(timeout=LONG) == {Watched(cluster, "a")}
    assert cluster.requests[-1] == {"a"}


def test_a_poller_outlives_a_failure_of_those_whom_it_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "FAILED_INTERVAL", 0.01)
    cluster, heard = MemoryCluster(), queue.Queue[int]()

    def fail_once(moved: Collection[Watched]) -> None:
        heard.put(len(moved))
        if heard.qsize() == 1:
            raise ValueError("a task cannot compare positions")

    pollers = Pollers(fail_once, lambda *_: None)
    cluster.put("a")
    pollers.watch(frozenset({Watched(cluster, "a")}))
    while heard.qsize() < 1:
        assert not threading.Event().wait(0.001)
    cluster.put("a")
    assert [heard.get(timeout=LONG), heard.get(timeout=LONG)] == [1, 1]
    pollers.stop()


def test_a_topic_that_is_gone_does_not_hide_the_others(watching: Watching) -> None:
    cluster = MemoryCluster()
    cluster.put("a")
    cluster.put("b")
    watching.pollers.watch(frozenset({Watched(cluster, "a"), Watched(cluster, "b")}))
    watching.moved.get(timeout=LONG)
    del cluster.ends["b"]
    lost, error = watching.failed.get(timeout=LONG)
    assert (lost, type(error)) == ({Watched(cluster, "b")}, TopicNotFound)
    cluster.put("a")
    assert watching.moved.get(timeout=LONG) == {Watched(cluster, "a")}


def test_a_cluster_that_is_away_is_asked_until_it_is_back(watching: Watching) -> None:
    cluster, other = MemoryCluster(), MemoryCluster()
    cluster.put("a")
    other.put("a")
    cluster.failure = BrokerUnreachable("somewhere:9092", "No answer.")
    watching.pollers.watch(frozenset({Watched(cluster, "a"), Watched(other, "a")}))
    assert watching.failed.get(timeout=LONG)[0] == {Watched(cluster, "a")}
    assert watching.moved.get(timeout=LONG) == {Watched(other, "a")}
    cluster.failure = None
    assert watching.moved.get(timeout=LONG) == {Watched(cluster, "a")}
