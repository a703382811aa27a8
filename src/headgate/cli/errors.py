"""What can be wrong with how a command was called or set up: CLI-02xx settings, CLI-03xx scripts and tasks."""

from __future__ import annotations

from headgate.errors import HeadgateError, did_you_mean, error


class CommandError(HeadgateError):
    """Family CLI."""


@error
class SettingsUnreadable(CommandError):
    code = "CLI-0201"
    file: str
    reason: str

    def message(self) -> str:
        return f'cannot read settings file "{self.file}": {self.reason}'


@error
class UnknownSetting(CommandError):
    code = "CLI-0202"
    setting: str
    place: str
    known: tuple[str, ...]
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'setting "{self.setting}" of {self.place} does not exist'

    def hint(self) -> str:
        return did_you_mean(self.similar) or f"There are {', '.join(self.known)}."


@error
class InvalidSetting(CommandError):
    """``reason`` says what is allowed, never what was given: settings of Spark may be secrets."""

    code = "CLI-0203"
    setting: str
    place: str
    reason: str

    def message(self) -> str:
        return f'setting "{self.setting}" of {self.place} is not valid: {self.reason}'


@error
class EnginePortTaken(CommandError):
    code = "CLI-0204"
    port: int

    def message(self) -> str:
        return f"could not listen on port {self.port}: another process does"

    def hint(self) -> str:
        return "Name another port, or leave it out to get a free one."


@error
class ScriptUnreadable(CommandError):
    code = "CLI-0301"
    file: str
    reason: str

    def message(self) -> str:
        return f'cannot read script "{self.file}": {self.reason}'


@error
class NothingToRun(CommandError):
    code = "CLI-0302"

    def message(self) -> str:
        return "the script has no task to run"

    def hint(self) -> str:
        return "Create a sink, or send statements with `headgate sql`."
