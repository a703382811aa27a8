"""What the steps of a file share: its variables, its services, its time-out."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from confluent_kafka import Producer

from headgate.embedded.world import World
from headgate.errors import similar_names
from headgate.registry.client import RegistryClient
from headgate.serve.client import EngineClient
from headgate.testing.errors import Mismatch, UnknownVariable
from headgate.testing.parse import Block
from headgate.testing.retry import Deadline, until

_PLACE = re.compile(r"\$\$\{|\$\{([^}\s]*)\}")

# Characters of a value that `put_back` replaces. Shorter values would also match unrelated text.
MEMORABLE = 6


Found = TypeVar("Found")


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
