"""A client of Elasticsearch and OpenSearch: connect, check, describe, and the few calls that a target needs.

Both products have the same REST API as far as it is used here, so JSON over HTTP is all that is needed: the clients of
each product refuse the other's servers. Bulks of raw lines from two threads are as fast as opensearch-py's
`parallel_bulk` or faster (1.0 to 1.7 times), at a third of the client's CPU.

Failed connections and the statuses 429 and 5xx are retried, because every call but the next page of documents may be repeated.
Secrets are in no error.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

import httpx
import jiter
import orjson

from headgate.connectors import errors
from headgate.connectors.errors import InvalidOption
from headgate.registry.transport import Credentials, Retries, Tls, is_loopback

Json: TypeAlias = Any  # parsed JSON of a server, taken apart where it is read

TIMEOUT = httpx.Timeout(60.0, connect=5.0)  # seconds; a bulk of 5 MB takes about one
PAGE = 1000  # documents of one answer
POLL = 0.2  # seconds between two looks at a copy that the server makes
KEEP = "5m"  # how long the server keeps a scroll between two pages
LONGEST_REASON = 300  # characters of the server's own text in an error
OLDEST = {"opensearch": (2, 7), "elasticsearch": (7, 17)}  # flat_object came with OpenSearch 2.7
NEWEST = {"opensearch": 3, "elasticsearch": 8}
NAMES = {"opensearch": "OpenSearch", "elasticsearch": "Elasticsearch"}


@dataclass(frozen=True, slots=True)
class Server:
    """Which product answers, and its version."""

    product: str  # opensearch or elasticsearch
    version: str

    @property
    def is_opensearch(self) -> bool:
        return self.product == "opensearch"

    @property
    def is_supported(self) -> bool:
        found = re.match(r"(\d+)\.(\d+)", self.version)
        if found is None or self.product not in OLDEST:
            return False
        major, minor = int(found[1]), int(found[2])
        return OLDEST[self.product] <= (major, minor) and major <= NEWEST[self.product]


@dataclass(frozen=True, slots=True)
class Index:
    """An index as the server describes it. ``mapping`` is its `mappings`."""

    name: str
    aliases: frozenset[str]
    mapping: Mapping[str, Json]
    settings: Mapping[str, Json]

    @property
    def meta(self) -> Mapping[str, Json]:
        """What Headgate has stored in the mapping; empty for an index that it did not make."""
        found = self.mapping.get("_meta", {}).get("headgate", {})
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class Hit:
    """A document and its version."""

    id: str
    version: int
    source: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Answer:
    """The status of an answer and its JSON; None if it has none."""

    status: int
    body: Json

    @property
    def kind(self) -> str:
        """The type of the server's error."""
        error = self._error
        return str(error.get("type", "")) if isinstance(error, dict) else ""

    @property
    def reason(self) -> str:
        """The server's own text, as one sentence without its full stop."""
        error = self._error
        text = error.get("reason", "") if isinstance(error, dict) else error
        return " ".join(str(text or "").split()).rstrip(".")[:LONGEST_REASON]

    @property
    def _error(self) -> Json:
        return self.body.get("error", {}) if isinstance(self.body, dict) else {}


