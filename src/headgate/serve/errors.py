"""What can go wrong between a client and an engine."""

from __future__ import annotations

from headgate.errors import HeadgateError, error


class EngineError(HeadgateError):
    """Between a client and an engine."""


@error
class EngineNotRunning(EngineError):
    """No engine serves the project folder."""

    code = "CLI-0101"
    project: str

    def message(self) -> str:
        return f'no engine runs for project "{self.project}"'

    def hint(self) -> str:
        return "Start one with `headgate serve`, or name the address of another with --url."


@error
class EngineUnreachable(EngineError):
    """The engine's address does not answer, or the answer broke off."""

    code = "CLI-0102"
    url: str
    reason: str

    def message(self) -> str:
        return f"could not reach the engine at {self.url}: {self.reason}"

    def hint(self) -> str:
        return "See whether `headgate serve` still runs, and look into its log, .headgate/engine.log."


@error
class WrongToken(EngineError):
    """The engine refused the token."""

    code = "CLI-0103"
    url: str

    def message(self) -> str:
        return f"the engine at {self.url} refused the token"

    def hint(self) -> str:
        return (
            "The token is in the file .headgate/token of the engine's project folder, readable by its owner."
        )


@error
class EngineRefused(EngineError):
    """The engine did not take a request that a client of the same version would send."""

    code = "CLI-0104"
    url: str
    status: int
    reason: str

    def message(self) -> str:
        return f"the engine at {self.url} refused the request with status {self.status}: {self.reason}"

    def hint(self) -> str:
        return "An engine of another version may be running. Stop it, and start it again."


@error
class UnreadableEvent(EngineError):
    """A line of an answer is no event."""

    code = "CLI-0105"
    reason: str

    def message(self) -> str:
        return f"cannot read an answer of the engine: {self.reason}"

    def hint(self) -> str:
        return "An engine of another version may be running. Stop it, and start it again."


@error
class EngineDidNotStart(EngineError):
    """The engine process ended, or did not answer in time."""

    code = "CLI-0106"
    project: str
    reason: str
    log: str
    last: tuple[str, ...] = ()

    def message(self) -> str:
        return f'the engine of project "{self.project}" did not start: {self.reason}'

    def detail(self) -> str:
        shown = "\n".join(f"  {line}" for line in self.last)
        return f"The end of {self.log}:\n{shown}" if self.last else f"Its log, {self.log}, is empty."


@error
class TooManyStatements(EngineError):
    """The engine answers as many statements as it takes at once."""

    code = "CLI-0108"
    url: str

    def message(self) -> str:
        return f"the engine at {self.url} could not take the statement: it answers too many others at this moment"

    def hint(self) -> str:
        return "Try again when some of them have ended. An answer that nobody reads counts too: close it."
