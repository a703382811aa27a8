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
    """A statement uses a connection to another kind of system than it needs.

    Cure: Name a connection of the kind that the message wants.
    """

    connection: str
    found: str
    wanted: str
    MESSAGE = 'connection "{connection}" is to {found}, not to {wanted}'


class PurifyError(HeadgateError):
    """An error that is found by asking the systems outside: PLN-…."""


class NoSchemaForTopic(PurifyError, code="PLN-0401"):
    """The registry has no subject for a topic, so the columns of the source are not known."""

    topic: str
    subject: str
    side: str
    MESSAGE = 'the registry has no schema for the {side} of topic "{topic}"'
    DETAIL = 'There is no subject "{subject}".'
    HINT = "Register one, or name it with {side:upper} STRATEGY = ID n or INLINE '…'."


class SchemaOfOtherType(PurifyError, code="PLN-0402"):
    """The registry has a schema for the topic, and it belongs to another format than the statement says."""

    subject: str
    found: str
    wanted: str
    MESSAGE = 'the schema of subject "{subject}" is {found}, not {wanted}'
    HINT = "Write FORMAT {found} USING CONFLUENT SCHEMA REGISTRY …"


class SecretWrittenOut(PurifyError, code="PLN-0405"):
    """A password or another secret option is written as text in CREATE CONNECTION."""

    option: str
    connection: str
    MESSAGE = 'option "{option}" of connection "{connection}" must be a secret'
    DETAIL = "The catalog stores statements as they are written, so what is written in one is not secret."
    HINT = "Write CREATE SECRET s AS '…', and then {option} SECRET s."

    def hint(self) -> str | None:
        if self.option == "URL":
            return "Leave the password out of the address, and write PASSWORD SECRET s after CREATE SECRET s AS '…'."
        return super().hint()


class PasswordInAddress(PurifyError, code="PLN-0406"):
    """The address of a registry contains a password."""

    topic: str
    MESSAGE = 'the address of the registry of topic "{topic}" holds a password'
    DETAIL = "The catalog stores statements as they are written, so what is written in one is not secret."
    HINT = "Write CREATE CONNECTION c TO CONFLUENT SCHEMA REGISTRY (…, PASSWORD SECRET s), and then CONNECTION c."


class TooManyOffsets(PurifyError, code="PLN-0407"):
    """A list of offsets is longer than the topic has partitions."""

    topic: str
    offsets: int
    partitions: int
    option: str = "START OFFSET"
    MESSAGE = '{option} has {offsets:offset|offsets}, but topic "{topic}" has {partitions:partition|partitions}'
    HINT = "Write one offset for each partition, beginning with partition 0, or one number for all of them."


class StartTwice(PurifyError, code="PLN-0408"):
    """A source says twice where to begin reading."""

    topic: str
    MESSAGE = 'START OFFSET and START TIMESTAMP of topic "{topic}" exclude each other'
    HINT = "Write one of them: both say where to begin."


class InvalidTimestamp(PurifyError, code="PLN-0205"):
    """An option that takes a time has a value that is none."""

    option: str
    topic: str
    MESSAGE = 'option "{option}" of topic "{topic}" is not a time'
    HINT = "Write milliseconds since 1970, or a time such as '2026-11-15T12:30:00Z'."
