"""What the steps of a file share (variables, services, time-out), how a check is tried again, and what an action is."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, TypeVar

from confluent_kafka import Producer

from headgate.embedded.world import World
from headgate.errors import HeadgateError, similar_names
from headgate.registry.client import RegistryClient
from headgate.serve.client import EngineClient
from headgate.testing.errors import InvalidAction, Mismatch, UnknownActionOption, UnknownVariable
from headgate.testing.notation import Json, read_json
from headgate.testing.parse import ActionCall, Block

Found = TypeVar("Found")

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 0.5
LONGEST_PAUSE_OF_SLOW = 2.0  # after an attempt that took long itself
LAST = 15.0  # seconds that every attempt has at least, so that it fails with a reason and not for lack of time
SETTLED = 5.0  # seconds without a change after which `--rewrite` takes a result as final


class Deadline:
    """A moment in the future."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    @property
    def is_over(self) -> bool:
        return self.left == 0.0


class GiveUp(Exception):
    """Raised by an attempt to end all attempts: its error will not go away."""

    def __init__(self, error: HeadgateError) -> None:
        super().__init__(str(error))
        self.error = error


def until(
    attempt: Callable[[Deadline], Found],
    seconds: float,
    *,
    settles: bool = False,
    interrupted: threading.Event | None = None,
) -> Found:
    """Call ``attempt`` until it succeeds, and return its result. Raises its last error when the time is over.

    With ``settles``, a mismatch that stays the same for a while is raised before. When ``interrupted`` is set, this
    raises KeyboardInterrupt."""
    stop = interrupted or threading.Event()
    deadline, pause = Deadline(seconds), FIRST_PAUSE
    seen: tuple[str, ...] | None = None
    since = time.monotonic()
    while not stop.is_set():
        began = time.monotonic()
        try:
            # The last attempt has its full time, so that it fails with a reason.
            return attempt(Deadline(max(deadline.left, LAST)))
        except GiveUp as end:
            raise end.error from end
        except HeadgateError as error:
            actual = error.rewritten if isinstance(error, Mismatch) else None
            if actual is None or actual != seen:
                seen, since = actual, time.monotonic()
            if deadline.is_over or (settles and actual is not None and time.monotonic() - since > SETTLED):
                raise
        # A query that takes long keeps the processors from what it waits for, so that it pauses for as long as it ran.
        took = min(time.monotonic() - began, LONGEST_PAUSE_OF_SLOW)
        stop.wait(min(max(pause, took), deadline.left))
        pause = min(pause * 1.5, LONGEST_PAUSE)
    raise KeyboardInterrupt


_PLACE = re.compile(r"\$\$\{|\$\{([^}\s]*)\}")

# Characters of a value that `put_back` replaces. Shorter values would also match unrelated text.
MEMORABLE = 6


class Variables:
    """The variables of a file: set by steps, or built in. The value of a built-in one is computed when it is used."""

    def __init__(self, built_in: Mapping[str, Callable[[], str]] | None = None) -> None:
        self._built_in = dict(built_in or {})
        self._set: dict[str, str] = {}

    def set(self, name: str, value: str) -> None:
        self._set[name] = value

    def get(self, name: str) -> str:
        if name in self._set:
            return self._set[name]
        if name in self._built_in:
            return self._built_in[name]()
        raise UnknownVariable(name, similar_names(name, {**self._set, **self._built_in}))

    def fill(self, text: str, more: Mapping[str, str] | None = None) -> str:
        """The text with all variables replaced. ``more`` are variables of this text only."""

        def value(found: re.Match[str]) -> str:
            name = found[1]
            if name is None:
                return "${"
            return more[name] if more and name in more else self.get(name)

        return _PLACE.sub(value, text)

    def put_back(self, text: str) -> str:
        """Replace long values, such as the seed, by the names of their variables. The opposite of ``fill``."""
        text = text.replace("${", "$${")
        known = sorted(self._set.items(), key=lambda one: -len(one[1]))
        for name, value in known:
            if len(value) >= MEMORABLE and not value.isdecimal():
                text = text.replace(value, f"${{{name}}}")
        return text


