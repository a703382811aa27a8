"""What can go wrong with the systems outside: CON-01xx connections, CON-02xx Kafka."""

from __future__ import annotations

from headgate.errors import HeadgateError, did_you_mean, error


class ConnectorError(HeadgateError):
    """Family CON."""


@error
class OptionMissing(ConnectorError):
    code = "CON-0101"
    option: str
    connection: str

    def message(self) -> str:
        return f'option "{self.option}" of connection "{self.connection}" is missing'


@error
class OptionsExclude(ConnectorError):
    code = "CON-0102"
    first: str
    second: str
    connection: str

    def message(self) -> str:
        return (
            f'options "{self.first}" and "{self.second}" of connection "{self.connection}" exclude each other'
        )


@error
class OptionUnfit(ConnectorError):
    code = "CON-0103"
    option: str
    connection: str
    reason: str

    def message(self) -> str:
        return f'option "{self.option}" of connection "{self.connection}" {self.reason}'


@error
class BrokerUnreachable(ConnectorError):
    code = "CON-0201"
    retryable = True
    brokers: str
    reason: str

    def message(self) -> str:
        return f"could not reach Kafka at {self.brokers}"

    def detail(self) -> str:
        return self.reason

    def hint(self) -> str:
        return (
            "Check the address and that the broker runs. "
            "CREATE CONNECTION … WITH (VALIDATE = false) makes a connection without asking it."
        )


@error
class BrokerRefusedLogin(ConnectorError):
    code = "CON-0202"
    brokers: str
    reason: str

    def message(self) -> str:
        return f"Kafka at {self.brokers} refused the login"

    def detail(self) -> str:
        return self.reason

    def hint(self) -> str:
        return "Check SECURITY PROTOCOL, SASL MECHANISMS, SASL USERNAME and SASL PASSWORD of the connection."


@error
class TopicNotFound(ConnectorError):
    code = "CON-0203"
    topic: str
    similar: tuple[str, ...] = ()

    def message(self) -> str:
        return f'topic "{self.topic}" does not exist'

    def hint(self) -> str:
        return did_you_mean(self.similar) or "Create the topic first; a source does not make one."


@error
class TopicRefused(ConnectorError):
    code = "CON-0204"
    topic: str
    reason: str

    def message(self) -> str:
        return f'topic "{self.topic}" cannot be created: {self.reason.rstrip(".")}'

    def hint(self) -> str:
        return (
            "Check TOPIC, TOPIC PARTITION COUNT, TOPIC REPLICATION FACTOR and TOPIC CONFIG of the statement."
        )


@error
class KafkaFailed(ConnectorError):
    code = "CON-0205"
    what: str
    reason: str

    def message(self) -> str:
        return f"could not {self.what}"

    def detail(self) -> str:
        return self.reason
