"""A spec file as values: what ``parse`` gives and ``run`` plays. Texts still hold their ``${variables}``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Block:
    """The lines below a statement or an action. ``line`` is the first one's number in the file, also when there are none."""

    line: int
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Succeeds:
    """`> SQL;` with the rows that are expected; without lines, any rows will do."""

    line: int
    sql: str
    rows: Block


@dataclass(frozen=True, slots=True)
class Fails:
    """`! SQL;` with its checks."""

    line: int
    sql: str
    checks: Block


@dataclass(frozen=True, slots=True)
class Prints:
    """`? SQL;` with the text that it must print."""

    line: int
    sql: str
    text: Block


@dataclass(frozen=True, slots=True)
class Call:
    """`$ action`: ``words`` are the arguments as written, quotes taken off."""

    line: int
    action: str
    words: tuple[Word, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Word:
    """An argument: positional, or with a name. ``raw`` is how it would be handed on to a command."""

    value: str
    name: str | None = None

    @property
    def raw(self) -> str:
        return self.value if self.name is None else f"{self.name}={self.value}"


Step: TypeAlias = Succeeds | Fails | Prints | Call


@dataclass(frozen=True, slots=True)
class Spec:
    """A file. ``formats`` is empty where it runs once and without ``${format}``."""

    path: str
    text: str
    formats: tuple[str, ...]
    steps: tuple[Step, ...]
