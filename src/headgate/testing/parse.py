"""A spec file's text into steps.

Everything that is known to be wrong before a file runs is found here. Texts of steps still hold their ``${variables}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from headgate.errors import HeadgateError
from headgate.testing.errors import MalformedSpec
from headgate.testing.notation import skip_blanks
from headgate.testing.records import FORMATS
from headgate.text.lexer import tokenize

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_NAME = re.compile(r"([A-Za-z_][\w.-]*)=")
_ESCAPES = {"n": "\n", "t": "\t"}
_STEP = re.compile(r"[>!?$] ?\S")
_VARIABLE = re.compile(r"\$?\$\{[^}\s]*\}?")
_FORMAT = re.compile(r"format:(.*)")
_KINDS = "A step begins with one of > ! ? $ and a comment with #; rows and bodies stand right below their step."


@dataclass(frozen=True, slots=True)
class Block:
    """The lines below a statement or an action. ``line`` is the number of the first, or where it would be."""

    line: int
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Statement:
    """A step that sends SQL. ``block`` is what must come out of it."""

    line: int
    sql: str
    block: Block


class Succeeds(Statement):
    """`> SQL;` with the expected rows. Without lines, any rows are accepted."""


class Fails(Statement):
    """`! SQL;` with its checks."""


class Prints(Statement):
    """`? SQL;` with the text that it must print."""


_STATEMENTS: dict[str, type[Succeeds | Fails | Prints]] = {">": Succeeds, "!": Fails, "?": Prints}


@dataclass(frozen=True, slots=True)
class ActionCall:
    """`$ action`: ``arguments`` have their quotes taken off."""

    line: int
    action: str
    arguments: tuple[Argument, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument with or without a name. ``raw`` is its form on a command line."""

    value: str
    name: str | None = None

    @property
    def raw(self) -> str:
        return self.value if self.name is None else f"{self.name}={self.value}"


Step: TypeAlias = Succeeds | Fails | Prints | ActionCall


@dataclass(frozen=True, slots=True)
class Spec:
    """A file. If ``formats`` is empty, it runs once and has no ``${format}``."""

    path: str
    text: str
    formats: tuple[str, ...]
    steps: tuple[Step, ...]


def read_duration(written: str) -> float:
    """The seconds of a time such as `60s`, `500ms`, `2m` or `90`. Raises MalformedSpec."""
    found = _DURATION.fullmatch(written.strip())
    if found is None or float(found[1]) == 0:
        raise MalformedSpec(f'"{written}" is no time', "Write it as 60s, 500ms or 2m.")
    return float(found[1]) * _SECONDS[found[2] or "s"]


def read_arguments(text: str) -> tuple[Argument, ...]:
    """The arguments of an action: `name=value` or `value`, with quotes where a value has blanks."""
    arguments: list[Argument] = []
    position = skip_blanks(text, 0)
    while position < len(text):
        named = _NAME.match(text, position)
        value, position = _value(text, named.end() if named else position)
        arguments.append(Argument(value, named[1] if named else None))
        position = skip_blanks(text, position)
    return tuple(arguments)


def end_of_brackets(text: str, start: int) -> int | None:
    """The position behind the JSON object or array that begins at ``start``; None if it is not closed."""
    depth, position, in_string = 0, start, False
    while position < len(text):
        character = text[position]
        if in_string:
            position += character == "\\"
            in_string = character != '"'
        elif character == '"':
            in_string = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    return None


def read_quoted(text: str, start: int) -> tuple[str, int]:
    """The value of a double-quoted text without its escapes, and the position behind it."""
    value: list[str] = []
    position = start + 1
    while position < len(text):
        character = text[position]
        if character == '"':
            return "".join(value), position + 1
        if character == "\\" and position + 1 < len(text):
            position += 1
            character = _ESCAPES.get(text[position], text[position])
        value.append(character)
        position += 1
    raise MalformedSpec("a quote is not closed", 'End the value with ", and write \\" for a quote within it.')


def _value(text: str, start: int) -> tuple[str, int]:
    """One value and the position behind it: quoted, JSON, or up to the next blank."""
    opening = text[start : start + 1]
    if opening == '"':
        return read_quoted(text, start)
    if opening == "'":
        end = text.find("'", start + 1)
        if end < 0:
            raise MalformedSpec("a quote is not closed", "End the value with '.")
        return text[start + 1 : end], end + 1
    if opening in ("{", "[") and (end_ := end_of_brackets(text, start)) is not None:
        return text[start:end_], end_
    return _bare(text, start)


def _bare(text: str, start: int) -> tuple[str, int]:
    """The text up to a blank. A quoted part after `=` belongs to it, as in `--set=x="a b"`."""
    value: list[str] = []
    position = start
    while position < len(text) and not text[position].isspace():
        if text[position] == '"' and value and value[-1].endswith("="):
            part, position = read_quoted(text, position)
            value.append(part)
        else:
            value.append(text[position])
            position += 1
    return "".join(value), position


