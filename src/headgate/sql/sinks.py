"""CREATE and ALTER SINK, CREATE and ALTER SINK POLICY."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from headgate.sql.errors import RepeatedClause
from headgate.sql.formats import Formats, formats, print_formats
from headgate.sql.kafka import WRITE_OPTIONS, Kafka, kafka, print_kafka
from headgate.sql.objects import Target
from headgate.sql.options import (
    CHANGE_OPTIONS,
    ON_ERROR,
    Option,
    OptionRule,
    OptionTable,
    ValueKind,
    items,
    print_with_options,
    with_options,
)
from headgate.sql.registry_formats import (
    WRITE_FORMAT_OPTIONS,
    DocOn,
    DocTarget,
    RegistryKind,
    doc_on,
    doc_target,
    print_doc_on,
    print_doc_target,
    registry_kind,
)
from headgate.sql.statement import (
    Kind,
    ObjectName,
    Statement,
    block,
    clauses,
    if_not_exists,
    object_name,
    print_identifier,
    print_identifiers,
    print_if_exists,
    print_if_not_exists,
    print_name,
    words,
)
from headgate.text.cursor import Cursor, Identifier

SinkEnvelope: TypeAlias = Literal["UPSERT", "DEBEZIUM", "NONE"]
Documented: TypeAlias = Literal["FIELDS", "TYPES"]


@dataclass(frozen=True, slots=True)
class SinkKey:
    columns: tuple[Identifier, ...]
    enforced: bool = True


@dataclass(frozen=True, slots=True)
class CreateSink(Statement):
    """CREATE SINK. Without a name, the sink is named after its relation."""

    name: ObjectName | None
    relation: ObjectName
    kafka: Kafka
    formats: Formats
    key: SinkKey | None = None
    headers: Identifier | None = None
    envelope: SinkEnvelope | None = None
    with_options: tuple[Option, ...] = ()
    if_not_exists: bool = False

    def sql(self) -> str:
        own = print_name(self.name) if self.name is not None else ""
        return clauses(
            words("CREATE SINK", print_if_not_exists(self.if_not_exists), own),
            f"FROM {print_name(self.relation)}",
            f"INTO {print_kafka(self.kafka)}",
            _print_key(self.key) if self.key is not None else "",
            f"HEADERS {print_identifier(self.headers)}" if self.headers is not None else "",
            print_formats(self.formats),
            f"ENVELOPE {self.envelope}" if self.envelope is not None else "",
            print_with_options(self.with_options),
        )


@dataclass(frozen=True, slots=True)
class AddDoc:
    doc: DocOn


@dataclass(frozen=True, slots=True)
class DropDoc:
    target: DocTarget


@dataclass(frozen=True, slots=True)
class RefreshDocs:
    pass


DocChange: TypeAlias = AddDoc | DropDoc | RefreshDocs


@dataclass(frozen=True, slots=True)
class AlterSinkDocs(Statement):
    name: ObjectName
    format: RegistryKind
    changes: tuple[DocChange, ...]
    if_exists: bool = False

    def sql(self) -> str:
        changes = block([_print_doc_change(change) for change in self.changes])
        return words(
            "ALTER SINK",
            print_if_exists(self.if_exists),
            print_name(self.name),
            "FORMAT",
            self.format,
            changes,
        )


@dataclass(frozen=True, slots=True)
class AlterSinkFrom(Statement):
    name: ObjectName
    relation: ObjectName
    with_options: tuple[Option, ...] = ()
    if_exists: bool = False

    def sql(self) -> str:
        target = words("ALTER SINK", print_if_exists(self.if_exists), print_name(self.name))
        return words(target, f"SET FROM {print_name(self.relation)}", print_with_options(self.with_options))


@dataclass(frozen=True, slots=True)
class PolicyScope:
    """The schema or database that a policy applies to. Without one it is the current database."""

    kind: Kind
    name: ObjectName


@dataclass(frozen=True, slots=True)
class CreateSinkPolicy(Statement):
    name: ObjectName
    format: RegistryKind
    requires: tuple[Documented, ...]
    scope: PolicyScope | None = None
    if_not_exists: bool = False

    def sql(self) -> str:
        return clauses(
            words("CREATE SINK POLICY", print_if_not_exists(self.if_not_exists), print_name(self.name)),
            _print_requirements(self.format, self.requires),
            f"ON {self.scope.kind.words} {print_name(self.scope.name)}" if self.scope is not None else "",
        )


@dataclass(frozen=True, slots=True)
class AlterSinkPolicy(Statement):
    """Replaces the requirements of the policy."""

    name: ObjectName
    format: RegistryKind
    requires: tuple[Documented, ...]
    if_exists: bool = False

    def sql(self) -> str:
        target = words("ALTER SINK POLICY", print_if_exists(self.if_exists), print_name(self.name))
        return words(target, _print_requirements(self.format, self.requires))


SINK_OPTIONS = OptionTable(
    "the sink",
    (
        OptionRule("KEY IN VALUE", ValueKind.BOOLEAN),
        OptionRule("SNAPSHOT", ValueKind.BOOLEAN),
        OptionRule("DELIVERY", ValueKind.STRING, ("at least once", "exactly once")),
        OptionRule("LATENCY", ValueKind.STRING, ("real time",)),
        ON_ERROR,
    ),
)
_ENVELOPES: tuple[SinkEnvelope, ...] = ("UPSERT", "DEBEZIUM", "NONE")

TABLES = {"sink option": SINK_OPTIONS}
RULES = {
    "kafka target": "KAFKA {CONNECTION <name> (<write option> [, ...])"
    " | BROKER <string> TOPIC <string> [(<write option> [, ...])]}",
    "doc change": "{ADD <doc target> = <string> | DROP <doc target> | REFRESH DOCS}",
    "schema format": "{AVRO | PROTOBUF | JSON SCHEMA}",
    "requirement": "REQUIRE DOCUMENTATION FOR ALL {FIELDS | TYPES}",
}
SYNOPSES = {
    "CREATE SINK": (
        "CREATE SINK [IF NOT EXISTS] [<name>] FROM <name> INTO <kafka target>"
        " [KEY (<column> [, ...]) [NOT ENFORCED]] [HEADERS <column>] <write formats>"
        " [ENVELOPE {UPSERT | DEBEZIUM | NONE}] [WITH (<sink option> [, ...])]"
    ),
    "ALTER SINK": (
        "ALTER SINK [IF EXISTS] <name> {FORMAT <schema format> (<doc change> [, ...])"
        " | SET FROM <name> [WITH (<change option>)] | <task state> | RENAME TO <new name>}"
    ),
    "CREATE SINK POLICY": (
        "CREATE SINK POLICY [IF NOT EXISTS] <name> FORMAT <schema format> (<requirement> [, ...])"
        " [ON {SCHEMA <schema> | DATABASE <database>}]"
    ),
    "ALTER SINK POLICY": (
        "ALTER SINK POLICY [IF EXISTS] <name> {FORMAT <schema format> (<requirement> [, ...]) | RENAME TO <new name>}"
    ),
}


def create_sink(cursor: Cursor) -> CreateSink:
    exists = if_not_exists(cursor)
    name = None if cursor.at("FROM") else object_name(cursor)
    cursor.expect("FROM")
    relation = object_name(cursor)
    cursor.expect("INTO KAFKA")
    return CreateSink(
        name=name,
        relation=relation,
        kafka=kafka(cursor, WRITE_OPTIONS),
        key=_key(cursor),
        headers=cursor.identifier() if cursor.take("HEADERS") else None,
        formats=formats(cursor, WRITE_FORMAT_OPTIONS),
        envelope=_envelope(cursor),
        with_options=with_options(cursor, SINK_OPTIONS),
        if_not_exists=exists,
    )


def _key(cursor: Cursor) -> SinkKey | None:
    if not cursor.at("KEY", "("):
        cursor.expecting("KEY")
        return None
    cursor.expect("KEY")
    return SinkKey(cursor.identifiers(), not cursor.take("NOT ENFORCED"))


def _envelope(cursor: Cursor) -> SinkEnvelope | None:
    if not cursor.take("ENVELOPE"):
        return None
    for envelope in _ENVELOPES:
        if cursor.take(envelope):
            return envelope
    raise cursor.unexpected()


def alter_sink_docs(cursor: Cursor, target: Target) -> AlterSinkDocs | None:
    if not cursor.take("FORMAT"):
        return None
    format_ = registry_kind(cursor)
    changes = tuple(_doc_change(cursor) for _ in items(cursor))
    return AlterSinkDocs(target.name, format_, changes, target.if_exists)


def _doc_change(cursor: Cursor) -> DocChange:
    match cursor.choose("ADD", "DROP", "REFRESH DOCS"):
        case "ADD":
            return AddDoc(doc_on(cursor))
        case "DROP":
            return DropDoc(doc_target(cursor))
        case "REFRESH DOCS":
            return RefreshDocs()
        case _:
            raise cursor.unexpected()


def alter_sink_from(cursor: Cursor, target: Target) -> AlterSinkFrom | None:
    if not cursor.take("SET FROM"):
        return None
    return AlterSinkFrom(
        target.name, object_name(cursor), with_options(cursor, CHANGE_OPTIONS), target.if_exists
    )


def create_sink_policy(cursor: Cursor) -> CreateSinkPolicy:
    exists = if_not_exists(cursor)
    name = object_name(cursor)
    cursor.expect("FORMAT")
    format_ = registry_kind(cursor)
    requires = _requirements(cursor)
    return CreateSinkPolicy(name, format_, requires, _scope(cursor), exists)


def alter_sink_policy(cursor: Cursor, target: Target) -> AlterSinkPolicy | None:
    if not cursor.take("FORMAT"):
        return None
    return AlterSinkPolicy(target.name, registry_kind(cursor), _requirements(cursor), target.if_exists)


def _requirements(cursor: Cursor) -> tuple[Documented, ...]:
    found: list[Documented] = []
    for _ in items(cursor):
        start = cursor.token
        cursor.expect("REQUIRE DOCUMENTATION FOR ALL")
        what: Documented = "FIELDS" if cursor.take("FIELDS") else "TYPES"
        if what == "TYPES":
            cursor.expect("TYPES")
        if what in found:
            raise RepeatedClause(f"REQUIRE DOCUMENTATION FOR ALL {what}").at(start.span)
        found.append(what)
    return tuple(found)


def _scope(cursor: Cursor) -> PolicyScope | None:
    if not cursor.take("ON"):
        return None
    if cursor.take("DATABASE"):
        return PolicyScope(Kind.DATABASE, object_name(cursor, most=1))
    cursor.expect("SCHEMA")
    return PolicyScope(Kind.SCHEMA, object_name(cursor, most=2))


def _print_key(node: SinkKey) -> str:
    return words("KEY", print_identifiers(node.columns), "" if node.enforced else "NOT ENFORCED")


def _print_doc_change(node: DocChange) -> str:
    match node:
        case AddDoc(doc):
            return f"ADD {print_doc_on(doc)}"
        case DropDoc(target):
            return f"DROP {print_doc_target(target)}"
        case RefreshDocs():
            return "REFRESH DOCS"
        case _:
            assert_never(node)


def _print_requirements(format_: RegistryKind, requires: tuple[Documented, ...]) -> str:
    return f"FORMAT {format_} " + block([f"REQUIRE DOCUMENTATION FOR ALL {what}" for what in requires])
