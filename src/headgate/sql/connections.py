"""Secrets and connections, and the KAFKA clause: CREATE and ALTER SECRET, CREATE, ALTER and VALIDATE CONNECTION.

The clause ``KAFKA { CONNECTION k (…) | BROKER 'h:p' TOPIC 't' }`` names the topic that a source, sink or capture reads
or writes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from headgate.sql import options as o, statement as s
from headgate.sql.objects import Target
from headgate.text.cursor import Cursor
from headgate.text.errors import UnexpectedToken


@dataclass(frozen=True, slots=True)
class ReadOptions(o.Options, owner="the topic"):
    """How a topic is read. ``seed_offset`` holds the offsets that START OFFSET and START TIMESTAMP meant at
    creation."""

    topic: str | None = o.option()
    start_offset: o.Offsets | None = o.option()
    start_timestamp: o.Timestamp | None = o.option()
    seed_offset: tuple[int, ...] | None = o.option()


@dataclass(frozen=True, slots=True)
class WriteOptions(o.Options, owner="the topic"):
    """How a topic is written, and how it is created if it does not exist."""

    topic: str | None = o.option()
    partition_by: s.Expression | None = o.option()
    topic_partition_count: int | None = o.option()
    topic_replication_factor: int | None = o.option()
    topic_config: o.Map | None = o.option()
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] | None = o.option()


TopicOptions = TypeVar("TopicOptions", ReadOptions, WriteOptions)


@dataclass(frozen=True, slots=True)
class KafkaConnection(Generic[TopicOptions]):
    """``KAFKA CONNECTION k (TOPIC 't', …)``."""

    connection: s.ObjectName = field(metadata=s.names(s.Kind.CONNECTION))
    options: TopicOptions

    def sql(self) -> str:
        return f"KAFKA CONNECTION {s.print_name(self.connection)} {o.print_options(self.options)}"


@dataclass(frozen=True, slots=True)
class KafkaBroker(Generic[TopicOptions]):
    """``KAFKA BROKER 'h:p' TOPIC 't' [(…)]``, without a connection object."""

    broker: str
    topic: str
    options: TopicOptions

    def sql(self) -> str:
        return s.words(
            f"KAFKA BROKER {s.print_string(self.broker)} TOPIC {s.print_string(self.topic)}",
            o.print_options(self.options),
        )


Kafka: TypeAlias = KafkaConnection[TopicOptions] | KafkaBroker[TopicOptions]


def kafka(cursor: Cursor, cls: type[TopicOptions]) -> Kafka[TopicOptions]:
    """Read what follows the word KAFKA."""
    if cursor.take("CONNECTION"):
        return KafkaConnection(s.object_name(cursor), o.options(cursor, cls))
    cursor.expect("BROKER")
    broker = cursor.string()
    cursor.expect("TOPIC")
    topic = cursor.string()
    return KafkaBroker(broker, topic, o.options(cursor, cls) if cursor.at("(") else cls())


def given_topic(kafka: Kafka[ReadOptions] | Kafka[WriteOptions]) -> str | None:
    """The topic that is named; None if a connection is given without one."""
    return kafka.options.topic if isinstance(kafka, KafkaConnection) else kafka.topic


ConnectionSystem: TypeAlias = Literal["KAFKA", "CONFLUENT SCHEMA REGISTRY", "POSTGRES", "ELASTICSEARCH"]
SslMode: TypeAlias = Literal["disable", "prefer", "require", "verify-ca", "verify-full"]


@dataclass(frozen=True, slots=True)
class SecretText:
    """The secret itself. ``repr`` does not show it, because statements are logged."""

    text: str

    def __repr__(self) -> str:
        return "SecretText(…)"

    def sql(self) -> str:
        return f"AS {s.print_string(self.text)}"


@dataclass(frozen=True, slots=True)
class SecretFromEnv:
    """The secret is the value of an environment variable of the engine."""

    variable: str

    def sql(self) -> str:
        return f"FROM ENV {s.print_string(self.variable)}"


@dataclass(frozen=True, slots=True)
class SecretFromFile:
    """The secret is the content of a file on the engine's machine."""

    path: str

    def sql(self) -> str:
        return f"FROM FILE {s.print_string(self.path)}"


SecretValue: TypeAlias = SecretText | SecretFromEnv | SecretFromFile


@dataclass(frozen=True, slots=True)
class CreateSecret(s.Create):
    """CREATE SECRET."""

    kind = s.Kind.SECRET
    value: SecretValue

    def sql(self) -> str:
        return s.words(self.head(), self.value.sql())


