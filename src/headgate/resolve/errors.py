"""Errors of statements that do not say enough to be resolved: PLN-04xx."""

from __future__ import annotations

from headgate.errors import HeadgateError


class ResolveError(HeadgateError):
    """A statement whose meaning cannot be found in the catalog: PLN-…."""


class TopicMissing(ResolveError, code="PLN-0403"):
    """A source or sink over Kafka does not name a topic."""

    connection: str
    MESSAGE = 'the topic at connection "{connection}" is missing'
    HINT = "Write KAFKA CONNECTION {connection} (TOPIC '…')."


class ConnectionOfOtherKind(ResolveError, code="PLN-0404"):
    """A statement uses a connection to another kind of system than it needs."""

    connection: str
    found: str
    wanted: str
    MESSAGE = 'connection "{connection}" is to {found}, not to {wanted}'
    CURE = "Name a connection of the kind that the message wants."