class SearchClient:
    """Safe to share between threads. It connects when it is first used."""

    def __init__(
        self,
        url: str,
        credentials: Credentials | None = None,
        tls: Tls | None = None,
        retries: Retries | None = None,
        *,
        connection: str = "",
    ) -> None:
        """``connection`` is the name that errors show for a bad URL. Raises InvalidOption."""
        self.url, found = _split_url(url, connection)
        login = credentials or found
        self._user = login.user if login is not None else None
        self.retries = retries or Retries()
        secure = self.url.startswith("https:")
        self._http = httpx.Client(
            auth=None if login is None else httpx.BasicAuth(login.user, login.password),
            verify=(tls or Tls()).context() if secure else False,
            timeout=TIMEOUT,
            headers={"Accept": "application/json"},
            # A proxy from the environment is not meant for a server on this machine, and neither is .netrc.
            trust_env=not is_loopback(httpx.URL(self.url).host),
        )

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> SearchClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What is there

    def server(self) -> Server:
        """Who answers. Raises NoSearchServer for anything else than these products."""
        match self.call("GET", "/", "ask for its version").body:
            case {"version": {"number": str(number), **more}}:
                return Server(str(more.get("distribution", "elasticsearch")), number)
            case _:
                raise errors.NoSearchServer(self.url, "it does not say which version it has")

    def check(self) -> Server:
        """Check that the server answers, accepts the login, and has a version that is supported."""
        server = self.server()
        if not server.is_supported:
            product = NAMES.get(server.product, server.product)
            raise errors.SearchVersionNotSupported(self.url, product, server.version)
        return server

    def describe(self, *names: str) -> dict[str, Index]:
        """The indexes behind these names, which may be indexes, aliases or patterns. Missing ones are left out."""
        path = "/" + ",".join(quote(name, safe="*") for name in names) + "?ignore_unavailable=true"
        answer = self.call("GET", path, f'describe index "{names[0]}"', missing=True)
        if answer.status == 404:
            return {}
        return {name: _index(name, about) for name, about in answer.body.items()}

    def documents(self, index: str, *, sources: bool = True) -> Iterator[Hit]:
        """Every document of an index as it is when the reading begins, with every digit of its numbers. Refresh the index first
        to see what was just written. Without ``sources``, documents are empty. Raises SearchFailed where a part of them is missing."""
        what = f'read index "{index}"'
        body = {"size": PAGE, "sort": ["_doc"], "version": True, "_source": sources, "query": {"match_all": {}}}
        page = self.call("POST", f"/{quote(index)}/_search?scroll={KEEP}", what, body, exact=True).body
        scroll = page["_scroll_id"]
        try:
            while hits := self._complete(page, what):
                yield from (Hit(hit["_id"], hit["_version"], hit.get("_source", {})) for hit in hits)
                page = self._next_page(scroll, what)
                scroll = page["_scroll_id"]
        finally:
            with suppress(errors.ConnectorError):  # the server forgets it by itself
                self._judged(
                    self.send("DELETE", "/_search/scroll", orjson.dumps({"scroll_id": scroll})), what, missing=True
                )

    def _next_page(self, scroll: str, what: str) -> Json:
        """Asked for once. A server whose answer was lost has gone on: a second request would get the page after it, and nobody would
        notice the documents between them."""
        content = orjson.dumps({"scroll": KEEP, "scroll_id": scroll})
        answer = self.send("POST", "/_search/scroll", content, exact=True)
        if answer.status == 404:  # a server that was restarted has forgotten it
            raise errors.SearchFailed(self.url, what, answer.status, "It does not know the scroll any more.")
        return self._judged(answer, what, missing=False).body

    def _complete(self, page: Json, what: str) -> Json:
        """The documents of a page, unless a shard has failed: the server then answers with those of the others, and status 200."""
        failed = page.get("_shards", {}).get("failed", 0)
        if failed or page.get("timed_out"):
            raise errors.SearchFailed(self.url, what, 200, f"{failed} of its shards have not answered.")
        return page["hits"]["hits"]

    # What is done

    def call(
        self, method: str, path: str, what: str, body: Json = None, *, missing: bool = False, exact: bool = False
    ) -> Answer:
        """One call. ``what`` is a verb phrase for errors. With ``missing``, status 404 is an answer too. With ``exact``, numbers
        with a fraction are decimals.

        Raises SearchUnreachable and SearchFailed after some tries, and SearchRefused, SearchRefusedLogin, SearchNotAllowed
        and NoSearchServer at once.
        """
        content = None if body is None else orjson.dumps(body)
        began = time.monotonic()
        for attempt in range(self.retries.attempts):
            late = time.monotonic() - began >= self.retries.within
            last = late or attempt + 1 == self.retries.attempts
            try:
                return self._judged(self.send(method, path, content, exact=exact), what, missing=missing)
            except (errors.SearchUnreachable, errors.SearchFailed):
                if last:
                    raise
            self.retries.pause(attempt, None)
        raise AssertionError("the last attempt returns or raises")

    def reindex(self, old: str, new: str) -> str | None:
        """Let the server copy all documents of an index to another, but for those that it has in a newer version. Returns the kind of
        the error that it stopped with, or None. A server that is restarted meanwhile forgets the copy, and begins another."""
        what = f'copy index "{old}" to "{new}"'
        body = {
            "conflicts": "proceed",
            "source": {"index": old},
            "dest": {"index": new, "version_type": "external"},
        }
        while True:
            started = self.call("POST", "/_reindex?wait_for_completion=false", what, body)
            path = f"/_tasks/{started.body['task']}"
            while (found := self.call("GET", path, what, missing=True)).status != 404:
                if found.body["completed"]:
                    return _stopped_with(found.body)
                time.sleep(POLL)

    def bulk(self, alias: str, lines: bytes) -> Answer:
        """One bulk through an alias, tried once, because only the caller knows what to send again. If there is no such alias,
        nothing is written: otherwise the server would create an index of this name. Raises SearchUnreachable."""
        wanted = "filter_path=errors,error,items.*.status,items.*.error"
        path = f"/{quote(alias)}/_bulk?require_alias=true&{wanted}"
        return self._allowed(self.send("POST", path, lines, "application/x-ndjson"), f'write to "{alias}"')

    def send(
        self, method: str, path: str, content: bytes | None, kind: str = "application/json", *, exact: bool = False
    ) -> Answer:
        """One request, tried once. Raises SearchUnreachable; every status is an answer."""
        headers = {} if content is None else {"Content-Type": kind}
        try:
            response = self._http.request(method, self.url + path, content=content, headers=headers)
        except httpx.TimeoutException as failure:
            raise errors.SearchUnreachable(self.url, "It did not answer in time.") from failure
        except httpx.TransportError as failure:
            raise errors.SearchUnreachable(self.url, f"{str(failure) or type(failure).__name__}.") from failure
        return Answer(response.status_code, _parsed(response.content, exact))

    def _judged(self, answer: Answer, what: str, *, missing: bool) -> Answer:
        self._allowed(answer, what)
        status, reason = answer.status, f"{answer.reason or 'It does not say why'}."
        if status >= 500 or status == 429:
            raise errors.SearchFailed(self.url, what, status, reason)
        if status == 404 and missing and isinstance(answer.body, dict):
            return answer
        if answer.body is None:
            raise errors.NoSearchServer(self.url, "its answer is not JSON")
        if status >= 400:
            raise errors.SearchRefused(self.url, what, status, answer.kind or "error", answer.reason)
        return answer

    def _allowed(self, answer: Answer, what: str) -> Answer:
        """An index that is blocked, because its disk is full or by hand, answers with 403 too: that may pass."""
        if answer.status == 401:
            raise errors.SearchRefusedLogin(self.url, self._user)
        if answer.status == 403 and answer.kind == "cluster_block_exception":
            raise errors.SearchFailed(self.url, what, answer.status, f"{answer.reason}.")
        if answer.status == 403:
            raise errors.SearchNotAllowed(self.url, what, self._user)
        return answer


