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
