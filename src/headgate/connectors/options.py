"""A connection's options, secrets revealed, for the moment of use. They never print."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from headgate.connectors.errors import OptionMissing, OptionUnfit
from headgate.errors import InternalError
from headgate.sql.options import (
    BooleanLiteral,
    Choice,
    ListLiteral,
    MapLiteral,
    NumberLiteral,
    Option,
    SecretReference,
    StringLiteral,
)
from headgate.sql.statement import Expression, ObjectName

Reveal = Callable[[ObjectName], str]


@dataclass(frozen=True, slots=True, repr=False)
class Options:
    """The options of one connection by name. ``connection`` is what errors call it."""

    connection: str
    values: tuple[tuple[str, tuple[str, ...]], ...]

    def __repr__(self) -> str:
        return f"Options({self.connection}: {', '.join(name for name, _ in self.values)})"

    def get(self, name: str) -> str | None:
        return next((values[0] for given, values in self.values if given == name and values), None)

    def all(self, name: str) -> tuple[str, ...]:
        return next((values for given, values in self.values if given == name), ())

    def need(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise OptionMissing(name, self.connection)
        return value

    def number(self, name: str) -> int | None:
        value = self.get(name)
        if value is None:
            return None
        try:
            return int(value)
        except ValueError:
            raise OptionUnfit(name, self.connection, "is no whole number") from None


def pem_text(options: Options, name: str) -> str | None:
    """A certificate or key that is given as its PEM text or as the path of a file that holds it."""
    given = options.get(name)
    if given is None or "-----BEGIN" in given:
        return given
    try:
        return Path(given).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise OptionUnfit(name, options.connection, "names a file that cannot be read") from error


def reveal_options(connection: str, options: Iterable[Option], reveal: Reveal) -> Options:
    return Options(connection, tuple((o.name, _texts(o, reveal)) for o in options))


def _texts(option: Option, reveal: Reveal) -> tuple[str, ...]:
    match option.value:
        case StringLiteral(value):
            return (value,)
        case NumberLiteral(text):
            return (text,)
        case BooleanLiteral(flag):
            return ("true" if flag else "false",)
        case Choice(words):
            return (words,)
        case SecretReference(name):
            return (reveal(name),)
        case ListLiteral(items):
            return tuple(i.value if isinstance(i, StringLiteral) else i.text for i in items)
        case MapLiteral() | ObjectName() | Expression():
            raise InternalError(f"option {option.name} of a connection has a value of another kind")
        case _:
            assert_never(option.value)
