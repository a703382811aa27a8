"""What can go wrong with the systems outside: CON-01xx connections, CON-02xx Kafka, CON-03xx PostgreSQL,
CON-04xx Elasticsearch and OpenSearch."""

from __future__ import annotations

from headgate.errors import HeadgateError


class ConnectorError(HeadgateError):
    """An error of a connection: CON-…."""


class OptionMissing(ConnectorError, code="CON-0101"):
    """A connection lacks an option that its system needs.

    Cure: Create the connection with this option.
    """

    option: str
    connection: str
    MESSAGE = 'option "{option}" of connection "{connection}" is missing'


class ConflictingOptions(ConnectorError, code="CON-0102"):
    """A connection has two options that exclude each other.

    Cure: Leave one of the two out.
    """

    first: str
    second: str
    connection: str
    MESSAGE = 'options "{first}" and "{second}" of connection "{connection}" exclude each other'


class InvalidOption(ConnectorError, code="CON-0103"):
    """An option of a connection has a value that cannot be used.

    Cure: Correct the value as the message says.
    """

    option: str
    connection: str
    reason: str
    MESSAGE = 'option "{option}" of connection "{connection}" {reason}'


class BrokerUnreachable(ConnectorError, code="CON-0201"):
    """No broker answers at the addresses of the connection."""

    retryable = True
    brokers: str
    reason: str
    MESSAGE = "could not reach Kafka at {brokers}"
    DETAIL = "{reason}"
    HINT = (
        "Check the address and that the broker runs. CREATE CONNECTION … WITH (VALIDATE = false) creates "
        "the connection without asking the broker."
    )


class BrokerRefusedLogin(ConnectorError, code="CON-0202"):
    """The broker answers and does not accept the user, the password or the security protocol."""

    brokers: str
    reason: str
    MESSAGE = "Kafka at {brokers} refused the login"
    DETAIL = "{reason}"
    HINT = "Check SECURITY PROTOCOL, SASL MECHANISMS, SASL USERNAME and SASL PASSWORD of the connection."


class TopicNotFound(ConnectorError, code="CON-0203"):
    """A source reads a topic that does not exist on the broker."""

    topic: str
    similar: tuple[str, ...] = ()
    retryable = True  # somebody may create it; a task then finds out whether it is still the topic that it read
    MESSAGE = 'topic "{topic}" does not exist'
    HINT = "Create the topic first. A source does not create topics."


class TopicRefused(ConnectorError, code="CON-0204"):
    """The broker does not create the topic of a sink with the options that the statement gives."""

    topic: str
    reason: str
    MESSAGE = 'topic "{topic}" cannot be created: {problem}'
    HINT = "Check TOPIC, TOPIC PARTITION COUNT, TOPIC REPLICATION FACTOR and TOPIC CONFIG of the statement."

    @property
    def problem(self) -> str:
        return self.reason.rstrip(".")


class KafkaFailed(ConnectorError, code="CON-0205"):
    """The broker answers a request with an error.

    Cure: Read the detail, which is the broker's own text, and the broker's log.
    """

    what: str
    reason: str
    MESSAGE = "could not {what}"
    DETAIL = "{reason}"


class PostgresUnreachable(ConnectorError, code="CON-0301"):
    """PostgreSQL does not answer, or ended the connection."""

    retryable = True
    address: str
    reason: str
    MESSAGE = "could not reach PostgreSQL at {address}"
    DETAIL = "{reason}"
    HINT = (
        "Check the address and that the server runs. CREATE CONNECTION … WITH (VALIDATE = false) creates the connection "
        "without asking the server."
    )


class PostgresRefusedLogin(ConnectorError, code="CON-0302"):
    """PostgreSQL answers and does not accept the user, the password, the database or the way of encryption."""

    address: str
    reason: str
    MESSAGE = "PostgreSQL at {address} refused the login"
    DETAIL = "{reason}"
    HINT = "Check DATABASE, USER, PASSWORD and SSL MODE of the connection."


class PostgresTooOld(ConnectorError, code="CON-0303"):
    """The server is older than the oldest version that is supported.

    Cure: Use a newer server.
    """

    address: str
    version: str
    oldest: str
    MESSAGE = "PostgreSQL at {address} has version {version}, and {oldest} is the oldest that is supported"


class PostgresFailed(ConnectorError, code="CON-0304"):
    """PostgreSQL answers a statement of Headgate with an error.

    Cure: Look up the SQLSTATE, and read the log of the server.
    """

    address: str
    reason: str
    sqlstate: str
    MESSAGE = "PostgreSQL at {address} refused a statement: {reason} (SQLSTATE {sqlstate})"


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
