"""Sends every event of the catalog to a web hook: in order, signed, at least once, and never in the way of anything else.

A request is a POST of one event as JSON. It is signed with the secret of the settings:

    Headgate-Signature: t=<seconds since 1970>,v1=<hex digits of HMAC-SHA256 over "<t>.<body>">
    Headgate-Event: <uuid of the project>-<sequence number>

A status of 2xx means that the event arrived, and the store then remembers its number. Anything else is tried again, later each time, until
it works: the next event waits, so that the order stays. After a crash the last event may come twice, with the same `Headgate-Event`.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import httpx
import orjson

from headgate.catalog.history import Event

log = logging.getLogger(__name__)

POLL_INTERVAL = 0.5  # seconds between two looks for new events
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0  # seconds between attempts at one event; each pause is twice the one before
REQUEST_TIMEOUT = 10.0  # seconds
STOP_TIMEOUT = 2.0  # seconds that the end of the engine waits for a request; its event is sent again by the next engine


@dataclass(frozen=True, slots=True)
class HookAddress:
    """Where events go, and what they are signed with."""

    url: str
    secret: str

    def __repr__(self) -> str:
        return "HookAddress(…)"

    @property
    def name(self) -> str:
        """What the store knows the hook by. An address may hold a password, so that it is not stored itself."""
        return hashlib.sha256(self.url.encode()).hexdigest()


class Events(Protocol):
    """The part of the catalog's store that a web hook needs."""

    def project_uuid(self) -> str: ...
    def events(self, after: int = 0, most: int | None = None) -> tuple[Event, ...]: ...
    def hook_position(self, hook: str) -> int: ...
    def save_hook_position(self, hook: str, sequence: int) -> None: ...


class WebHook:
    """Runs in a thread of its own from ``start`` to ``stop``. A hook that is new is sent all events from the first one on."""

    def __init__(
        self, store: Events, address: HookAddress, clock: Callable[[], float] = time.time, pause: float = FIRST_PAUSE
    ) -> None:
        self._store = store
        self._address = address
        self._clock = clock
        self._pause = pause
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="web hook", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT)

    def _run(self) -> None:
        with httpx.Client(timeout=REQUEST_TIMEOUT, follow_redirects=False) as http:
            while not self._ended.is_set():
                try:
                    self._send_new(http)
                except Exception as error:  # noqa: BLE001 - the store may be busy; the thread must go on
                    if not self._ended.is_set():
                        log.warning("events could not be read for the web hook: %s", type(error).__name__)
                self._ended.wait(POLL_INTERVAL)

    def _send_new(self, http: httpx.Client) -> None:
        """Send what came since the last event that arrived, a hundred events at a time."""
        hook = self._address.name
        while not self._ended.is_set():
            found = self._store.events(self._store.hook_position(hook), 100)
            for event in found:
                if not self._deliver(http, event):
                    return
                self._store.save_hook_position(hook, event.sequence)
            if not found:
                return

    def _deliver(self, http: httpx.Client, event: Event) -> bool:
        """Try until the event arrives. Returns False if the engine ends before."""
        pause, tries = self._pause, 0
        while not self._ended.is_set():
            reason = self._attempt(http, event)
            if reason is None:
                if tries:
                    log.info("the web hook takes events again, from number %s on", event.sequence)
                return True
            if tries == 0:  # once as long as it lasts
                log.warning("the web hook did not take event %s, which is tried again: %s", event.sequence, reason)
            tries += 1
            self._ended.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return False

    def _attempt(self, http: httpx.Client, event: Event) -> str | None:
        """Why the event did not arrive; None if it did. The address, which may hold a password, is not part of it."""
        project = self._store.project_uuid()
        body = event_json(event, project)
        headers = {
            "Content-Type": "application/json",
            "Headgate-Event": f"{project}-{event.sequence}",
            "Headgate-Signature": signature(self._address.secret, int(self._clock()), body),
        }
        try:
            answer = http.post(self._address.url, content=body, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return type(error).__name__
        return None if answer.is_success else f"status {answer.status_code}"


def event_json(event: Event, project: str) -> bytes:
    """An event as it is sent."""
    return orjson.dumps(
        {
            "project": project,
            "sequence": event.sequence,
            "time": event.time.isoformat(),
            "object_id": event.object_id,
            "object": event.object,
            "event": event.event,
            "detail": event.detail,
        }
    )


def signature(secret: str, seconds: int, body: bytes) -> str:
    """The value of the header `Headgate-Signature`."""
    made = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={made}"
