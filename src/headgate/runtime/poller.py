"""A poller asks one Kafka cluster for the ends of all topics that tasks read, in one request for all of them.

Tasks do not ask: forty tasks that each ask for their own end would keep the broker and a core busy while nothing happens.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping

from headgate.catalog.positions import KafkaPosition
from headgate.connectors.errors import KafkaFailed, TopicNotFound
from headgate.connectors.kafka import Topic
from headgate.errors import HeadgateError
from headgate.runtime.ports import Cluster, Watched

log = logging.getLogger(__name__)

BUSY_INTERVAL = 0.1  # seconds between two requests while any end moves
IDLE_INTERVAL = 0.5  # seconds between two requests when nothing has moved for a while
SLOWER = 1.2  # the interval grows by this factor with every request that finds nothing new
DESCRIBE_EVERY = 5.0  # seconds; finds new partitions, and topics that were deleted or created again
FAILED_INTERVAL = 1.0  # seconds until a cluster that did not answer is asked again

Ends = Mapping[str, KafkaPosition]
"""The end of every topic that was asked for, by name."""


class Poller:
    """Watches topics of one cluster from a thread of its own.

    ``on_ends`` is given the ends of all watched topics after each request. ``on_failure`` is given the topics that could not
    be asked about and the reason, again and again as long as they are watched. Both are called by the poller's thread.
    """

    def __init__(
        self,
        cluster: Cluster,
        on_ends: Callable[[Ends], None],
        on_failure: Callable[[Collection[str], HeadgateError], None],
    ) -> None:
        self._cluster = cluster
        self._on_ends = on_ends
        self._on_failure = on_failure
        self._watched: frozenset[str] = frozenset()
        self._described: dict[str, Topic] = {}
        self._described_at = 0.0
        self._ends: Ends = {}
        self._wake = threading.Event()
        self._begun = 0  # requests
        self._answered = threading.Condition()
        self._last_answered = 0
        self._is_lost = False  # whether the cluster did not answer the last request
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="poller", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread, without waiting for a request that is under way."""
        self._ended = True
        self._wake.set()
        with self._answered:
            self._answered.notify_all()

    def watch(self, topics: frozenset[str]) -> None:
        """Ask for the ends of these topics from now on, and of no others. New ones are asked about at once."""
        new = topics - self._watched
        self._watched = topics
        if new:
            self._wake.set()

    def refresh(self, deadline: float) -> None:
        """Wait until a request that began after this call was answered. A cluster that did not answer the last request is
        not waited for, and no cluster longer than until ``deadline`` (``time.monotonic``)."""
        with self._answered:
            wanted = self._begun + 1
            self._wake.set()
            self._answered.wait_for(
                lambda: self._last_answered >= wanted or self._is_lost or self._ended, deadline - time.monotonic()
            )

    def _run(self) -> None:
        interval = BUSY_INTERVAL
        while not self._ended:
            self._wake.clear()
            with self._answered:
                self._begun += 1
            try:
                interval = self._next_interval(interval)
            except Exception:  # without it no task of the cluster would ever hear of new records again
                log.exception("what a poller tells failed, and it goes on")
                interval = FAILED_INTERVAL
            with self._answered:
                self._last_answered, self._is_lost = self._begun, interval == FAILED_INTERVAL
                self._answered.notify_all()
            self._wake.wait(interval)

    def _next_interval(self, interval: float) -> float:
        """Ask once, and return the seconds until the next time."""
        wanted = self._watched
        if not wanted:
            return IDLE_INTERVAL
        try:
            ends = self._ask(wanted)
        except HeadgateError as error:
            self._described_at = 0.0
            self._on_failure(wanted, error)
            return FAILED_INTERVAL
        except Exception as error:
            log.exception("a poller failed and goes on")
            self._on_failure(wanted, KafkaFailed("read the offsets", str(error)[:200]))
            return FAILED_INTERVAL
        moved, self._ends = ends != self._ends, ends
        if ends:
            self._on_ends(ends)
        return BUSY_INTERVAL if moved else min(IDLE_INTERVAL, interval * SLOWER)

    def _ask(self, wanted: frozenset[str]) -> Ends:
        """The ends of the topics. A topic that was deleted and created again has another id, so those whose ends moved are
        described anew: their id is never older than their end."""
        if wanted - self._described.keys() or time.monotonic() - self._described_at > DESCRIBE_EVERY:
            self._describe(wanted)
            return self._request(wanted)
        try:
            ends = self._request(wanted)
        except TopicNotFound:  # it was deleted just now; the others are still there
            self._describe(wanted)
            return self._request(wanted)
        moved = frozenset(name for name, end in ends.items() if self._ends.get(name) != end)
        if moved and self._describe(moved):
            ends = self._request(wanted)
        return ends

    def _request(self, wanted: frozenset[str]) -> Ends:
        known = [topic for name, topic in self._described.items() if name in wanted]
        return _positions(known, self._cluster.end_offsets(known)) if known else {}

    def _describe(self, wanted: frozenset[str]) -> bool:
        """Ask for the ids and partitions of topics. Returns whether any of them has changed."""
        began = time.monotonic()
        found = self._cluster.topics(wanted)
        before = {name: topic for name, topic in self._described.items() if name in wanted}
        self._described = {**self._described, **found}
        if wanted == self._watched:
            self._described, self._described_at = found, began
        for missing in sorted(wanted - found.keys()):
            self._described.pop(missing, None)
            self._on_failure([missing], TopicNotFound(missing))
        return found != before