@dataclass(frozen=True, slots=True)
class AlterSecret(s.Alter):
    """ALTER SECRET: another value for the same secret."""

    value: SecretValue

    def sql(self) -> str:
        return s.words(self.head(), self.value.sql())


@dataclass(frozen=True, slots=True)
class KafkaConnectionOptions(o.Options, owner="the kafka connection"):
    """How to connect to the brokers of a Kafka cluster."""

    system: ClassVar[ConnectionSystem] = "KAFKA"
    broker: str | None = o.option()
    brokers: tuple[str, ...] | None = o.option()
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] | None = o.option()
    sasl_mechanisms: str | None = o.option(aliases=("SASL MECHANISM",))
    sasl_username: o.Secret | None = o.option()
    sasl_password: o.Secret | None = o.option(sensitive=True)
    ssl_key: o.Secret | None = o.option(sensitive=True)
    ssl_certificate: o.Secret | None = o.option()
    ssl_certificate_authority: o.Secret | None = o.option()


@dataclass(frozen=True, slots=True)
class RegistryConnectionOptions(o.Options, owner="the registry connection"):
    """How to connect to a schema registry."""

    system: ClassVar[ConnectionSystem] = "CONFLUENT SCHEMA REGISTRY"
    url: str | None = o.option()
    username: o.Secret | None = o.option(aliases=("USER",))
    password: o.Secret | None = o.option(sensitive=True)
    ssl_key: o.Secret | None = o.option(sensitive=True)
    ssl_certificate: o.Secret | None = o.option()
    ssl_certificate_authority: o.Secret | None = o.option()


@dataclass(frozen=True, slots=True)
class PostgresConnectionOptions(o.Options, owner="the postgres connection"):
    """How to connect to a database: by URL, or by host, port and database."""

    system: ClassVar[ConnectionSystem] = "POSTGRES"
    host: str | None = o.option()
    port: int | None = o.option()
    database: str | None = o.option()
    user: o.Secret | None = o.option(aliases=("USERNAME",))
    password: o.Secret | None = o.option(sensitive=True)
    url: str | None = o.option()
    ssl_mode: SslMode | None = o.option()
    ssl_key: o.Secret | None = o.option(sensitive=True)
    ssl_certificate: o.Secret | None = o.option()
    ssl_certificate_authority: o.Secret | None = o.option()


@dataclass(frozen=True, slots=True)
class ElasticsearchConnectionOptions(RegistryConnectionOptions, owner="the elasticsearch connection"):
    """How to connect to Elasticsearch or OpenSearch. The options are those of a registry."""

    system: ClassVar[ConnectionSystem] = "ELASTICSEARCH"


ConnectionOptions: TypeAlias = (
    KafkaConnectionOptions | RegistryConnectionOptions | PostgresConnectionOptions | ElasticsearchConnectionOptions
)


@dataclass(frozen=True, slots=True)
class AnyConnectionOptions(o.Options, owner="the connection"):
    """ALTER does not name the system of the connection, so it takes the options of all systems.

    It takes no aliases: they would clash, because USER of a database is USERNAME of a registry.
    """

    broker: str | None = o.option()
    brokers: tuple[str, ...] | None = o.option()
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] | None = o.option()
    sasl_mechanisms: str | None = o.option()
    sasl_username: o.Secret | None = o.option()
    sasl_password: o.Secret | None = o.option(sensitive=True)
    ssl_key: o.Secret | None = o.option(sensitive=True)
    ssl_certificate: o.Secret | None = o.option()
    ssl_certificate_authority: o.Secret | None = o.option()
    url: str | None = o.option()
    username: o.Secret | None = o.option()
    password: o.Secret | None = o.option(sensitive=True)
    host: str | None = o.option()
    port: int | None = o.option()
    database: str | None = o.option()
    user: o.Secret | None = o.option()
    ssl_mode: SslMode | None = o.option()


@dataclass(frozen=True, slots=True)
class ValidateOptions(o.Options, owner="the statement"):
    """WITH (VALIDATE = false) creates or alters a connection without connecting."""

    validate: bool = o.option(True)


@dataclass(frozen=True, slots=True)
class CreateConnection(s.Create):
    """CREATE CONNECTION … TO system."""

    kind = s.Kind.CONNECTION
    options: ConnectionOptions
    with_options: ValidateOptions = ValidateOptions()

    def sql(self) -> str:
        return s.clauses(
            self.head(),
            f"TO {self.options.system} {o.print_options(self.options)}",
            o.print_with_options(self.with_options),
        )


