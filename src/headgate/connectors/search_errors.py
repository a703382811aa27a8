"""What can go wrong with Elasticsearch and OpenSearch: CON-04xx."""

from __future__ import annotations

from headgate.connectors.errors import ConnectorError


class SearchUnreachable(ConnectorError, code="CON-0401"):
    """Nobody answers at the URL of an Elasticsearch connection."""

    retryable = True
    url: str
    reason: str
    MESSAGE = "could not reach Elasticsearch at {url}"
    DETAIL = "{reason}"
    HINT = (
        "Check the URL and that the server runs. CREATE CONNECTION … WITH (VALIDATE = false) creates the connection "
        "without asking the server."
    )


class SearchRefusedLogin(ConnectorError, code="CON-0402"):
    """The server answers and does not accept the user or the password."""

    url: str
    user: str | None
    MESSAGE = "Elasticsearch at {url} refused the login"
    HINT = "Check USERNAME and PASSWORD of the connection."

    def detail(self) -> str | None:
        return "The connection has no USERNAME." if self.user is None else f'The user is "{self.user}".'


class SearchNotAllowed(ConnectorError, code="CON-0403"):
    """The user of a connection may not do what Headgate needs to do there."""

    url: str
    what: str
    user: str | None
    MESSAGE = "Elasticsearch at {url} does not allow the login to {what}"
    HINT = "Give the user the privileges manage, read and write on the index and on the names that begin with it."

    def detail(self) -> str | None:
        return "The connection has no USERNAME." if self.user is None else f'The user is "{self.user}".'


class SearchFailed(ConnectorError, code="CON-0404"):
    """The server answers a request with an error that may pass: it is overloaded, starting, or its disk is full."""

    retryable = True
    url: str
    what: str
    status: int
    reason: str
    MESSAGE = "could not {what} (Elasticsearch at {url} answers with status {status})"
    DETAIL = "{reason}"
    HINT = "Look at the server's log, its memory and its disk. A task tries again by itself."


class SearchRefused(ConnectorError, code="CON-0405"):
    """The server refuses a request.

    Cure: Read the detail, which is the server's own text.
    """

    url: str
    what: str
    status: int
    kind: str
    reason: str
    MESSAGE = "cannot {what} (Elasticsearch at {url} answers with status {status})"
    DETAIL = "{kind}: {reason}."


class NoSearchServer(ConnectorError, code="CON-0406"):
    """What answers at the URL is neither Elasticsearch nor OpenSearch."""

    url: str
    problem: str
    MESSAGE = "there is no Elasticsearch at {url}"
    DETAIL = "Something answers there, but {problem}."
    HINT = "Check the host, the port and the path of the URL, and whether a proxy is in between."


class SearchVersionNotSupported(ConnectorError, code="CON-0407"):
    """The server has a version that Headgate does not know how to write to."""

    url: str
    product: str
    version: str
    MESSAGE = "{product} {version} at {url} is not supported"
    HINT = "Headgate writes to OpenSearch 2.7 and later, OpenSearch 3, Elasticsearch 7.17 and Elasticsearch 8."