@dataclass(frozen=True, slots=True)
class SpecFault:
    """A mistake in a file, with its line."""

    line: int
    error: HeadgateError


class SpecFaults(Exception):
    """All mistakes of one file."""

    def __init__(self, faults: tuple[SpecFault, ...]) -> None:
        super().__init__(f"{len(faults)} mistakes")
        self.faults = faults


def parse_spec(path: str, text: str, check: Callable[[ActionCall], None]) -> Spec:
    """Parse a file. ``check`` raises what is wrong with a call of an action. Raises SpecFaults with all mistakes."""
    reader = _Reader(text)
    formats = reader.formats()
    steps = tuple(reader.steps(check))
    if reader.faults:
        raise SpecFaults(tuple(reader.faults))
    return Spec(path, text, formats, steps)


class _Reader:
    """Reads a file line by line. A mistake is noted, and reading goes on below it, so that all are found at once."""

    def __init__(self, text: str) -> None:
        self.lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
        self.at = 0
        self.faults: list[SpecFault] = []

    def formats(self) -> tuple[str, ...]:
        """The formats of the line `format:` before the first step; empty without one."""
        self._skip()
        found = _FORMAT.fullmatch(self._line()) if self.at < len(self.lines) else None
        if found is None:
            return ()
        self.at += 1
        names = tuple(name.strip() for name in found[1].split(","))
        unknown = [name for name in names if name not in FORMATS]
        if unknown:
            error = MalformedSpec(f'format "{unknown[0]}" is not known', f"Formats are {', '.join(FORMATS)}.")
            self._fault(self.at, error)
        return names

    def steps(self, check: Callable[[ActionCall], None]) -> list[Step]:
        """All steps. A step with a mistake is left out together with its block."""
        found: list[Step] = []
        self._skip()
        while self.at < len(self.lines):
            number = self.at + 1
            try:
                step = self._step()
                if isinstance(step, ActionCall):
                    check(step)
                found.append(step)
            except HeadgateError as error:
                self._fault(number, error)
                self._block()
            self._skip()
        return found

    def _step(self) -> Step:
        line, number = self._line(), self.at + 1
        if kind := _STATEMENTS.get(line[0]):
            sql = self._statement()
            return kind(number, sql, self._checks() if kind is Fails else self._block())
        if line[0] == "$":
            return self._call()
        self.at += 1
        if _FORMAT.fullmatch(line):
            advice = "Write it as the first line after the comments."
            raise MalformedSpec("format: stands below the first step", advice)
        raise MalformedSpec(f'a line begins with "{line[:1]}", which is no step', _KINDS)

    def _call(self) -> ActionCall:
        number = self.at + 1
        text = self._line()[1:].strip()
        self.at += 1
        name, _, rest = text.partition(" ")
        if not name:
            raise MalformedSpec("an action has no name", "Write `$ action name=value`.")
        arguments = read_arguments(rest)
        return ActionCall(number, name, arguments, self._block())

    def _checks(self) -> Block:
        block = self._block()
        for offset, line in enumerate(block.lines):
            if not re.match(r"(code|contains|detail|hint): ?", line):
                error = MalformedSpec(f'"{line[:40]}" is no check', "Checks are code:, contains:, detail: and hint:.")
                self._fault(block.line + offset, error)
        return block

    def _statement(self) -> str:
        """Read the lines of a statement, up to the semicolon that ends it."""
        first = self.at
        text = self._line()[1:].removeprefix(" ")
        fallback: tuple[int, str] | None = None
        while True:
            ended = _ends(text)
            if ended:
                self.at += 1
                return text
            if fallback is None and text.rstrip().endswith(";"):
                fallback = self.at, text
            self.at += 1
            if self.at >= len(self.lines) or self._begins_a_step(in_literal=ended is None):
                break
            text = f"{text}\n{self._line()}"
        if fallback is None:
            self.at = first + 1
            raise MalformedSpec("a statement has no end", "End it with a semicolon.")
        self.at = fallback[0] + 1
        return fallback[1]

    def _begins_a_step(self, in_literal: bool) -> bool:
        """A spec may be about a literal that is never closed. It must not run into the next step."""
        return bool(_STEP.match(self._line())) and (in_literal or not self.lines[self.at - 1].strip())

    def _block(self) -> Block:
        start = self.at
        while self.at < len(self.lines) and self._line().strip():
            self.at += 1
        return Block(start + 1, tuple(self.lines[start : self.at]))

    def _skip(self) -> None:
        while self.at < len(self.lines) and (not self._line().strip() or self._line().startswith("#")):
            self.at += 1

    def _line(self) -> str:
        return self.lines[self.at]

    def _fault(self, line: int, error: HeadgateError) -> None:
        self.faults.append(SpecFault(line, error))


def _ends(text: str) -> bool | None:
    """Whether the last token is a semicolon; None if a literal or a comment is still open."""
    try:
        tokens = tokenize(_VARIABLE.sub("x", text))
    except HeadgateError:
        return None
    return len(tokens) > 1 and tokens[-2].word == ";"
