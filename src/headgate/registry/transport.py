"""HTTP to a registry that may be slow, restarting, or one of several: credentials, time-outs, fail-over, retries.

Returns the registry's JSON, also that of its own error answers. Raises an error if no answer can be had. Failed
connections, HTTP 429 and 5xx are retried. A DELETE whose answer was lost is not sent again, because the second one
would fail; every other call of this API can be repeated. Secrets are left out of every printed form.
"""

from __future__ import annotations

import ipaddress
import random
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

import httpx

from headgate.errors import InternalError
from headgate.registry import errors


@dataclass(frozen=True, slots=True)
class Credentials:
    """User name and password, as in HTTP's basic authentication."""

    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM form. Without `ca` the system's authorities are trusted. `certificate` is the client's own."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    key_password: str | None = field(default=None, repr=False)

    def context(self) -> ssl.SSLContext:
        """Raises InvalidRegistrySetting if a file is missing or is not what it should be."""
        try:
            context = ssl.create_default_context(cafile=self.ca)
        except (OSError, ssl.SSLError) as failure:
            raise errors.InvalidRegistrySetting("ca", f'"{self.ca}" holds no certificates') from failure
        if self.certificate is not None:
            try:
                # Without a password OpenSSL would ask for one on the terminal.
                context.load_cert_chain(self.certificate, self.key, self.key_password or "")
            except (OSError, ssl.SSLError) as failure:
                problem = f'"{self.certificate}" and its key cannot be used together'
                raise errors.InvalidRegistrySetting("certificate", problem) from failure
        elif self.key is not None:
            raise errors.InvalidRegistrySetting("key", "there is no certificate for it")
        return context


Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_HEADERS = {"Accept": f"{CONTENT_TYPE}, application/json"}


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and for how long a call is retried. All times are in seconds.

    The pause doubles from `first` to `longest`; a random factor between a half and one spreads clients out. No
    attempt begins after `within`, because each attempt may take its whole time-out and other tasks wait for the
    answer.
    """

    attempts: int = 4
    first: float = 0.2
    longest: float = 5.0
    longest_asked_for: float = 30.0
    within: float = 10.0
    sleep: Callable[[float], None] = time.sleep

    def pause(self, attempt: int, asked_for: float | None) -> None:
        """Wait before the next attempt. Obeys Retry-After up to `longest_asked_for`."""
        delay = min(self.longest, self.first * 2**attempt) * random.uniform(0.5, 1)
        self.sleep(max(delay, min(asked_for or 0.0, self.longest_asked_for)))


@dataclass(frozen=True, slots=True)
class Answer:
    """The registry's JSON. From HTTP status 400 on it holds an error code and a message."""

    url: str
    status: int
    body: Json
    content_type: str = ""

    @property
    def is_refusal(self) -> bool:
        return self.status >= 400

    @property
    def registry_code(self) -> int:
        """The registry's own error code, otherwise the HTTP status. Apicurio sends 0 if it has no code."""
        code = self.body.get("error_code") if isinstance(self.body, dict) else None
        return code if isinstance(code, int) and code else self.status

    @property
    def reason(self) -> str:
        message = self.body.get("message") if isinstance(self.body, dict) else None
        return message if isinstance(message, str) else ""

    def unreadable(self, problem: str) -> errors.RegistryAnswerUnreadable:
        return errors.RegistryAnswerUnreadable(self.url, self.status, self.content_type, problem)


@dataclass(frozen=True, slots=True)
class Request:
    """A call of the API. `what` is a verb phrase for error messages: "read subject x".

    `subject`, `version` and `schema_id` are what the call is about, so that a refusal becomes an error that names them.
    """

    method: str
    path: str
    what: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Json = None
    subject: str | None = None
    version: int | None = None
    schema_id: int | None = None


@dataclass(frozen=True, slots=True)
class _Failed:
    """An attempt that failed and may be repeated."""

    error: errors.RegistryError
    retry_after: float | None = None
    may_have_been_done: bool = False


