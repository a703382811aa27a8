"""CREATE and ALTER SECRET, CREATE and ALTER CONNECTION, VALIDATE CONNECTION."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from headgate.sql.ast.names import ObjectName
from headgate.sql.ast.statement import Statement
from headgate.sql.ast.values import Option

ConnectionKind: TypeAlias = Literal["KAFKA", "CONFLUENT SCHEMA REGISTRY", "POSTGRES", "ELASTICSEARCH"]


@dataclass(frozen=True, slots=True)
class SecretText:
    """The secret itself. Kept out of ``repr``: statements are logged."""

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


@dataclass(frozen=True, slots=True)
class AlterSecret(Statement):
    name: ObjectName
    value: SecretValue
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateConnection(Statement):
    name: ObjectName
    kind: ConnectionKind
    options: tuple[Option, ...]
    with_options: tuple[Option, ...] = ()
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterConnection(Statement):
    """Sets options anew and takes others back; those not named stay."""

    name: ObjectName
    set_options: tuple[Option, ...] = ()
    reset_options: tuple[str, ...] = ()
    with_options: tuple[Option, ...] = ()
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ValidateConnection(Statement):
    name: ObjectName