class Engine(Protocol):
    """The engine process. After ``restart`` and ``kill`` it runs again, on the same catalog."""

    @property
    def client(self) -> EngineClient: ...

    def restart(self) -> None: ...

    def kill(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Edit:
    """Lines that `--rewrite` puts in place of a block."""

    block: Block
    lines: tuple[str, ...]


@dataclass(slots=True)
class SpecContext:
    """What the steps of one run of one file share.

    ``project`` is the folder of the catalog, ``folder`` is `${dir}`. ``timeout`` is in seconds and holds for each
    step. ``interrupted`` is set when the run is to end. A `rewrite` run collects ``edits`` and goes on."""

    engine: Engine
    world: World
    project: Path
    folder: Path
    variables: Variables
    timeout: float
    interrupted: threading.Event = field(default_factory=threading.Event)
    postgres_database: str | None = None
    rewrite: bool = False
    edits: list[Edit] = field(default_factory=list)
    producer: Producer | None = None  # kept for later steps, because a new one takes half a second to begin
    open_transactions: list[Producer] = field(default_factory=list)  # Kafka aborts them when these are collected

    @property
    def request_timeout(self) -> float:
        """Seconds for a request that is made once. A slow service must not fail the step."""
        return max(self.timeout, 30.0)

    @property
    def kafka(self) -> str:
        return self.world.kafka()

    @property
    def elasticsearch(self) -> str:
        return self.world.elasticsearch().rstrip("/")

    @property
    def postgres(self) -> str:
        """A libpq URL of this file's own database."""
        url = self.world.postgres()
        return url if self.postgres_database is None else with_database(url, self.postgres_database)

    @contextmanager
    def registry(self) -> Iterator[RegistryClient]:
        with RegistryClient([self.world.registry()]) as client:
            yield client

    def eventually(
        self, attempt: Callable[[Deadline], Found], block: Block | None = None, keep: int = 0
    ) -> Found | None:
        """Try until ``attempt`` succeeds or the file's time-out ends.

        In a `rewrite` run a mismatch becomes an edit of ``block`` without its first ``keep`` lines, and the result is
        None."""
        try:
            return self.retry(attempt, settles=self.rewrite)
        except Mismatch as error:
            if not self.rewrite or block is None or error.rewritten is None:
                raise
            kept = block.lines[:keep]
            actual = tuple(self.variables.put_back(line) for line in error.rewritten)
            self.edits.append(Edit(block, (*kept, *actual)))
            return None

    def retry(self, attempt: Callable[[Deadline], Found], *, settles: bool = False) -> Found:
        """``retry.until`` with the file's time-out."""
        return until(attempt, self.timeout, settles=settles, interrupted=self.interrupted)

    def fill(self, block: Block) -> tuple[str, ...]:
        return tuple(self.variables.fill(line) for line in block.lines)


def with_database(url: str, database: str) -> str:
    head, _, _ = url.rpartition("/")
    return f"{head}/{database}"


Body: TypeAlias = Literal["none", "optional", "required"]

_TRUE = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call with its arguments filled in. ``body`` still holds its variables; ``context.fill`` gives its lines."""

    action: str
    arguments: tuple[str, ...]  # all of them in their order, as they were written
    positional: tuple[str, ...]
    options: Mapping[str, str]
    body: Block

    def text(self, name: str) -> str:
        return self.options[name]

    def optional(self, name: str) -> str | None:
        return self.options.get(name)

    def flag(self, name: str) -> bool:
        written = self.options.get(name, "false")
        if written not in _TRUE:
            raise self.wrong(f'takes true or false for "{name}", not "{written}"')
        return _TRUE[written]

    def number(self, name: str) -> int | None:
        written = self.options.get(name)
        if written is None:
            return None
        try:
            return int(written)
        except ValueError:
            raise self.wrong(f'takes a number for "{name}", not "{written}"') from None

    def json(self, name: str) -> Json:
        written = self.options.get(name)
        return None if written is None else read_json(written)

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """The options that begin with a prefix, such as `config.`, by the rest of their names."""
        return {key.removeprefix(prefix): value for key, value in self.options.items() if key.startswith(prefix)}

    def wrong(self, problem: str) -> InvalidAction:
        return InvalidAction(self.action, problem)


@dataclass(frozen=True, slots=True)
class Action:
    """What an action takes and does.

    ``options`` that end in a dot are prefixes; None takes any name. ``positional`` is how many arguments without a name
    there are, None for any number. An action that stops or starts Headgate or a service ``disrupts``."""

    name: str
    run: Callable[[Invocation, SpecContext], None]
    required: tuple[str, ...] = ()
    options: tuple[str, ...] | None = ()
    positional: int | None = 0
    body: Body = "none"
    disrupts: bool = False

    def check(self, call: ActionCall) -> None:
        """Raises what is wrong with a call, whatever its variables will be."""
        named = [argument.name for argument in call.arguments if argument.name is not None]
        if self.options is not None:
            for name in named:
                self._check_option(name)
        for name in self.required:
            if name not in named:
                raise InvalidAction(self.name, f'lacks its option "{name}"')
        count = sum(argument.name is None for argument in call.arguments)
        if self.positional is not None and count != self.positional:
            raise InvalidAction(self.name, f"takes {_arguments(self.positional)} without a name, not {count}")
        if self.body == "required" and not call.body.lines:
            raise InvalidAction(self.name, "lacks its body, the lines right below it")
        if self.body == "none" and call.body.lines:
            raise InvalidAction(self.name, "takes no body, and has lines right below it")

    def perform(self, call: ActionCall, context: SpecContext) -> None:
        fill = context.variables.fill
        positional = tuple(fill(argument.value) for argument in call.arguments if argument.name is None)
        options = {argument.name: fill(argument.value) for argument in call.arguments if argument.name is not None}
        arguments = tuple(fill(argument.raw) for argument in call.arguments)
        self.run(Invocation(self.name, arguments, positional, options, call.body), context)

    def _check_option(self, name: str) -> None:
        known = (*self.required, *(self.options or ()))
        prefixed = any(one.endswith(".") and name.startswith(one) for one in known)
        if name not in known and not prefixed:
            raise UnknownActionOption(self.name, name, similar_names(name, known))


def _arguments(count: int) -> str:
    return "no argument" if count == 0 else "one argument" if count == 1 else f"{count} arguments"