def _parsed(content: bytes, exact: bool) -> Json:
    """The JSON of an answer; None if it is none, or empty."""
    try:
        return jiter.from_json(content, float_mode="decimal") if exact else orjson.loads(content)
    except ValueError:
        return None


def _stopped_with(task: Json) -> str | None:
    """The kind of the error that a copy has ended with."""
    response = task.get("response", {})
    failures = response.get("failures", [])
    if "canceled" in response:  # by somebody, half-way
        return "task_cancelled_exception"
    if not failures and "error" not in task:
        return None
    error = task.get("error") or failures[0].get("cause", {})
    return str(error.get("type", "an error"))


def _index(name: str, about: Mapping[str, Json]) -> Index:
    settings = about.get("settings", {}).get("index", {})
    return Index(name, frozenset(about.get("aliases", {})), about.get("mappings", {}), settings)


def _split_url(text: str, connection: str) -> tuple[str, Credentials | None]:
    """The URL without user and password, which must never be shown, and both as credentials."""
    try:
        url = httpx.URL(text.strip().rstrip("/"))
    except httpx.InvalidURL:
        raise InvalidOption("URL", connection, "is not written as a URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidOption("URL", connection, "must start with http:// or https:// and a host")
    found = Credentials(unquote(url.username), unquote(url.password)) if url.username else None
    return str(url.copy_with(username=None, password=None)).rstrip("/"), found
