"""What can be wrong with how a command was called or set up: CLI-02xx settings, CLI-03xx scripts and tasks."""

from __future__ import annotations

from headgate.errors import HeadgateError


class CommandError(HeadgateError):
    """An error of a command or its settings: CLI-…."""


class SettingsUnreadable(CommandError, code="CLI-0201"):
    """The settings file cannot be opened, or is not valid TOML.

    Cure: Correct the file as the message says.
    """

    file: str
    reason: str
    MESSAGE = 'cannot read settings file "{file}": {reason}'


class UnknownSetting(CommandError, code="CLI-0202"):
    """The settings file or the environment has a setting that does not exist."""

    setting: str
    place: str
    known: tuple[str, ...]
    similar: tuple[str, ...] = ()
    MESSAGE = 'setting "{setting}" of {place} does not exist'
    HINT = "The settings of this table are {known:list}."


class InvalidSetting(CommandError, code="CLI-0203"):
    """A setting has a value that is not allowed. The message does not show the value, because it may be a secret.

    Cure: Write a value that the message allows.
    """

    setting: str
    place: str
    reason: str
    MESSAGE = 'setting "{setting}" of {place} is not valid: {reason}'


class EnginePortTaken(CommandError, code="CLI-0204"):
    """The engine cannot listen on the requested port."""

    port: int
    MESSAGE = "could not listen on port {port}: another process uses it"
    HINT = "Name another port, or leave it out to get a free one."


class ScriptUnreadable(CommandError, code="CLI-0301"):
    """A script cannot be opened or is not text.

    Cure: Check the name of the file and its permissions.
    """

    file: str
    reason: str
    MESSAGE = 'cannot read script "{file}": {reason}'


class NothingToRun(CommandError, code="CLI-0302"):
    """A script that is to be run creates no sink, so the engine would have nothing to do."""

    MESSAGE = "the script has no task to run"
    HINT = "Create a sink, or send statements with `headgate sql`."
