"""Mistakes in spec files, and steps that did not hold."""

from __future__ import annotations

import difflib

from headgate.errors import HeadgateError


class SpecError(HeadgateError):
    """An error of a spec file or one of its steps: CLI-…."""


class MalformedSpec(SpecError, code="CLI-0401"):
    """A line of a spec is of no known kind, or a part of it cannot be read.

    Cure: Correct the line. The page on testing shows every kind of line.
    """

    problem: str
    advice: str | None = None
    MESSAGE = "{problem}"
    HINT = "{advice}"


class UnknownAction(SpecError, code="CLI-0402"):
    """A spec uses an action that does not exist."""

    action: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'action "{action}" does not exist'


class UnknownActionOption(SpecError, code="CLI-0403"):
    """A spec gives an action an option that it does not have."""

    action: str
    option: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'action "{action}" has no option "{option}"'


class InvalidAction(SpecError, code="CLI-0404"):
    """An action of a spec lacks a part, or has a value that it cannot take.

    Cure: Correct the action as the message says.
    """

    action: str
    problem: str
    MESSAGE = 'action "{action}" {problem}'


class UnknownVariable(SpecError, code="CLI-0405"):
    """A spec uses a variable that was not set."""

    variable: str
    similar: tuple[str, ...] = ()
    MESSAGE = 'variable "{variable}" is not set'
    HINT = "Set it with `$ set {variable}=...`; a literal ${{ is written $${{."


class StepFailed(SpecError, code="CLI-0406"):
    """A step of a spec failed.

    Cure: Read the detail. Correct the spec if its expectation is wrong.
    """

    what: str
    reason: str | None = None
    MESSAGE = "{what}"
    DETAIL = "{reason}"


class Mismatch(SpecError, code="CLI-0407"):
    """A step of a spec got another result than it expects. In the detail, lines with - were expected and lines with +
    were there.

    Cure: Correct what is tested, or write the new result into the spec with --rewrite.
    """

    what: str
    expected: tuple[str, ...]
    actual: tuple[str, ...]
    rewritten: tuple[str, ...] | None = None  # what `--rewrite` writes in place of the expectation, if it can
    MESSAGE = "{what}"

    def detail(self) -> str:
        """Expected lines begin with -, those that were there with +."""
        lines = difflib.unified_diff(self.expected, self.actual, "expected", "actual", lineterm="", n=1000)
        return "\n".join(line for line in lines if not line.startswith("@@"))


class NoSpecs(SpecError, code="CLI-0408"):
    """A path that is given to `headgate test` contains no spec file."""

    path: str
    MESSAGE = 'there is no spec at "{path}"'
    HINT = "Name files, or folders with files whose names end in .spec."


class ServiceFailed(SpecError, code="CLI-0409"):
    """A service refused what an action of a spec asked for, or did not answer.

    Cure: Read the message, and run `headgate doctor` if the service does not run.
    """

    service: str
    reason: str
    MESSAGE = "{service} could not do it: {reason}"


class InvalidRecord(SpecError, code="CLI-0410"):
    """A record in a spec does not fit the schema that it is written with.

    Cure: Correct the record at the path that the message names.
    """

    path: str
    reason: str
    MESSAGE = "a record does not fit its schema at {path}: {reason}"
