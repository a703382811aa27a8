"""CREATE and ALTER SINK, CREATE and ALTER SINK POLICY."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from headgate.sql import options as o, statement as s
from headgate.sql.connections import Kafka, WriteOptions, kafka
from headgate.sql.errors import RepeatedClause
from headgate.sql.formats import Formats, formats
from headgate.sql.objects import Target
from headgate.sql.registry_formats import (
    DocOn,
    DocTarget,
    RegistryKind,
    WriteFormatOptions,
    doc_on,
    doc_target,
    registry_kind,
)
from headgate.text.cursor import Cursor, Identifier

SinkEnvelope: TypeAlias = Literal["UPSERT", "DEBEZIUM", "NONE"]
Documented: TypeAlias = Literal["FIELDS", "TYPES"]


@dataclass(frozen=True, slots=True)
class SinkKey:
    """The columns of the key. NOT ENFORCED accepts a key that is not known to be unique."""

    columns: tuple[Identifier, ...]
    enforced: bool = True

    def sql(self) -> str:
        return s.words("KEY", s.print_identifiers(self.columns), "" if self.enforced else "NOT ENFORCED")


@dataclass(frozen=True, slots=True)
class SinkOptions(o.Options, owner="the sink"):
    """Options of CREATE SINK. A sink without a snapshot begins at ``seed_offset``, the offsets of the source's topic, or behind
    ``seed_batch`` of a materialized view, which are its generation and its number."""

    key_in_value: bool = o.option(True)
    snapshot: bool = o.option(True)
    seed_offset: tuple[int, ...] | None = o.option()
    seed_batch: tuple[int, ...] | None = o.option()
    delivery: Literal["at least once", "exactly once"] = o.option("at least once")
    latency: Literal["real time", "micro-batch"] | None = o.option()
    on_error: o.OnError = o.option("HALT", aliases=("ON INVALID",))


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """The column with the time of a record, and the pattern of its texts."""

    name: Identifier
    format: str | None = None


@dataclass(frozen=True, slots=True)
class CreateSink(s.Create):
    """CREATE SINK. The parser gives a sink without a name the name of its relation and ``_sink``.

    ``pending`` are fields of the value that came later and that a policy keeps out until they have docs, as names of
    fields from the outermost record on. ``time`` is what the property timestamp of a stream says to its hidden sink. Nobody writes
    these and they are not printed: only the catalog has them.
    """

    kind = s.Kind.SINK
    relation: s.ObjectName = field(metadata=s.names(*s.RELATIONS))
    kafka: Kafka[WriteOptions]
    formats: Formats
    key: SinkKey | None = None
    headers: Identifier | None = None
    envelope: SinkEnvelope | None = None
    with_options: SinkOptions = SinkOptions()
    pending: tuple[tuple[str, ...], ...] = ()
    time: TimeColumn | None = None

    def sql(self) -> str:
        return s.clauses(
            self.head(),
            f"FROM {s.print_name(self.relation)}",
            f"INTO {self.kafka.sql()}",
            self.key.sql() if self.key is not None else "",
            f"HEADERS {s.print_identifier(self.headers)}" if self.headers is not None else "",
            self.formats.sql(),
            f"ENVELOPE {self.envelope}" if self.envelope is not None else "",
            o.print_with_options(self.with_options),
        )


@dataclass(frozen=True, slots=True)
class AddDoc:
    """ADD: another doc for the schema that the sink publishes."""

    doc: DocOn

    def sql(self) -> str:
        return f"ADD {self.doc.sql()}"


@dataclass(frozen=True, slots=True)
class DropDoc:
    """DROP: one doc less."""

    target: DocTarget

    def sql(self) -> str:
        return f"DROP {self.target.sql()}"


@dataclass(frozen=True, slots=True)
class RefreshDocs:
    """REFRESH DOCS: take the comments of the catalog as they are now."""

    def sql(self) -> str:
        return "REFRESH DOCS"


DocChange: TypeAlias = AddDoc | DropDoc | RefreshDocs


@dataclass(frozen=True, slots=True)
class AlterSinkDocs(s.Alter):
    """ALTER SINK … FORMAT kind (doc changes)."""

    format: RegistryKind
    changes: tuple[DocChange, ...]

    def sql(self) -> str:
        changes = s.block([change.sql() for change in self.changes])
        return s.words(self.head(), "FORMAT", self.format, changes)


@dataclass(frozen=True, slots=True)
class AlterSinkFrom(s.Alter):
    """ALTER SINK … SET FROM another relation."""

    relation: s.ObjectName = field(metadata=s.names(*s.RELATIONS))
    with_options: o.ChangeOptions = o.ChangeOptions()

    def sql(self) -> str:
        return s.words(self.head(), f"SET FROM {s.print_name(self.relation)}", o.print_with_options(self.with_options))


@dataclass(frozen=True, slots=True)
class PolicyScope:
    """The schema or database that a policy applies to. Without one it is the current database."""

    kind: s.Kind
    name: s.ObjectName


@dataclass(frozen=True, slots=True)
class CreateSinkPolicy(s.Create):
    """CREATE SINK POLICY: what the schemas of sinks must document."""

    kind = s.Kind.SINK_POLICY
    format: RegistryKind
    requires: tuple[Documented, ...]
    scope: PolicyScope | None = None

    def sql(self) -> str:
        return s.clauses(
            self.head(),
            _print_requirements(self.format, self.requires),
            f"ON {self.scope.kind.words} {s.print_name(self.scope.name)}" if self.scope is not None else "",
        )


@dataclass(frozen=True, slots=True)
class AlterSinkPolicy(s.Alter):
    """Replaces the requirements of the policy."""

    format: RegistryKind
    requires: tuple[Documented, ...]

    def sql(self) -> str:
        return s.words(self.head(), _print_requirements(self.format, self.requires))


# The order of the choices in errors.
_ENVELOPES: tuple[SinkEnvelope, ...] = ("UPSERT", "DEBEZIUM", "NONE")


def create_sink(cursor: Cursor) -> CreateSink:
    exists = s.if_not_exists(cursor)
    name = None if cursor.at("FROM") else s.object_name(cursor)
    cursor.expect("FROM")
    relation = s.object_name(cursor)
    cursor.expect("INTO KAFKA")
    return CreateSink(
        name=name or _default_name(relation),
        relation=relation,
        kafka=kafka(cursor, WriteOptions),
        key=_key(cursor),
        headers=cursor.identifier() if cursor.take("HEADERS") else None,
        formats=formats(cursor, WriteFormatOptions),
        envelope=cursor.one_of(_ENVELOPES) if cursor.take("ENVELOPE") else None,
        with_options=o.with_options(cursor, SinkOptions),
        if_not_exists=exists,
    )


def _default_name(relation: s.ObjectName) -> s.ObjectName:
    """The name of a sink that is created without one: ``orders_sink`` for the relation ``orders``."""
    *above, last = relation.parts
    return s.ObjectName((*above, Identifier(f"{last.name}_sink", last.quoted)), span=relation.span)


def _key(cursor: Cursor) -> SinkKey | None:
    """Read ``KEY (columns)``. KEY alone begins the formats."""
    # KEY FORMAT begins the next clause.
    if not cursor.at("KEY", "("):
        cursor.expecting("KEY")
        return None
    cursor.expect("KEY")
    return SinkKey(cursor.identifiers(), not cursor.take("NOT ENFORCED"))


def alter_sink_docs(cursor: Cursor, target: Target) -> AlterSinkDocs | None:
    if not cursor.take("FORMAT"):
        return None
    format_ = registry_kind(cursor)
    changes = tuple(_doc_change(cursor) for _ in cursor.items())
    return AlterSinkDocs(target.kind, target.name, format_, changes, if_exists=target.if_exists)


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
    relation = s.object_name(cursor)
    change = o.with_options(cursor, o.ChangeOptions)
    return AlterSinkFrom(target.kind, target.name, relation, change, if_exists=target.if_exists)


def create_sink_policy(cursor: Cursor) -> CreateSinkPolicy:
    exists = s.if_not_exists(cursor)
    name = s.object_name(cursor)
    cursor.expect("FORMAT")
    format_ = registry_kind(cursor)
    requires = _requirements(cursor)
    return CreateSinkPolicy(name, format_, requires, _scope(cursor), if_not_exists=exists)


def alter_sink_policy(cursor: Cursor, target: Target) -> AlterSinkPolicy | None:
    if not cursor.take("FORMAT"):
        return None
    format_ = registry_kind(cursor)
    requires = _requirements(cursor)
    return AlterSinkPolicy(target.kind, target.name, format_, requires, if_exists=target.if_exists)


def _requirements(cursor: Cursor) -> tuple[Documented, ...]:
    """Read what must be documented, each once."""
    found: list[Documented] = []
    for _ in cursor.items():
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
    """Read the schema or database that the policy applies to."""
    if not cursor.take("ON"):
        return None
    if cursor.take("DATABASE"):
        return PolicyScope(s.Kind.DATABASE, s.object_name(cursor, most=1))
    cursor.expect("SCHEMA")
    return PolicyScope(s.Kind.SCHEMA, s.object_name(cursor, most=2))


def _print_requirements(format_: RegistryKind, requires: tuple[Documented, ...]) -> str:
    return f"FORMAT {format_} " + s.block([f"REQUIRE DOCUMENTATION FOR ALL {what}" for what in requires])
