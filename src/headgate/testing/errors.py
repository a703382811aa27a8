"""Mistakes in spec files, and steps that did not hold."""

from __future__ import annotations

import difflib

from headgate.errors import HeadgateError, error


class SpecError(HeadgateError):
    """Of a spec file or one of its steps."""


@error
class MalformedSpec(SpecError):
    """A line of a spec is none of the kinds that there are, or has a part that cannot be read."""

    code = "CLI-0401"
    problem: str
    advice: str | None = None

    def message(self) -> str:
        return self.problem

    def hint(self) -> str | None:
        return self.advice


@error
class UnknownAction(SpecError):
    """A spec names an action that does not exist."""

    code = "CLI-0402"
    action: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'action "{self.action}" does not exist'


@error
class UnknownActionOption(SpecError):
    """A spec gives an option that the action does not have."""

    code = "CLI-0403"
    action: str
    option: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'action "{self.action}" has no option "{self.option}"'


@error
class InvalidAction(SpecError):
    """An action lacks something, or was given a value that it cannot take."""

    code = "CLI-0404"
    action: str
    problem: str

    def message(self) -> str:
        return f'action "{self.action}" {self.problem}'


@error
class UnknownVariable(SpecError):
    """A spec uses a variable that was not set."""

    code = "CLI-0405"
    variable: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'variable "{self.variable}" is not set'

    def hint(self) -> str:
        found = super().hint()
        return found or f"Set it with `$ set {self.variable}=...`; a literal ${{ is written $${{."


@error
class StepFailed(SpecError):
    """A step of a spec did not hold."""

    code = "CLI-0406"
    what: str
    told: str | None = None

    def message(self) -> str:
        return self.what

    def detail(self) -> str | None:
        return self.told


@error
class Mismatch(SpecError):
    """What a step of a spec expected is not what was there."""

    code = "CLI-0407"
    what: str
    expected: tuple[str, ...]
    actual: tuple[str, ...]
    rewritten: tuple[str, ...] | None = None  # what `--rewrite` writes in place of the expectation, if it can

    def message(self) -> str:
        return self.what

    def detail(self) -> str:
        """Expected lines begin with -, those that were there with +."""
        lines = difflib.unified_diff(self.expected, self.actual, "expected", "actual", lineterm="", n=1000)
        return "\n".join(line for line in lines if not line.startswith("@@"))


@error
class NoSpecs(SpecError):
    """No spec file was found where one was asked for."""

    code = "CLI-0408"
    path: str

    def message(self) -> str:
        return f'there is no spec at "{self.path}"'

    def hint(self) -> str:
        return "Name files, or folders with files whose names end in .spec."


@error
class ServiceFailed(SpecError):
    """A service of the world refused what an action asked of it, or did not answer."""

    code = "CLI-0409"
    service: str
    reason: str

    def message(self) -> str:
        return f"{self.service} could not do it: {self.reason}"


@error
class UnfitRecord(SpecError):
    """A record of a spec does not fit its schema."""

    code = "CLI-0410"
    path: str
    reason: str

    def message(self) -> str:
        return f"a record does not fit its schema at {self.path}: {self.reason}"
