"""What can go wrong between a client and an engine."""

from __future__ import annotations

from headgate.errors import HeadgateError


class EngineError(HeadgateError):
    """An error between a client and an engine: CLI-…."""


class EngineNotRunning(EngineError, code="CLI-0101"):
    """A command needs the engine of the project folder, and none is running."""

    project: str
    MESSAGE = 'no engine runs for project "{project}"'
    HINT = "Start one with `headgate serve`, or name the address of another with --url."


class EngineUnreachable(EngineError, code="CLI-0102"):
    """The engine's address does not answer, or the answer broke off."""

    url: str
    reason: str
    MESSAGE = "could not reach the engine at {url}: {reason}"
    HINT = "See whether `headgate serve` still runs, and look into its log, .headgate/engine.log."


class WrongToken(EngineError, code="CLI-0103"):
    """The engine did not accept the token of the request."""

    url: str
    MESSAGE = "the engine at {url} refused the token"
    HINT = "The token is in the file .headgate/token of the engine's project folder, readable by its owner."


class EngineRefused(EngineError, code="CLI-0104"):
    """The engine did not accept a request that a client of the same version would send."""

    url: str
    status: int
    reason: str
    MESSAGE = "the engine at {url} refused the request with status {status}: {reason}"
    HINT = "An engine of another version may be running. Stop it, and start it again."


class UnreadableEvent(EngineError, code="CLI-0105"):
    """A line of the engine's answer is not an event that this version knows."""

    reason: str
    MESSAGE = "cannot read an answer of the engine: {reason}"
    HINT = "An engine of another version may be running. Stop it, and start it again."


class EngineDidNotStart(EngineError, code="CLI-0106"):
    """The engine's process ended while it was starting, or did not answer in time.

    Cure: Read the log that the detail names.
    """

    project: str
    reason: str
    log: str
    last: tuple[str, ...] = ()
    MESSAGE = 'the engine of project "{project}" did not start: {reason}'
    DETAIL = "The end of {log}:\n{last_lines}"

    @property
    def last_lines(self) -> str:
        return "\n".join(f"  {line}" for line in self.last)

    def detail(self) -> str:
        return super().detail() or f"Its log, {self.log}, is empty."


class MalformedBody(EngineError, code="CLI-0107"):
    """The body of a request to the engine's HTTP interface is not JSON, or not an object with a text "sql".

    Cure: Send a JSON object, for example {"sql": "SHOW SOURCES"}.
    """

    reason: str
    MESSAGE = "cannot read the body of the request: {reason}"


class TooManyStatements(EngineError, code="CLI-0108"):
    """The engine already answers as many statements as it takes at the same time."""

    url: str
    MESSAGE = "the engine at {url} could not take the statement: it answers too many others at this moment"
    HINT = "Try again when some of them have ended. An answer that nobody reads counts too: close it."


class BodyTooLarge(EngineError, code="CLI-0109"):
    """The body of a request to the engine's HTTP interface is longer than the engine accepts."""

    most: int
    MESSAGE = "the body of the request is longer than {most} bytes"
    HINT = "Split the script, and send its parts one after the other."


class UnknownPath(EngineError, code="CLI-0110"):
    """A request names a path that the engine's HTTP interface does not have."""

    path: str
    MESSAGE = 'path "{path}" does not exist'
    HINT = "The paths are /healthz, /metrics, /api/statements, /api/plan, /api/apply and /api/materializations/<name>/rows."


class MethodNotAllowed(EngineError, code="CLI-0111"):
    """A request has a method that its path does not take, such as GET where a script must be sent."""

    method: str
    path: str
    MESSAGE = 'path "{path}" does not take the method {method}'
    HINT = "Use GET for /healthz, /metrics and rows, and POST for the other paths under /api."


class UnknownHost(EngineError, code="CLI-0112"):
    """The Host header of a request names neither loopback nor a host of the settings.

    Without this check, a page of a foreign site could read the engine's answers through a browser on the same machine.
    """

    MESSAGE = "the host that the request names is not one of the engine's"
    HINT = "Use localhost or 127.0.0.1, or add the name to `hosts` in headgate.toml."


class UnknownParameter(EngineError, code="CLI-0113"):
    """The address of a request has a parameter that its path does not take."""

    parameter: str
    known: tuple[str, ...]
    similar: tuple[str, ...] = ()
    MESSAGE = 'the parameter "{parameter}" does not exist'
    HINT = "The parameters are {known:and}."


class TokenRequired(EngineError, code="RUN-0403"):
    """A request to the engine's HTTP interface has no token, or a wrong one."""

    MESSAGE = "the token is missing or wrong"
    HINT = "It is in the file .headgate/token of the project."
