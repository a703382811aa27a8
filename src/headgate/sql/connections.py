"""CREATE and ALTER SECRET, CREATE and ALTER CONNECTION, VALIDATE CONNECTION."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from headgate.sql.objects import Target
from headgate.sql.options import (
    Option,
    OptionRule,
    OptionTable,
    ValueKind,
    items,
    one_option,
    options,
    print_options,
    print_with_options,
    take_option_name,
    unique,
    with_options,
)
from headgate.sql.statement import (
    ObjectName,
    Statement,
    block,
    clauses,
    if_not_exists,
    object_name,
    print_if_exists,
    print_if_not_exists,
    print_name,
    print_string,
    words,
)
from headgate.text.cursor import Cursor
from headgate.text.errors import UnexpectedToken

ConnectionKind: TypeAlias = Literal["KAFKA", "CONFLUENT SCHEMA REGISTRY", "POSTGRES", "ELASTICSEARCH"]


@dataclass(frozen=True, slots=True)
class SecretText:
    """The secret itself. ``repr`` does not show it, because statements are logged."""

    text: str

    def __repr__(self) -> str:
        return "SecretText(…)"


@dataclass(frozen=True, slots=True)
class SecretFromEnv:
    variable: str


@dataclass(frozen=True, slots=True)
class SecretFromFile:
    path: str


SecretValue: TypeAlias = SecretText | SecretFromEnv | SecretFromFile


@dataclass(frozen=True, slots=True)
class CreateSecret(Statement):
    name: ObjectName
    value: SecretValue
    if_not_exists: bool = False

    def sql(self) -> str:
        return words(
            "CREATE SECRET",
            print_if_not_exists(self.if_not_exists),
            print_name(self.name),
            _print_secret_value(self.value),
        )


@dataclass(frozen=True, slots=True)
class AlterSecret(Statement):
    name: ObjectName
    value: SecretValue
    if_exists: bool = False

    def sql(self) -> str:
        return words(
            "ALTER SECRET",
            print_if_exists(self.if_exists),
            print_name(self.name),
            _print_secret_value(self.value),
        )


@dataclass(frozen=True, slots=True)
class CreateConnection(Statement):
    name: ObjectName
    kind: ConnectionKind
    options: tuple[Option, ...]
    with_options: tuple[Option, ...] = ()
    if_not_exists: bool = False

    def sql(self) -> str:
        return clauses(
            words("CREATE CONNECTION", print_if_not_exists(self.if_not_exists), print_name(self.name)),
            f"TO {self.kind} {print_options(self.options)}",
            print_with_options(self.with_options),
        )


@dataclass(frozen=True, slots=True)
class AlterConnection(Statement):
    """Sets some options and resets others. Options that it does not name stay."""

    name: ObjectName
    set_options: tuple[Option, ...] = ()
    reset_options: tuple[str, ...] = ()
    with_options: tuple[Option, ...] = ()
    if_exists: bool = False

    def sql(self) -> str:
        return clauses(
            words("ALTER CONNECTION", print_if_exists(self.if_exists), print_name(self.name)),
            f"SET {print_options(self.set_options)}" if self.set_options else "",
            f"RESET {block(self.reset_options)}" if self.reset_options else "",
            print_with_options(self.with_options),
        )


@dataclass(frozen=True, slots=True)
class ValidateConnection(Statement):
    name: ObjectName

    def sql(self) -> str:
        return f"VALIDATE CONNECTION {print_name(self.name)}"


_SSL = (
    OptionRule("SSL KEY", ValueKind.SECRET, sensitive=True),
    OptionRule("SSL CERTIFICATE", ValueKind.SECRET),
    OptionRule("SSL CERTIFICATE AUTHORITY", ValueKind.SECRET),
)
_USERNAME = OptionRule("USERNAME", ValueKind.SECRET, aliases=("USER",))
_PASSWORD = OptionRule("PASSWORD", ValueKind.SECRET, sensitive=True)
_URL = OptionRule("URL", ValueKind.STRING)

CONNECTION_OPTIONS: dict[ConnectionKind, OptionTable] = {
    "KAFKA": OptionTable(
        "the kafka connection",
        (
            OptionRule("BROKER", ValueKind.STRING),
            OptionRule("BROKERS", ValueKind.STRINGS),
            OptionRule(
                "SECURITY PROTOCOL", ValueKind.CHOICE, ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
            ),
            OptionRule("SASL MECHANISMS", ValueKind.STRING, aliases=("SASL MECHANISM",)),
            OptionRule("SASL USERNAME", ValueKind.SECRET),
            OptionRule("SASL PASSWORD", ValueKind.SECRET, sensitive=True),
            *_SSL,
        ),
    ),
    "CONFLUENT SCHEMA REGISTRY": OptionTable("the registry connection", (_URL, _USERNAME, _PASSWORD, *_SSL)),
    "POSTGRES": OptionTable(
        "the postgres connection",
        (
            OptionRule("HOST", ValueKind.STRING),
            OptionRule("PORT", ValueKind.INTEGER),
            OptionRule("DATABASE", ValueKind.STRING),
            OptionRule("USER", ValueKind.SECRET, aliases=("USERNAME",)),
            _PASSWORD,
            _URL,
            OptionRule(
                "SSL MODE", ValueKind.STRING, ("disable", "prefer", "require", "verify-ca", "verify-full")
            ),
            *_SSL,
        ),
    ),
    "ELASTICSEARCH": OptionTable("the elasticsearch connection", (_URL, _USERNAME, _PASSWORD, *_SSL)),
}
# ALTER does not name the system of the connection, so the option must exist for one of them. Aliases are left out: they
# would clash, because USER of a database is USERNAME of a registry.
_ANY = OptionTable(
    "the connection",
    tuple(
        {
            rule.name: dataclasses.replace(rule, aliases=())
            for table in CONNECTION_OPTIONS.values()
            for rule in table.rules
        }.values()
    ),
)
VALIDATE_OPTIONS = OptionTable("the statement", (OptionRule("VALIDATE", ValueKind.BOOLEAN),))

TABLES = {
    "kafka connection option": CONNECTION_OPTIONS["KAFKA"],
    "registry connection option": CONNECTION_OPTIONS["CONFLUENT SCHEMA REGISTRY"],
    "postgres connection option": CONNECTION_OPTIONS["POSTGRES"],
    "elasticsearch connection option": CONNECTION_OPTIONS["ELASTICSEARCH"],
    "connection option": _ANY,
    "validate option": VALIDATE_OPTIONS,
}
RULES = {"secret value": "{AS <string> | FROM ENV <string> | FROM FILE <string>}"}
SYNOPSES = {
    "CREATE SECRET": "CREATE SECRET [IF NOT EXISTS] <name> <secret value>",
    "ALTER SECRET": "ALTER SECRET [IF EXISTS] <name> {<secret value> | RENAME TO <new name>}",
    "CREATE CONNECTION": (
        "CREATE CONNECTION [IF NOT EXISTS] <name> TO {KAFKA (<kafka connection option> [, ...])"
        " | CONFLUENT SCHEMA REGISTRY (<registry connection option> [, ...])"
        " | POSTGRES (<postgres connection option> [, ...])"
        " | ELASTICSEARCH (<elasticsearch connection option> [, ...])}"
        " [WITH (<validate option>)]"
    ),
    "ALTER CONNECTION": (
        "ALTER CONNECTION [IF EXISTS] <name>"
        " {SET (<connection option> [, ...]) [RESET (<option name> [, ...])] [WITH (<validate option>)]"
        " | RESET (<option name> [, ...]) [WITH (<validate option>)] | RENAME TO <new name>}"
    ),
    "VALIDATE CONNECTION": "VALIDATE CONNECTION <name>",
}


def create_secret(cursor: Cursor) -> CreateSecret:
    exists = if_not_exists(cursor)
    return CreateSecret(object_name(cursor), _secret_value(cursor), exists)


def alter_secret(cursor: Cursor, target: Target) -> AlterSecret | None:
    if not (cursor.at("AS") or cursor.at("FROM")):
        cursor.expecting("AS")
        cursor.expecting("FROM")
        return None
    return AlterSecret(target.name, _secret_value(cursor), target.if_exists)


def _secret_value(cursor: Cursor) -> SecretValue:
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
    exists = if_not_exists(cursor)
    name = object_name(cursor)
    legacy = cursor.take("FOR")  # the older spelling, whose options need no parentheses
    if not legacy:
        cursor.expect("TO")
    kind = _kind(cursor)
    table = CONNECTION_OPTIONS[kind]
    found = options(cursor, table) if cursor.at("(") or not legacy else _bare_options(cursor, table)
    return CreateConnection(name, kind, found, with_options(cursor, VALIDATE_OPTIONS), exists)


def _kind(cursor: Cursor) -> ConnectionKind:
    for kind in CONNECTION_OPTIONS:
        if cursor.take(kind):
            return kind
    raise cursor.unexpected()


def _bare_options(cursor: Cursor, table: OptionTable) -> tuple[Option, ...]:
    found = [(cursor.token.span, one_option(cursor, table))]
    while cursor.take(",") or not (cursor.at("WITH") or cursor.at_end()):
        found.append((cursor.token.span, one_option(cursor, table)))
    return unique(table, found)


def alter_connection(cursor: Cursor, target: Target) -> AlterConnection | None:
    set_ = options(cursor, _ANY) if cursor.take("SET") else ()
    reset = tuple(take_option_name(cursor, _ANY).name for _ in items(cursor)) if cursor.take("RESET") else ()
    if not set_ and not reset:
        return None
    return AlterConnection(target.name, set_, reset, with_options(cursor, VALIDATE_OPTIONS), target.if_exists)


def validate_connection(cursor: Cursor) -> ValidateConnection:
    cursor.expect("VALIDATE CONNECTION")
    return ValidateConnection(object_name(cursor))


def _print_secret_value(node: SecretValue) -> str:
    match node:
        case SecretText(text):
            return f"AS {print_string(text)}"
        case SecretFromEnv(variable):
            return f"FROM ENV {print_string(variable)}"
        case SecretFromFile(path):
            return f"FROM FILE {print_string(path)}"
        case _:
            assert_never(node)