class Pollers:
    """A poller for each cluster that is watched, and the ends that they saw last.

    ``on_moved`` is given the topics whose ends are not what they were. ``on_failure`` is as that of a `Poller`.
    """

    def __init__(
        self,
        on_moved: Callable[[Collection[Watched]], None],
        on_failure: Callable[[Collection[Watched], HeadgateError], None],
    ) -> None:
        self._on_moved = on_moved
        self._on_failure = on_failure
        self._guard = threading.Lock()
        self._pollers: dict[Cluster, Poller] = {}
        self._watched: frozenset[Watched] = frozenset()
        self.ends: Mapping[Watched, KafkaPosition] = {}  # replaced as a whole, so that nobody needs a lock to read it

    def watch(self, watched: frozenset[Watched]) -> None:
        """Watch these topics and no others."""
        topics: dict[Cluster, set[str]] = {}
        for one in watched:
            topics.setdefault(one.cluster, set()).add(one.topic)
        with self._guard:
            self._watched = watched
            self.ends = {one: end for one, end in self.ends.items() if one in watched}
            for cluster in self._pollers.keys() - topics.keys():
                self._pollers.pop(cluster).stop()
            new = {cluster: self._new_poller(cluster) for cluster in topics.keys() - self._pollers.keys()}
            self._pollers |= new
            for cluster, poller in self._pollers.items():
                poller.watch(frozenset(topics[cluster]))
        for poller in new.values():
            poller.start()

    def refresh(self, timeout: float) -> None:
        """Let `ends` be those of this moment or later, if the clusters answer in time."""
        deadline = time.monotonic() + timeout
        with self._guard:
            pollers = list(self._pollers.values())
        for poller in pollers:
            poller.refresh(deadline)

    def stop(self) -> None:
        self.watch(frozenset())

    def _new_poller(self, cluster: Cluster) -> Poller:
        return Poller(
            cluster,
            lambda ends: self._on_ends({Watched(cluster, topic): end for topic, end in ends.items()}),
            lambda topics, error: self._on_failure([Watched(cluster, topic) for topic in topics], error),
        )

    def _on_ends(self, ends: Mapping[Watched, KafkaPosition]) -> None:
        with self._guard:
            moved = {one: end for one, end in ends.items() if self.ends.get(one) != end and one in self._watched}
            self.ends = {**self.ends, **moved}
        if moved:
            self._on_moved(moved.keys())


def _positions(topics: Collection[Topic], offsets: Mapping[str, Mapping[int, int]]) -> Ends:
    return {
        topic.name: KafkaPosition(topic.name, topic.id, tuple(offsets[topic.name][p] for p in range(topic.partitions)))
        for topic in topics
    }
