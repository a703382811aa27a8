"""Literals, and options: a name and a value out of a statement's declared table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from headgate.sql.ast.names import Expression, ObjectName


@dataclass(frozen=True, slots=True)
class StringLiteral:
    value: str


@dataclass(frozen=True, slots=True)
class NumberLiteral:
    """A number as it was written, with its sign."""

    text: str


@dataclass(frozen=True, slots=True)
class BooleanLiteral:
    value: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the words that an option allows, in upper case: ``FOLLOW``, ``DISABLE BINDING``."""

    words: str


@dataclass(frozen=True, slots=True)
class SecretReference:
    name: ObjectName


@dataclass(frozen=True, slots=True)
class ListLiteral:
    items: tuple[StringLiteral | NumberLiteral, ...]


@dataclass(frozen=True, slots=True)
class MapLiteral:
    entries: tuple[tuple[str, str], ...]


Value: TypeAlias = (
    StringLiteral
    | NumberLiteral
    | BooleanLiteral
    | Choice
    | SecretReference
    | ListLiteral
    | MapLiteral
    | Expression
)


@dataclass(frozen=True, slots=True)
class Option:
    """An option under the name that its table gives it, whatever case or alias it was written with."""

    name: str
    value: Value


def option(options: Iterable[object], name: str) -> Value | None:
    """The value of the option of this name, or None if it was not given. Other things in the list are passed over."""
    return next((o.value for o in options if isinstance(o, Option) and o.name == name), None)