@dataclass(frozen=True, slots=True)
class AlterConnection(s.Alter):
    """Sets some options and resets others. Options that it does not name stay."""

    set_options: AnyConnectionOptions = AnyConnectionOptions()
    reset_options: tuple[str, ...] = ()
    with_options: ValidateOptions = ValidateOptions()

    def sql(self) -> str:
        set_ = o.print_options(self.set_options)
        return s.clauses(
            self.head(),
            f"SET {set_}" if set_ else "",
            f"RESET {s.block(self.reset_options)}" if self.reset_options else "",
            o.print_with_options(self.with_options),
        )


@dataclass(frozen=True, slots=True)
class ValidateConnection(s.Statement):
    """VALIDATE CONNECTION: try to connect now."""

    words = "VALIDATE CONNECTION"
    name: s.ObjectName

    def sql(self) -> str:
        return f"VALIDATE CONNECTION {s.print_name(self.name)}"


# By the words after TO.
CONNECTION_OPTIONS: dict[ConnectionSystem, type[ConnectionOptions]] = {
    cls.system: cls
    for cls in (
        KafkaConnectionOptions,
        RegistryConnectionOptions,
        PostgresConnectionOptions,
        ElasticsearchConnectionOptions,
    )
}


def create_secret(cursor: Cursor) -> CreateSecret:
    exists = s.if_not_exists(cursor)
    return CreateSecret(s.object_name(cursor), _secret_value(cursor), if_not_exists=exists)


def alter_secret(cursor: Cursor, target: Target) -> AlterSecret | None:
    """Read a new value. The words are remembered by hand, because `_secret_value` reads them."""
    if not (cursor.at("AS") or cursor.at("FROM")):
        cursor.expecting("AS")
        cursor.expecting("FROM")
        return None
    return AlterSecret(target.kind, target.name, _secret_value(cursor), if_exists=target.if_exists)


def _secret_value(cursor: Cursor) -> SecretValue:
    """Read where a secret comes from."""
    match cursor.choose("AS", "FROM ENV", "FROM FILE"):
        case "AS":
            return SecretText(_secret_text(cursor))
        case "FROM ENV":
            return SecretFromEnv(cursor.string())
        case "FROM FILE":
            return SecretFromFile(cursor.string())
        case _:
            raise cursor.unexpected()


def _secret_text(cursor: Cursor) -> str:
    """Read a string. The error does not quote another token, which may be the secret without quotes."""
    found = cursor.take_string()
    if found is None:
        raise UnexpectedToken(("a string",), "something else").at(cursor.token.span)
    return found


def create_connection(cursor: Cursor) -> CreateConnection:
    """Read CREATE CONNECTION, also in the older spelling with FOR."""
    exists = s.if_not_exists(cursor)
    name = s.object_name(cursor)
    legacy = cursor.take("FOR")  # the older spelling, whose options need no parentheses
    if not legacy:
        cursor.expect("TO")
    cls = _system_options(cursor)
    found = o.options(cursor, cls) if cursor.at("(") or not legacy else _bare_options(cursor, cls)
    return CreateConnection(name, found, o.with_options(cursor, ValidateOptions), if_not_exists=exists)


def _system_options(cursor: Cursor) -> type[ConnectionOptions]:
    for system, cls in CONNECTION_OPTIONS.items():
        if cursor.take(system):
            return cls
    raise cursor.unexpected()


def _bare_options(cursor: Cursor, cls: type[ConnectionOptions]) -> ConnectionOptions:
    """Read options without parentheses. A comma between them is optional."""
    found: dict[str, Any] = {}
    o.take_option(cursor, cls, found)
    while cursor.take(",") or not (cursor.at("WITH") or cursor.at_end()):
        o.take_option(cursor, cls, found)
    return cls(**found)


def alter_connection(cursor: Cursor, target: Target) -> AlterConnection | None:
    """Read SET and RESET, of which at least one must be there."""
    has_set = cursor.take("SET")
    set_ = o.options(cursor, AnyConnectionOptions) if has_set else AnyConnectionOptions()
    reset = _reset_options(cursor) if cursor.take("RESET") else ()
    if not has_set and not reset:
        return None
    validate = o.with_options(cursor, ValidateOptions)
    return AlterConnection(target.kind, target.name, set_, reset, validate, if_exists=target.if_exists)


def _reset_options(cursor: Cursor) -> tuple[str, ...]:
    """Read names of options in parentheses."""
    return tuple(o.take_option_name(cursor, AnyConnectionOptions).name for _ in cursor.items())


def validate_connection(cursor: Cursor) -> ValidateConnection:
    cursor.expect("VALIDATE CONNECTION")
    return ValidateConnection(s.object_name(cursor))
