"""What the outside says against a statement, beyond the errors of its systems: PLN-04xx."""

from __future__ import annotations

from headgate.errors import HeadgateError, error


class PurifyError(HeadgateError):
    """Family PLN: found before planning, but about the statement."""


@error
class NoSchemaForTopic(PurifyError):
    code = "PLN-0401"
    topic: str
    subject: str
    side: str

    def message(self) -> str:
        return f'the registry has no schema for the {self.side} of topic "{self.topic}"'

    def detail(self) -> str:
        return f'There is no subject "{self.subject}".'

    def hint(self) -> str:
        return f"Register one, or name it with {self.side.upper()} STRATEGY = ID n or INLINE '…'."


@error
class SchemaOfOtherType(PurifyError):
    code = "PLN-0402"
    subject: str
    found: str
    wanted: str

    def message(self) -> str:
        return f'the schema of subject "{self.subject}" is {self.found}, not {self.wanted}'

    def hint(self) -> str:
        return f"Write FORMAT {self.found} USING CONFLUENT SCHEMA REGISTRY …"


@error
class TopicMissing(PurifyError):
    code = "PLN-0403"
    connection: str

    def message(self) -> str:
        return f'the topic at connection "{self.connection}" is missing'

    def hint(self) -> str:
        return f"Write KAFKA CONNECTION {self.connection} (TOPIC '…')."


@error
class ConnectionOfOtherKind(PurifyError):
    code = "PLN-0404"
    connection: str
    found: str
    wanted: str

    def message(self) -> str:
        return f'connection "{self.connection}" is to {self.found}, not to {self.wanted}'


@error
class SecretWrittenOut(PurifyError):
    code = "PLN-0405"
    option: str
    connection: str

    def message(self) -> str:
        return f'option "{self.option}" of connection "{self.connection}" must be a secret'

    def detail(self) -> str:
        return "The catalog keeps statements as they are written, and what is written in one is not secret."

    def hint(self) -> str:
        if self.option == "URL":
            return "Leave the password out of the address, and write PASSWORD SECRET s after CREATE SECRET s AS '…'."
        return f"Write CREATE SECRET s AS '…', and then {self.option} SECRET s."


@error
class PasswordInAddress(PurifyError):
    code = "PLN-0406"
    topic: str

    def message(self) -> str:
        return f'the address of the registry of topic "{self.topic}" holds a password'

    def detail(self) -> str:
        return "The catalog keeps statements as they are written, and what is written in one is not secret."

    def hint(self) -> str:
        return "Write CREATE CONNECTION c TO CONFLUENT SCHEMA REGISTRY (…, PASSWORD SECRET s), and then CONNECTION c."


@error
class TooManyOffsets(PurifyError):
    code = "PLN-0407"
    topic: str
    offsets: int
    partitions: int
    option: str = "START OFFSET"

    def message(self) -> str:
        return f'{self.option} has {self.offsets} offsets, but topic "{self.topic}" {self._partitions()}'

    def _partitions(self) -> str:
        return "has 1 partition" if self.partitions == 1 else f"has {self.partitions} partitions"

    def hint(self) -> str:
        return (
            "Write one offset for each partition, beginning with partition 0, or one number for all of them."
        )


@error
class StartTwice(PurifyError):
    code = "PLN-0408"
    topic: str

    def message(self) -> str:
        return f'START OFFSET and START TIMESTAMP of topic "{self.topic}" exclude each other'

    def hint(self) -> str:
        return "Write one of them: both say where to begin."


@error
class NoTimestamp(PurifyError):
    code = "PLN-0205"
    option: str
    topic: str

    def message(self) -> str:
        return f'option "{self.option}" of topic "{self.topic}" is no time'

    def hint(self) -> str:
        return "Write milliseconds since 1970, or a time such as '2026-11-15T12:30:00Z'."