class Transport:
    """Safe to use from several threads."""

    def __init__(
        self,
        urls: Sequence[str],
        credentials: Credentials | None = None,
        tls: Tls | None = None,
        timeout: float = 10.0,
        retries: Retries | None = None,
    ) -> None:
        self.urls, found = _without_credentials(urls)
        self._user = login.user if (login := credentials or found) is not None else None
        self._retries = retries or Retries()
        self._preferred = 0
        self._http = httpx.Client(
            auth=None if login is None else httpx.BasicAuth(login.user, login.password),
            verify=_context(tls, self.urls),
            timeout=timeout,
            headers=_HEADERS,
            # A proxy from the environment is not meant for a registry on this machine, and neither is .netrc.
            trust_env=not all(is_loopback(httpx.URL(url).host) for url in self.urls),
        )

    def send(self, request: Request) -> Answer:
        """The registry's answer, which may be a refusal. Raises an error if there is no answer that can be read."""
        began = time.monotonic()
        for attempt in range(self._retries.attempts):
            outcome = self._try_each_url(request)
            if isinstance(outcome, Answer):
                return outcome
            late = time.monotonic() - began >= self._retries.within
            last = late or attempt + 1 == self._retries.attempts
            if last or (outcome.may_have_been_done and request.method == "DELETE"):
                raise outcome.error
            self._retries.pause(attempt, outcome.retry_after)
        raise InternalError("a registry client was made with no attempts")

    def close(self) -> None:
        self._http.close()

    def _try_each_url(self, request: Request) -> Answer | _Failed:
        """Try the URL that answered last first, so that a dead one costs its time-out only once."""
        start, count = self._preferred, len(self.urls)
        failed: _Failed | None = None
        for position in range(start, start + count):
            outcome = self._try(self.urls[position % count], request)
            if isinstance(outcome, Answer):
                self._preferred = position % count
                return outcome
            failed = outcome
            if failed.may_have_been_done and request.method == "DELETE":
                break
        assert failed is not None, "there is at least one URL"
        return failed

    def _try(self, url: str, request: Request) -> Answer | _Failed:
        """One attempt. A connection that was never made cannot have changed anything, so it may be repeated safely."""
        content = None if request.body is None else {"Content-Type": CONTENT_TYPE}
        try:
            response = self._http.request(
                request.method, url + request.path, params=request.query, json=request.body, headers=content
            )
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as failure:
            return _Failed(errors.RegistryUnreachable(url, _reason(failure)))
        except httpx.TransportError as failure:
            return _Failed(errors.RegistryUnreachable(url, _reason(failure)), may_have_been_done=True)
        return self._judge(url, request, response)

    def _judge(self, url: str, request: Request, response: httpx.Response) -> Answer | _Failed:
        """Tell an answer of the registry from a refusal to talk, and from a failure that may pass."""
        # Another attempt would be refused as well, so these two are raised at once.
        if response.status_code == 401:
            raise errors.WrongCredentials(url, self._user)
        if response.status_code == 403:
            raise errors.NotAllowed(url, request.what, self._user)
        answer = _read(url, response)
        if response.status_code >= 500 or response.status_code == 429:
            error = errors.RegistryFailed(url, request.what, response.status_code, answer.reason)
            return _Failed(error, _retry_after(response), may_have_been_done=response.status_code != 429)
        if not response.is_success and not (isinstance(answer.body, dict) and "error_code" in answer.body):
            raise answer.unreadable("it is an error that is not the registry's")
        return answer


def _read(url: str, response: httpx.Response) -> Answer:
    """The JSON of a response. What is no JSON comes from something in front of the registry."""
    content_type = response.headers.get("content-type", "")
    try:
        return Answer(url, response.status_code, response.json(), content_type)
    except ValueError:
        unread = Answer(url, response.status_code, None, content_type)
    if response.status_code >= 500:
        return unread  # an error page of a gateway: the status is enough
    if response.is_redirect:
        raise unread.unreadable("it sends the client elsewhere")
    raise unread.unreadable("it is an HTML page" if "html" in content_type else "it is not JSON")


def _reason(failure: httpx.TransportError) -> str:
    if isinstance(failure, httpx.TimeoutException):
        return "It did not answer in time."
    return f"{str(failure) or type(failure).__name__}."


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds to wait, from a number or a date."""
    text = response.headers.get("retry-after", "")
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None


def _without_credentials(urls: Sequence[str]) -> tuple[tuple[str, ...], Credentials | None]:
    """The URLs without user and password, which must never be shown, and both as credentials."""
    if not urls:
        raise errors.InvalidRegistrySetting("url", "there is none")
    plain, found = [], None
    for text in urls:
        try:
            url = httpx.URL(text.strip().rstrip("/"))
        except httpx.InvalidURL:
            raise errors.InvalidRegistrySetting("url", "it is not written as a URL") from None
        if url.scheme not in ("http", "https") or not url.host:
            raise errors.InvalidRegistrySetting("url", "it must start with http:// or https:// and a host")
        if url.username:
            found = Credentials(unquote(url.username), unquote(url.password))
        plain.append(str(url.copy_with(username=None, password=None)).rstrip("/"))
    return tuple(plain), found


def _context(tls: Tls | None, urls: Sequence[str]) -> ssl.SSLContext:
    """For plain HTTP a context that trusts nothing: loading the system's authorities takes longer than a call."""
    if tls is None and all(url.startswith("http://") for url in urls):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return (tls or Tls()).context()


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
