"""The options of a connection with their secrets in clear text. They exist only while a client is opened, and their
repr shows names without values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headgate.connectors.errors import InvalidOption, OptionMissing
from headgate.sql import connections
from headgate.sql.options import SecretReference, given_options
from headgate.sql.statement import ObjectName

Reveal = Callable[[ObjectName], str]


@dataclass(frozen=True, slots=True, repr=False)
class ConnectionOptions:
    """Texts by option name. ``connection`` is the name or address that errors show."""

    connection: str
    values: tuple[tuple[str, tuple[str, ...]], ...]

    def __repr__(self) -> str:
        return f"Options({self.connection}: {', '.join(name for name, _ in self.values)})"

    def get(self, name: str) -> str | None:
        """The first value of an option, or None if it is not set."""
        return next((values[0] for given, values in self.values if given == name and values), None)

    def all(self, name: str) -> tuple[str, ...]:
        return next((values for given, values in self.values if given == name), ())

    def need(self, name: str) -> str:
        """The value of an option that must be set. Raises OptionMissing."""
        value = self.get(name)
        if value is None:
            raise OptionMissing(name, self.connection)
        return value


def pem_text(options: ConnectionOptions, name: str) -> str | None:
    """A certificate or key. The option holds either the PEM text itself or the path of a PEM file."""
    given = options.get(name)
    if given is None or "-----BEGIN" in given:
        return given
    try:
        return Path(given).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidOption(name, options.connection, "names a file that cannot be read") from error


def reveal_options(connection: str, options: connections.ConnectionOptions, reveal: Reveal) -> ConnectionOptions:
    """The options of a statement as texts. ``reveal`` reads the secrets that they refer to."""
    return ConnectionOptions(
        connection, tuple((rule.name, _texts(value, reveal)) for rule, value in given_options(options))
    )


def _texts(value: object, reveal: Reveal) -> tuple[str, ...]:
    match value:
        case SecretReference(name):
            return (reveal(name),)
        case tuple():
            return tuple(map(str, value))
        case _:
            return (str(value),)
