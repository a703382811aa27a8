"""Bulks of documents: lines of JSON that two threads send, and what the server says of every item.

| status of an item | what becomes of it |
|---|---|
| below 300, and 404 of a deletion | it is done |
| 409, or the alias is missing | another writer has taken the index over: Fenced, or for a copy: the document is there already |
| 429, 5xx, a blocked index | it is sent again, later each time |
| any other 4xx | the index refuses the document |
A bulk that is too large as a whole (413) is sent in halves.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from headgate.connectors.elasticsearch import Answer
from headgate.connectors.errors import ConnectorError, SearchFailed, SearchRefused, SearchUnreachable
from headgate.registry.transport import Retries

THREADS = 2  # more gained nothing on two cores
BULK_BYTES = 5 << 20  # bytes of one bulk
# A server that restarts is back in about 10 s. After that the task tries the whole batch again.
RETRIES = Retries(attempts=12, first=0.1, longest=5.0, within=30.0)

# Servers quote the value in their reasons, so that only the names in them are used.
_FIELD = re.compile(r"field \[([^\]]+)\](?: of type \[([^\]]+)\])?")
_NEW_FIELD = re.compile(r"dynamic introduction of \[([^\]]+)\] within \[([^\]]+)\]")


@dataclass(frozen=True, slots=True)
class Item:
    """One document to write or delete, as the lines of a bulk."""

    id: str
    lines: bytes


@dataclass(frozen=True, slots=True)
class RefusedItem:
    """A document that the index refuses. ``field`` is its path with dots, as far as the server names it, and ``expected`` the
    type that the field has in the index. Holds nothing of the document."""

    id: str
    reason: str
    field: str | None = None
    expected: str | None = None


class Conflict(Exception):
    """Another writer has a newer document or has taken the alias away. The message holds nothing of a document."""


class Sender(Protocol):
    """What sends a bulk once, such as `SearchClient`."""

    url: str

    def bulk(self, alias: str, lines: bytes) -> Answer: ...


def index_lines(id_: str, version: int, document: bytes, version_type: str = "external_gte") -> bytes:
    """The lines that write a document, unless the index has a newer version of it."""
    return b'{"index":%b}\n%b\n' % (_meta(id_, version, version_type), document)


def delete_lines(id_: str, version: int, version_type: str = "external_gte") -> bytes:
    """The line that deletes a document, unless the index has a newer version of it."""
    return b'{"delete":%b}\n' % _meta(id_, version, version_type)


def _meta(id_: str, version: int, version_type: str) -> bytes:
    return b'{"_id":%b,"version":%d,"version_type":"%b"}' % (orjson.dumps(id_), version, version_type.encode())


class BulkWriter:
    """Writes items through one alias. Used by one thread at a time, which it helps with two of its own.

    With ``may_exist``, a document of which the index has the same or a newer version is done; otherwise it is a `Conflict`.
    """

    def __init__(
        self,
        client: Sender,
        alias: str,
        *,
        may_exist: bool = False,
        retries: Retries = RETRIES,
        bulk_bytes: int = BULK_BYTES,
    ) -> None:
        self._client = client
        self._alias = alias
        self._may_exist = may_exist
        self._retries = retries
        self._bulk_bytes = bulk_bytes

    def write(self, items: Iterable[Item]) -> list[RefusedItem]:
        """Return when every item is settled: those that the index refuses. Raises Conflict, or a ConnectorError after some
        time without success; items may be written then."""
        refused: list[RefusedItem] = []
        places = threading.Semaphore(2 * THREADS)  # bulks in memory
        sent: list[Future[list[RefusedItem]]] = []
        with ThreadPoolExecutor(THREADS, thread_name_prefix="headgate-bulk") as pool:
            for bulk in self._bulks(items):
                places.acquire()
                if any(one.done() and one.exception() is not None for one in sent):
                    break
                future = pool.submit(self._settle, bulk)
                future.add_done_callback(lambda _: places.release())
                sent.append(future)
        for future in sent:
            refused += future.result()
        return refused

    def _bulks(self, items: Iterable[Item]) -> Iterator[list[Item]]:
        bulk: list[Item] = []
        size = 0
        for item in items:
            if bulk and size + len(item.lines) > self._bulk_bytes:
                yield bulk
                bulk, size = [], 0
            bulk.append(item)
            size += len(item.lines)
        if bulk:
            yield bulk

    def _settle(self, items: Sequence[Item]) -> list[RefusedItem]:
        """Send a bulk until each of its items is settled."""
        refused: list[RefusedItem] = []
        began, attempt = time.monotonic(), 0
        while items:
            try:
                answer = self._client.bulk(self._alias, b"".join([item.lines for item in items]))
            except (SearchUnreachable, SearchFailed) as error:
                failure: ConnectorError = error
            else:
                if answer.status == 413:
                    return refused + self._halved(items)
                items, failure = self._unsettled(answer, items, refused)
            if not items:
                break
            late = time.monotonic() - began >= self._retries.within
            if late or attempt + 1 >= self._retries.attempts:
                raise failure
            self._retries.pause(attempt, None)
            attempt += 1
        return refused

    def _halved(self, items: Sequence[Item]) -> list[RefusedItem]:
        if len(items) == 1:
            return [RefusedItem(items[0].id, "the document is larger than the server takes")]
        half = len(items) // 2
        return self._settle(items[:half]) + self._settle(items[half:])

    def _unsettled(
        self, answer: Answer, items: Sequence[Item], refused: list[RefusedItem]
    ) -> tuple[Sequence[Item], ConnectorError]:
        """The items to send again, and why. Those that the index refuses are added to ``refused``."""
        what = f'write to "{self._alias}"'
        status, body = answer.status, answer.body
        if status == 404:
            raise Conflict(f'there is no alias "{self._alias}"')
        if status >= 500 or status == 429 or not isinstance(body, dict):
            return items, SearchFailed(self._client.url, what, status, f"{answer.reason or 'It does not say why'}.")
        if status >= 400:
            raise SearchRefused(self._client.url, what, status, answer.kind or "error", "the whole bulk was refused")
        failure = SearchFailed(self._client.url, what, 429, "It does not say why.")
        if not body.get("errors"):
            return (), failure
        again: list[Item] = []
        for item, outcome in zip(items, body["items"], strict=True):
            [result] = outcome.values()
            problem = self._problem(item, result["status"], result.get("error") or {})
            if isinstance(problem, RefusedItem):
                refused.append(problem)
            elif problem is not None:
                again.append(item)
                failure = problem
        return again, failure

    def _problem(self, item: Item, status: int, error: dict[str, Any]) -> RefusedItem | SearchFailed | None:
        """What is to be done about one item; None if it is settled."""
        kind = str(error.get("type", ""))
        if status < 300 or (status == 404 and not error) or (status == 409 and self._may_exist):
            return None
        if status == 409:
            raise Conflict("the index has a newer version of a document")
        if status == 404:
            raise Conflict(f'there is no alias "{self._alias}"')
        if status == 429 or status >= 500 or kind == "cluster_block_exception":
            return SearchFailed(
                self._client.url, f'write to "{self._alias}"', status, f"{kind or 'It does not say why'}."
            )
        return refused_item(item.id, error)


def refused_item(id_: str, error: dict[str, Any]) -> RefusedItem:
    """What the server's error says, without the value that it quotes."""
    kind, reason = str(error.get("type", "error")), str(error.get("reason", ""))
    if found := _NEW_FIELD.search(reason):
        within = "" if found[2] == "_doc" else f"{found[2]}."
        return RefusedItem(id_, "the index has no such field", f"{within}{found[1]}")
    if found := _FIELD.search(reason):
        return RefusedItem(id_, f"the index refuses it ({kind})", found[1], found[2])
    return RefusedItem(id_, f"the index refuses the document ({kind})")
